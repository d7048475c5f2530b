"""Multipliers that grow without end prove nothing: a product that overflows must not read as a bound."""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.forests.cell_problem import region
from milp_recourse.engine.networks.problem_arrays import lowered
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.search_on import search_on
from milp_recourse.problem.instance import Instance
from tests.helpers.processes import uncompiled
from tests.helpers.tree_samples import random_causal_instance


def only_the_factual() -> Instance:
    """A problem that accepts everything and whose plausible actions all leave the factual as it is."""
    instance = random_causal_instance(274, one_hot=True)
    assert instance is not None
    found = region(instance, np.zeros(5, dtype=int), np.array([2, 0, 0, 0, 0]), {"f2": 0}, outward=True)
    assert found is not None
    return found


def test_a_feasible_action_without_any_room_around_it_is_not_ruled_out() -> None:
    """The convex problem has no interior, and its multipliers grow beyond every double."""
    instance = only_the_factual()
    [(_, group)] = lowered([instance])
    state = Run(instance, group.problems(0))
    state.few = True  # no good actions are looked for
    bound, message = search_on(
        state, enough=lambda: state.best.action is not None or state.tree.now.examined >= 1000
    )
    assert bound < math.inf
    assert state.best.action is not None or message is not None


def bound(price: float) -> float:
    """What multipliers of one price prove; run where nothing is compiled."""
    from milp_recourse.engine.networks.interior import dual_value
    from milp_recourse.engine.networks.problem_arrays import case

    instance = only_the_factual()
    for _, group in lowered([instance]):
        state = Run(instance, group.problems(0))
        p, w = case(state.problem, 0), state.work
        w.rows[:] = -1.0
        w.box[:], w.allowed[:] = p.box, p.allowed
        consts, prices = np.ones(len(w.rows)), np.full(len(w.rows), price)
        shares, choice = np.zeros_like(w.points.shares), w.points.choice
        return float(dual_value(p, w, w.rows, consts, 1, prices, shares, choice))
    raise AssertionError


def test_prices_without_end_prove_nothing() -> None:
    """Nor do they say that nothing is left of a lever."""
    module = "tests.engine.networks.test_overflow"
    code = f"from {module} import bound; print(*map(bound, (1e300, 1e308, 1e999, 1.0)))"
    *large, usual = map(float, uncompiled(code).split())
    assert large == [-math.inf] * 3 and math.isfinite(usual)
