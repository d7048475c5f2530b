"""Traps of asking people: each has a person who walks into it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from milp_recourse.elicitation.personal_limits import Limits
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import instance_from_dict, read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.lab.interviews.simulated_people import Person
from milp_recourse.preferences import Interview, Question
from milp_recourse.preferences.candidates import ALONG, exact_candidates, nearest_to
from milp_recourse.preferences.cost_parts import cost_parts, with_weights
from milp_recourse.preferences.hare import FloatArray
from milp_recourse.preferences.hare_dialogue import sampled
from milp_recourse.preferences.knowledge import INNER, OUTER
from milp_recourse.preferences.lever_space import LeverSpace
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve

LEVERS = ("hours", "savings", "debt")


def toy(**changes: Any) -> Instance:
    """Accepted where hours + savings - debt - max(0, 2 - hours) >= 2, from 0, 0, 4: 6 hours suffice, or 8 of
    savings or debt, and mixtures."""
    document: dict[str, Any] = {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "age", "kind": "continuous", "actionable": False},
            {"name": "hours", "kind": "continuous", "actionable": True, "bounds": [0, 20]},
            {"name": "savings", "kind": "continuous", "actionable": True, "bounds": [0, 20]},
            {"name": "debt", "kind": "continuous", "actionable": True, "bounds": [-10, 4]},
        ],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            # the second hidden unit makes the first few hours worth more
            "layers": [
                {"weight": [[0, 1, 1, -1], [0, -1, 0, 0]], "bias": [20, 2]},
                {"weight": [[1, -1]], "bias": [-22]},
            ],
        },
        "accept": {"at_least": 0.0, "margin": 1e-6},
        "factual": {"age": 40, "hours": 0, "savings": 0, "debt": 4},
        "preferences": {"actionable": list(LEVERS)},
        "cost": {"kind": "l1", "scale": {name: 1 for name in LEVERS}},
    }
    for key, value in changes.items():
        document[key] = value
    return instance_from_dict(document)


def features(**of: dict[str, Any]) -> list[dict[str, Any]]:
    """The toy's features with further keys for some of them."""
    shared = {"kind": "continuous", "actionable": True, "bounds": [0, 20]}
    listed: list[dict[str, Any]] = [{"name": "age", "kind": "continuous", "actionable": False}]
    for name in LEVERS:
        own = {"name": name, **shared, **({"bounds": [-10, 4]} if name == "debt" else {}), **of.get(name, {})}
        listed.append(own)
    return listed


def person(instance: Instance, *weights: float, **more: Any) -> Person:
    return Person(instance, dict(zip(LEVERS, weights, strict=True)), **more)


def all_answers(interview: Interview, answer: str) -> Interview:
    """The interview after the same answer to every question."""
    while (question := interview.ask()) is not None:
        interview.tell(answer if answer in question.answers else "no")
    return interview


def pair(instance: Instance, left: dict[str, float], right: dict[str, float]) -> Question:
    """A question about two given actions."""
    from milp_recourse.preferences.question import option

    options = option(instance, left), option(instance, right)
    assert options[0] is not None and options[1] is not None
    return Question("pair", *options)


def told(instance: Instance, *said: tuple[dict[str, float], dict[str, float], str], **how: Any) -> Interview:
    """An interview that was told about given pairs."""
    interview = Interview(instance, budget=0, **how)
    for number, (left, right, answer) in enumerate(said):
        interview._known.tell(number, pair(instance, left, right), answer)
    return interview


H, S, D = {"hours": 8.1}, {"savings": 8.1}, {"debt": -4.1}
"""Three ways, one lever each, all of 8.1."""


# -- ties -------------------------------------------------------------------------------------


def test_same_bounds_weights_from_both_sides() -> None:
    """About the same: neither weighs more than a tenth above the other here."""
    learned = told(toy(), (H, S, "same"))._known.learned
    weights = learned.samples(200, np.random.default_rng(0))
    assert (np.abs(np.log(weights[:, 0] / weights[:, 1])) <= math.log(1.1) + 1e-9).all()
    assert len(learned.rows) == 2


