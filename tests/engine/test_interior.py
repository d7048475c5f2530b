"""The interior-point method against optima known by hand, optimality conditions and impossible problems."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.engine.interior import Convex, Optimum, minimise

Array = np.ndarray

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def problem(q, c, rows=(), limits=(), ball=None, batch: int = 1) -> Convex:
    """One problem, ``batch`` times; ball: residual matrix, offsets, weights, linear part, radius."""
    q, c = np.array(q, dtype=float), np.array(c, dtype=float)
    n = len(q)
    matrix, offset, weights, linear, radius = ball or (np.zeros((0, n)), [], [], np.zeros(n), 0.0)

    def wide(array, *shape):
        full = np.array(array, dtype=float).reshape(shape)
        return np.repeat(full[..., None], batch, axis=-1)

    m, r = len(limits), len(weights)
    return Convex(
        wide(q, n),
        wide(c, n),
        wide(rows, m, n),
        wide(limits, m),
        wide(matrix, r, n),
        wide(offset, r),
        wide(weights, r),
        wide(linear, n),
        wide(radius),
        np.full(batch, np.inf),
    )


def random_problem(rng: np.random.Generator, batch: int, n: int, m: int, r: int) -> Convex:
    """With a point strictly inside everything."""
    inner = rng.uniform(-0.8, 0.8, (n, batch))
    rows = rng.normal(size=(m, n, batch))
    limits = (rows * inner).sum(axis=1) - rng.uniform(0.01, 0.5, (m, batch))
    residuals, offset = rng.normal(size=(r, n, batch)), rng.normal(size=(r, batch))
    weights, linear = rng.uniform(0.2, 2.0, (r, batch)), rng.normal(size=(n, batch))
    at = (residuals * inner).sum(axis=1) + offset
    radius = (weights * at**2).sum(axis=0) + (linear * inner).sum(axis=0) + rng.uniform(0.01, 0.5, batch)
    q = rng.uniform(0.1, 2.0, (n, batch))
    c, enough = rng.normal(size=(n, batch)), np.full(batch, np.inf)
    return Convex(q, c, rows, limits, residuals, offset, weights, linear, radius, enough)


def ball_of(p: Convex, y: Array) -> tuple[Array, Array]:
    """Left side and gradient of the quadratic constraint, written out again."""
    r = np.einsum("jib,ib->jb", p.residuals, y) + p.residual_offset
    gradient = 2 * np.einsum("jib,jb->ib", p.residuals, p.weights * r) + p.linear
    return np.einsum("jb,jb->b", p.weights, r * r) + (p.linear * y).sum(axis=0), gradient


def residuals(p: Convex, found: Optimum) -> dict[str, float]:
    """How far an answer is from the optimality conditions, the box's multipliers being whatever is needed."""
    y = found.y
    slack = np.einsum("mib,ib->mb", p.rows, y) - p.limits
    pull = 2 * p.q * y + p.c - np.einsum("mib,mb->ib", p.rows, found.rows)
    broken, product = 0.0, abs(slack * found.rows).max(initial=0.0)
    if p.has_ball:
        size, gradient = ball_of(p, y)
        pull = pull + found.ball * gradient
        broken = float((size - p.radius).max())
        product = max(product, abs((p.radius - size) * found.ball).max())
    # at an end of the box the pull may point outward only
    inside = np.minimum(np.maximum(pull, 0.0), 1 + y) + np.minimum(np.maximum(-pull, 0.0), 1 - y)
    return {
        "rows": float(-slack.min(initial=0.0)),
        "ball": broken,
        "box": float(abs(y).max() - 1),
        "signs": float(-min(found.rows.min(initial=0.0), found.ball.min())),
        "products": float(product),
        "stationary": float(abs(inside).max()),
    }


def dual_value(p: Convex, rows: Array, mu: Array, y: Array) -> Array:
    """Lagrangian's least value over the box, the ball by its tangent at y: never above the optimum."""
    size, gradient = ball_of(p, y)
    slope = p.c - np.einsum("mib,mb->ib", p.rows, rows) + mu * gradient
    curved = p.q > 0
    z = np.where(curved, -slope / np.where(curved, 2 * p.q, 1.0), -np.sign(slope))
    z = np.clip(z, -1, 1)
    constant = (rows * p.limits).sum(axis=0)
    constant = constant + (mu * (size - (gradient * y).sum(axis=0) - p.radius) if p.has_ball else 0.0)
    return (p.q * z * z + slope * z).sum(axis=0) + constant


def test_a_parabola_in_the_box() -> None:
    """y^2 - y: 1/2; y^2 - 4 y: the end 1."""
    assert minimise(problem([1.0], [-1.0])).y[0, 0] == pytest.approx(0.5, abs=1e-9)
    assert minimise(problem([1.0], [-4.0])).y[0, 0] == pytest.approx(1.0, abs=1e-9)


