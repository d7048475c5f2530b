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


Noise = Normal | Gamma | Bernoulli
