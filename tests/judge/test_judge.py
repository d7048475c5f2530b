"""The judge finds every fault, and no result says more than is proven."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from milp_recourse.judge import (
    Judgement,
    already_good,
    at_rest,
    conclude,
    judge,
    judged_together,
    without_idle_holds,
)
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import Variable
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from tests.helpers.generators import random_instance


def problem(**changes) -> Instance:
    """a -> b = a + u_b, c an integer and d a category; accepted when a + b + c + [d is red] >= 4."""
    scm = StructuralCausalModel(
        ("a", "b", "c", "d"),
        {
            "a": Mechanism(noise=Normal(1.0)),
            "b": Mechanism(1.0 * Variable("a"), noise=Normal(1.0)),
            "c": Mechanism(noise=Normal(1.0)),
            "d": Mechanism(noise=Normal(1.0)),
        },
    )
    made = Instance(
        features=(
            Feature("a", actionable=True, bounds=(-5.0, 5.0)),
            Feature("b", actionable=True, bounds=(-5.0, 5.0), domain=(-4.0, 4.0)),
            Feature("c", "integer", True, (0.0, 3.0)),
            Feature("d", "categorical", True, None, ("blue", "red", "green"), encoding="one-hot"),
        ),
        scm=scm,
        classifier=ReluNetwork.from_layers([([[1.0, 1.0, 1.0, 0.0, 1.0, 0.0]], [-4.0])]),
        factual={"a": 1.0, "b": 1.5, "c": 0.0, "d": 0.0},
        preferences=Preferences(("a", "c", "d"), {"a": 2.0}, {"a": (-2.0, 3.0)}),
        cost=Cost.pure("l2-squared", {"a": 0.5, "b": 1.0, "c": 1.0, "d": 1.0}),
    )
    return replace(made, **changes)


GOOD = {"a": 1.75}  # b follows to 2.25: 1.75 + 2.25 = 4, exactly touching


def faults(instance: Instance, action: dict[str, float]) -> str:
    return "; ".join(judge(instance, action).faults)


def test_an_action_that_touches_the_threshold_is_feasible() -> None:
    """Nothing is at fault, the cost is exact, the counterfactual is the SCM's."""
    verdict = judge(problem(), GOOD)
    assert verdict.feasible
    assert verdict.faults == ()
    assert verdict.cost == Fraction(9, 2)
    assert verdict.counterfactual == {"a": 1.75, "b": 2.25, "c": 0.0, "d": 0.0}
    assert verdict.logit == Enclosure.of(0)


@pytest.mark.parametrize("missing", [1e-15, 1e-9])
def test_an_action_short_of_the_threshold_by_very_little_is_not_accepted(missing: float) -> None:
    """Exact arithmetic sees it; so does the result."""
    action = {"a": 1.75 - missing}
    assert "does not accept" in faults(problem(), action)
    assert not judge(problem(), action).accepted_exact
    result = conclude(problem(), Proposal(action, 4.0, "solver"), "test", 0.0)
    assert result.action is None
    assert result.status is Status.LIMIT
    assert "does not accept" in (result.message or "")


def test_outside_the_mask() -> None:
    """b is globally actionable, but not for this applicant; ghosts are for nobody."""
    assert "'b' is not individually actionable" in faults(problem(), {"b": 4.0})
    assert not judge(problem(), {"b": 4.0}).feasible


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"a": 3.5}, "'a' = 3.5 lies outside (-2.0, 3.0)"),
        ({"a": math.nextafter(3.0, 4)}, "lies outside"),
        ({"a": math.nan}, "lies outside"),
        ({"a": math.inf}, "lies outside"),
        ({"c": 4.0}, "'c' = 4.0 lies outside (0.0, 3.0)"),
        ({"c": -1.0}, "lies outside"),
        ({"d": 3.0}, "lies outside"),
        ({"c": 1.5}, "'c' = 1.5 is not a whole number"),
        ({"d": 0.5}, "is not a whole number"),
    ],
)
def test_outside_bounds_ranges_and_kinds(action: dict[str, float], words: str) -> None:
    """The applicant's range, the feature's bounds, whole numbers and labels."""
    action_ok = {n: v for n, v in action.items() if math.isfinite(v)}
    if action_ok:
        assert words in faults(problem(), action)
    else:
        with pytest.raises((ValueError, OverflowError)):  # never feasible, never silently a number
            judge(problem(), action)


