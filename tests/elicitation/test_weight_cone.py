"""The rays of a cone of weights span exactly the weights that satisfy its half-spaces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from milp_recourse.elicitation.weight_cone import WeightCone, half_space, inside, value
from milp_recourse.errors import BadInput

LEAST = 0.05


def random_rows(rng: np.random.Generator, levers: int, count: int) -> list[tuple[int, ...]]:
    """Half-spaces through the origin; some twice, some with zeros."""
    rows = [half_space([Fraction(x) for x in rng.integers(-3, 4, levers).tolist()]) for _ in range(count)]
    return [row for row in rows + rows[:1] if any(row)]


def cut(rows: list[tuple[int, ...]], levers: int) -> WeightCone:
    cone = WeightCone.of(levers, LEAST)
    for row in rows:
        cone = cone.cut(row) if cone.rays else cone
    return cone


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_the_rays_span_the_half_spaces(seed: int, levers: int, count: int) -> None:
    """Every ray satisfies every half-space; random weights of the half-spaces are sums of rays; and where
    there are no rays, a linear program finds no weights either."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, levers, count)
    cone = cut(rows, levers)
    least = Fraction(LEAST) / levers
    for ray in cone.rays:
        assert all(value(row, ray.weights) <= 0 for row in rows)
        assert all(w >= least * sum(ray.weights) for w in ray.weights)
    goal = rng.normal(size=levers)
    found = linprog(
        goal,
        A_ub=np.array(rows, dtype=float).reshape(len(rows), levers) / 2.0**30,
        b_ub=np.zeros(len(rows)),
        A_eq=np.ones((1, levers)),
        b_eq=[levers],
        bounds=[(LEAST, levers)] * levers,
    )
    if not cone.rays:
        assert found.status == 2
        return
    assert found.status == 0
    at = np.array([[w * levers / sum(ray.weights) for w in ray.weights] for ray in cone.rays])
    assert (at @ goal).min() == pytest.approx(found.fun, abs=1e-6)  # the optimum is a ray
    assert nnls(at.T, found.x)[1] < 1e-6


def rank(rows: list[list[Fraction]]) -> int:
    """The rank of a matrix, by elimination in exact arithmetic."""
    found = 0
    for column in range(len(rows[0])):
        pivot = next((r for r in rows[found:] if r[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(found, pivot)
        found += 1
        for k in range(found, len(rows)):
            factor = rows[k][column] / pivot[column]
            rows[k] = [a - factor * b for a, b in zip(rows[k], pivot, strict=True)]
    return found


def test_each_ray_is_extreme_and_listed_once() -> None:
    """The half-spaces on whose boundary a ray lies leave one direction only."""
    levers = 4
    for seed in range(20):
        rows = random_rows(np.random.default_rng(seed), levers, 5)
        cone = cut(rows, levers)
        share = Fraction(LEAST) / levers
        floors = [[share - (f == g) for g in range(levers)] for f in range(levers)]
        faces = [*floors, *([Fraction(c) for c in row] for row in rows)]
        assert len({ray.weights for ray in cone.rays}) == len(cone.rays)
        for ray in cone.rays:
            tight = [
                list(face)
                for face in faces
                if sum(a * b for a, b in zip(face, ray.weights, strict=True)) == 0
            ]
            assert rank(tight) == levers - 1


def test_rounding_a_half_space_loses_no_weights() -> None:
    """Weights on the boundary of the exact half-space stay inside."""
    exact = [Fraction(1, 3), Fraction(-1, 7), Fraction(-4, 21)]
    assert sum(exact) == 0
    assert inside([half_space(exact)], [1.0, 1.0, 1.0])
    assert not inside([half_space(exact)], [1.01, 1.0, 1.0])
    assert half_space([Fraction(0)] * 2) == (0, 0)


@pytest.mark.parametrize("least", [0, 1, -0.1, float("nan"), True])
def test_a_lever_weighs_something(least: float) -> None:
    """Without a least weight a lever could be free."""
    with pytest.raises(BadInput, match="least_weight"):
        WeightCone.of(3, least)
