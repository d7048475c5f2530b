"""Numbers are shown rounded but never wrongly, and words of any kind survive."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_recourse.reports.pages.values import difference, exact, percent, shown, shown_beside
from milp_recourse.reports.view import plain

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "missing"),
        (math.nan, "missing"),
        (pd.NA, "missing"),
        (pd.NaT, "missing"),
        (np.float64("nan"), "missing"),
        ("label", "label"),
        (True, "True"),
        (np.bool_(False), "False"),
        (3, "3"),
        (np.int64(12345), "12,345"),
        (2023, "2023"),
        (2.0, "2"),
        (-0.0, "0"),
        (0.0123456, "0.01235"),
        (123.456, "123.5"),
        (9.9996, "10"),
        (1234.56, "1234.6"),
        (12345.67, "12,345.7"),
        (-1234567.89, "-1,234,567.9"),
        (1.5e-7, "1.5e-7"),
        (2e300, "2e300"),
        (math.inf, "inf"),
        (2**60, str(2**60)),
    ],
)
def test_a_value_is_shown(value, text):
    """Four significant digits, and the whole part in full."""
    assert shown(value) == text


@given(FINITE)
def test_what_is_shown_is_the_number_rounded(v):
    """Within half a unit of the fourth significant digit."""
    assert abs(Decimal(shown(v).replace(",", "")) - Decimal(v)) <= abs(Decimal(v)) * Decimal("0.0005")


@given(FINITE, FINITE)
def test_different_values_look_different(a, b):
    """The value before gets the digits that tell it from the one after, which has all of its own."""
    before, after = shown_beside(a, b)
    assert float(after.replace(",", "")) == b
    assert a == b or before != after


@given(FINITE)
def test_exact_is_exact(v):
    """The tooltip's text is the double."""
    assert float(exact(v)) == v


def test_differences_are_of_numbers_only():
    """Labels and missing values have none."""
    assert difference(1, 2.5) == 1.5
    assert difference("a", "b") is None
    assert difference(None, 3.0) is None


def test_percent_is_never_rounded_to_nobody_or_everybody():
    """One of ten thousand is not 0%, and all but one are not 100%."""
    assert [percent(k, 10000) for k in (0, 1, 3749, 9999, 10000)] == ["0%", "<0.1%", "37%", ">99.9%", "100%"]
    assert percent(0, 0) == "-"


def test_plain_keeps_numbers_and_texts():
    """Values of numpy become Python's; what is no number becomes text."""
    assert plain(np.float32(0.5)) == 0.5
    assert type(plain(np.int8(3))) is int
    assert plain(pd.Timestamp("2024-05-01")) == "2024-05-01 00:00:00"
