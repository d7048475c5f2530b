"""Rows of each kind of atom: with the inputs fixed, only the function's value is feasible."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.problem.expression import sigmoid
from milp_recourse.solvers.highs.highs_model import HighsModel
from milp_recourse.solvers.rows.atom_rows import (
    curve_rows,
    equal_parts,
    indicator_rows,
    relu_rows,
    switch_rows,
)
from milp_recourse.solvers.rows.mixed_integer import MixedInteger


def extremes(model: MixedInteger, form: tuple[dict[int, float], float]) -> tuple[float, float]:
    """Least and greatest value of a form over the integer-feasible points."""
    ends = []
    for sign in (1.0, -1.0):
        copy = MixedInteger(
            list(model.names), list(model.lower), list(model.upper), list(model.integer), list(model.rows)
        )
        value = copy.column("value", 0.0, 1e4)  # form shifted so that the minimised column is non-negative
        copy.row(
            "value_is",
            ({**{k: -sign * c for k, c in form[0].items()}, value: 1.0}, -sign * form[1] - 5e3),
            0.0,
            0.0,
        )
        copy.linear = {value: 1.0}
        highs = HighsModel(copy, None, relaxed=False)
        highs.cost_tangent(np.zeros(len(copy.names) + 1))
        highs.highs.changeColCost(highs.theta, 1.0)
        highs.highs.setOptionValue("mip_rel_gap", 0.0)
        highs.highs.run()
        found = highs.highs.getSolution().col_value[value]
        ends.append(sign * (found - 5e3))
    return ends[0], ends[1]


@pytest.mark.parametrize("x", [-2.0, -0.3, 0.0, 0.4, 3.0])
def test_relu_rows_leave_only_the_relu(x: float) -> None:
    """With pre fixed, y = max(0, pre), whatever the sign."""
    model = MixedInteger()
    pre = model.column("pre", x, x)
    y = relu_rows(model, "y", ({pre: 1.0}, 0.0), -2.5, 3.5)
    assert extremes(model, y) == pytest.approx((max(0.0, x), max(0.0, x)), abs=1e-6)


def test_a_stable_relu_adds_nothing() -> None:
    """Bounds that decide the sign need no column and no row."""
    model = MixedInteger()
    pre = model.column("pre", -1.0, 2.0)
    assert relu_rows(model, "on", ({pre: 1.0}, 5.0), 4.0, 7.0) == ({pre: 1.0}, 5.0)
    assert relu_rows(model, "off", ({pre: 1.0}, -5.0), -6.0, -3.0) == ({}, 0.0)
    assert len(model.names) == 1
    assert not model.rows


@pytest.mark.parametrize("flag", [0, 1])
def test_switch_rows_choose_by_the_flag(flag: int) -> None:
    """value = acted where the flag is 1, natural where it is 0."""
    model = MixedInteger()
    z = model.column("z", flag, flag, integer=True)
    acted, natural = model.column("a", 4.0, 4.0), model.column("n", -3.0, -3.0)
    value = switch_rows(model, "v", z, (({acted: 1.0}, 0.0), 2.0, 6.0), (({natural: 1.0}, 0.0), -5.0, -1.0))
    expected = 4.0 if flag else -3.0
    assert extremes(model, value) == pytest.approx((expected, expected), abs=1e-6)


@pytest.mark.parametrize("x", [-3.0, -0.7, 0.1, 2.2])
@pytest.mark.parametrize("pieces", [1, 4, 16])
def test_curve_rows_contain_the_curve_and_tighten(x: float, pieces: int) -> None:
    """The feasible y are an interval around sigmoid(x) that shrinks like the square of the part's width."""
    model = MixedInteger()
    pre = model.column("pre", x, x)
    y = curve_rows(model, "s", "sigmoid", ({pre: 1.0}, 0.0), -3.0, 3.0, (0.0, 1.0), equal_parts(pieces))
    low, high = extremes(model, y)
    assert low - 1e-6 <= sigmoid(np.array(x)) <= high + 1e-6
    assert high - low <= 0.1 * (6.0 / pieces) ** 2 / 4 + 1e-6


@pytest.mark.parametrize("level", [0, 2, 3])
def test_indicator_rows_pick_one_level(level: int) -> None:
    """Exactly the column of the number's level is 1."""
    model = MixedInteger()
    number = model.column("number", level, level, integer=True)
    columns = {k: model.column(f"is{k}", 0.0, 1.0, integer=True) for k in range(4)}
    indicator_rows(model, "number", ({number: 1.0}, 0.0), columns)
    for k, column in columns.items():
        expected = float(k == level)
        assert extremes(model, ({column: 1.0}, 0.0)) == pytest.approx((expected, expected), abs=1e-6)


def test_a_column_without_bounds_is_refused() -> None:
    """No bound is invented: an infinite one is an error."""
    with pytest.raises(ValueError, match="derived"):
        MixedInteger().column("free", -np.inf, 1.0)
