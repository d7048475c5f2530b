"""The problem: who may act on what, what an action leads to, whether that is feasible, what it costs.

A problem is what is said about everyone (:class:`Model`) and about one applicant. An action is feasible
where :meth:`Problem.why_not` finds no reason against it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from verify.kernel.box import Box
from verify.kernel.checks import Empty, Rejected
from verify.kernel.conditions import Demand, Row
from verify.kernel.costs import Interval, Term, total
from verify.kernel.forms import Counterfactual, Form, add, constant
from verify.kernel.trees import Ensemble, float32, float64, options

CERTAIN = ((0, 0), (1, 1))


class Feature(NamedTuple):
    """One feature; the value of a labelled one is its label's number, from 0.

    Attributes
    ----------
    whole
        Whether its values are whole numbers, as those of labels are.
    domain
        What limits the value after the action.
    table
        By label, its numbers in the classifier's columns; None where the value itself is the column.
    """

    name: str
    whole: bool
    domain: Sequence[float] | None
    table: Sequence[Sequence[Fraction]] | None

    @property
    def width(self) -> int:
        """How many of the classifier's columns it fills."""
        return len(self.table[0]) if self.table else 1


class Link(NamedTuple):
    """A value is offset + scale sigmoid(what its equation and noise add up to)."""

    offset: Fraction
    scale: Fraction


class Noise(NamedTuple):
    """A noise u whose -log density is square u^2 + linear u + sum of times log(at + slope u) + a constant.

    ``logs``: (times, at, slope), each of which must be positive; ``coin``: only 0 and 1 have a density.
    """

    square: Fraction = Fraction(0)
    linear: Fraction = Fraction(0)
    logs: Sequence[tuple[Fraction, Fraction, Fraction]] = ()
    coin: bool = False


class Mechanism(NamedTuple):
    """What a feature follows from: an equation as files have it, perhaps through a link, with noise."""

    equation: Any = 0.0
    link: Link | None = None
    noise: Noise = Noise()


@dataclass(frozen=True, eq=False)
class Model:
    """What is said about everyone.

    Attributes
    ----------
    features, mechanisms
        In the file's order; by feature, causes before effects.
    plausible
        Whether the counterfactual must not be less plausible than the factual.
    layers, single, at_least, margin
        A network's layers, whether it is computed in float32, and what its logit must reach; or None.
    forests, one_suffices
        Ensembles, none where there is a network; whether one of them must accept, or all.
    """

    features: Sequence[Feature]
    mechanisms: Mapping[str, Mechanism]
    plausible: bool
    layers: Sequence[Any] | None
    single: bool
    at_least: float
    margin: float
    forests: Sequence[Ensemble]
    one_suffices: bool


@dataclass
class Problem:
    """One applicant's problem.

    Attributes
    ----------
    factual, missing
        Values by feature, 0 for those that are missing, and which these are.
    levers
        By feature, the values that an action may set, where there are any, in the order of ``features``.
    terms, fixed
        Of every lever: what changing it costs, and what acting on it costs besides.
    power
        2 where the cost is the root of what its terms add up to, else 1.
    offset
        By how much the counterfactual's log density must exceed the factual's.
    demand, asked_about
        What the conditions come to where exactly these features are acted on; the levers of which they ask
        whether they are acted on (section 11).
    """

    model: Model
    factual: Mapping[str, Fraction]
    missing: set[str]
    levers: Mapping[str, Interval]
    terms: Mapping[str, Term]
    fixed: Mapping[str, Fraction]
    power: int
    offset: Fraction
    demand: Callable[[Collection[str]], Demand]
    asked_about: set[str]

    @property
    def features(self) -> Sequence[Feature]:
        """The model's."""
        return self.model.features

    @cached_property
    def impossible(self) -> set[str]:
        """The levers that have density zero before the action: they may not even be held (section 2)."""
        levers = self.levers if self.model.plausible else ()
        held = {f: Counterfactual(self, {f: constant(self.factual[f])}) for f in levers}
        return {
            f for f, one in held.items() if any(Box(one).least(form) <= 0 for form in one.energy.positive)
        }

    def cost(self, action: Mapping[str, Fraction]) -> Fraction:
        """What an action costs; its square where the cost is a root (section 3)."""
        fixed = sum((self.fixed[f] for f in action), Fraction(0))
        return fixed + total(self.terms[f].ends(value, value)[0] for f, value in action.items())

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
        if not meets(self.demand(action), moved, point):
            return "a condition does not hold"
        model = self.model
        if model.forests:
            values, single = zip(model.features, seen, strict=True), model.forests[0].single
            inside = tuple(options(f.table, ends, single) for f, ends in values)
            met = (forest.accepts(inside) for forest in model.forests)
            accepted = any(met) if model.one_suffices else all(met)
        else:
            accepted = point.least(moved.logit) >= 0
        if not accepted:
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
