"""Where a rising rule changes its answer: among neighbours, whoever asks it and however many at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from milp_recourse.readers.boundaries import (
    AT_ONCE,
    doubles_of,
    last_on_the_way,
    last_refused,
    narrowed,
    ranks_of,
)
from milp_recourse.readers.links import FAR

LARGEST = float(np.finfo(np.float64).max)
EDGES = (-LARGEST, -1.0, -5e-324, 0.0, 5e-324, 2.0**-1022, 0.1, 1.0, math.nextafter(1.0, 2.0), 3e7, LARGEST)


class Counted:
    """The rule that a number is above an edge, and how often it was asked, for one and for several."""

    def __init__(self, edge: float, together: Callable[[Any], Any] | None = None) -> None:
        self.edge, self.alone, self.calls, self.own = edge, 0, 0, together

    def one(self, number: float) -> bool:
        self.alone += 1
        return number > self.edge

    def several(self, numbers: np.ndarray) -> Any:
        self.calls += 1
        return numbers > self.edge if self.own is None else self.own(numbers)


@pytest.mark.parametrize("edge", EDGES[1:-1])
def test_the_last_refused_double_is_found_with_few_questions(edge: float) -> None:
    alone, grid = Counted(edge), Counted(edge)
    assert last_refused(alone.one, -FAR, FAR) == edge
    assert last_refused(grid.one, -FAR, FAR, together=grid.several) == edge
    assert alone.alone <= 64 and alone.calls == 0
    assert grid.alone == 2 and grid.calls <= 11


@pytest.mark.parametrize("edge", [-3.7, 0.0, 1e-9, 0.1, 2.5, 1e20])
def test_the_last_refused_float32_is_found(edge: float) -> None:
    """Also where an end is none, as 1e30."""
    near = np.float32(edge)
    last = float(near if float(near) <= edge else np.nextafter(near, np.float32(-math.inf)))
    grid = Counted(edge)
    assert last_refused(Counted(edge).one, -FAR, FAR, single=True) == last
    assert last_refused(grid.one, -FAR, FAR, single=True, together=grid.several) == last
    assert grid.calls <= 6


@pytest.mark.parametrize("single", [False, True])
def test_an_end_may_be_beside_where_the_answer_changes(single: bool) -> None:
    """All numbers between the ends are accepted, or refused; 1e30 is no float32."""
    kind = np.float32 if single else np.float64
    before = kind(FAR) if float(kind(FAR)) < FAR else np.nextafter(kind(FAR), kind(-math.inf))
    for edge, found in ((-FAR, -FAR), (math.nextafter(FAR, 0.0), float(before))):
        grid = Counted(edge)
        assert last_refused(Counted(edge).one, -FAR, FAR, single) == found
        assert last_refused(grid.one, -FAR, FAR, single, grid.several) == found


@pytest.mark.parametrize(
    "wrong",
    [
        lambda xs: xs > 0.5,  # another threshold
        lambda xs: xs > math.nextafter(0.25, 1.0),  # one double beside
        lambda xs: xs > math.nextafter(0.25, 0.0),
        lambda xs: np.zeros(len(xs), dtype=bool),  # as where it fails for some
        lambda xs: np.ones(len(xs), dtype=bool),
    ],
)
def test_a_rule_that_says_otherwise_of_many_is_asked_one_by_one(wrong: Callable[[Any], Any]) -> None:
    grid = Counted(0.25, wrong)
    assert last_refused(grid.one, -FAR, FAR, together=grid.several) == 0.25
    assert grid.alone > 30


@pytest.mark.parametrize("end", [-LARGEST, LARGEST])
@pytest.mark.parametrize("edge", [1e-300, 1.0, 7.5, 1e300])
def test_it_is_looked_for_in_both_directions(edge: float, end: float) -> None:
    start, last = math.copysign(0.0, end), math.copysign(edge, end)

    def holds(x: Any) -> Any:
        return np.abs(x) <= edge

    assert last_on_the_way(holds, start, end) == last == last_on_the_way(holds, start, end, holds)


def test_several_searches_go_on_together() -> None:
    edges = np.array(EDGES)
    low, high = ranks_of(np.array([-LARGEST, LARGEST])) + [-1, 1]
    ends = np.full(len(edges), low), np.full(len(edges), high)
    for at_once in (1, 7, AT_ONCE):
        found = narrowed(lambda ranks: doubles_of(ranks) > edges[:, None], *ends, at_once)
        assert (doubles_of(found) == edges).all()


def test_ranks_are_those_of_neighbours() -> None:
    for x in EDGES[1:-1]:
        around = doubles_of(ranks_of(np.array([x])) + np.array([-1, 0, 1]))
        assert around.tolist() == [math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf)]