@pytest.mark.parametrize(("monotone", "bad", "fine"), [("increase", 0.5, 1.75), ("decrease", 1.75, 0.5)])
def test_the_wrong_way(monotone: str, bad: float, fine: float) -> None:
    """Monotone features move one way only; the factual value itself is allowed."""
    features = problem().features
    instance = problem(features=(replace(features[0], monotone=monotone), *features[1:]))
    assert "lies outside" in faults(instance, {"a": bad})
    assert "lies outside" not in faults(instance, {"a": fine})
    assert "lies outside" not in faults(instance, {"a": 1.0})


def test_a_domain_binds_what_merely_follows() -> None:
    """b's domain ends at 4 and b follows a."""
    wide = problem(preferences=Preferences(("a",)))
    assert faults(wide, {"a": 3.5}) == ""
    assert "'b' leaves its domain (-4.0, 4.0)" in faults(wide, {"a": math.nextafter(3.5, 4)})


def test_a_domain_binds_the_action_too() -> None:
    """Acting on b beyond its domain is outside what is allowed."""
    free = problem(preferences=Preferences(("b",)))
    assert free.allowed("b") == (-4.0, 4.0)
    assert "lies outside" in faults(free, {"b": 4.5})


def test_less_plausible_than_the_factual() -> None:
    """u_a = 1 may fall to -1 or stay below 1, not rise; a tie counts as plausible."""
    instance = problem(plausible=True)
    assert "less plausible" in faults(instance, {"a": math.nextafter(1.0, 2)})
    assert "less plausible" not in faults(instance, {"a": -1.0})
    assert "less plausible" not in faults(instance, {"a": 1.0})
    assert "less plausible" in faults(instance, {"a": math.nextafter(-1.0, -2)})


