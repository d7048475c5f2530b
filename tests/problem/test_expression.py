"""Expressions: float evaluation and exact enclosure tell the same story."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import (
    Constant,
    Expression,
    NetworkOutput,
    Product,
    Relu,
    Sigmoid,
    Square,
    Sum,
    Variable,
    as_expression,
    as_fraction,
    logit,
    sigmoid,
)
from milp_recourse.problem.network import ReluNetwork

NAMES = ("a", "b", "c")
numbers = st.floats(-4, 4, allow_nan=False)
NETWORK = ReluNetwork.from_layers([([[1.0, -0.5], [0.3, 2.0]], [0.1, -1.0]), ([[1.5, -2.0]], [0.25])])


def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(Sum),
        pairs.map(Product),
        inner.map(Relu),
        inner.map(Sigmoid),
        inner.map(lambda e: Square(Sigmoid(e))),
        pairs.map(lambda p: NetworkOutput(NETWORK, p)),
    )


expressions = st.recursive(
    st.one_of(numbers.map(Constant), st.sampled_from(NAMES).map(Variable)), grow, max_leaves=8
)


@given(expressions, st.tuples(numbers, numbers, numbers))
@settings(max_examples=150, deadline=None)
def test_float_evaluation_agrees_with_the_exact_enclosure(e: Expression, point: tuple[float, ...]) -> None:
    """To float accuracy, and the enclosure is narrow."""
    values = dict(zip(NAMES, point, strict=True))
    box = e.enclose({n: Enclosure.of(v) for n, v in values.items()})
    assert box.upper - box.lower < Fraction(1, 10**30) * (1 + abs(box.midpoint))
    approximate = float(e.evaluate({n: np.float64(v) for n, v in values.items()}))
    assert approximate == pytest.approx(float(box.midpoint), rel=1e-9, abs=1e-9)


@given(
    expressions,
    st.tuples(numbers, numbers, numbers),
    st.tuples(numbers, numbers, numbers),
    st.fractions(0, 1),
)
@settings(max_examples=100, deadline=None)
def test_the_enclosure_over_intervals_contains_the_value_at_a_point_of_them(
    e: Expression, one: tuple[float, ...], two: tuple[float, ...], share: Fraction
) -> None:
    """Inclusion is kept by every kind of expression."""
    box, inside = {}, {}
    for n, a, b in zip(NAMES, one, two, strict=True):
        low, high = Fraction(min(a, b)), Fraction(max(a, b))
        box[n] = Enclosure(low, high)
        inside[n] = Enclosure.of(low + share * (high - low))
    around, at = e.enclose(box), e.enclose(inside)
    rounding = Fraction(1, 10**40) * (1 + abs(at.midpoint))
    assert around.lower - rounding <= at.midpoint <= around.upper + rounding


@given(expressions)
@settings(max_examples=50)
def test_parents_are_the_variables_met_on_a_walk(e: Expression) -> None:
    """parents and walk() agree."""
    assert e.parents == {v.name for v in e.walk() if isinstance(v, Variable)}


@given(
    expressions,
    st.tuples(numbers, numbers, numbers),
    st.tuples(numbers, numbers, numbers),
    st.sets(st.sampled_from(NAMES)),
)
@settings(max_examples=150, deadline=None)
def test_a_shift_is_the_difference_of_the_values(
    e: Expression, one: tuple[float, ...], two: tuple[float, ...], moved: set[str]
) -> None:
    """Exactly where that is rational, else by enclosures that meet and are no wider; b may be said to move
    and stay."""
    assume(moved & e.parents)
    before = {n: Enclosure.of(v) for n, v in zip(NAMES, one, strict=True)}
    after = before | {n: Enclosure.of(v) for n, v in zip(NAMES, two, strict=True) if n in moved - {"b"}}
    shift, difference = e.shift(before, after, moved), e.enclose(after) - e.enclose(before)
    assert max(shift.lower, difference.lower) <= min(shift.upper, difference.upper)
    assert shift.upper - shift.lower <= difference.upper - difference.lower


def test_operators_build_the_formula_they_look_like() -> None:
    """2 - a * 3 + (-b) - 1 at a = 5, b = 7, both ways round."""
    a, b = Variable("a"), Variable("b")
    e = 2 - a * 3 + (-b) - 1
    assert e.evaluate({"a": np.array([5.0]), "b": np.array([7.0])}).tolist() == [-21.0]
    assert e.enclose({"a": Enclosure.of(5), "b": Enclosure.of(7)}) == Enclosure.of(-21)
    mirrored = 1 + a, 3 * a
    assert [m.enclose({"a": Enclosure.of(5)}).lower for m in mirrored] == [6, 15]


def test_evaluation_is_elementwise_over_arrays() -> None:
    """A batch gives what the rows give one by one, networks included."""
    a, b = Variable("a"), Variable("b")
    e = NetworkOutput(NETWORK, (a, Sigmoid(b) + 1.0)) * Square(a) + Relu(b)
    rng = np.random.default_rng(0)
    batch = {n: rng.normal(size=5) for n in ("a", "b")}
    together = e.evaluate(batch)
    assert together.shape == (5,)
    alone = [float(e.evaluate({n: v[k] for n, v in batch.items()})) for k in range(5)]
    assert together == pytest.approx(alone, rel=1e-14)


def test_a_constant_is_its_fraction_and_a_variable_has_none() -> None:
    """as_fraction is exact where nothing is read and the value is rational."""
    assert as_fraction(as_expression(0.1) * 3) == 3 * Fraction(0.1)
    assert as_fraction(Variable("a")) is None
    assert as_fraction(Sigmoid(Constant(1.0))) is None


def test_sigmoid_and_logit_do_not_overflow() -> None:
    """Ends included."""
    assert sigmoid(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
    assert logit(np.array([0.0, 0.5, 1.0])).tolist() == [-np.inf, 0.0, np.inf]
