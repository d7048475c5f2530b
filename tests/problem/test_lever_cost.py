"""The table of what a lever's values cost, worked out by hand and against the formulas."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.problem.cost import Cost, Distance, Measure, Piece, Quantiles, Ranks, measured
from milp_recourse.problem.lever_cost import (
    LEVER_GAP,
    ROUNDINGS,
    LeverCost,
    exact_cost,
    gap_allowance,
    lever_costs,
)

WEIGHTS = {"a": 2.0, "b": 4.0, "held": 8.0, "unused": 100.0}
SCALE = {"a": 2.0, "b": 0.25, "held": 1.0, "unused": 1.0}
FACTUAL = {"a": 1.0, "b": 3.0, "held": 5.0, "unused": 7.0}
ACTION = {"a": 4.0, "b": 2.5, "held": 5.0}
# sizes: a 3/2, b 2, held 0; weighted: 3, 8, 0


def paid_for(cost: Cost, action: dict[str, float]) -> Fraction:
    """What an action costs an applicant with these values, weights and no categorical features."""
    costs = lever_costs(cost, dict.fromkeys(WEIGHTS, False), FACTUAL, WEIGHTS)
    return exact_cost((costs[name], value) for name, value in action.items())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("l2-squared", Fraction(41, 2)), ("l1", Fraction(11)), ("linf", Fraction(8)), ("l0", Fraction(14))],
)
def test_each_pure_cost_by_hand(kind: str, expected: Fraction) -> None:
    """2 (3/2)^2 + 4 2^2 = 20.5; 3 + 8 = 11; max(3, 8) = 8; 2 + 4 + 8 = 14, the held one included."""
    assert paid_for(Cost.pure(kind, SCALE), ACTION) == expected


def test_a_mixture_is_the_sum_of_its_parts_exactly() -> None:
    """Coefficients are doubles and mean their binary value."""
    c = Cost(l2_squared=0.1, l1=0.2, linf=0.3, l0=0.7, measures=measured(SCALE))
    parts = [Fraction(0.1) * Fraction(41, 2), Fraction(0.2) * 11, Fraction(0.3) * 8, Fraction(0.7) * 14]
    assert paid_for(c, ACTION) == sum(parts)


def test_pure_l0_needs_no_scale() -> None:
    """Distances do not enter; under other costs a feature without a scale has no costs."""
    assert paid_for(Cost.pure("l0", {}), ACTION) == 14
    assert not Cost.pure("l0", {}).uses_scale
    assert Cost.pure("linf", SCALE).uses_scale
    with pytest.raises(KeyError):
        paid_for(Cost.pure("l1", {"a": 1.0}), ACTION)


@pytest.mark.parametrize("kind", ["l2-squared", "l1", "linf", "l0"])
def test_doing_nothing_costs_nothing(kind: str) -> None:
    """And holding costs only under l0."""
    assert paid_for(Cost.pure(kind, SCALE), {}) == 0
    assert paid_for(Cost.pure(kind, SCALE), {"held": 5.0}) == (8 if kind == "l0" else 0)


def drawn(rng: np.random.Generator) -> LeverCost:
    """A distance in one scale or two, percentiles, labels, or a missing value, under any parts."""
    scale = {"x": float(rng.uniform(0.1, 9.0))}
    cost = Cost(*(rng.uniform(0.0, 2.0, 4) * rng.integers(0, 2, 4)).tolist(), measured(scale))
    kind = rng.integers(5)
    x = float(rng.normal() * 3.0)
    if kind == 1:
        two = {"x": Distance(scale["x"], float(rng.uniform(0.1, 9.0)))}
        cost = Cost(*cost.parts[1:], cost.parts[0], two)
    elif kind == 2:
        values = np.unique(rng.normal(size=int(rng.integers(2, 9))) * 3.0)
        levels = np.sort(rng.random(len(values))) * (rng.random() < 0.9)
        ranks = {"x": Ranks(Quantiles(tuple(values.tolist()), tuple(levels.tolist())))}
        cost = Cost(*cost.parts[1:], cost.parts[0], ranks)
        x = x if rng.random() < 0.7 else float(rng.choice(values))
    elif kind == 3:
        x = float(rng.integers(4))
    elif kind == 4:
        x = math.nan
    return lever_costs(cost, {"x": kind == 3}, {"x": x}, {"x": float(rng.uniform(0.1, 9.0))})["x"]


def size_by_formula(cost: LeverCost, value: float) -> Fraction:
    """The size of a change, by the formulas of docs/costs_and_plausibility.md."""
    if math.isnan(cost.factual):
        return Fraction(1)
    scale = Fraction(cost.fall if value < cost.factual else cost.rise)
    if cost.label:
        return Fraction(int(value != cost.factual)) / scale
    if not isinstance(cost.measure, Ranks):
        return abs(Fraction(value) - Fraction(cost.factual)) / scale
    q = cost.measure.levels
    knots = [*zip(map(Fraction, q.values), map(Fraction, q.probabilities), strict=True)]

    def level(v: Fraction) -> Fraction:
        if not knots[0][0] < v < knots[-1][0]:
            return knots[0][1] if v <= knots[0][0] else knots[-1][1]
        (a, p), (b, r) = next((one, other) for one, other in itertools.pairwise(knots) if v <= other[0])
        return p + (r - p) * (v - a) / (b - a)

    return abs(level(Fraction(value)) - level(Fraction(cost.factual))) / scale


def test_sizes_and_prices_are_the_formulas() -> None:
    """Exactly; in doubles, to the roundings that are stated; at the ends of pieces and between."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        cost = drawn(rng)
        x = 0.0 if math.isnan(cost.factual) else cost.factual
        values = np.arange(6.0) if cost.label else np.array([x, *x + rng.normal(size=9) * 4.0])
        if isinstance(cost.measure, Ranks):
            values = np.concatenate([values, cost.measure.levels.values])
        added, entries = cost.evaluate(values)
        near = ROUNDINGS * 2.0**-53
        fixed, square, linear, largest = map(Fraction, cost.parts)
        for value, size, paid, entry in zip(values.tolist(), cost.sizes(values), added, entries, strict=True):
            exact = size_by_formula(cost, value)
            assert cost.size(value) == exact
            assert abs(Fraction(float(size)) - exact) <= exact * Fraction(5, 2**53)
            due = Fraction(cost.weight) * (fixed + linear * exact + square * exact**2)
            assert cost.paid(value) == (due, Fraction(cost.weight) * largest * exact)
            assert abs(Fraction(float(paid)) - due) <= due * Fraction(near)
            assert abs(Fraction(float(entry)) - cost.paid(value)[1]) <= cost.paid(value)[1] * Fraction(near)
            assert exact_cost([(cost, value)]) == sum(cost.paid(value))
            assert cost.about(value) == pytest.approx(float(exact), rel=1e-14)


