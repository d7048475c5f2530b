"""Curves lie in their bands, and the bands shrink with the square of the width."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_recourse.program.functions import CURVES, band, value_range

RANGES = {"sigmoid": (-40.0, 40.0), "logit": (1e-9, 1 - 1e-9), "log": (1e-9, 1e6), "square": (-1e4, 1e4)}


def exact(function: str, x: Fraction) -> Fraction:
    """The function to 60 digits, not by the code under test."""
    with localcontext(prec=60):
        if function == "square":
            return x * x
        d = Decimal(x.numerator) / Decimal(x.denominator)
        if function == "sigmoid":
            return Fraction(1 / (1 + (-d).exp()))
        return Fraction(d.ln()) if function == "log" else Fraction(d.ln() - (1 - d).ln())


@st.composite
def intervals(draw) -> tuple[str, float, float]:
    """A function and an interval of any width in its domain: points, tiny ones, wide ones."""
    function = draw(st.sampled_from(sorted(RANGES)))
    low, high = RANGES[function]
    a = draw(st.floats(low, high))
    kind = draw(st.sampled_from(["point", "tiny", "small", "any"]))
    b = {
        "point": a,
        "tiny": a + abs(a) * draw(st.floats(0, 1e-8)),
        "small": a + draw(st.floats(0, 1e-2)),
        "any": draw(st.floats(low, high)),
    }[kind]
    b = min(b, high)
    return function, min(a, b), max(a, b)


@given(intervals(), st.lists(st.fractions(0, 1), min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_band_contains_its_function(case: tuple[str, float, float], shares: list[Fraction]) -> None:
    """m x + c_lo <= f(x) <= m x + c_hi at the ends and anywhere between, judged in exact arithmetic."""
    function, low, high = case
    m, below, above = (Fraction(float(v)) for v in band(function, np.array(low), np.array(high)))
    for share in (Fraction(0), Fraction(1), *shares):
        x = Fraction(low) + share * (Fraction(high) - Fraction(low))
        assert below <= exact(function, x) - m * x <= above


@given(intervals(), st.lists(st.fractions(0, 1), min_size=3, max_size=3))
@settings(max_examples=150, deadline=None)
def test_a_value_range_contains_the_values(case: tuple[str, float, float], shares: list[Fraction]) -> None:
    """At the ends and anywhere between."""
    function, low, high = case
    smallest, largest = (Fraction(float(v)) for v in value_range(function, np.array(low), np.array(high)))
    for share in (Fraction(0), Fraction(1), *shares):
        x = Fraction(low) + share * (Fraction(high) - Fraction(low))
        assert smallest <= exact(function, x) <= largest


@pytest.mark.parametrize(
    ("function", "centre"),
    [("sigmoid", 1.3), ("sigmoid", -4.0), ("logit", 0.2), ("log", 0.7), ("square", 5.0)],
)
def test_bands_shrink_quadratically(function: str, centre: float) -> None:
    """A tenth of the width, a hundredth of the gap (inflection points do even better)."""
    widths = np.array([0.1, 0.01, 0.001])
    _, below, above = band(function, centre - widths / 2, centre + widths / 2)
    gap = above - below
    assert gap[0] / gap[1] == pytest.approx(100, rel=0.05)
    assert gap[1] / gap[2] == pytest.approx(100, rel=0.05)


def test_dense_samples_of_wide_intervals_stay_in_the_band() -> None:
    """Ten thousand points of intervals with an inflection inside."""
    for function, low, high in (
        ("sigmoid", -9.0, 4.0),
        ("logit", 0.001, 0.97),
        ("square", -3.0, 8.0),
        ("log", 1e-6, 9.0),
    ):
        m, below, above = band(function, np.array(low), np.array(high))
        x = np.linspace(low, high, 10001)
        rest = CURVES[function].value(x) - m * x
        assert (below - 1e-12 <= rest).all()
        assert (rest <= above + 1e-12).all()
        assert above - below <= 2.01 * (rest.max() - rest.min()) + 1e-9  # and is not needlessly wide
