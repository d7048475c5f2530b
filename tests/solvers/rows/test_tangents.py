"""Tangents touch where they are put and are never above a convex quadratic."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.solvers.rows import MixedInteger
from milp_recourse.solvers.rows.mixed_integer import Form, QuadraticRow
from milp_recourse.solvers.rows.tangent_rows import ball_tangent, cost_tangent, seeds


def program(columns: int) -> MixedInteger:
    mip = MixedInteger()
    for k in range(columns):
        mip.column(f"x{k}", -5.0, 5.0)
    mip.squares = {k: 1.0 + k for k in range(columns)}
    mip.linear, mip.offset = {0: -0.5}, 0.25
    mip.ball = QuadraticRow("plausible", {k: 2.0 for k in range(columns)}, {0: 0.75}, 3.0)
    return mip


def value(form: Form, x: np.ndarray) -> float:
    return sum(c * x[k] for k, c in form[0].items()) + form[1]


@pytest.mark.parametrize("seed", range(20))
def test_tangents_lie_below_and_touch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mip = program(3)
    at, x = rng.normal(size=3) * (rng.random(3) < 0.7), rng.normal(size=(50, 3)) * 3
    line = cost_tangent(mip, at)
    assert value(line, at) == pytest.approx(mip.objective(at), abs=1e-12)
    assert all(value(line, p) <= mip.objective(p) + 1e-12 for p in x)
    row = ball_tangent(mip, at)
    assert row is not None and mip.ball is not None

    def excess(p: np.ndarray) -> float:
        return 2 * float(p @ p) + 0.75 * p[0] - 3.0

    gaps = [sum(c * p[k] for k, c in row.coefficients.items()) - row.upper for p in [at, *x]]
    assert np.sign(gaps[0]) == np.sign(excess(at))
    assert all(gap <= 1e-12 for gap, p in zip(gaps[1:], x, strict=True) if excess(p) <= 0)


@pytest.mark.parametrize(("columns", "directions"), [(1, 2), (2, 8), (4, 24), (6, 12)])
def test_seeds_lie_on_the_surfaces_in_every_direction(columns: int, directions: int) -> None:
    """Axes and sign patterns up to five columns, axes alone beyond."""
    mip = program(columns)
    mip.linear = {}
    found = list(seeds(mip, 2.0))
    cost = [v for kind, v in found if kind == "cost"]
    ball = [v for kind, v in found if kind == "ball"]
    assert len(cost) == len(ball) == directions
    assert [mip.objective(v) for v in cost] == pytest.approx([2.0] * directions)
    assert [2 * float(v @ v) for v in ball] == pytest.approx([3.0] * directions)


def test_without_a_ball_or_squares_there_is_nothing_to_seed() -> None:
    mip = program(2)
    mip.ball, mip.squares = None, {}
    assert ball_tangent(mip, np.zeros(2)) is None
    assert list(seeds(mip, 1.0)) == []
    assert cost_tangent(mip, np.zeros(2)) == ({0: -0.5}, 0.25)
