r"""Structural causal models with one noise term per feature.

Feature i obeys :math:`x_i = g_i(f_i(x_{pa(i)}) + u_i)` with a link :math:`g_i` that is the
identity or an affinely rescaled sigmoid. Both are invertible, so the noise is abducted exactly:
:math:`u_i = g_i^{-1}(x_i) - f_i(x_{pa(i)})`, and the counterfactual of
:math:`do(X_I := a_I)` is one pass in causal order (Pearl's abduction, action, prediction;
Karimi et al. 2021, https://doi.org/10.1145/3442188.3445899).

Plausibility is :math:`\log p(x_{cf}) \ge \log p(x) + o` (iCARMA paper, section 3: o = 0). The energy of a
feature is :math:`-\log p_U(u_i) + \log |dx_i/du_i|`. Plausibility asks that the energies of the
counterfactual sum to no more than those of the factual, less the offset o. Terms of features whose value and
parents did not move cancel. With normal noise and identity links the residuals must lie in a ball,
:math:`\sum (u'_i/sd_i)^2 \le \sum (u_i/sd_i)^2 - 2 o`, which is decided exactly.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from milp_recourse.errors import Unsupported
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import (
    Array,
    Constant,
    Expression,
    InDoubles,
    logit,
    rounded,
    sigmoid,
)
from milp_recourse.problem.noise import Noise, Normal, ZeroDensity, log_exact
from milp_recourse.problem.scenario import Scenario

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


_MOST_ACTED = 64
_ROUNDINGS, _LEAST, _MOST = 2.0**-49, 2.0**-900, 2.0**900
"""Sixteen roundings for each of the features acted on; a bound on what underflow loses; and a limit of sums,
far below the largest double."""


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

    def abduct(self, x: Array) -> Array:
        """Noise u of rows x; both of shape (..., d), columns in feature order."""
        values = self._columns(x)
        noise = [
            unlinked(values[f], self.mechanisms[f].link) - self.mechanisms[f].equation.evaluate(values)
            for f in self.features
        ]
        return np.stack(np.broadcast_arrays(*noise), axis=-1)

    def generate(self, u: Array, do: Mapping[str, Array | float] | None = None) -> Array:
        """Rows x of noise u, shape (..., d), under the intervention ``do`` (feature -> value)."""
        noise, do = self._columns(u), do or {}
        values: dict[str, Array] = {}
        for f in self.order:
            m = self.mechanisms[f]
            values[f] = (
                np.asarray(do[f], dtype=np.float64)
                if f in do
                else linked(m.equation.evaluate(values) + noise[f], m.link)
            )
        return np.stack(np.broadcast_arrays(*(values[f] for f in self.features)), axis=-1)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
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

    def counterfactual(self, x: Array, action: Array) -> Array:
        """Counterfactual of do(X_I := a_I) for rows x.

        Parameters
        ----------
        x
            Factual rows, shape (..., d).
        action
            Shape (..., d), nan where a feature is not acted on.

        Returns
        -------
        Array
            Shape (..., d), float64. A feature keeps its factual double exactly if none of its causes moved.
        """
        factual, acted = self._columns(x), self._columns(action)
        values: dict[str, Array] = {}
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

    def log_density(self, x: Array) -> Array:
        """log p(x) of rows, shape (...): sum of log p_U(u_i) - log |dx_i/du_i|."""
        total: Array = sum(self.log_densities(x), np.zeros(np.shape(x)[:-1]))
        return total

    def log_densities(self, x: Array) -> list[Array]:
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

    def plausible_exact(
        self,
        x: Mapping[str, float],
        counterfactual: Mapping[str, Enclosure],
        acted: frozenset[str],
        offset: float = 0.0,
    ) -> bool:
        """Whether the counterfactual's log density is proven to be at least the factual's plus the offset.

        Exact arithmetic is used only where doubles and their rounding errors leave the answer open. If even
        an enclosure is too wide to decide, the answer is no.
        """
        near = self._plausible_nearly(x, counterfactual, acted, offset)
        if near is not None:
            return near
        excess = self.excess_energy(x, counterfactual, acted)
        return excess is not None and excess.upper <= -Fraction(offset)

    def _plausible_nearly(
        self,
        x: Mapping[str, float],
        counterfactual: Mapping[str, Enclosure],
        acted: frozenset[str],
        offset: float = 0.0,
    ) -> bool | None:
        r"""Whether :meth:`excess_energy` is at most -offset, in float64; None if rounding leaves that open.

        With normal noise and identity links the excess energy is
        :math:`\sum ((a - e)^2 - (b - g)^2) / 2 sd^2` over the features acted on, with a and b the values
        after and before, and e and g the values of the equations. Each rounding after those in e and g
        changes the sum by at most 2^-53 of its absolute terms; the bound on the error is rounded in the same
        way.
        """
        roundings = _ROUNDINGS * max(1, len(acted))
        excess, size = offset, roundings * abs(offset)
        if len(acted) > _MOST_ACTED:
            return None
        try:
            after = {}
            for f, value in counterfactual.items():
                if not value.exact:
                    return None
                after[f] = value.nearest
            for f in self.features:
                m = self.mechanisms[f]
                if f not in acted:
                    if m.link.kind != "identity" and counterfactual[f] != Enclosure.of(x[f]):
                        return None
                    continue
                near = self.rounded(f)
                if near is None or m.link.kind != "identity" or not isinstance(m.noise, Normal):
                    return None
                precision = 0.5 / (m.noise.sd * m.noise.sd)
                (e, error_after), (g, error_before) = near(after), near(x)
                a, b = after[f] - e, x[f] - g
                excess += precision * (a * a - b * b)
                # errors of a and b, then upper bounds of their absolute values
                error_after += roundings * (abs(after[f]) + abs(e)) + _LEAST
                error_before += roundings * (abs(x[f]) + abs(g)) + _LEAST
                a, b = abs(a) + error_after, abs(b) + error_before
                cross = a * error_after + b * error_before
                size += precision * (2.0 * cross + roundings * (a * a + b * b))
        except (OverflowError, ZeroDivisionError):
            return None
        doubt = 2.0 * size + _LEAST
        if not doubt < _MOST:
            return None
        return None if -doubt <= excess <= doubt else excess < 0.0

    def excess_energy(
        self,
        x: Mapping[str, float],
        counterfactual: Mapping[str, Enclosure],
        acted: frozenset[str],
    ) -> Enclosure | None:
        """log p(x) - log p(x_cf), or None where the counterfactual has density zero.

        Raises
        ------
        Unsupported
            The mechanism of a feature that is acted on states no noise, or mixture noise.
        """
        factual = {f: Enclosure.of(x[f]) for f in self.features}
        unmoved = {f for f in self.features if counterfactual[f] == factual[f]}
        total = Enclosure.of(0)
        for f in self.features:
            m = self.mechanisms[f]
            if f in unmoved and self.parents(f) <= unmoved:
                continue
            if f not in acted and m.link.kind == "identity":
                continue  # same noise, constant Jacobian
            same_equation = self.parents(f) <= unmoved
            try:
                total = total + _excess(m, f, factual, counterfactual, f not in acted, same_equation)
            except ZeroDensity:
                return None
        return total

    def rounded(self, feature: str) -> InDoubles | None:
        """:func:`~milp_recourse.problem.expression.rounded` of a feature's equation."""
        if feature not in self._rounded:
            self._rounded[feature] = rounded(self.mechanisms[feature].equation)
        return self._rounded[feature]

    def _columns(self, rows: Array) -> dict[str, Array]:
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


