r"""Weights from choices by maximum likelihood: the Bradley-Terry model with features, and one of features.

For the choice between recourses with scaled changes :math:`\phi(a)` and :math:`\phi(b)` (Davidson's form, for
ties, "about the same")

.. math:: P(a) \propto e^{-\theta \cdot \phi(a)}, \quad P(b) \propto e^{-\theta \cdot \phi(b)}, \quad
    P(\text{same}) \propto \nu\, e^{-\theta \cdot (\phi(a) + \phi(b)) / 2}

:math:`\theta \ge 0` are the weights times how consistently the person answers: their sum is the consistency,
their shares are the weights. "Neither" is about limits, and says nothing here. Answers that some weights
explain without any error have no finite maximum, and levers in which no pair differs have none either; so
there is a prior: all shares are equally likely (Dirichlet(1)), and the consistency is log-normal, with 95%
between 0.5 and 200, its unit being 1 over the mean size of a recourse.

The estimate is the mode of the posterior of :math:`\log \theta`, where a share of 0 is infinitely far away.

References
----------
Bradley and Terry (1952), https://doi.org/10.2307/2334029; Davidson (1970),
https://doi.org/10.1080/01621459.1970.10481082; Rawal and Lakkaraju (2024), https://arxiv.org/abs/2409.13940.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.errors import BadInput

FloatArray = NDArray[np.float64]
Outcome = Literal["first", "second", "same", "neither"]

CONSISTENCY, SPREAD = 10.0, 1.5
"""The prior median of the sum of theta, and the standard deviation of its logarithm."""

DRAWS = 500
"""Draws of the posterior for the intervals."""


@dataclass(frozen=True)
class Fit:
    """Weights of one person.

    Attributes
    ----------
    weights
        With mean 1: the posterior's mode.
    consistency
        The sum of theta at the mode, per mean size of a recourse: the difference in cost, as a share of that
        size, at which the dearer recourse is chosen once in 3.7 times is 1 over this.
    tie
        nu; 0 if nothing was called the same.
    low, high
        Ends of each weight's interval.
    level
        The posterior probability of each interval.
    """

    weights: FloatArray
    consistency: float
    tie: float
    low: FloatArray
    high: FloatArray
    level: float | None


def fit(
    first: ArrayLike,
    second: ArrayLike,
    outcomes: Sequence[Outcome],
    level: float | None = 0.9,
    seed: int = 0,
) -> Fit:
    """The weights of one person.

    Parameters
    ----------
    first, second
        phi of the two recourses of each question, shape (n, k), 0 or more.
    outcomes
        Which was easier.
    level
        Of the intervals; None: without intervals (nan).
    seed
        Of the draws that the intervals come from.

    Raises
    ------
    BadInput
        The shapes do not agree, or an outcome is none.
    """
    a, b = np.atleast_2d(np.asarray(first, dtype=float)), np.atleast_2d(np.asarray(second, dtype=float))
    if a.shape != b.shape or len(a) != len(outcomes):
        raise BadInput("choices", f"shapes {a.shape}, {b.shape}, {len(outcomes)} outcomes", "as many of each")
    for one in outcomes:
        if one not in ("first", "second", "same", "neither"):
            raise BadInput("outcome", one, "first, second, same, neither")
    said = np.array([one != "neither" for one in outcomes], dtype=bool)
    a, b, kept = a[said], b[said], [one for one in outcomes if one != "neither"]
    sign = np.array([{"first": 1.0, "second": -1.0, "same": 0.0}[one] for one in kept])
    size = float((a.sum(axis=1) + b.sum(axis=1)).mean() / 2) if len(a) else 1.0
    gap = (b - a) / (size or 1.0)
    model = _Posterior(gap, sign, "same" in kept)
    mode = model.mode()
    k = gap.shape[1]
    low, high = np.full(k, np.nan), np.full(k, np.nan)
    if level is not None:
        shares = np.exp(model.draws(mode, DRAWS, np.random.default_rng(seed))[:, :k])
        tail = (1 - level) / 2
        low, high = np.quantile(shares / shares.mean(axis=1, keepdims=True), [tail, 1 - tail], axis=0)
    theta = np.exp(mode[:k])
    tie = float(np.exp(mode[k])) if model.ties else 0.0
    return Fit(theta / theta.mean(), float(theta.sum()), tie, low, high, level)


class _Posterior:
    """The log posterior of u = log theta (and log nu), for the mode by Newton's method and for draws.

    Parameters
    ----------
    gap
        phi(second) - phi(first).
    sign
        1 where the first was chosen, -1 the second, 0 neither.
    """

    def __init__(self, gap: FloatArray, sign: FloatArray, ties: bool) -> None:
        self.gap, self.sign, self.ties = gap, sign, ties
        self.levers = gap.shape[1]

    def log(self, u: FloatArray) -> FloatArray:
        """The log density of u, in rows."""
        theta = np.exp(u[:, : self.levers])
        total = np.log(theta.sum(axis=1))
        half = theta @ self.gap.T / 2
        terms = [half, -half]
        shares = u[:, : self.levers].sum(axis=1) - self.levers * total
        prior = shares - ((total - np.log(CONSISTENCY)) / SPREAD) ** 2 / 2
        if self.ties:
            log_nu = u[:, self.levers :]
            terms.append(np.broadcast_to(log_nu, half.shape))
            prior = prior - log_nu[:, 0] ** 2 / 2
            chosen = np.where(self.sign == 0, log_nu, self.sign * half)
        else:
            chosen = self.sign * half
        density: FloatArray = (chosen - np.logaddexp.reduce(terms, axis=0)).sum(axis=1) + prior
        return density

    def mode(self) -> FloatArray:
        """Where the posterior is largest: Newton steps, halved until they go up."""
        size = self.levers + self.ties
        u = np.full(size, np.log(CONSISTENCY / self.levers))
        u[self.levers :] = 0.0
        value = self.log(u[None])[0]
        for _ in range(200):
            slope, curve = self._slopes(u)
            step, before = np.linalg.solve(curve, slope), value
            step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            for halving in range(40):
                new = u + step * 0.5**halving
                found = self.log(new[None])[0]
                if found > value:
                    u, value = new, found
                    break
            if value - before < 1e-10:
                break
        return u

    def _slopes(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient, and a positive definite matrix that is minus the curvature where that is one."""
        k, size = self.levers, len(u)
        theta = np.exp(u[:k])
        inner = self.gap * theta / 2  # d half / d u
        half = inner.sum(axis=1)
        log_nu = u[k] if self.ties else -np.inf
        shares = np.stack([half, -half, np.full_like(half, log_nu)])
        shares = np.exp(shares - np.logaddexp.reduce(shares, axis=0))
        lean, tied = shares[0] - shares[1], shares[2]
        push = self.sign - lean
        slope, curve = np.zeros(size), np.zeros((size, size))
        slope[:k] = push @ inner
        curve[:k, :k] = inner.T @ (inner * (shares[0] + shares[1] - lean**2)[:, None]) - np.diag(push @ inner)
        if self.ties:
            slope[k] = (self.sign == 0).sum() - tied.sum() - u[k]
            curve[k, k] = (tied * (1 - tied)).sum() + 1
            curve[k, :k] = curve[:k, k] = -(lean * tied) @ inner
        part = theta / theta.sum()
        off = (np.log(theta.sum()) - np.log(CONSISTENCY)) / SPREAD**2
        slope[:k] += 1 - (k + off) * part
        curve[:k, :k] += np.outer(part, part) / SPREAD**2 + (k + off) * (np.diag(part) - np.outer(part, part))
        values, vectors = np.linalg.eigh(curve)
        return slope, (vectors * np.maximum(np.abs(values), 1e-6)) @ vectors.T

    def draws(self, mode: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws of the posterior by slices along random directions (Neal 2003), each the end of a
        chain of its own."""
        _, curve = self._slopes(mode)
        spread = np.linalg.cholesky(np.linalg.inv(curve))
        u = mode + rng.normal(size=(count, len(mode))) @ spread.T
        for _ in range(6 * len(mode)):
            way = rng.normal(size=u.shape) @ spread.T
            level = self.log(u) - rng.exponential(size=count)
            low, high = np.full(count, -3.0), np.full(count, 3.0)
            t = rng.uniform(low, high)
            for _ in range(50):
                outside = self.log(u + t[:, None] * way) < level
                if not outside.any():
                    break
                low, high = np.where(outside & (t < 0), t, low), np.where(outside & (t >= 0), t, high)
                t = np.where(outside, rng.uniform(low, high), t)
            u = u + np.where(outside, 0.0, t)[:, None] * way
        return u


def feature_level(first: ArrayLike, second: ArrayLike, outcomes: Sequence[Outcome]) -> FloatArray:
    r"""Weights by a Bradley-Terry model of features instead of recourses, w_f = 1 - beta_f, with mean 1.

    A choice says that each feature that the chosen recourse changes more is easier than each that the other
    changes more: the former wins against the latter. beta are the strengths, with sum 1, from one further win
    and loss of each feature against a feature of strength 1 / k (without these a feature that never loses has
    no estimate). This is our reading of Rawal and Lakkaraju (2024), who do not say which feature wins a pair
    of recourses.
    """
    a, b = np.atleast_2d(np.asarray(first, dtype=float)), np.atleast_2d(np.asarray(second, dtype=float))
    k = a.shape[1]
    wins = np.zeros((k, k))
    for one, other, outcome in zip(a, b, outcomes, strict=True):
        if outcome not in ("first", "second"):
            continue
        chosen, left = (one, other) if outcome == "first" else (other, one)
        easier, harder = np.flatnonzero(chosen > left), np.flatnonzero(left > chosen)
        wins[np.ix_(easier, harder)] += 1.0 / max(1, len(easier) * len(harder))
    strength = np.full(k, 1 / k)
    for _ in range(500):  # minorise-maximise (Hunter 2004)
        met = wins + wins.T
        below = (met / (strength[:, None] + strength[None, :])).sum(axis=1) + 2 / (strength + 1 / k)
        strength = (wins.sum(axis=1) + 1) / below
        strength /= strength.sum()
    weights = 1 - strength
    return weights / weights.mean() if k > 1 else np.ones(1)