def test_accepted_exactly_but_not_as_deployed() -> None:
    """float32 loses the last bit: feasible says no, and the message names the margin."""
    network = ReluNetwork.from_layers([([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [-1.75])], "float32")
    instance = problem(classifier=network)
    action = {"a": 1.75}
    assert judge(instance, action).feasible
    shy = replace(instance, accept=Acceptance(2.0**-40, 0.0))
    bold = {"a": 1.75 + 2.0**-40}
    verdict = judge(shy, bold)
    assert verdict.faults == ()
    assert verdict.accepted_exact
    assert not verdict.accepted_deployed
    assert not verdict.feasible
    result = conclude(shy, Proposal(bold, 2.0, "solver"), "test", 0.0)
    assert result.status is Status.LIMIT
    assert result.action is None
    assert "accept.margin" in (result.message or "")
    assert "float32" in (result.message or "")


def test_accepted_as_deployed_but_not_exactly() -> None:
    """The other way round is refused too: float32 rounds 1.75 - 2^-40 up."""
    network = ReluNetwork.from_layers([([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [-1.75])], "float32")
    verdict = judge(problem(classifier=network), {"a": 1.75 - 2.0**-40})
    assert verdict.accepted_deployed
    assert not verdict.accepted_exact
    assert not verdict.feasible


def test_the_margin_is_asked_of_the_exact_logit_only() -> None:
    """exactly: logit >= threshold + margin; deployed: logit >= threshold."""
    instance = problem(accept=Acceptance(0.0, 0.25))
    verdict = judge(instance, GOOD)
    assert (verdict.accepted_exact, verdict.accepted_deployed) == (False, True)
    assert judge(instance, {"a": 1.875}).feasible


def test_several_faults_are_all_named() -> None:
    """Nothing hides behind the first."""
    assert len(judge(problem(plausible=True), {"b": 4.5, "c": 9.0}).faults) >= 4


def test_sizes_of_changes_of_labels() -> None:
    """Categorical: 1 when changed, 0 when held, whatever the index."""
    action = {"d": 2.0, "c": 2.0, "a": 0.5}
    sizes = {name: problem().lever_costs[name].size(value) for name, value in action.items()}
    assert sizes == {"d": 1, "c": 2, "a": 1}  # a's scale is 1/2
    assert problem().lever_costs["d"].size(0.0) == 0
    assert judge(problem(), {"d": 2.0}).cost == 1


def test_one_hot_columns_follow_the_label() -> None:
    """Red adds one to the logit, green does not."""
    red, green = (judge(problem(), {"d": k}).logit for k in (1.0, 2.0))
    assert red.midpoint - green.midpoint == 1


def test_idle_holds_are_dropped_and_real_ones_kept() -> None:
    """Holding what nothing moves says nothing; holding b against a moving a does."""
    instance = problem(preferences=Preferences(("a", "b", "c")))
    assert without_idle_holds(instance, {"a": 1.0, "c": 2.0}) == {"c": 2.0}
    held = {"a": 2.5, "b": 1.5}
    assert without_idle_holds(instance, held) == held
    assert without_idle_holds(instance, {"a": 1.0, "b": 1.5}) == {}


# -- conclude ------------------------------------------------------------------------------


def concluded(action, bound, proof="solver", **changes) -> Result:
    return conclude(problem(**changes), Proposal(action, bound, proof), "test", 0.0)


def test_optimal_needs_cost_and_bound_to_agree_to_the_gap() -> None:
    """4.5 against 4.5 - 4e-6 is optimal; against 4.5 - 5e-6 it is a limit."""
    near, far = concluded(GOOD, 4.5 - 4e-6), concluded(GOOD, 4.5 - 5e-6)
    assert (near.status, far.status) == (Status.OPTIMAL, Status.LIMIT)
    assert far.gap > gap_tolerance(far.cost)
    assert far.lower_bound == 4.5 - 5e-6


@pytest.mark.parametrize("bound", [-1.0, 0.0, 1e-3, 4.0, 4.4999])
def test_an_open_gap_is_never_optimal(bound: float) -> None:
    """Whatever the back end says."""
    result = concluded(GOOD, bound)
    assert result.status is Status.LIMIT
    assert result.cost == 4.5
    assert result.lower_bound == max(bound, 0.0)
    assert result.message


def test_a_bound_without_a_proof_is_not_optimal() -> None:
    """Nothing to rest on."""
    assert concluded(GOOD, 4.5, proof=None).status is Status.LIMIT


@pytest.mark.parametrize("bound", [5.0, math.inf])
def test_a_bound_above_the_cost_in_hand_is_not_believed(bound: float) -> None:
    """The bound never exceeds the cost of a feasible action, and infeasible is never said with one."""
    result = concluded(GOOD, bound)
    assert result.status is not Status.INFEASIBLE
    assert result.action == GOOD
    assert result.lower_bound <= result.cost


def test_infeasible_is_infinity_without_an_action() -> None:
    """And says what to relax."""
    result = concluded(None, math.inf)
    assert result.status is Status.INFEASIBLE
    assert (result.cost, result.lower_bound, result.action) == (None, None, None)
    assert "Relax" in (result.message or "")


def test_a_refused_action_is_not_proof_of_infeasibility() -> None:
    """A back end that proposes rubbish and claims infinity contradicts itself: limit, bound 0."""
    result = concluded({"a": 0.0}, math.inf)
    assert result.status is Status.LIMIT
    assert result.lower_bound == 0.0


def test_infinity_without_a_proof_is_not_infeasible() -> None:
    """``infeasible`` needs a proof like ``optimal`` does."""
    assert concluded(None, math.inf, proof=None).status is not Status.INFEASIBLE


def test_nothing_in_hand_and_a_finite_bound_is_a_limit() -> None:
    """A time limit is neither infeasible nor not-found."""
    result = concluded(None, 1.5)
    assert (result.status, result.cost, result.lower_bound) == (Status.LIMIT, None, 1.5)


def test_without_a_bound_the_grid_finds_or_does_not() -> None:
    """And claims nothing."""
    found, lost = concluded(GOOD, None, None), concluded(None, None, None)
    assert (found.status, found.lower_bound, found.proof) == (Status.FOUND, None, None)
    assert (lost.status, lost.lower_bound, lost.proof) == (Status.NOT_FOUND, None, None)
    assert concluded({"a": 0.0}, None, None).status is Status.NOT_FOUND


def test_a_repair_is_judged_like_any_action() -> None:
    """It may save next to nothing, and may not smuggle in rubbish."""
    short = Proposal({"a": 1.75 - 1e-12}, 4.5 - 1e-6, "solver")
    saved = conclude(problem(), short, "test", 0.0, repair=lambda instance, action: GOOD)
    assert saved.status is Status.OPTIMAL
    assert saved.action == GOOD
    for rubbish in ({"a": 1.0}, {"b": 4.0}, None):
        lost = conclude(problem(), short, "test", 0.0, repair=lambda instance, action, r=rubbish: r)
        assert lost.action is None
        assert lost.status is Status.LIMIT


def test_the_stated_cost_is_never_below_the_exact_one() -> None:
    """Rounded up to a double."""
    instance = problem(cost=Cost.pure("l1", {"a": 3.0, "c": 1.0, "d": 1.0}))
    exact = judge(instance, GOOD).cost
    cost = conclude(instance, Proposal(GOOD, 0.5, "solver"), "test", 0.0).cost
    assert exact == Fraction(1, 2)
    third = problem(cost=Cost.pure("l1", {"a": 4.5, "c": 1.0, "d": 1.0}))
    stated = conclude(third, Proposal(GOOD, 0.0, "solver"), "test", 0.0).cost
    assert cost == 0.5
    assert Fraction(stated) >= judge(third, GOOD).cost > Fraction(np.nextafter(stated, 0))


def test_labels_and_whole_numbers_come_back_as_such() -> None:
    """Results show what files show."""
    result = concluded({"d": 1.0, "c": 1.0}, 2.0)
    assert result.action == {"d": "red", "c": 1}
    assert result.counterfactual == {"a": 1.0, "b": 1.5, "c": 1, "d": "red"}
    assert isinstance(result.action["c"], int)
    assert result.accepted_exact
    assert result.accepted_deployed
    assert result.logit == 0.5


def test_a_good_factual_needs_no_action() -> None:
    """Accepted as it is and inside its domains: cost 0; outside a domain something must be done."""
    accepted = problem(factual={"a": 2.0, "b": 2.0, "c": 0.0, "d": 0.0})
    assert already_good(accepted)
    result = conclude(accepted, Proposal({}, 0.0, "rigorous"), "test", 0.0)
    assert (result.status, result.cost, result.action) == (Status.OPTIMAL, 0.0, {})
    assert not already_good(problem())
    assert not already_good(problem(factual={"a": 2.0, "b": 4.5, "c": 0.0, "d": 0.0}))


def test_many_factuals_are_decided_as_each_alone() -> None:
    """Also of several networks and thresholds, near the threshold, and with labels."""
    rng, first, other = np.random.default_rng(20), problem(), problem()  # two networks
    made = []
    for k in range(60):
        values = rng.integers(-4, 5, 2).tolist()
        factual = {"a": float(values[0]), "b": values[1] / 2, "c": float(k % 4), "d": float(k % 3)}
        one = replace(first if k % 2 else other, factual=factual)
        made.append(replace(one, accept=Acceptance(2.0 - k % 3)) if k % 5 == 0 else one)
    told = at_rest(made)
    alone = [judge(one, {}) for one in made]
    assert all(one is None or one == verdict for one, verdict in zip(told, alone, strict=True))
    assert [one is not None and one.feasible for one in told] == [verdict.feasible for verdict in alone]
    assert None in told
    assert {True, False} == {verdict.feasible for verdict in alone}


# -- the table of combinations -------------------------------------------------------------

ACTED = {"action": {"a": 1.0}, "accepted_exact": True, "accepted_deployed": True}


@pytest.mark.parametrize(
    "fields",
    [
        {"status": Status.OPTIMAL, "proof": "solver"},
        {"status": Status.OPTIMAL, "cost": 1.0, "proof": "solver", **ACTED},
        {"status": Status.OPTIMAL, "cost": 1.0, "lower_bound": 0.9, "proof": "solver", **ACTED},
        {"status": Status.OPTIMAL, "cost": 1.0, "lower_bound": 1.0, **ACTED},
        {"status": Status.OPTIMAL, "cost": 1.0, "lower_bound": 1.0, "proof": "solver"},
        {"status": Status.INFEASIBLE, "cost": 1.0, "proof": "solver", **ACTED},
        {"status": Status.INFEASIBLE, "lower_bound": 1.0, "proof": "solver"},
        {"status": Status.INFEASIBLE},
        {"status": Status.INFEASIBLE, "proof": "solver", **ACTED},
        {"status": Status.LIMIT},
        {"status": Status.LIMIT, "cost": 1.0, "lower_bound": 0.0, **ACTED, "accepted_deployed": False},
        {"status": Status.LIMIT, "cost": 1.0, "lower_bound": 0.0, **ACTED, "accepted_exact": False},
        {"status": Status.FOUND, "cost": 1.0, "lower_bound": 0.5, **ACTED},
        {"status": Status.FOUND},
        {"status": Status.NOT_FOUND, "lower_bound": 0.0},
        {"status": Status.NOT_FOUND, "cost": 1.0, **ACTED},
    ],
)
def test_a_result_that_says_too_much_cannot_be_made(fields: dict) -> None:
    """Every forbidden combination of status, numbers, proof and action."""
    with pytest.raises(ValueError, match=r"cannot be|come together|must be accepted|needs a proof"):
        Result(**fields)


def test_every_status_carries_its_sentence() -> None:
    """What happened, in words; the value is the file's word."""
    assert {s.value for s in Status} == {"optimal", "infeasible", "limit", "found", "not-found"}
    assert all(s.sentence.endswith(".") for s in Status)


def drawn_pairs(seeds: range) -> list[tuple[Instance, dict[str, float]]]:
    """Random instances, each with an action at random values of some levers."""
    pairs = []
    for seed in seeds:
        rng, instance = np.random.default_rng(seed), random_instance(seed)
        action = {
            name: float(
                rng.integers(low, high + 1) if instance.by_name[name].integral else rng.uniform(low, high)
            )
            for name, (low, high) in instance.levers.items()
            if rng.random() < 0.7
        }
        pairs.append((instance, action))
    return pairs


WIDTHS = (6, 32), (32, 32), (32, 1)
"""Of layers; where all are narrow, BLAS sums one row in the order in which it sums many."""


def test_judgements_do_not_depend_on_who_else_is_judged() -> None:
    """Not in the last bit: of many networks, and of one network with 70 people."""
    rng = np.random.default_rng(0)
    wide = ReluNetwork.from_layers([(rng.normal(size=(o, i)), rng.normal(size=o)) for i, o in WIDTHS])
    one = problem(classifier=wide)
    people = [replace(one) for _ in range(70)]
    pairs = drawn_pairs(range(40))
    pairs += [(person, {"a": float(rng.normal()), "b": float(rng.normal())}) for person in people]
    alone = [judge(instance, action) for instance, action in pairs]
    assert judged_together(pairs) == alone
    assert len({str(verdict.logit) for verdict in alone}) > 60


def test_no_judgement_is_kept() -> None:
    """An instance that was changed in place is judged anew."""
    first, second = problem(), problem()
    before = [one.counterfactual for one in judged_together([(first, {"a": 2.0}), (second, {"a": 2.0})])]
    first.factual["a"] -= 1.0  # type: ignore[index]
    assert judge(first, {"a": 2.0}).counterfactual["b"] > before[0]["b"]
    assert judge(second, {"a": 2.0}).counterfactual == before[1]


def test_a_judgement_is_used_for_its_own_instance_and_action_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal's judgement saves one of the same instance and action, and counts for no other."""
    instance, action = problem(), {"a": 2.0}
    own, judged = judge(instance, action), []
    others = judge(problem(), action), judge(instance, {"a": 3.0}), None

    def counted(one: Instance, given: Mapping[str, float]) -> Judgement:
        judged.append(given)
        return judge(one, given)

    monkeypatch.setattr(import_module("milp_recourse.judge.conclude"), "judge", counted)
    known = conclude(instance, Proposal(action, 0.0, "rigorous", judgement=own), "test", 0.0, as_given=True)
    assert not judged and known.cost == float(own.cost)
    for n, other in enumerate(others, start=1):
        proposal = Proposal(action, 0.0, "rigorous", judgement=other)
        assert conclude(instance, proposal, "test", 0.0, as_given=True).cost == known.cost
        assert len(judged) == n
