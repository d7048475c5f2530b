"""Columns narrower than a solver's tolerance, and coefficients that it drops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from milp_recourse.formats import read_instance
from milp_recourse.questions.solve import solve
from milp_recourse.solvers.highs.highs_model import FEASIBILITY, HighsModel
from milp_recourse.solvers.rows.mixed_integer import DROPPED, NARROW, LinearRow, MixedInteger, tolerant


def test_highs_finds_the_action_beyond_a_saturated_sigmoid() -> None:
    """Its value's column is 5e-8 wide, and HiGHS took it for fixed: "infeasible", where bab has an action."""
    instance = read_instance(Path(__file__).parent / "saturated" / "saturated_sigmoid.json")
    for back_end in ("bab", "highs"):
        assert solve(instance, back_end, 60.0).cost == pytest.approx(5.657673516, rel=1e-6)


def random_program(rng: np.random.Generator) -> tuple[MixedInteger, np.ndarray]:
    """Rows with coefficients down to 1e-11 over columns of widths from 1e-9 to 1, and a feasible point."""
    model = MixedInteger()
    low = rng.normal(size=6).round(2)
    width = 10.0 ** rng.integers(-9, 1, 6)
    for k, (l, w) in enumerate(zip(low, width, strict=True)):
        model.column(f"x{k}", float(l), float(l + w), integer=False)
    point = low + width * rng.random(6)
    for r in range(4):
        coefficients = rng.normal(size=6) * 10.0 ** rng.integers(-11, 2, 6)
        value = float(coefficients @ point)
        row = dict(enumerate(coefficients.tolist()))
        model.rows.append(LinearRow(f"r{r}", row, value - 1e-3 * rng.random(), value + 1e-3 * rng.random()))
    return model, point


def test_a_tolerant_program_loses_no_point_and_has_nothing_narrow() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        model, point = random_program(rng)
        made = tolerant(model, FEASIBILITY)
        lower, upper = np.array(made.lower), np.array(made.upper)
        assert (lower <= point).all()
        assert (point <= upper).all()
        assert (upper - lower >= min(NARROW, 2.0) * FEASIBILITY).all()
        for row in made.rows:
            value = sum(c * point[k] for k, c in row.coefficients.items())
            assert row.lower - 1e-12 <= value <= row.upper + 1e-12
            assert all(abs(c) > DROPPED for c in row.coefficients.values())


def test_a_row_that_is_refused_is_left_out() -> None:
    """HiGHS takes no coefficient of 1e15 or more; multipliers then belong to the rows that it has."""
    model = MixedInteger()
    column = model.column("x", 0.0, 1.0)
    model.row("half", ({column: 1.0}, 0.0), lower=0.5)
    highs = HighsModel(model, None, relaxed=True)
    for size in (1e20, np.inf, np.nan):
        highs._add(LinearRow("large", {column: size}, -np.inf, size))
    highs._add(LinearRow("small", {column: 1.0}, -np.inf, 0.75))
    found = highs.extreme(column, -1.0)
    assert found.kind == "optimal"
    assert found.bound == pytest.approx(0.75)
