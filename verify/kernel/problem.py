"""The problem: who may act on what, what an action leads to, whether that is feasible, what it costs.

A problem is two JSON values: what is said about everyone, and what is said about one applicant, both in
canonical form (section 1). An action is feasible where :meth:`Problem.why_not` finds no reason against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from verify.kernel.box import Box
from verify.kernel.conditions import Acts, Count, Demand, Every, Reader, Row, asked_about, for_acted
from verify.kernel.curves import Interval
from verify.kernel.forms import Counterfactual, Form, add, constant
from verify.kernel.shapes import Empty, Rejected, conform, refuse
from verify.kernel.trees import Ensemble, column_ranges, float32, float64

PARTS = ("l0", "l1", "l2-squared", "linf")
NOTHING: dict[str, Any] = {"equation": 0.0, "link": None, "noise": None}
CERTAIN = ((0, 0), (1, 1))


class Feature:
    """One feature. Labels are numbered from 0; ``table`` has their numbers in the classifier's columns."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.name: str = content["name"]
        self.kind: str = content["kind"]
        self.labels: list[str] | None = content["categories"]
        self.domain: list[float] | None = content["domain"]
        self.monotone: str | None = content["monotone"]
        self.whole = self.kind != "continuous"
        count = len(self.labels or ())
        self.bounds = content["bounds"] or [0.0, count - 1.0]
        rows = content.get("table")
        self.table = None if rows is None else [list(map(Fraction, row)) for row in rows]
        if content["encoding"] == "one-hot":
            zeros, one = [Fraction(0)] * count, [Fraction(1)]  # two numbers, however many labels
            self.table = [zeros[:k] + one + zeros[k + 1 :] for k in range(count)]

    @property
    def width(self) -> int:
        """How many of the classifier's columns it fills."""
        return len(self.table[0]) if self.table else 1

    def value(self, given: Any, where: str, factual: bool = False) -> Fraction:
        """A file's number or label as the number the model reads; an integer's factual may be a fraction."""
        if self.labels is not None:
            if given not in self.labels:
                refuse(where, given, "one of " + ", ".join(self.labels))
            return Fraction(self.labels.index(given))
        value = Fraction(conform(given, float, where))
        fraction = value.denominator != 1 and not (factual and self.kind == "integer")
        if (self.whole and fraction) or (self.kind == "binary" and value not in (0, 1)):
            raise Rejected(f"{where}: {given!r} is not a value of a feature that is {self.kind}")
        return value


class Model:
    """What is said about everyone.

    Attributes
    ----------
    order
        Causal order of the features.
    parents
        Feature -> the features its equation reads.
    layers, trees
        The classifier: a network's layers, or an ensemble; the other one is None.
    needed
        What a network's exact logit must reach: ``at_least`` and ``margin``.
    """

    def __init__(self, content: Mapping[str, Any], mechanisms: Mapping[str, Any]) -> None:
        self.features = [Feature(f) for f in content["features"]]
        self.mechanisms = {f.name: mechanisms.get(f.name, NOTHING) for f in self.features}
        self.parents = {name: set(reads(m["equation"])) for name, m in self.mechanisms.items()}
        self.order = [f.name for f in self.features if not self.parents[f.name]]
        waits, effects = {f: len(causes) for f, causes in self.parents.items()}, dict[str, list[str]]()
        for f, causes in self.parents.items():
            for cause in causes:
                effects.setdefault(cause, []).append(f)
        for f in self.order:  # grows on the way
            for effect in effects.get(f, ()):
                waits[effect] -= 1
                self.order += [effect] if not waits[effect] else []
        if len(self.order) < len(self.features):
            raise Rejected("scm: a cycle")
        self.plausible: bool = content["plausibility"]
        self.part = {part: Fraction(content["cost"][part]) for part in PARTS}
        self.knots: Mapping[str, Any] = content["cost"].get("quantiles", {})
        classifier, self.accept = content["classifier"], content["accept"]
        self.layers = classifier.get("layers")
        self.rounded = float32 if classifier["dtype"] == "float32" else float
        self.trees = None if self.layers else Ensemble(classifier, self.accept)
        self.needed = sum(map(Fraction, self.accept.values()), Fraction(0)) if self.layers else Fraction(0)


