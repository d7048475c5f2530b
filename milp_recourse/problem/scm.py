"""Structural causal models with one noise term per feature.

Feature i obeys :math:`x_i = g_i(f_i(x_{pa(i)}) + u_i)` with a link :math:`g_i` that is the
identity or an affinely rescaled sigmoid. Both are invertible, so the noise is abducted exactly:
:math:`u_i = g_i^{-1}(x_i) - f_i(x_{pa(i)})`, and the counterfactual of
:math:`do(X_I := a_I)` is one pass in causal order (Pearl's abduction, action, prediction;
Karimi et al. 2021, https://doi.org/10.1145/3442188.3445899).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import (
    Constant,
    Expression,
    InDoubles,
    logit,
    rounded,
    sigmoid,
)
from milp_recourse.problem.scenario import Scenario


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


AS_PLANNED = Scenario()
"""The scenario in which every target is met and the noise is the abducted one."""


@dataclass(frozen=True)
class Link:
    """The function from z = equation + noise to the value: z itself, or offset + scale * sigmoid(z)."""

    kind: Literal["identity", "sigmoid"] = "identity"
    offset: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Mechanism:
    """One structural equation x = link(equation(parents) + u).

    Parameters
    ----------
    equation
        The part without noise, a function of the parents. ``Constant(0)`` for a root.
    link
        Identity, or a sigmoid (Loan's education).
    noise
        Distribution of u; None if it is not known. The model then has no density.
    """

    equation: Expression = field(default_factory=lambda: Constant(0.0))
    link: Link = Link()
    noise: Noise | None = None


class StructuralCausalModel:
    """An acyclic set of mechanisms, one per feature.

    Parameters
    ----------
    features
        Names in the order of the data's columns.
    mechanisms
        One per feature; a feature without one is a root with unknown noise.
    name
        For messages; instance files refer to the built-in models by it.

    Raises
    ------
    ValueError
        A mechanism reads or describes an unknown feature, or the graph has a cycle.
    """

    def __init__(
        self, features: Sequence[str], mechanisms: Mapping[str, Mechanism], name: str = "explicit"
    ) -> None:
        self.features = tuple(features)
        self.name = name
        known = set(self.features)
        unknown = set(mechanisms) - known
        if unknown:
            raise ValueError(f"mechanism for unknown feature {sorted(unknown)[0]!r}")
        self.mechanisms = {f: mechanisms.get(f, Mechanism()) for f in self.features}
        for name_, mechanism in self.mechanisms.items():
            missing = mechanism.equation.parents - known
            if missing:
                raise ValueError(f"mechanism of {name_!r} reads unknown feature {sorted(missing)[0]!r}")
        self._parents = {f: m.equation.parents for f, m in self.mechanisms.items()}
        self.order = self._causal_order()
        self._caused = tuple(f for f in self.order if self._parents[f])
        self._rounded: dict[str, InDoubles | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rounded": {}}  # functions within functions cannot be sent

    def parents(self, feature: str) -> frozenset[str]:
        """Direct causes of a feature."""
        return self._parents[feature]

    def descendants(self, sources: set[str]) -> set[str]:
        """The sources and everything downstream of them."""
        reached = set(sources)
        for f in self._caused:
            if not reached.isdisjoint(self._parents[f]):
                reached.add(f)
        return reached

    @property
    def has_density(self) -> bool:
        """Whether every mechanism states its noise."""
        return all(m.noise is not None for m in self.mechanisms.values())

    def abduct(self, x: NDArray) -> NDArray:
        """Noise u of rows x; both of shape (..., d), columns in feature order."""
        values = self._columns(x)
        noise = [
            unlinked(values[f], self.mechanisms[f].link) - self.mechanisms[f].equation.evaluate(values)
            for f in self.features
        ]
        return np.stack(np.broadcast_arrays(*noise), axis=-1)

    def generate(self, u: NDArray, do: Mapping[str, NDArray | float] | None = None) -> NDArray:
        """Rows x of noise u, shape (..., d), under the intervention ``do`` (feature -> value)."""
        noise, do = self._columns(u), do or {}
        values: dict[str, NDArray] = {}
        for f in self.order:
            m = self.mechanisms[f]
            values[f] = (
                np.asarray(do[f], dtype=np.float64)
                if f in do
                else linked(m.equation.evaluate(values) + noise[f], m.link)
            )
        return np.stack(np.broadcast_arrays(*(values[f] for f in self.features)), axis=-1)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray:
        """``size`` rows drawn from the model, shape (size, d).

        Raises
        ------
        ValueError
            A mechanism states no noise.
        """
        columns = []
        for f in self.features:
            noise = self.mechanisms[f].noise
            if noise is None:
                raise ValueError(f"feature {f!r} states no noise")
            columns.append(noise.sample(size, rng))
        return self.generate(np.stack(columns, axis=-1))

    def counterfactual(self, x: NDArray, action: NDArray) -> NDArray:
        """Counterfactual of do(X_I := a_I) for rows x.

        Parameters
        ----------
        x
            Factual rows, shape (..., d).
        action
            Shape (..., d), nan where a feature is not acted on.

        Returns
        -------
        NDArray
            Shape (..., d), float64. A feature keeps its factual double exactly if none of its causes moved.
        """
        factual, acted = self._columns(x), self._columns(action)
        values: dict[str, NDArray] = {}
        for f in self.order:
            m = self.mechanisms[f]
            natural = factual[f]
            if self.parents(f):
                shift = m.equation.evaluate(values) - m.equation.evaluate(factual)
                moved = (
                    factual[f] + shift
                    if m.link.kind == "identity"
                    else linked(unlinked(factual[f], m.link) + shift, m.link)
                )
                natural = np.where(shift == 0, factual[f], moved)
            values[f] = np.where(np.isnan(acted[f]), natural, acted[f])
        return np.stack(np.broadcast_arrays(*(values[f] for f in self.features)), axis=-1)

    def log_density(self, x: NDArray) -> NDArray:
        """log p(x) of rows, shape (...): sum of log p_U(u_i) - log |dx_i/du_i|."""
        total: NDArray = sum(self.log_densities(x), np.zeros(np.shape(x)[:-1]))
        return total

    def log_densities(self, x: NDArray) -> list[NDArray]:
        """The terms of :meth:`log_density`: of each feature given its causes, shape (...)."""
        values, noise = self._columns(x), self._columns(self.abduct(x))
        terms = []
        for f, m in self.mechanisms.items():
            if m.noise is None:
                raise ValueError(f"feature {f!r} states no noise")
            term = m.noise.log_density(noise[f])
            if m.link.kind == "sigmoid":
                s = (values[f] - m.link.offset) / m.link.scale
                with np.errstate(divide="ignore", invalid="ignore"):
                    term = term - np.log(s) - np.log1p(-s) - np.log(abs(m.link.scale))
            terms.append(term)
        return terms

    def counterfactual_exact(
        self, x: Mapping[str, float | Enclosure], action: Mapping[str, float], scenario: Scenario = AS_PLANNED
    ) -> dict[str, Enclosure]:
        """The counterfactual in exact arithmetic, one enclosure per feature.

        A value is exact unless a sigmoid is involved in how it moved; then it is an interval about 1e-50 wide
        (see :class:`Enclosure`). One that did not move, because its causes are held, say, is the factual's
        (``x``'s own object where that is an enclosure).

        Parameters
        ----------
        scenario
            By how much targets are missed and noise is other than abducted; by default nothing is.
        """
        factual = {f: Enclosure.of(x[f]) for f in self.features}
        values = factual | {f: Enclosure.of(a) for f, a in action.items()}
        moved = set(action)
        for f in action:
            if scenario.missed.get(f):
                values[f] = values[f] + Enclosure.of(scenario.missed[f])
        for f in self._caused:
            if f not in action and self.parents(f) & moved:
                m = self.mechanisms[f]
                changed = {p for p in self.parents(f) & moved if values[p] != factual[p]}
                shift = m.equation.shift(factual, values, changed) if changed else Enclosure.of(0)
                if scenario.noise.get(f):
                    shift = shift + Enclosure.of(scenario.noise[f])
                if shift != Enclosure.of(0):
                    values[f] = shift_exact(factual[f], shift, m.link)
                moved.add(f)
        return {f: values[f] for f in self.order}

    def rounded(self, feature: str) -> InDoubles | None:
        """:func:`~milp_recourse.problem.expression.rounded` of a feature's equation."""
        if feature not in self._rounded:
            self._rounded[feature] = rounded(self.mechanisms[feature].equation)
        return self._rounded[feature]

    def _columns(self, rows: NDArray) -> dict[str, NDArray]:
        rows = np.asarray(rows, dtype=np.float64)
        return {f: rows[..., k] for k, f in enumerate(self.features)}

    def _causal_order(self) -> tuple[str, ...]:
        """Causes before effects; of those that could come next, the first of the features does."""
        place = {f: k for k, f in enumerate(self.features)}
        effects: dict[str, list[str]] = {f: [] for f in self.features}
        for f in self.features:
            for cause in self.parents(f):
                effects[cause].append(f)
        missing = {f: len(self.parents(f)) for f in self.features}
        ready = [place[f] for f in self.features if not missing[f]]  # a heap, as it is sorted
        order: list[str] = []
        while ready:
            order.append(self.features[heapq.heappop(ready)])
            for f in effects[order[-1]]:
                missing[f] -= 1
                if not missing[f]:
                    heapq.heappush(ready, place[f])
        if len(order) < len(place):
            first = next(f for f in self.features if missing[f])
            raise ValueError(f"the causal graph has a cycle through {first!r}")
        return tuple(order)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(cause, effect) pairs."""
        return tuple((p, f) for f in self.features for p in sorted(self.parents(f)))


def independent(features: Sequence[str]) -> StructuralCausalModel:
    """The causal model in which no feature causes another, with unknown noise."""
    return StructuralCausalModel(features, {}, name="independent")


def shift_exact(value: Enclosure, shift: Enclosure, link: Link) -> Enclosure:
    """An enclosure of link(link^-1(value) + shift), exact for the identity link."""
    if link.kind == "identity":
        return value + shift
    share = (value - Enclosure.of(link.offset)) / link.scale
    return Enclosure.of(link.offset) + Enclosure.of(link.scale) * (share.logit() + shift).sigmoid()


def linked(z: NDArray, link: Link) -> NDArray:
    """The value of an equation and noise."""
    return z if link.kind == "identity" else link.offset + link.scale * sigmoid(z)


def unlinked(x: NDArray, link: Link) -> NDArray:
    """The equation and noise of a value: the inverse of a link."""
    return x if link.kind == "identity" else logit((x - link.offset) / link.scale)
