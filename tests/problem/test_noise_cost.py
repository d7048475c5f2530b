"""Noise densities against scipy's, and costs worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.noise import Bernoulli, Gamma, Noise, Normal

CONTINUOUS = [
    (Normal(0.5), stats.norm(scale=0.5)),
    (Normal(5.0), stats.norm(scale=5.0)),
    (Gamma(10.0, 3.5), stats.gamma(10.0, scale=3.5)),
    (Gamma(1.0, 2.0), stats.gamma(1.0, scale=2.0)),
    (Gamma(0.5, 2.0), stats.gamma(0.5, scale=2.0)),
]


@pytest.mark.parametrize(("noise", "reference"), CONTINUOUS)
def test_densities_are_scipys(noise: Noise, reference) -> None:
    """On both sides of zero; -inf where there is none."""
    u = np.array([-3.0, -0.1, 0.001, 0.7, 4.0, 40.0])
    assert noise.log_density(u) == pytest.approx(reference.logpdf(u), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("p", [0.5, 0.2, 1.0, 0.0])
def test_bernoulli_has_mass_at_zero_and_one_only(p: float) -> None:
    """Impossible values have log density -inf."""
    u = np.array([0.0, 1.0, 0.5, 2.0])
    expected = np.concatenate([stats.bernoulli(p).logpmf([0, 1]), [-np.inf, -np.inf]])
    assert Bernoulli(p).log_density(u) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("noise", "mean", "variance"),
    [(Normal(2.0), 0.0, 4.0), (Gamma(10.0, 3.5), 35.0, 122.5), (Bernoulli(0.2), 0.2, 0.16)],
)
def test_samples_have_the_stated_moments(noise: Noise, mean: float, variance: float) -> None:
    """Within five standard errors of 20000 draws."""
    draws = noise.sample(20000, np.random.default_rng(0))
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / 20000)
    assert draws.var() == pytest.approx(variance, rel=0.08)


DELTAS = {"a": Fraction(3), "b": Fraction(-1, 2), "held": Fraction(0)}
WEIGHTS = {"a": 2.0, "b": 4.0, "held": 8.0, "unused": 100.0}
SCALE = {"a": 2.0, "b": 0.25, "held": 1.0, "unused": 1.0}
# steps: a 3/2, b 2, held 0; weighted: 3, 8, 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("l2-squared", Fraction(41, 2)), ("l1", Fraction(11)), ("linf", Fraction(8)), ("l0", Fraction(14))],
)
def test_each_pure_cost_by_hand(kind: str, expected: Fraction) -> None:
    """2 (3/2)^2 + 4 2^2 = 20.5; 3 + 8 = 11; max(3, 8) = 8; 2 + 4 + 8 = 14, the held one included."""
    assert Cost.pure(kind, SCALE).exact(DELTAS, WEIGHTS) == expected


def test_a_mixture_is_the_sum_of_its_parts_exactly() -> None:
    """Coefficients are doubles and mean their binary value."""
    c = Cost(l2_squared=0.1, l1=0.2, linf=0.3, l0=0.7, scale=SCALE)
    parts = [Fraction(0.1) * Fraction(41, 2), Fraction(0.2) * 11, Fraction(0.3) * 8, Fraction(0.7) * 14]
    assert c.exact(DELTAS, WEIGHTS) == sum(parts)


def test_pure_l0_needs_no_scale() -> None:
    """Distances do not enter."""
    assert Cost.pure("l0", {}).exact(DELTAS, WEIGHTS) == 14
    assert not Cost.pure("l0", {}).uses_scale
    assert Cost.pure("linf", SCALE).uses_scale


@pytest.mark.parametrize("kind", ["l2-squared", "l1", "linf", "l0"])
def test_doing_nothing_costs_nothing(kind: str) -> None:
    """And holding costs only under l0."""
    cost = Cost.pure(kind, SCALE)
    assert cost.exact({}, WEIGHTS) == 0
    assert cost.exact({"held": Fraction(0)}, WEIGHTS) == (8 if kind == "l0" else 0)
