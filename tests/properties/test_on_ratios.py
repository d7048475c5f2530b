"""Some of the cases of :mod:`tests.properties.on_ratios`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.properties.on_lattices import BACKENDS, check
from tests.properties.on_ratios import SECONDS, drawn


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_ratios_and_clocks_are_solved_as_enumerated(first: int) -> None:
    """Every back end's answer is the optimum of all actions, and certificates are verified."""
    total = Counter[str]()
    for seed in range(first, first + 4):  # trees, a network, and both with a column that moves with a lever
        counts, wrong = check(seed, drawn, SECONDS, BACKENDS)
        assert wrong == []
        total += counts
    assert total["bab: optimal"] + total["bab: infeasible"] >= 3
