"""Compiled code returns to Python by the clock: limits hold on large networks, and answers are the same."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.engine.networks import propose, search
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instance_files
from milp_recourse.problem.options import Clock
from tests.helpers.amounts import amounts
from tests.helpers.generators import random_instance
from tests.helpers.large import large
from tests.helpers.wide import many_labels, wide


def test_a_short_limit_ends_a_search_of_dear_nodes() -> None:
    """A node takes 10 ms here, and the first slice would have 64."""
    result = solve(large(1), "bab", 0.05)
    assert result.status.value == "limit" and result.nodes < 40
    assert result.message == "the time limit was reached"


@pytest.mark.parametrize("seed", range(3))
def test_where_nodes_are_dear_actions_are_searched_for_early(seed: int) -> None:
    """After 64 nodes with 256 units, not after 1000."""
    propose.ready()
    state = propose.Run(large(seed))
    assert search.first_slice(state.problem, True) == (64, -1)
    why = state.examine(8)
    assert why == search.MORE
    state.examine(1, 0)
    assert state.work.now.best_cost < np.inf


def test_a_search_for_good_actions_ends_with_the_limit() -> None:
    """It had taken 2 s with 20 levers and 512 units, whatever the limit; without one it is not cut short."""
    costs = []
    for seconds in (0.0, 1e3, None):
        state = propose.Run(many_labels(0))
        state.clock = Clock.start(seconds)
        state.examine(1, 0)
        costs.append(float(state.work.now.best_cost))
    assert costs[0] > costs[1] == costs[2]


def test_answers_do_not_depend_on_when_slices_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Returning at every look at the clock, or never: the same to the last bit."""
    drawn = [random_instance(seed) for seed in range(9000, 9024)]
    drawn += [wide(seed, labels) for seed in range(2) for labels in (False, True)]
    drawn += [amounts(seed, cost) for seed in range(2) for cost in ("l1", "l2-squared", "linf")]
    drawn += [read_instance(path) for path in instance_files("loan")[::6]]
    cut = 0
    for instance in drawn:
        found = []
        for seconds in (1e-6, 1e6):
            monkeypatch.setattr(search, "SLICE", seconds)
            assert search.slice_and(0.0) == (int(1e6 * seconds), 0)
            with contextlib.suppress(Unsupported):
                found.append(replace(solve(instance, "bab"), seconds=0.0))
        assert found[:1] == found[1:], instance.name
        cut += bool(found) and (found[0].nodes or 0) > search.BETWEEN_LOOKS // 16
    assert cut > 8