def test_projection_onto_a_line() -> None:
    """Least y1^2 + y2^2 with y1 + y2 >= 1: (1/2, 1/2), multiplier 1."""
    found = minimise(problem([1.0, 1.0], [0.0, 0.0], [[1.0, 1.0]], [1.0], batch=3))
    assert found.y == pytest.approx(np.full((2, 3), 0.5), abs=1e-8)
    assert found.rows == pytest.approx(np.ones((1, 3)), abs=1e-7)


def test_a_linear_program_ends_in_a_corner() -> None:
    """Least y1 + 2 y2 with y1 + y2 >= 0 is at (1, -1); the dual is 1 <= multiplier <= 2."""
    found = minimise(problem([0.0, 0.0], [1.0, 2.0], [[1.0, 1.0]], [0.0]))
    assert found.y[:, 0] == pytest.approx([1.0, -1.0], abs=1e-7)
    assert 1 - 1e-6 <= found.rows[0, 0] <= 2 + 1e-6


BALL = (np.eye(2), [0.0, 0.0], [4.0, 4.0], [0.0, 0.0], 1.0)


def test_a_ball() -> None:
    """Least y1^2 + y2^2 - y1 - y2 in 4 y1^2 + 4 y2^2 <= 1: both y = sqrt(1/8), multiplier (1 - 2 y) / 8 y."""
    y = 8**-0.5
    found = minimise(problem([1.0, 1.0], [-1.0, -1.0], ball=BALL))
    assert found.y[:, 0] == pytest.approx([y, y], abs=1e-8)
    assert found.ball[0] == pytest.approx((1 - 2 * y) / (8 * y), abs=1e-7)


@pytest.mark.xfail(
    strict=True, reason="steps of their own length for y and the multipliers can cycle; bounds stay valid"
)
def test_a_ball_and_a_linear_cost() -> None:
    """Least -y1 - y2 in the same ball: the same point, multiplier 1 / sqrt(8)."""
    found = minimise(problem([0.0, 0.0], [-1.0, -1.0], ball=BALL), 20)
    assert found.y[:, 0] == pytest.approx([8**-0.5] * 2, abs=1e-8)
    assert found.ball[0] == pytest.approx(8**-0.5, abs=1e-7)


@pytest.mark.parametrize("shape", [(1, 0, 0), (1, 2, 1), (2, 1, 0), (3, 4, 2), (5, 3, 3), (6, 8, 0)])
def test_optimality_conditions(shape: tuple[int, int, int]) -> None:
    """200 random problems at once."""
    rng = np.random.default_rng(sum(shape))
    p = random_problem(rng, 200, *shape)
    found = minimise(p, 40)
    far = residuals(p, found)
    assert max(far.values()) <= 1e-5, far
    gap = (p.q * found.y**2 + p.c * found.y).sum(axis=0) - dual_value(p, found.rows, found.ball, found.y)
    assert abs(gap).max() <= 1e-5
    worse = Optimum(found.y * 0.9, found.rows, found.ball)
    assert max(residuals(p, worse).values()) > 1e-3, "the conditions notice a wrong answer"


def test_a_problem_does_not_depend_on_its_neighbours() -> None:
    """Alone or in a batch, next to impossible ones too."""
    p = random_problem(np.random.default_rng(4), 8, 3, 3, 2)
    p.limits[0, 3] = 50.0
    every = minimise(p)
    for b in (0, 2, 5):
        alone = minimise(Convex(*(v[..., b : b + 1] for v in vars(p).values())))
        assert alone.y[:, 0] == pytest.approx(every.y[:, b], abs=1e-9)
        assert alone.rows[:, 0] == pytest.approx(every.rows[:, b], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", ["row", "rows"])
def test_the_dual_value_of_an_impossible_problem_grows(kind: str) -> None:
    """The multipliers run off along a ray that proves that there is no solution."""
    rows, limits = ([[1.0, 1.0]], [3.0]) if kind == "row" else ([[1.0, 0.5], [-1.0, -0.5]], [0.2, 0.2])
    p = problem([1.0, 1.0], [0.3, -0.2], rows, limits)
    values = []
    for steps in (2, 4, 6, 8):
        found = minimise(p, steps)
        assert np.isfinite(found.y).all()
        values.append(float(dual_value(p, found.rows, found.ball, np.clip(found.y, -1, 1))[0]))
    assert values[-1] > 100, values
    assert values == sorted(values)


def test_numbers_of_every_size_stay_finite_or_stay_put() -> None:
    """Badly scaled problems: no exception, and what comes back is a point or no number, never a crash."""
    rng = np.random.default_rng(6)
    p = random_problem(rng, 100, 3, 2, 2)
    p.q[:] *= 10.0 ** rng.uniform(-12, 12, p.q.shape)
    p.rows[:] *= 10.0 ** rng.uniform(-12, 12, (2, 1, 100))
    with np.errstate(all="ignore"):
        found = minimise(p)
    assert np.isfinite(found.y).all()
