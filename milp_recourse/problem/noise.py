"""Noise of structural equations, and its density: in doubles for searching, exactly for deciding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.decimals import Positive
from milp_recourse.problem.enclosure import Enclosure

Array = NDArray[np.float64]


class ZeroDensity(Exception):
    """A density is zero at a point, or its enclosure contains zero."""


@dataclass(frozen=True)
class Normal:
    """N(0, sd^2)."""

    sd: Positive

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw ``size`` values."""
        return rng.normal(0.0, self.sd, size)

    def log_density(self, u: Array) -> Array:
        """-u^2 / (2 sd^2) - log(sd sqrt(2 pi))."""
        return -0.5 * np.square(np.asarray(u) / self.sd) - math.log(self.sd * math.sqrt(2 * math.pi))

    def excess(self, before: Enclosure, after: Enclosure) -> Enclosure:
        """log p(before) - log p(after)."""
        return (after.square() - before.square()) * _half_precision(self.sd)


@dataclass(frozen=True)
class Gamma:
    """Gamma(shape, scale), for u > 0."""

    shape: Positive
    scale: Positive

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw ``size`` values."""
        return rng.gamma(self.shape, self.scale, size)

    def log_density(self, u: Array) -> Array:
        """(shape - 1) log u - u / scale - log Gamma(shape) - shape log scale; -inf for u <= 0."""
        u = np.asarray(u, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (self.shape - 1) * np.log(u) - u / self.scale
        constant = math.lgamma(self.shape) + self.shape * math.log(self.scale)
        return np.where(u > 0, inside - constant, -np.inf)

    def excess(self, before: Enclosure, after: Enclosure) -> Enclosure:
        """log p(before) - log p(after); raises :class:`ZeroDensity` if one of them may be 0 or less."""
        return self._energy(after) - self._energy(before)

    def _energy(self, u: Enclosure) -> Enclosure:
        """-log p(u) up to a constant."""
        return u / self.scale - Enclosure.of(Fraction(self.shape) - 1) * log_exact(u)


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability ``p``, else 0."""

    p: Annotated[float, Interval(ge=0, le=1)]

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw ``size`` values."""
        return (rng.random(size) < self.p).astype(np.float64)

    def log_density(self, u: Array) -> Array:
        """log p at 1, log(1 - p) at 0, -inf elsewhere."""
        u = np.asarray(u, dtype=np.float64)
        at_zero = math.log1p(-self.p) if self.p < 1 else -math.inf
        at_one = math.log(self.p) if self.p > 0 else -math.inf
        return np.where(u == 1, at_one, np.where(u == 0, at_zero, -np.inf))

    def excess(self, before: Enclosure, after: Enclosure) -> Enclosure:
        """log p(before) - log p(after); raises :class:`ZeroDensity` unless both are 0 or 1, of chances above
        0."""
        chances = [Enclosure.of(self._chance(u)) for u in (after, before)]
        if self.p == 0.5:
            return Enclosure.of(0)
        return log_exact(chances[1]) - log_exact(chances[0])

    def _chance(self, u: Enclosure) -> Fraction:
        if u.exact and u.lower in (0, 1):
            return Fraction(self.p) if u.lower == 1 else 1 - Fraction(self.p)
        raise ZeroDensity("Bernoulli noise is 0 or 1")


@dataclass(frozen=True)
class Mixture:
    """Normal with ``means[k]`` and ``sds[k]`` with a probability in proportion to ``weights[k]``.

    For features that nobody acts on: their noise stays, so that its density cancels in plausibility.
    """

    weights: tuple[Positive, ...]
    means: tuple[float, ...]
    sds: tuple[Positive, ...]

    @property
    def mean(self) -> float:
        """The mean of u."""
        return float(np.average(self.means, weights=self.weights))

    @property
    def sd(self) -> float:
        """The standard deviation of u."""
        second = np.square(self.sds) + np.square(np.array(self.means) - self.mean)
        return math.sqrt(np.average(second, weights=self.weights))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Draw ``size`` values."""
        chosen = rng.choice(len(self.weights), size, p=np.array(self.weights) / sum(self.weights))
        return rng.normal(np.array(self.means)[chosen], np.array(self.sds)[chosen])

    def log_density(self, u: Array) -> Array:
        """log sum_k w_k exp(-(u - m_k)^2 / (2 s_k^2)) / (s_k sqrt(2 pi)), with weights that sum to 1."""
        sds = np.array(self.sds)
        scores = -0.5 * np.square((np.asarray(u)[..., None] - self.means) / sds)
        shares = np.array(self.weights) / (sum(self.weights) * sds * math.sqrt(2 * math.pi))
        density: Array = np.logaddexp.reduce(scores + np.log(shares), -1)
        return density

    def excess(self, before: Enclosure, after: Enclosure) -> Enclosure:
        """Raises Unsupported, as no program has the density of a mixture either."""
        raise Unsupported("plausibility: the mechanism of a feature that is acted on states mixture noise")


Noise = Normal | Gamma | Bernoulli | Mixture


@lru_cache(maxsize=1024)
def _half_precision(sd: float) -> Enclosure:
    """1 / (2 sd^2), kept because it is the same for every applicant."""
    return Enclosure.of(1 / (2 * Fraction(sd) ** 2))


def log_exact(u: Enclosure) -> Enclosure:
    """log u; raises :class:`ZeroDensity` if u may be 0 or less, outside the support of a density."""
    if u.lower <= 0:
        raise ZeroDensity(f"a density's argument may be {float(u.lower)!r}")
    return u.log()