def test_always_the_same_ends_with_equal_costs() -> None:
    """Under the learned weights the costs of no pair that was shown differ by more than a tenth."""
    interview = all_answers(Interview(toy()), "same")
    assert interview.recommend().status is Status.OPTIMAL and not interview.set_aside
    for question, _ in interview.answers:
        costs = []
        for side in (question.left, question.right):
            assert side is not None
            parts = cost_parts(interview.instance, side.numbers, LEVERS)
            costs.append(sum(w * float(p) for w, p in zip(interview._known.weights, parts, strict=True)))
        assert max(costs) <= 1.1 * min(costs) * (1 + 1e-9)


def test_ties_do_not_exclude_the_truth() -> None:
    """Someone who cannot tell differences below 5%: the true regret is within the proven one."""
    instance = toy()
    for seed in range(4):
        drawn = np.random.default_rng(seed).dirichlet(np.ones(3)) * 2.85 + 0.05
        someone = person(instance, *drawn.tolist(), tie=0.05)
        interview = someone.interviewed(Interview(instance))
        best = solve(with_weights(instance, someone.weights))
        costs = [someone.cost(instance.numbers(r.action or {})) for r in (interview.recommend(), best)]
        assert float(costs[0] / costs[1]) - 1 <= interview.regret().most + 1e-6


def test_same_says_that_both_are_possible() -> None:
    """Limits are further than both."""
    known = told(toy(), (H, S, "same"))._known
    assert known.limits.in_question(H) == () == known.limits.in_question(S)


# -- neither, and limits ------------------------------------------------------------------------


def test_neither_says_nothing_about_weights() -> None:
    """It is about limits."""
    learned = told(toy(), (H, S, "neither"))._known.learned
    assert learned.rows == ()


def test_neither_rules_out_what_goes_as_far() -> None:
    """Both levers end just before where they were refused."""
    interview = told(toy(), (H, S, "neither"))
    own = interview._known.own(OUTER)
    assert own.ranges["hours"][1] == math.nextafter(8.1, 0) and own.ranges["savings"][1] < 8.1
    assert "debt" in (interview.recommend().action or {})


@pytest.mark.parametrize("method", ["choices", "awp"])
def test_who_refuses_everything_is_soon_left_alone(method: Any) -> None:
    """Not led on in steps of a tenth: it ends, nothing refused is recommended, and why-not names a limit."""
    interview = all_answers(Interview(toy(), method=method, budget=60), "neither")
    assert 4 <= len(interview.answers) <= 12
    assert interview.recommend().status is Status.INFEASIBLE
    assert any(one.startswith("range:") for found in interview.why().minimal for one in found.lift)


def test_who_refuses_almost_everything_is_still_served() -> None:
    """Three refusals, then something possible: the interview goes on, and ends with a recourse."""
    instance = toy()
    someone = person(instance, 1, 1, 1, limits=dict.fromkeys(LEVERS, 3.2))
    result = someone.interviewed(Interview(instance, budget=20)).recommend()
    assert result.action and someone.can(instance.numbers(result.action))


def test_infeasible_limits_are_named() -> None:
    """The person can do almost nothing of anything: no recourse, and why-not names the limits to relax."""
    instance = toy()
    tight = dict.fromkeys(LEVERS, 0.5)
    interview = person(instance, 1, 1, 1, limits=tight).interviewed(Interview(instance, budget=60))
    result = interview.recommend()
    assert result.status is Status.INFEASIBLE and result.proof == "rigorous"
    lifted = {one for found in interview.why().minimal for one in found.lift}
    assert len(interview.answers) <= 12
    assert lifted and all(one.split(":")[0] in ("range", "condition") for one in lifted)
    assert any(one.startswith("range:") for one in lifted)
    assert interview.ask() is None


