"""Some dozens of the cases of :mod:`tests.properties.on_lattices`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.properties.on_lattices import check


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_steps_and_values_are_solved_as_enumerated(first: int) -> None:
    """Every back end's answer is the optimum of all actions, and certificates are verified."""
    total = Counter[str]()
    for seed in range(first, first + 4):  # trees, a network, and both with causes
        counts, wrong = check(seed)
        assert wrong == []
        total += counts
    assert total["bab: optimal"] + total["bab: infeasible"] == 4
