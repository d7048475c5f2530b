"""Weights are drawn from the distribution that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.elicitation.weight_samples import weight_samples

LEAST = 0.05


def test_without_answers_weights_are_uniform() -> None:
    """Shares beyond the least are Dirichlet(1): mean 1 / k and variance (k - 1) / (k^2 (k + 1))."""
    k = 4
    drawn = weight_samples(np.zeros((0, k)), LEAST, np.ones(k), 4000, np.random.default_rng(0))
    shares = (drawn - LEAST) / (k * (1 - LEAST))
    assert shares.sum(axis=1) == pytest.approx(1)
    assert shares.mean(axis=0) == pytest.approx(1 / k, abs=0.01)
    assert shares.var(axis=0) == pytest.approx((k - 1) / k**2 / (k + 1), rel=0.1)


def test_all_weights_satisfy_the_answers() -> None:
    """No draw leaves a half-space, also a thin one."""
    rows = np.array([[1.0, -1.0, 0.0], [-1.0, 0.98, 0.0]])
    start = np.array([0.99, 1.0, 1.01])
    drawn = weight_samples(rows, LEAST, start, 500, np.random.default_rng(1))
    assert (drawn @ rows.T).max() < 1e-12
    assert drawn.min() >= LEAST and drawn[:, 2].std() > 0.3


def test_a_density_is_followed() -> None:
    """With density exp(-r w_0) of two weights, w_0 is a truncated exponential: its mean is known."""
    rate = 3.0
    drawn = weight_samples(
        np.zeros((0, 2)), LEAST, np.ones(2), 4000, np.random.default_rng(2), lambda w: -rate * w[:, 0]
    )
    width = 2 - 2 * LEAST
    mean = LEAST + 1 / rate - width / np.expm1(rate * width)
    assert drawn[:, 0].mean() == pytest.approx(mean, abs=0.02)


def test_one_lever_has_weight_one() -> None:
    """There is nothing to draw."""
    assert (weight_samples(np.zeros((0, 1)), LEAST, np.ones(1), 3, np.random.default_rng(0)) == 1).all()


def test_draws_get_about_in_a_thin_body() -> None:
    """Ten levers in pairs that must be nearly equal: by symmetry every mean is 1, wherever the start is."""
    k = 10
    rows = np.zeros((k, k))
    for pair in range(0, k, 2):
        rows[pair, [pair, pair + 1]] = 1.0, -1.01
        rows[pair + 1, [pair, pair + 1]] = -1.01, 1.0
    start = np.repeat([4.6, 0.1, 0.1, 0.1, 0.1], 2)
    drawn = weight_samples(rows, LEAST, start, 512, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(1, abs=0.15)