def test_no_regret_without_a_recourse() -> None:
    """There is nothing to regret: one line."""
    instance = toy(accept={"at_least": 1000.0, "margin": 0})
    interview = Interview(instance)
    with pytest.raises(BadInput, match="result: got infeasible"):
        interview.regret()


def test_an_ambiguous_refusal_becomes_a_condition() -> None:
    """Two levers were refused together: either may be the one, so each alone stays possible."""
    both = {"hours": 3.0, "savings": 3.2}
    known = told(toy(), (both, {"hours": 3.2, "savings": 3.0}, "neither"))._known
    own = known.own(OUTER)
    assert own.ranges == {} and len(own.conditions) == 2
    assert known.limits.allows({"hours": 5.0}) and not known.limits.allows({"hours": 4.0, "savings": 4.0})


def test_an_acceptance_resolves_an_ambiguous_refusal() -> None:
    """As many hours were called possible: so it was the savings."""
    limits = Limits(toy()).with_refused({"hours": 3.0, "savings": 3.0}).with_possible({"hours": 5.0})
    ranges, conditions = limits.preferences(OUTER)
    assert conditions == () and ranges == {"savings": (0.0, math.nextafter(3.0, 0))}


def test_the_inner_limit_is_what_is_known_to_be_possible() -> None:
    """Possible at 2, refused at 6: recommended at most 2, unless nothing else is left."""
    limits = Limits(toy()).with_possible({"hours": 2.0}).with_refused({"hours": 6.0})
    assert limits.preferences(INNER)[0]["hours"] == (0.0, 2.0)
    assert limits.preferences(0.5)[0]["hours"] == (0.0, 4.0)


def test_a_later_answer_about_limits_wins() -> None:
    """Refused, then called possible, and the other way round."""
    limits = Limits(toy()).with_refused({"hours": 3.0}).with_possible({"hours": 4.0})
    assert limits.preferences(OUTER) == ({}, ())
    limits = Limits(toy()).with_possible({"hours": 4.0}).with_refused({"hours": 3.0})
    assert limits.preferences(OUTER)[0]["hours"][1] < 3


def test_limits_go_in_one_direction() -> None:
    """To lower a value by 2 is not to raise it by 2."""
    instance = toy(factual={"age": 40, "hours": 5, "savings": 0, "debt": 4})
    limits = Limits(instance).with_refused({"hours": 7.0})
    assert limits.allows({"hours": 3.0}) and not limits.allows({"hours": 8.0})
    assert limits.preferences(OUTER)[0]["hours"] == (0.0, math.nextafter(7.0, 0))


def test_only_left_does_not_compare_costs() -> None:
    """The other is out of the question, whatever it costs."""
    known = told(toy(), (H, S, "only-left"))._known
    assert known.learned.rows == () and not known.limits.allows(S) and not known.limits.in_question(H)


def test_a_choice_made_for_a_limit_is_not_used_once_the_limit_is_known() -> None:
    """Left was chosen since right is impossible: once known, the choice says nothing about weights."""
    interview = told(toy(), (H, S, "left"))
    assert len(interview._known.learned.rows) == 1
    interview._known.tell(1, pair(toy(), S, D), "only-right")
    assert interview._known.learned.rows == ()


def test_a_cautious_interview_uses_only_choices_between_possible_recourses() -> None:
    """Right may have been impossible, as long as nothing like it was called possible."""
    interview = told(toy(), (H, S, "left"), cautious=True)
    assert interview._known.learned.rows == ()
    interview._known.tell(1, pair(toy(), S, D), "left")
    assert len(interview._known.learned.rows) == 1  # H against S; S against D still is in doubt


def test_whole_numbers_stay_whole_within_limits() -> None:
    """Refused at 6 of a whole-valued lever: at most 5."""
    instance = toy(features=features(hours={"kind": "integer"}))
    limits = Limits(instance).with_refused({"hours": 6.0})
    assert limits.preferences(OUTER)[0]["hours"] == (0.0, 5.0)
    assert limits.with_possible({"hours": 2.0}).preferences(0.5)[0]["hours"] == (0.0, 3.0)