def _excess(
    m: Mechanism,
    f: str,
    before: Mapping[str, Enclosure],
    after: Mapping[str, Enclosure],
    same_noise: bool,
    same_equation: bool,
) -> Enclosure:
    """How much one feature's energy grows.

    Parameters
    ----------
    same_noise
        Whether the feature is not acted on, so that its noise stays.
    same_equation
        Whether none of its parents has moved.

    Raises
    ------
    ZeroDensity
        A density is zero, or cannot be told from zero.
    """
    total, old, new = Enclosure.of(0), before[f], after[f]
    if m.link.kind == "sigmoid":
        old, new = ((v - Enclosure.of(m.link.offset)) / m.link.scale for v in (old, new))
        if old != new:
            shares = [log_exact(share) + log_exact(Enclosure.of(1) - share) for share in (old, new)]
            total = shares[1] - shares[0]
    if same_noise:
        return total
    equation = m.equation.enclose(before)
    equations = equation, equation if same_equation else m.equation.enclose(after)
    if old == new and equations[0] == equations[1] and equations[0].exact:
        return total  # the same noise
    if m.link.kind == "sigmoid":
        old, new = (log_exact(share) - log_exact(Enclosure.of(1) - share) for share in (old, new))
    if m.noise is None:
        raise Unsupported("plausibility: the mechanism of a feature that is acted on states no noise")
    return total + m.noise.excess(old - equations[0], new - equations[1])


def linked(z: Array, link: Link) -> Array:
    """The value of an equation and noise."""
    return z if link.kind == "identity" else link.offset + link.scale * sigmoid(z)


def unlinked(x: Array, link: Link) -> Array:
    """The equation and noise of a value: the inverse of a link."""
    return x if link.kind == "identity" else logit((x - link.offset) / link.scale)
