"""A way to measure changes that the package does not have is a class; everything else asks it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from milp_recourse.judge import already_good
from milp_recourse.problem.cost import Cost, Measure, Piece
from milp_recourse.problem.instance import Instance
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
        raise AssertionError(factor)


def kneed(instance: Instance, kind: str) -> Instance:
    """The problem with knees in what its numeric levers cost."""
    levers = instance.preferences.actionable
    labels = {f.name for f in instance.features if f.kind == "categorical"}
    return replace(
        instance,
        cost=Cost.pure(kind, {name: 1.0 if name in labels else Kneed() for name in levers}),
        reference=None,
    )


def problems(make: Callable[[int], Instance], kind: str) -> Iterator[tuple[int, Instance]]:
    """Seeds and their problems, where something is to be done and can be."""
    for seed in range(12):
        instance = kneed(make(seed), kind)
        if instance.levers and not already_good(instance):
            yield seed, instance


def near(one: float, other: float, instance: Instance) -> bool:
    """Whether two costs are the same within both gaps."""
    return abs(one - other) <= 2 * gap_tolerance(one, instance.gap_allowance)


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "linf"])
def test_back_ends_agree_on_networks(kind: str) -> None:
    """The same status, and costs within the gap."""
    decided = 0
    for seed, instance in problems(supported_instance, kind):
        one, other = (solve(instance, name, 20.0) for name in ("bab", "highs"))
        if Status.LIMIT in (one.status, other.status):
            continue
        assert one.status is other.status, seed
        if one.cost is not None and other.cost is not None:
            assert near(one.cost, other.cost, instance), seed
            decided += 1
    assert decided >= 3


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "linf"])
def test_trees_agree_with_every_combination_of_cells(kind: str) -> None:
    """The least cost of all cells, which the enumeration adds up by the table of costs."""
    decided = 0
    for seed, instance in problems(random_tree_instance, kind):
        result, least = solve(instance, "bab"), brute_force(instance)
        assert (result.cost is None) == (least is None), seed
        if result.cost is not None and least is not None:
            assert near(result.cost, float(least), instance), seed
            decided += 1
    assert decided >= 3
