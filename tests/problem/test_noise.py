"""Noise densities against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

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
