"""Enclosures contain the number meant: against Decimal with twice the digits, and exact rationals."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_recourse.problem.enclosure import Enclosure

doubles = st.floats(-1e6, 1e6, allow_nan=False)
rationals = st.fractions(-1000, 1000, max_denominator=10**9)
DIGITS = 130


def exact_exp(x: Fraction) -> Fraction:
    """exp(x) to 120 digits or so."""
    with localcontext(prec=DIGITS):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def exact_log(x: Fraction) -> Fraction:
    """ln(x) to 120 digits or so."""
    with localcontext(prec=DIGITS):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).ln())


@given(doubles, doubles)
def test_sums_differences_and_products_of_doubles_are_exact(a: float, b: float) -> None:
    """Points in, points out, equal to the rational result."""
    x, y = Enclosure.of(a), Enclosure.of(b)
    expected = {
        x + y: Fraction(a) + Fraction(b),
        x - y: Fraction(a) - Fraction(b),
        x * y: Fraction(a) * Fraction(b),
    }
    assert all(e.exact and e.lower == value for e, value in expected.items())


@given(doubles)
def test_squares_relus_and_negations_of_doubles_are_exact(a: float) -> None:
    """Points in, points out."""
    x, f = Enclosure.of(a), Fraction(a)
    assert (x.square(), x.relu(), -x) == tuple(Enclosure.of(v) for v in (f * f, max(f, Fraction(0)), -f))


@given(rationals, rationals.filter(bool))
def test_division_by_a_number_is_exact(a: Fraction, b: Fraction) -> None:
    """Also by a negative one."""
    assert Enclosure.of(a) / b == Enclosure.of(a / b)


@given(rationals, rationals, rationals, rationals, st.fractions(0, 1), st.fractions(0, 1))
def test_operations_on_intervals_contain_every_pair(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, s: Fraction, t: Fraction
) -> None:
    """x in X and y in Y put x op y in X op Y."""
    x, y = Enclosure(min(a, b), max(a, b)), Enclosure(min(c, d), max(c, d))
    p, q = x.lower + s * (x.upper - x.lower), y.lower + t * (y.upper - y.lower)
    for image, value in (
        (x + y, p + q),
        (x - y, p - q),
        (x * y, p * q),
        (x.square(), p * p),
        (x.relu(), max(p, Fraction(0))),
        (-x, -p),
        (x / Fraction(-7, 3), p * Fraction(-3, 7)),
    ):
        assert image.lower <= value <= image.upper


@given(rationals, rationals)
def test_the_square_of_an_interval_is_not_looser_than_it_must_be(a: Fraction, b: Fraction) -> None:
    """Its ends are attained: 0 when the interval holds 0, else squares of ends."""
    x = Enclosure(min(a, b), max(a, b))
    attained = {a * a, b * b, Fraction(0)} if x.lower <= 0 <= x.upper else {a * a, b * b}
    assert {x.square().lower, x.square().upper} <= attained
    assert x.square().lower == min(attained)


@given(st.one_of(rationals, st.floats(-700, 700).map(Fraction)))
@settings(max_examples=60)
def test_sigmoid_is_contained_and_about_fifty_digits_are_known(x: Fraction) -> None:
    """lower <= 1 / (1 + exp(-x)) <= upper, and the relative width is below 1e-55."""
    e, power = Enclosure.of(x).sigmoid(), exact_exp(x)
    value = power / (1 + power)
    assert e.lower < value < e.upper
    assert (e.upper - e.lower) / value < Fraction(1, 10**55)


@given(st.one_of(st.fractions(Fraction(1, 10**12), 1000), st.floats(1e-300, 1e300).map(Fraction)))
@settings(max_examples=60)
def test_log_is_contained_and_about_fifty_digits_are_known(x: Fraction) -> None:
    """lower <= ln x <= upper, and the width is below 1e-55 of 1 + |ln x|."""
    e, value = Enclosure.of(x).log(), exact_log(x)
    assert e.lower <= value <= e.upper
    assert e.upper - e.lower < Fraction(1, 10**55) * (1 + abs(value))


@given(st.fractions(Fraction(1, 10**9), 1 - Fraction(1, 10**9)).filter(lambda p: 0 < p < 1))
@settings(max_examples=40)
def test_logit_is_contained_and_sigmoid_takes_it_back(p: Fraction) -> None:
    """logit encloses ln p - ln(1 - p); its sigmoid encloses p."""
    e = Enclosure.of(p).logit()
    assert e.lower <= exact_log(p) - exact_log(1 - p) <= e.upper
    back = e.sigmoid()
    assert back.lower <= p <= back.upper
    assert back.upper - back.lower < Fraction(1, 10**50)


@pytest.mark.parametrize("x", [-1e6, -100001.0, -1e5, -50000.0, 50000.0, 1e5, 100001.0, 1e6])
def test_sigmoid_far_out_stays_between_zero_and_one(x: float) -> None:
    """Beyond Decimal's comfort the enclosure is still proper and on the right side."""
    e = Enclosure.of(x).sigmoid()
    assert 0 <= e.lower < e.upper <= 1
    assert e.upper <= Fraction(1, 10**50) if x < 0 else e.lower >= 1 - Fraction(1, 10**50)


def test_sigmoid_of_an_interval_contains_the_images_of_its_ends() -> None:
    """The sigmoid increases."""
    e = Enclosure(Fraction(-1, 3), Fraction(2)).sigmoid()
    for x in (Fraction(-1, 3), Fraction(2)):
        power = exact_exp(x)
        assert e.lower < power / (1 + power) < e.upper


def test_log_of_one_is_a_small_exact_number() -> None:
    """A step outward from zero has a million digits; none is taken."""
    e = Enclosure.of(1).log()
    assert e.lower == e.upper == 0


@pytest.mark.parametrize("x", [0, -1, Fraction(-1, 10**30)])
def test_log_of_what_may_not_be_positive_raises(x: Fraction) -> None:
    """No silent nonsense."""
    with pytest.raises(ValueError, match="may be <= 0"):
        Enclosure.of(x).log()


def test_a_double_means_its_binary_value() -> None:
    """0.1 is not one tenth."""
    assert Enclosure.of(0.1).lower == Fraction(0.1) != Fraction(1, 10)


def test_the_midpoint_lies_in_the_middle() -> None:
    """And an enclosure of different ends is not exact."""
    e = Enclosure(Fraction(1), Fraction(2))
    assert e.midpoint == Fraction(3, 2)
    assert not e.exact