def test_a_refused_label_is_that_label() -> None:
    """Labels have no order: others stay possible."""
    own = {"kind": "categorical", "categories": ["none", "some", "much"], "encoding": "code"}
    listed = features()
    listed[1] = {"name": "hours", "actionable": True, **own}
    instance = toy(features=listed, factual={"age": 40, "hours": "none", "savings": 0, "debt": 4})
    limits = Limits(instance).with_refused({"hours": 2.0})
    assert limits.allows({"hours": 1.0}) and not limits.allows({"hours": 2.0})
    refused = replace(instance, preferences=limits.within(instance.preferences, OUTER))
    assert solve(refused).status is Status.OPTIMAL


def test_a_limit_that_leaves_a_lever_no_value_keeps_its_weight() -> None:
    """The number of weights does not change during an interview."""
    listed = features(hours={"bounds": [5, 20]})
    interview = told(toy(features=listed), ({"hours": 5.0, "savings": 3.0}, D, "only-right"))
    interview._known.limits = interview._known.limits.with_refused({"hours": 5.0})
    assert len(interview._known.weights) == 3
    assert interview.recommend().status is Status.OPTIMAL


# -- few levers, nobody to serve ------------------------------------------------------------------


def test_one_lever_needs_no_question() -> None:
    """There is nothing to compare, and no regret."""
    instance = toy(preferences={"actionable": ["hours"]})
    interview = Interview(instance)
    assert interview.ask() is None
    assert interview.recommend().status is Status.OPTIMAL
    assert interview.regret().most <= 1e-6 and interview.regret().cheaper <= 1e-6


def test_no_lever_ends_at_once() -> None:
    """Proven infeasible; why-not names the mask."""
    interview = Interview(toy(preferences={"actionable": []}))
    assert interview.ask() is None
    assert interview.recommend().status is Status.INFEASIBLE
    assert any("mask" in one for found in interview.why().minimal for one in found.lift)


def test_a_person_for_whom_nothing_exists() -> None:
    """No question is asked about recourses that do not exist."""
    interview = Interview(toy(accept={"at_least": 1000.0, "margin": 0}))
    assert interview.ask() is None and interview.recommend().status is Status.INFEASIBLE


def test_a_person_who_is_accepted_is_asked_nothing() -> None:
    """Nothing to do costs nothing, and nothing is cheaper."""
    interview = Interview(toy(accept={"at_least": -100.0, "margin": 0}))
    assert interview.ask() is None
    assert interview.recommend().action == {} and interview.regret().most == 0


@pytest.mark.parametrize("method", ["hare", "multi-hare", "exact-hare", "awp", "rank", "likert", "group"])
@pytest.mark.parametrize("accept", [1000.0, -100.0], ids=["nothing exists", "accepted"])
def test_every_method_survives_people_it_cannot_help(method: Any, accept: float) -> None:
    """No recourse, and no need of one."""
    instance = toy(accept={"at_least": accept, "margin": 0})
    interview = person(instance, 1, 1, 1).interviewed(Interview(instance, method=method))
    wanted = Status.INFEASIBLE if accept > 0 else Status.OPTIMAL
    assert interview.recommend().status is wanted


@pytest.mark.parametrize("budget", [0, 1])
@pytest.mark.parametrize("method", ["choices", "awp", "hare", "multi-hare", "exact-hare", "rank", "likert"])
def test_a_budget_of_nothing_or_one(method: Any, budget: int) -> None:
    """As many questions, and still a recommendation."""
    instance = toy()
    interview = person(instance, 1, 2, 3).interviewed(Interview(instance, method=method, budget=budget))
    assert len(interview.answers) <= budget
    assert interview.recommend().action


# -- weights -----------------------------------------------------------------------------------


