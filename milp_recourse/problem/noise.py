"""Distributions of the exogenous noise U of a structural equation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Normal:
    """N(0, sd^2)."""

    sd: float

    def sample(self, size: int, rng: np.random.Generator) -> NDArray:
        """Draw ``size`` values."""
        return rng.normal(0.0, self.sd, size)

    def log_density(self, u: NDArray) -> NDArray:
        """-u^2 / (2 sd^2) - log(sd sqrt(2 pi))."""
        return -0.5 * np.square(np.asarray(u) / self.sd) - math.log(self.sd * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Gamma:
    """Gamma(shape, scale), for u > 0."""

    shape: float
    scale: float

    def sample(self, size: int, rng: np.random.Generator) -> NDArray:
        """Draw ``size`` values."""
        return rng.gamma(self.shape, self.scale, size)

    def log_density(self, u: NDArray) -> NDArray:
        """(shape - 1) log u - u / scale - log Gamma(shape) - shape log scale; -inf for u <= 0."""
        u = np.asarray(u, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (self.shape - 1) * np.log(u) - u / self.scale
        constant = math.lgamma(self.shape) + self.shape * math.log(self.scale)
        return np.where(u > 0, inside - constant, -np.inf)


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability ``p``, else 0."""

    p: float

    def sample(self, size: int, rng: np.random.Generator) -> NDArray:
        """Draw ``size`` values."""
        return (rng.random(size) < self.p).astype(np.float64)

    def log_density(self, u: NDArray) -> NDArray:
        """log p at 1, log(1 - p) at 0, -inf elsewhere."""
        u = np.asarray(u, dtype=np.float64)
        at_zero = math.log1p(-self.p) if self.p < 1 else -math.inf
        at_one = math.log(self.p) if self.p > 0 else -math.inf
        return np.where(u == 1, at_one, np.where(u == 0, at_zero, -np.inf))


@dataclass(frozen=True)
class Mixture:
    """Normal with ``means[k]`` and ``sds[k]`` with a probability in proportion to ``weights[k]``.

    For features that nobody acts on: their noise stays, so that its density cancels in plausibility.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of u."""
        return float(np.average(self.means, weights=self.weights))

    @property
    def sd(self) -> float:
        """The standard deviation of u."""
        second = np.square(self.sds) + np.square(np.array(self.means) - self.mean)
        return math.sqrt(np.average(second, weights=self.weights))

    def sample(self, size: int, rng: np.random.Generator) -> NDArray:
        """Draw ``size`` values."""
        chosen = rng.choice(len(self.weights), size, p=np.array(self.weights) / sum(self.weights))
        return rng.normal(np.array(self.means)[chosen], np.array(self.sds)[chosen])

    def log_density(self, u: NDArray) -> NDArray:
        """log sum_k w_k exp(-(u - m_k)^2 / (2 s_k^2)) / (s_k sqrt(2 pi)), with weights that sum to 1."""
        sds = np.array(self.sds)
        scores = -0.5 * np.square((np.asarray(u)[..., None] - self.means) / sds)
        return np.logaddexp.reduce(
            scores + np.log(np.array(self.weights) / (sum(self.weights) * sds * math.sqrt(2 * math.pi))), -1
        )


Noise = Normal | Gamma | Bernoulli | Mixture
