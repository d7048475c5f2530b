"""Searches within parts of the best action's cost, beside one that takes long."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from milp_recourse.engine.networks import propose, search_on, sign_tree, stages
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Instance
from tests.helpers.amounts import amounts
from tests.helpers.generators import random_instance
from tests.helpers.large import large
from tests.helpers.wide import wide


def searched(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, begin: float, share: float
) -> tuple[propose.Run, float, str | None]:
    """A search whose stages begin at once, or with ``begin`` inf never."""
    monkeypatch.setattr(search_on, "first_slice", lambda p, few: (4, -1))
    monkeypatch.setattr(search_on, "STAGES_FROM", begin)
    monkeypatch.setattr(stages, "SHARE", share)
    monkeypatch.setattr(sign_tree, "SHARE", share)
    monkeypatch.setattr(stages, "TELL", 0)
    monkeypatch.setattr(stages, "PATIENCE", 0.0)  # on small problems the search would always go on alone
    state = propose.Run(instance)
    return state, *search_on.search_on(state)


def test_stages_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the search or a stage comes first to the proof, it is of the same cost."""
    drawn = [random_instance(seed) for seed in range(9000, 9016)]
    drawn += [wide(seed, labels) for seed in range(2) for labels in (False, True)]
    drawn += [amounts(seed, cost) for seed in range(5) for cost in ("l1", "l2-squared", "linf")]
    by_stages = 0
    for instance in drawn:
        without, alone, _ = searched(instance, monkeypatch, math.inf, 1.0)
        least, target = without.best.cost, without.target
        state, bound, message = searched(instance, monkeypatch, 0.0, 8.0)
        assert message is None and (state.best.cost == math.inf) == (least == math.inf)
        if least < math.inf:
            by_stages += state.bound < state.target
            assert bound <= least and alone <= state.best.cost
            gap = instance.gap_tolerance(least)
            assert bound >= state.best.cost - gap and abs(state.target - target) <= gap
    assert by_stages > 2


def test_the_bound_moves_far_from_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search's own bound stays near 0 with many levers; a stage has its budget for it."""
    instance = large(0, 64, 2, 16)
    cost = Cost.pure("l2-squared", dict.fromkeys(instance.factual, 1.0))
    state = propose.Run(replace(instance, cost=cost))
    bound, message = search_on.search_on(state, enough=lambda: int(state.tree.now.examined) > 3000)
    assert message is not None and state.bound < bound <= state.best.cost