def test_weights_are_known_up_to_scale() -> None:
    """Ten times the weights, the same answers: what is learned has mean 1."""
    instance = toy()
    one = person(instance, 1, 2, 3).interviewed(Interview(instance))
    other = person(instance, 10, 20, 30).interviewed(Interview(instance))
    assert one._known.weights == other._known.weights
    assert np.mean(one._known.weights) == pytest.approx(1)


def test_a_lever_in_which_pairs_do_not_differ_stays_unknown() -> None:
    """Two pairs about hours and savings: debt weighs anything."""
    learned = told(toy(), (H, S, "left"), (H, S, "left"))._known.learned
    drawn = learned.samples(400, np.random.default_rng(0))[:, 2]
    assert drawn.min() < 0.2 and drawn.max() > 2


def test_recourses_with_one_lever_rank_only_these() -> None:
    """Hours against savings says how these two compare, and nothing of debt: the regret stays large."""
    assert told(toy(), (H, S, "left")).regret().most > 1


def test_separable_answers_have_an_estimate() -> None:
    """All answers agree without error: the mean weights exist, inside what is possible."""
    weights = told(toy(), (H, S, "left"), (S, D, "left"))._known.weights
    assert weights[0] < weights[1] < weights[2] and min(weights) >= 0.05


def test_contradictions_are_set_aside_and_named() -> None:
    """A circle of three: one answer goes, the oldest."""
    interview = told(toy(), (H, S, "left"), (S, D, "left"), (D, H, "left"))
    assert interview.set_aside == (0,)
    assert len(interview._known.learned.rows) == 2
    assert interview.regret().most >= 0


def test_the_fewest_answers_are_set_aside() -> None:
    """Two say the same, one the contrary: the one goes, though it is the newest."""
    interview = told(toy(), (H, S, "left"), (H, {"savings": 8.2}, "left"), (H, S, "right"))
    assert interview.set_aside in ((2,), (0,))
    interview = told(toy(), (H, {"savings": 9.0}, "right"), (H, S, "left"), ({"hours": 8.3}, S, "left"))
    assert interview.set_aside == (0,)


def test_a_dominated_choice_is_a_contradiction() -> None:
    """More of the same lever cannot be easier."""
    assert told(toy(), ({"hours": 9.0}, H, "left")).set_aside == (0,)


def test_errors_do_not_exclude_the_truth() -> None:
    """With the noise stated, wrong answers leave the true weights possible: 3 of 4 people at least."""
    instance, unit = toy(), float(solve(toy()).cost or 0.0)
    held = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        drawn = rng.dirichlet(np.ones(3)) * 2.85 + 0.05
        someone = person(instance, *drawn.tolist(), noise=0.2 * unit, rng=rng)
        interview = someone.interviewed(Interview(instance, noise=0.2, budget=6))
        best = solve(with_weights(instance, someone.weights))
        costs = [someone.cost(instance.numbers(r.action or {})) for r in (interview.recommend(), best)]
        held += float(costs[0] / costs[1]) - 1 <= interview.regret().most + 1e-6
    assert held >= 3


def test_without_noise_one_wrong_answer_can_exclude_the_truth() -> None:
    """That is what the noise is for: halving believes every answer."""
    right, wrong = told(toy(), (H, S, "left")), told(toy(), (H, S, "right"))
    weights = np.array([0.5, 1.0, 1.5])
    for interview, inside in ((right, True), (wrong, False)):
        assert all(np.dot(row, weights) <= 0 for row in interview._known.learned.rows) is inside
    noisy = told(toy(), (H, S, "right"), noise=0.5)
    assert all(np.dot(row, weights) <= 0 for row in noisy._known.learned.rows)