def test_pieces_ascend_and_meet() -> None:
    """No value is between two pieces, but between labels; sizes never fall away from the factual."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        cost = drawn(rng)
        assert cost.pieces[0].low == -math.inf and cost.pieces[-1].high == math.inf
        assert all(piece.rate >= 0 and piece.start >= 0 for piece in cost.pieces)
        for one, other in zip(cost.pieces, cost.pieces[1:], strict=False):
            if not cost.label:
                assert one.high == other.low
                assert one.size(one.high) == other.size(other.low) == cost.size(one.high)
        if not (cost.label or math.isnan(cost.factual)):
            low, high = sorted((rng.normal(size=2) * 5.0).tolist())
            ends = size_by_formula(cost, low), size_by_formula(cost, high)
            inside = low <= cost.factual <= high
            assert cost.variation(low, high) == (sum(ends) if inside else abs(ends[0] - ends[1]))


def test_costs_add_up_over_a_common_denominator() -> None:
    """The sum of what levers cost and the largest entry; a trillionth of intervals, rounded down."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        costs = [drawn(rng) for _ in range(int(rng.integers(1, 5)))]
        values = [float(rng.integers(3)) if one.label else float(rng.normal() * 4.0) for one in costs]
        paid = [one.paid(value) for one, value in zip(costs, values, strict=True)]
        total = sum((p for p, _ in paid), Fraction(0)) + max(entry for _, entry in paid)
        assert exact_cost(zip(costs, values, strict=True)) == total
        ends = [sorted((rng.normal(size=2) * 4.0).tolist()) for _ in costs]
        moves = [
            one.prices._replace(fixed=Fraction(0)).paid(Fraction(LEVER_GAP) * one.variation(low, high))
            for one, (low, high) in zip(costs, ends, strict=True)
        ]
        due = sum((p for p, _ in moves), Fraction(0)) + max(entry for _, entry in moves)
        ours = gap_allowance([(one, *pair) for one, pair in zip(costs, ends, strict=True)], root=False)
        assert due * (1 - Fraction(1, 2**45)) <= ours <= due or (ours == 0.0 and due <= 1e-300)


