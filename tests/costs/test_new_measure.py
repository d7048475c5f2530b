"""A way to measure changes that the package does not have is a class; everything else asks it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from milp_recourse.judge import already_good
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.measures import Measure, Piece
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.questions.solve import solve
from tests.helpers.generators import supported_instance
from tests.helpers.tree_samples import brute_force, random_tree_instance


@dataclass(frozen=True)
class Kneed(Measure):
    """The distance, counted three times as much beyond the first unit."""

    strict = True

    def pieces(self, x: float) -> tuple[Piece, ...]:
        """One size per unit up to the knees, three beyond."""
        below, above = x - 1.0, x + 1.0
        first = [abs(Fraction(knee) - Fraction(x)) for knee in (below, above)]
        return (
            Piece(-math.inf, below, Fraction(3), below, first[0]),
            Piece(below, x, Fraction(1), x, Fraction(0)),
            Piece(x, above, Fraction(1), x, Fraction(0)),
            Piece(above, math.inf, Fraction(3), above, first[1]),
        )

    def times(self, factor: float) -> Measure:
        """Not asked of problems of usual size."""
        raise NotImplementedError


def kneed(instance: Instance, kind: str) -> Instance:
    """The problem with knees in what its numeric levers cost."""
    levers = instance.preferences.actionable
    labels = {f.name for f in instance.features if f.kind == "categorical"}
    return replace(
        instance,
        cost=Cost.pure(kind, {name: 1.0 if name in labels else Kneed() for name in levers}),
        reference=None,
    )


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "linf"])
def test_back_ends_agree_on_networks(kind: str) -> None:
    """The same status, and costs within the gap."""
    decided = 0
    for seed in range(12):
        instance = kneed(supported_instance(seed), kind)
        if not instance.levers or already_good(instance):
            continue
        one, other = (solve(instance, name, 20.0) for name in ("bab", "highs"))
        if Status.LIMIT in (one.status, other.status):
            continue
        assert one.status is other.status, seed
        if one.cost is not None and other.cost is not None:
            assert abs(one.cost - other.cost) <= 2 * gap_tolerance(one.cost, instance.gap_allowance), seed
            decided += 1
    assert decided >= 3


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "linf"])
def test_trees_agree_with_every_combination_of_cells(kind: str) -> None:
    """The least cost of all cells, which the enumeration adds up by the table of costs."""
    decided = 0
    for seed in range(12):
        instance = kneed(random_tree_instance(seed), kind)
        if not instance.levers or already_good(instance):
            continue
        result, least = solve(instance, "bab"), brute_force(instance)
        assert (result.cost is None) == (least is None), seed
        if result.cost is not None and least is not None:
            assert abs(result.cost - least) <= 2 * gap_tolerance(result.cost, instance.gap_allowance), seed
            decided += 1
    assert decided >= 3