def test_the_unit_of_the_cost_does_not_matter() -> None:
    """Scales ten times as large: the same weights, the same regret."""
    other = toy(cost={"kind": "l1", "scale": dict.fromkeys(LEVERS, 10)})
    one, ten = (person(i, 1, 2, 3).interviewed(Interview(i, budget=4)) for i in (toy(), other))
    assert ten._known.weights == pytest.approx(one._known.weights, rel=1e-6)
    assert ten.regret().most == pytest.approx(one.regret().most, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "l2", "l0", "mixture"])
def test_costs_that_are_linear_in_the_weights(kind: str) -> None:
    """The parts add up to the cost (of l2: of its square), and the interview works."""
    cost: dict[str, Any] = {"kind": kind, "scale": dict.fromkeys(LEVERS, 1)}
    cost |= {"l1": 1.0, "l0": 0.5} if kind == "mixture" else {}
    cost = {"kind": "l0"} if kind == "l0" else cost
    instance = toy(cost=cost)
    action = {"hours": 3.0, "debt": 1.0}
    weights = {"hours": 0.5, "savings": 1.0, "debt": 2.0}
    parts = dict(zip(LEVERS, cost_parts(instance, action, LEVERS), strict=True))
    exact = with_weights(instance, weights).squared().cost_of(action)
    assert sum(weights[n] * float(parts[n]) for n in LEVERS) == pytest.approx(float(exact))
    interview = person(instance, 1, 2, 3).interviewed(Interview(instance, budget=5))
    assert interview.recommend().status is Status.OPTIMAL and interview.regret().most < 10


@pytest.mark.parametrize("cost", [{"kind": "linf"}, {"kind": "mixture", "l1": 1, "linf": 1}])
def test_costs_with_a_maximum_are_refused_in_one_line(cost: dict[str, Any]) -> None:
    """The largest of several terms is not linear in the weights."""
    instance = toy(cost={**cost, "scale": dict.fromkeys(LEVERS, 1)})
    with pytest.raises(Unsupported, match="not linear in the weights"):
        Interview(instance)
    hare = all_answers(Interview(instance, method="hare", budget=4), "left")
    assert hare.recommend().action


def test_a_time_limit_that_is_too_short_proves_less_and_nothing_wrong() -> None:
    """Bounds of searches that stopped are bounds."""
    instance = toy()
    interview = Interview(instance, time_limit=1e-6, budget=0)
    result = interview.recommend()
    if result.action is not None:
        full = Interview(instance, budget=0).regret(result).most
        assert interview.regret(result).most >= full - 1e-9


# -- what is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["choices", "awp", "hare", "multi-hare", "exact-hare"])
def test_every_recourse_that_is_shown_is_feasible(method: Any) -> None:
    """Mask, ranges, directions and conditions are respected, and the model accepts."""
    listed = features(hours={"monotone": "increase", "kind": "integer"}, savings={"domain": [0, 5]})
    instance = toy(
        features=listed,
        preferences={"actionable": list(LEVERS), "ranges": {"debt": [0, 4]}},
        conditions=[{"at_most_actions": 2}],
    )
    interview = Interview(instance, method=method, budget=8)
    someone, shown = person(instance, 1, 2, 3), 0
    while (question := interview.ask()) is not None:
        for side in (question.left, question.right):
            if side is not None:
                shown += 1
                assert judge(instance, side.numbers).feasible
                assert len(side.action) <= 2 and float(side.action.get("hours", 0)).is_integer()
        interview.tell(someone.answer(question))
    assert shown or method == "awp"


def test_an_aim_at_the_boundary_has_a_candidate_soon() -> None:
    """The squared distance alone would be 1e-15, whose relative gap no search closes."""
    instance, aim = toy(), {"hours": 4.0, "savings": 0.0, "debt": 2.0}
    found = nearest_to(instance, aim, time_limit=20.0)
    assert not judge(instance, aim).feasible
    assert found is not None and found.result.status is Status.OPTIMAL


