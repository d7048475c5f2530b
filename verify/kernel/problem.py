"""The problem: who may act on what, what an action leads to, whether that is feasible, what it costs.

A problem is what is said about everyone (:class:`Model`) and about one applicant. An action is feasible
where :meth:`Problem.why_not` finds no reason against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from verify.kernel.box import Box
from verify.kernel.conditions import Count, Demand, Parts, Row, leaves, settled
from verify.kernel.curves import Interval
from verify.kernel.forms import Counterfactual, Form, add, constant
from verify.kernel.shapes import Empty, Rejected
from verify.kernel.trees import Ensemble, column_ranges, float32, float64

CERTAIN = ((0, 0), (1, 1))


class Feature(NamedTuple):
    """One feature; the value of a labelled one is its label's number, from 0.

    Attributes
    ----------
    whole, categorical
        Whether its values are whole numbers; whether they are labels without order.
    bounds, domain, monotone
        What limits an action, and the value after it; 1 where it may only grow, -1 where it may only fall.
    table
        By label, its numbers in the classifier's columns; None where the value itself is the column.
    """

    name: str
    whole: bool
    categorical: bool
    bounds: Sequence[float]
    domain: Sequence[float] | None
    monotone: int
    table: Sequence[Sequence[Fraction]] | None

    @property
    def width(self) -> int:
        """How many of the classifier's columns it fills."""
        return len(self.table[0]) if self.table else 1


@dataclass(frozen=True, eq=False)
class Model:
    """What is said about everyone.

    Attributes
    ----------
    features
        In the file's order.
    mechanisms
        Feature -> ``equation``, ``link`` and ``noise`` as files have them, causes before effects.
    plausible
        Whether the counterfactual must not be less plausible than the factual.
    part, knots
        The cost's coefficients of l0, l1, l2-squared and linf; feature -> knots of its percentiles.
    layers, single, at_least, margin
        A network's layers, whether it is computed in float32, and what its logit must reach; or None.
    trees
        An ensemble, or None.
    """

    features: Sequence[Feature]
    mechanisms: Mapping[str, Any]
    plausible: bool
    part: Mapping[str, Fraction]
    knots: Mapping[str, Sequence[Sequence[float]]]
    layers: Sequence[Any] | None
    single: bool
    at_least: float
    margin: float
    trees: Ensemble | None