class Listed(Measure):
    """Sizes as they are listed, whatever the factual value."""

    def __init__(self, *pieces: tuple[float, float, float, float, float]) -> None:
        self.listed = tuple(Piece(a, b, Fraction(rate), x, Fraction(at)) for a, b, rate, x, at in pieces)

    def pieces(self, x: float) -> tuple[Piece, ...]:
        return self.listed

    def times(self, factor: float) -> Measure:
        return self


def listed(*pieces: tuple[float, float, float, float, float]) -> LeverCost:
    """What a lever at 1 costs by them."""
    return lever_costs(Cost.pure("l1", {"a": Listed(*pieces)}), {"a": False}, {"a": 1.0}, {})["a"]


INF = math.inf


def test_two_pieces_may_meet_elsewhere_than_at_the_factual_value() -> None:
    """Free up to 3, then 2 per unit."""
    cost = listed((-INF, 3.0, 0, 3.0, 0), (3.0, INF, 2, 3.0, 0))
    assert [cost.size(v) for v in (-9.0, 1.0, 2.0, 3.0, 4.5)] == [0, 0, 0, 0, 3]
    assert cost.sizes(np.array([2.0, 4.5])).tolist() == [0.0, 3.0]
    assert cost.knots(0.0, 5.0, 4.0).tolist() == [[-0.25, 0.5, 1.0], [0.0, 0.0, 4.0]]


def test_pieces_that_rounding_left_no_room_for_are_left_out() -> None:
    """Two ends that are the factual value, and one that no lever reaches."""
    far = (1e308, INF, 1e300, 1e308, 1e308)
    cost = listed(
        (-INF, 1.0, 1, 1.0, 0), (1.0, 1.0, 0, 1.0, 0), (1.0, 1.0, 0, 1.0, 0), (1.0, 1e308, 1, 1.0, 0), far
    )
    assert cost.knots(1.0, 1.0, 1.0).tolist() == [[0.0], [0.0]]
    assert cost.knots(0.0, 3.0, 2.0).tolist() == [[-0.5, 0.0, 1.0], [1.0, 0.0, 2.0]]
    assert cost.sizes(np.array([0.0, 3.0])).tolist() == [1.0, 2.0]
    assert [piece.high for piece in cost.within(2.0, 3.0)] == [1.0, 1e308]


@pytest.mark.parametrize(
    "pieces",
    [
        [(-INF, INF, 0, 0.0, 0)],
        [(-INF, 1.0, 1, 1.0, 0), (1.0, 5.0, 1, 1.0, 0)],
        [(-INF, 1.0, 1, 1.0, 0), (2.0, INF, 1, 2.0, 1)],
        [(-INF, 1.0, 1, 1.0, 0), (1.0, 0.5, 1, 1.0, 0), (0.5, INF, 1, 0.5, 0)],
        [(-INF, 1.0, 1, 1.0, 0), (1.0, INF, -1, 1.0, 0)],
        [(-INF, 1.0, 0, -INF, 0), (1.0, INF, 1, 1.0, 0)],
    ],
    ids=["one", "ends", "apart", "back", "falls", "near"],
)
def test_who_writes_a_measure_is_told_what_its_pieces_must_be(pieces) -> None:
    """In one sentence, with the class and the factual value."""
    with pytest.raises(ValueError, match=r"Listed.pieces\(1.0\): allowed: two or more, ascending from -inf"):
        _ = listed(*pieces).pieces


def test_a_rate_that_no_double_holds_is_of_pieces_that_are_not_reached() -> None:
    """Others are refused as too large (tests/program/test_magnitude.py)."""
    cost = listed((-INF, 1.0, 1, 1.0, 0), (1.0, 2.0, 1, 1.0, 0), (2.0, INF, 10**400, 2.0, 1))
    assert cost.sizes(np.array([1.5, 2.0])).tolist() == [0.5, 1.0]