def test_labels_are_rounded_and_judged_again() -> None:
    """HARE moves through fractions of labels; what is shown has labels."""
    listed = features()
    listed[1] = {
        "name": "hours",
        "actionable": True,
        "kind": "categorical",
        "categories": ["none", "some", "much"],
        "encoding": "one-hot",
    }
    layers = [
        {"weight": [[0, 0, 3, 7, 1, -1], [0, 0, 0, 0, 0, 0]], "bias": [20, 2]},
        {"weight": [[1, -1]], "bias": [-22]},
    ]
    instance = toy(
        features=listed,
        factual={"age": 40, "hours": "none", "savings": 0, "debt": 4},
        classifier={"kind": "relu-network", "dtype": "float64", "layers": layers},
    )
    found = sampled(instance, {"savings": 8.1}, 8, np.random.default_rng(0))
    assert found
    assert all(one.get("hours", 0.0) in (0.0, 1.0, 2.0) for one in found)


def test_exact_candidates_differ_and_are_certified() -> None:
    """Under sampled weights, by features, and by directions."""
    for by in ("weights", "features", "directions"):
        found = exact_candidates(toy(), 3, by)  # type: ignore[arg-type]
        assert len(found) == 3
        assert len({tuple(sorted(one.action.items())) for one in found}) == 3
        for one in found:
            again = solve(one.problem)
            assert one.result.status is Status.OPTIMAL and again.cost == pytest.approx(
                one.result.cost, rel=2e-6
            )


def test_nothing_is_nearer_to_an_aim_than_its_candidate() -> None:
    """Of random actions who is accepted is no nearer to the aim, with a lever that may only rise, too."""
    instance, rng = toy(features=features(hours={"monotone": "increase"})), np.random.default_rng(0)
    low, high = np.array(list(instance.levers.values())).T

    def accepted(values: FloatArray) -> bool:
        return judge(instance, dict(zip(LEVERS, values.tolist(), strict=True))).feasible

    drawn = rng.uniform(low, high, size=(120, 3))
    those = np.array([accepted(values) for values in drawn])
    for aim in drawn[~those][:4]:
        found = nearest_to(instance, dict(zip(LEVERS, aim.tolist(), strict=True)))
        assert found is not None and judge(instance, found.action).feasible
        end = np.array([found.action.get(name, instance.factual[name]) for name in LEVERS])
        step = np.abs(np.vstack([end, drawn[those]]) - aim) / (high - low)
        far = (step**2 + ALONG * step).sum(axis=1)
        bound = found.result.lower_bound or 0.0
        assert len(far) > 20 and bound * (1 - 1e-9) <= far.min() and far[0] <= bound * (1 + 2e-6) + 1e-9


def test_an_aim_of_a_person_with_effects_and_a_density_has_a_candidate() -> None:
    """What the person must meet, plausibility among it, is asked of where they begin, not of the aim."""
    instance = read_instance(instances_path() / "loan" / "loan_000.json")
    assert instance.plausible
    space, rng = LeverSpace(instance), np.random.default_rng(0)
    ends = space.inside(space.start + 0.5 * rng.normal(size=(8, space.size)))
    aims = [aim for aim in map(space.action, ends) if not judge(instance, aim).feasible]
    found = [nearest_to(instance, aim) for aim in aims]
    assert aims and all(one is not None and judge(instance, one.action).feasible for one in found)


def test_nothing_is_nearer_in_a_direction_than_its_candidate() -> None:
    """Of random actions within the corner, none is accepted: the bound is that of the box."""
    rng = np.random.default_rng(0)
    for one in exact_candidates(toy(), 4, "directions"):
        reach = (one.result.lower_bound or 0.0) / 1.05  # of the largest change; the sum adds a hundredth each
        weights = one.problem.weights
        for _ in range(50):
            action = {}
            for name, (low, high) in one.problem.levers.items():
                x = one.problem.factual[name]
                step = rng.uniform(0, 0.9) * reach / weights[name] * one.problem.cost.lengths[name]
                action[name] = float(np.clip(x + step if high > x else x - step, low, high))
            assert not judge(toy(), action).feasible
