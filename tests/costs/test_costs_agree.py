"""Every kind of cost and of density offset: back ends agree with each other and with brute force.

``python -m tests.costs.compare_costs`` does the same for 200 draws of each.
"""

import pytest

from tests.costs.compare_costs import check
from tests.helpers.cost_kinds import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_costs_of_networks_agree(kind: str) -> None:
    """Two back ends and a grid say the same of networks, and what is certified is accepted."""
    decided = 0
    for seed in range(2):
        names = ("pyomo:highs", "highs") if kind == "log-percentile" else ("bab", "highs")
        counts, wrong = check(seed, kind, False, names, 20.0, certify=True)
        assert not wrong
        decided += counts["decided by two"]
    assert decided >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_costs_of_trees_agree(kind: str) -> None:
    """Two back ends and every combination of cells say the same of trees; causes and densities included."""
    decided = 0
    for seed in range(3):
        counts, wrong = check(seed, kind, True, ("bab", "cpsat"), 20.0, certify=True)
        assert not wrong
        decided += counts["decided by two"]
    assert decided >= 1