def reads(expression: Any) -> list[str]:
    """The features an equation reads."""
    if isinstance(expression, str):
        return [expression]
    if not isinstance(expression, Mapping):
        return []
    inner = expression["inputs"] if "network" in expression else next(iter(expression.values()))
    return [name for part in (inner if isinstance(inner, list) else [inner]) for name in reads(part)]


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


def total(parts: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Costs added up, and the largest of what enters the maximum."""
    listed = list(parts)
    return sum((cost for cost, _ in listed), Fraction(0)) + max((most for _, most in listed), default=0)


class Problem:
    """One applicant's problem."""

    def __init__(self, model: Model, person: Mapping[str, Any]) -> None:
        self.model, self.features = model, model.features
        self.missing = {name for name, given in person["factual"].items() if given is None}
        self.factual = {  # 0 stands for a missing value, which nothing reads
            f.name: Fraction(0)
            if f.name in self.missing
            else f.value(person["factual"][f.name], f"factual.{f.name}", factual=True)
            for f in self.features
        }
        self.actionable: list[str] = person["actionable"]
        self.ranges: dict[str, list[float] | None] = person["ranges"]
        self.weight = {f: Fraction(w) for f, w in person["weights"].items()}
        scales: Any = {
            f: s if isinstance(s, dict) else dict.fromkeys(("increase", "decrease"), s)
            for f, s in person["cost"]["scale"].items()
        }
        self.scale = {f: Fraction(s["increase"]) for f, s in scales.items()}
        self.fall = {f: self.scale[f] / Fraction(s["decrease"]) for f, s in scales.items()}
        self.power = 1 + person["cost"].get("root", False)
        self.offset = Fraction(person.get("density_offset", 0.0))
        self.demand = Reader(
            {f.name for f in self.features if f.whole},
            {f.name: len(f.labels) for f in self.features if f.labels is not None},
            self.factual,
            self.missing,
        ).all(person.get("conditions", []))

    @cached_property
    def levers(self) -> dict[str, Interval]:
        """Feature -> lever interval where it is not empty, in the order of ``features`` (section 2)."""
        found = {}
        for f in self.features:
            if f.name not in self.actionable:
                continue
            low, high = map(Fraction, f.bounds)
            for limits in (self.ranges[f.name], f.domain):
                if limits is not None:
                    low, high = max(low, Fraction(limits[0])), min(high, Fraction(limits[1]))
            monotone = None if f.name in self.missing else f.monotone
            if monotone == "increase":
                low = max(low, self.factual[f.name])
            if monotone == "decrease":
                high = min(high, self.factual[f.name])
            if f.whole:
                low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
            if low <= high:
                found[f.name] = (low, high)
        return found

    @cached_property
    def asked_about(self) -> set[str]:
        """The levers of which conditions ask whether they are acted on (section 11)."""
        return asked_about(self.demand, self.levers)

    @cached_property
    def impossible(self) -> set[str]:
        """The levers that have density zero before the action: they may not even be held (section 2)."""
        levers = self.levers if self.model.plausible else ()
        held = {f: Counterfactual(self, {f: constant(self.factual[f])}) for f in levers}
        for one in held.values():
            one.ball()
        return {f for f, one in held.items() if any(Box(one, ()).least(form) <= 0 for form in one.positive)}

    def term(self, name: str) -> Term:
        """The cost term of a feature that is acted on (section 3)."""
        w, s, part = self.weight[name], self.scale[name], self.model.part
        label = next(f.kind == "categorical" for f in self.features if f.name == name)
        factual = self.factual[name]
        if name in self.missing:  # delta / s is 1 for every value: below all of them lies what is left
            s, label, factual = Fraction(1), True, self.levers[name][0] - 1
        kappa, beta, omega = part["l2-squared"] * w / s**2, part["l1"] * w / s, part["linf"] * w / s
        zero = Fraction(0)
        if label:
            return Term(factual, zero, zero, omega, kappa + beta, True)
        knots = tuple((Fraction(v), Fraction(p)) for v, p in self.model.knots.get(name, []))
        return Term(factual, kappa, beta, omega, zero, False, knots, self.fall[name])

    def fixed(self, acted: Iterable[str]) -> Fraction:
        """The part of the cost that only depends on which features are acted on."""
        return self.model.part["l0"] * sum((self.weight[f] for f in acted), Fraction(0))

    def cost(self, action: Mapping[str, Fraction]) -> Fraction:
        """What an action costs; its square where the cost is a root (section 3)."""
        return self.fixed(action) + total(self.term(f).parts(value) for f, value in action.items())

    def read(self, action: Mapping[str, Any]) -> dict[str, Fraction]:
        """A file's action in numbers; :class:`Rejected` where the applicant may not act so."""
        if not action.keys() <= self.levers.keys():
            alien = min(action.keys() - self.levers.keys())
            raise Rejected(f"action: {alien[:40]} is not for this applicant to act on")
        values = {
            f.name: f.value(action[f.name], f"action.{f.name}") for f in self.features if f.name in action
        }
        for name, value in values.items():
            low, high = self.levers[name]
            if not low <= value <= high:
                raise Rejected(f"action.{name}: outside [{float(low)}, {float(high)}]")
        return values

    def why_not(self, action: Mapping[str, Fraction]) -> str | None:
        """Why a permitted action is not feasible, in exact arithmetic; None where it is (section 2).

        Sigmoids are enclosed; what an enclosure leaves open counts against the action.
        """
        moved = Counterfactual(self, {f: constant(value) for f, value in action.items()})
        missing = self.missing - action.keys()
        point = Box(moved, ())
        seen = [None if f.name in missing else point.interval(moved.values[f.name]) for f in self.features]
        for f, ends in zip(self.features, seen, strict=True):
            if f.domain and ends and not f.domain[0] <= ends[0] <= ends[1] <= f.domain[1]:
                return f"{f.name} leaves its domain"
        if not self._meets(for_acted(self.demand, set(action)), moved, point):
            return "a condition does not hold"
        if self.model.trees:
            accepted = self.model.trees.accepts(column_ranges(self.features, seen))
        else:
            accepted = point.least(moved.logit) >= 0
        if not accepted:
            return "the classifier does not accept the counterfactual"
        try:
            return (
                None
                if self._plausible(moved, point)
                else "the counterfactual is less plausible than the factual"
            )
        except Empty:
            return "the counterfactual has density zero"

    def _meets(self, demand: Demand, moved: Counterfactual, point: Box) -> bool:
        """Whether the counterfactual surely meets a demand (section 11)."""
        if isinstance(demand, Row):
            return point.least(row_form(demand, moved.values)) >= 0
        assert not isinstance(demand, Acts | Count)
        some = (self._meets(part, moved, point) for part in demand.parts)
        return all(some) if isinstance(demand, Every) else any(some)

    def _plausible(self, moved: Counterfactual, point: Box) -> bool:
        """Whether the density is not below the factual's."""
        squares, rest = moved.ball()
        energy = point.interval(rest)[1] + sum(w * max(map(abs, point.interval(r))) ** 2 for w, r in squares)
        possible = all(point.least(form) > 0 for form in moved.positive)
        return energy <= 0 and possible and all(point.interval(u) in CERTAIN for u in moved.chances)

    def deployed(self, action: Mapping[str, Fraction]) -> bool:
        """Whether the classifier accepts as it computes: a network in its dtype, without the margin."""
        if self.model.trees:
            return True  # their score is that already
        moved = Counterfactual(self, {f: constant(value) for f, value in action.items()})
        point = Box(moved, ())
        columns = [float64(sum(point.interval(form)) / 2) for form in moved.columns()]
        return computed(self.model.layers, columns, self.model.rounded) >= self.model.accept["at_least"]


def row_form(row: Row, values: Mapping[str, Form]) -> Form:
    """How far a condition's sum is above what is demanded, as a form (section 11)."""
    form = constant(-row.least)
    for name, c in row.terms:
        add(form, values[name], c)
    return form


def computed(layers: Any, inputs: list[float], rounded: Callable[[float], float]) -> float:
    """The output in floats: every product and sum rounded, left to right, the bias last (section 4)."""
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
