"""A slice of ``compare_choices.py``: back ends, brute force and sampled outcomes agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.problem.scenario import Scenario
from milp_recourse.questions import choices as choosing
from milp_recourse.questions.robust import box_search, scenario_search
from tests.questions.choices import compare_choices as run


def seen(seeds: range, kind: str, trees: bool, complaint: str) -> bool:
    """Whether some draw is complained about so; the rest are not looked at."""
    return any(
        complaint in line for seed in seeds for line in run.check(seed, kind, trees, ("bab",), 30.0)[1]
    )


@pytest.mark.parametrize("kind", run.KINDS)
def test_networks(kind):
    """bab and HiGHS, grids, and outcomes drawn from the equations."""
    seen = [run.check(seed, kind, False, ("bab", "highs"), 30.0) for seed in (302, 305)]
    assert [line for _, lines in seen for line in lines] == []
    assert any(counts[run.TWO] for counts, _ in seen)


@pytest.mark.parametrize("kind", run.KINDS)
def test_trees(kind):
    """With and without causes; without, outcomes are enumerated."""
    seen = [run.check(seed, kind, True, ("bab", "highs", "cpsat"), 30.0) for seed in range(300, 303)]
    assert [line for _, lines in seen for line in lines] == []
    assert sum(counts[run.TWO] for counts, _ in seen) >= 2


def test_an_action_taken_on_trust_is_refuted(monkeypatch):
    """Without the search for outcomes the planned optimum is returned, and samples refuse it."""
    monkeypatch.setattr(scenario_search.NetworkSearch, "_refuted", lambda self, outcomes: [])
    assert seen(range(300, 312), "missed", False, "an outcome is refused")


def test_a_scenario_that_cannot_occur_makes_the_bound_too_high(monkeypatch):
    """Scenarios beyond what is stated are seen as a bound that a certain action undercuts."""
    real = scenario_search.NetworkSearch._refuted

    def wider(self, outcomes):
        found = real(self, outcomes)
        double = [Scenario({n: 3 * e for n, e in one.missed.items()}, one.noise) for one in found or []]
        return double if found else found

    monkeypatch.setattr(scenario_search.NetworkSearch, "_refuted", wider)
    assert seen(range(300, 315), "missed", False, "but (")


def test_a_refused_box_that_is_too_large_is_seen(monkeypatch):
    """Boxes widened without asking shut out actions that are certain."""
    real = box_search.Refusals.around

    def careless(self, row, groups):
        box = real(self, row, groups)
        for group in groups[:1]:
            for column in group:
                box.low[column], box.high[column] = 0, len(self.forest.cuts[column])
        return box

    monkeypatch.setattr(box_search.Refusals, "around", careless)
    assert seen(range(300, 330), "missed", True, "but (")


def test_a_choice_that_repeats_an_earlier_one_is_seen(monkeypatch):
    """Where the condition that is meant to tell them apart says nothing, the first way comes again."""
    monkeypatch.setattr(choosing, "far_from", lambda *given: AtMostActions(99))
    assert seen(range(300, 304), "distance", True, "does not differ")


def test_judgement_looks_at_every_scenario():
    """An action that is accepted as planned is refused where a scenario brings the logit below."""
    instance = run.refused(302, False)
    found = run.solve(instance)
    action = {n: run.number(instance, n, v) for n, v in found.action.items()}
    assert run.judge(instance, action).feasible
    name = next(n for n in action if instance.by_name[n].kind == "continuous")
    low = [
        run.judge(replace(instance, scenarios=(Scenario({name: by}),)), action).accepted_exact
        for by in (-0.5, -0.05, 0.0, 0.05, 0.5)
    ]
    assert low[2] and not all(low)