class Term(NamedTuple):
    """One action's kappa delta^2 + beta |delta| + jump [delta != 0], and omega |delta| in the maximum.

    ``fall``: how many times as much as a rise a fall counts, delta being so many times as long.
    ``knots``: delta is that of a piecewise linear function through these (value, probability), constant
    outside them, instead of the value's own.
    """

    factual: Fraction
    kappa: Fraction
    beta: Fraction
    omega: Fraction
    jump: Fraction
    label: bool
    knots: tuple[tuple[Fraction, Fraction], ...] = ()
    fall: Fraction = Fraction(1)

    def position(self, value: Fraction) -> Fraction:
        """Where a value lies on the axis that changes are measured on."""
        if not self.knots:
            return value if value >= self.factual else self.factual - self.fall * (self.factual - value)
        k = sum(v <= value for v, _ in self.knots)
        if not 0 < k < len(self.knots):
            return self.knots[k - 1 if k else 0][1]
        (low, p), (high, q) = self.knots[k - 1], self.knots[k]
        return p + (q - p) / (high - low) * (value - low)

    def parts(self, value: Fraction) -> tuple[Fraction, Fraction]:
        """The cost at a value, and what enters the maximum."""
        return self.paid(abs(self.position(value) - self.position(self.factual)))

    def paid(self, delta: Fraction) -> tuple[Fraction, Fraction]:
        """The cost of a change, and what enters the maximum."""
        size = Fraction(bool(delta)) if self.label else delta
        return self.kappa * size * size + self.beta * size + self.jump * bool(delta), self.omega * size

    def nearest(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """The least that both can be on an interval."""
        return self.parts(min(max(self.factual, low), high))


def total(parts: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Costs added up, and the largest of what enters the maximum."""
    listed = list(parts)
    return sum((cost for cost, _ in listed), Fraction(0)) + max((most for _, most in listed), default=0)


@dataclass
class Problem:
    """One applicant's problem.

    Attributes
    ----------
    factual, missing
        Values by feature, 0 for those that are missing, and which these are.
    ranges, weight, scale, fall
        Of what may be acted on: the limits of the action (or None), w and s of the cost, and how many times
        as much as a rise a fall counts.
    power
        2 where the cost is the root of what its terms add up to, else 1.
    offset
        By how much the counterfactual's log density must exceed the factual's.
    demand
        What the conditions come to (section 11).
    """

    model: Model
    factual: dict[str, Fraction]
    missing: set[str]
    ranges: Mapping[str, Sequence[float] | None]
    weight: Mapping[str, Fraction]
    scale: Mapping[str, Fraction]
    fall: Mapping[str, Fraction]
    power: int
    offset: Fraction
    demand: Demand

    @property
    def features(self) -> Sequence[Feature]:
        """The model's."""
        return self.model.features

    @cached_property
    def levers(self) -> dict[str, Interval]:
        """Feature -> lever interval where it is not empty, in the order of ``features`` (section 2)."""
        found = {}
        for f in self.features:
            if f.name not in self.ranges:
                continue
            ends = [f.bounds, *filter(None, (self.ranges[f.name], f.domain))]
            low, high = Fraction(max(end[0] for end in ends)), Fraction(min(end[1] for end in ends))
            if f.monotone and f.name not in self.missing:
                x = self.factual[f.name]
                low, high = (max(low, x), high) if f.monotone > 0 else (low, min(high, x))
            if f.whole:
                low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
            if low <= high:
                found[f.name] = (low, high)
        return found

    @cached_property
    def asked_about(self) -> set[str]:
        """The levers of which conditions ask whether they are acted on (section 11)."""
        counts = [leaf.features for leaf in leaves(self.demand) if isinstance(leaf, Count)]
        return set().union(*counts) & self.levers.keys()

    @cached_property
    def impossible(self) -> set[str]:
        """The levers that have density zero before the action: they may not even be held (section 2)."""
        levers = self.levers if self.model.plausible else ()
        held = {f: Counterfactual(self, {f: constant(self.factual[f])}) for f in levers}
        return {
            f for f, one in held.items() if any(Box(one).least(form) <= 0 for form in one.energy.positive)
        }

    def term(self, f: Feature) -> Term:
        """The cost term of a feature that is acted on (section 3)."""
        w, s, part, zero = self.weight[f.name], self.scale[f.name], self.model.part, Fraction(0)
        label, factual = f.categorical, self.factual[f.name]
        if f.name in self.missing:  # delta / s is 1 for every value: below all of them lies what is left
            s, label, factual = Fraction(1), True, self.levers[f.name][0] - 1
        kappa, beta, omega = part["l2-squared"] * w / s**2, part["l1"] * w / s, part["linf"] * w / s
        if label:
            return Term(factual, zero, zero, omega, kappa + beta, True)
        knots = tuple((Fraction(v), Fraction(p)) for v, p in self.model.knots.get(f.name, ()))
        return Term(factual, kappa, beta, omega, zero, False, knots, self.fall[f.name])

    def terms(self, acted: Iterable[str]) -> dict[str, Term]:
        """Those of some features, in the order of ``features``."""
        chosen = set(acted)
        return {f.name: self.term(f) for f in self.features if f.name in chosen}

    def fixed(self, acted: Iterable[str]) -> Fraction:
        """The part of the cost that only depends on which features are acted on."""
        return self.model.part["l0"] * sum((self.weight[f] for f in acted), Fraction(0))

    def cost(self, action: Mapping[str, Fraction]) -> Fraction:
        """What an action costs; its square where the cost is a root (section 3)."""
        return self.fixed(action) + total(term.parts(action[f]) for f, term in self.terms(action).items())

    def check_permitted(self, action: Mapping[str, Fraction]) -> None:
        """Raise :class:`Rejected` where the applicant may not act so (section 2)."""
        whole = {f.name for f in self.features if f.whole}
        for name, value in action.items():
            if name not in self.levers:
                raise Rejected(f"action: {name[:40]} is not for this applicant to act on")
            low, high = self.levers[name]
            if not low <= value <= high or (name in whole and value.denominator != 1):
                raise Rejected(f"action.{name}: outside [{float(low)}, {float(high)}]")

    def why_not(self, action: Mapping[str, Fraction]) -> str | None:
        """Why a permitted action is not feasible, in exact arithmetic; None where it is (section 2).

        Sigmoids are enclosed; what an enclosure leaves open counts against the action.
        """
        moved = Counterfactual(self, {f: constant(value) for f, value in action.items()})
        missing, point = self.missing - action.keys(), Box(moved)
        seen = [None if f.name in missing else point.interval(moved.values[f.name]) for f in self.features]
        for f, ends in zip(self.features, seen, strict=True):
            if f.domain and ends and not f.domain[0] <= ends[0] <= ends[1] <= f.domain[1]:
                return f"{f.name} leaves its domain"
        if not meets(settled(self.demand, action), moved, point):
            return "a condition does not hold"
        trees = self.model.trees
        if not (
            trees.accepts(column_ranges(self.features, seen)) if trees else point.least(moved.logit) >= 0
        ):
            return "the classifier does not accept the counterfactual"
        try:
            worse = None if self._plausible(moved, point) else "is less plausible than the factual"
        except Empty:
            worse = "has density zero"
        return worse and f"the counterfactual {worse}"

    def _plausible(self, moved: Counterfactual, point: Box) -> bool:
        """Whether the density is not below the factual's."""
        energy = moved.energy
        most = point.interval(energy.rest)[1]
        most += sum(w * max(map(abs, point.interval(r))) ** 2 for w, r in energy.squares)
        possible = all(point.least(form) > 0 for form in energy.positive)
        return most <= 0 and possible and all(point.interval(u) in CERTAIN for u in energy.chances)

    def deployed(self, action: Mapping[str, Fraction]) -> bool:
        """Whether the classifier accepts as it computes: a network in its dtype, without the margin."""
        if self.model.layers is None:
            return True  # the score of trees is that already
        moved = Counterfactual(self, {f: constant(value) for f, value in action.items()})
        columns = [float64(sum(Box(moved).interval(form)) / 2) for form in moved.columns()]
        return computed(self.model.layers, columns, self.model.single) >= self.model.at_least


def meets(demand: Demand, moved: Counterfactual, point: Box) -> bool:
    """Whether the counterfactual surely meets a settled demand (section 11)."""
    if isinstance(demand, Row):
        return point.least(row_form(demand, moved.values)) >= 0
    assert isinstance(demand, Parts)
    return (all if demand.every else any)(meets(part, moved, point) for part in demand.parts)


def row_form(row: Row, values: Mapping[str, Form]) -> Form:
    """How far a condition's sum is above what is demanded, as a form (section 11)."""
    form = constant(-row.least)
    for name, c in row.terms:
        add(form, values[name], c)
    return form


def computed(layers: Any, inputs: Sequence[float], single: bool) -> float:
    """The output in floats: every product and sum rounded, left to right, the bias last (section 4)."""
    rounded = float32 if single else float64
    values = list(map(rounded, inputs))
    for k, layer in enumerate(layers):
        if k:
            values = [0.0 if v <= 0 else v for v in values]  # what is not a number stays so
        sums = []
        for row, bias in zip(layer["weight"], layer["bias"], strict=True):
            partial = 0.0
            for w, v in zip(row, values, strict=True):
                partial = rounded(partial + rounded(w * v))
            sums.append(rounded(partial + bias))
        values = sums
    return values[0]
