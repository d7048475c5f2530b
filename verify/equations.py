"""Counterfactuals as affine forms in actions and units (sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify import curves
from verify.curves import Interval
from verify.instance import NOTHING, Instance
from verify.network import Network
from verify.reading import Rejected, bounded

ONE = -1
Form = dict[int, Fraction]
"""Coefficient of 1 (key ONE) and of every action and unit that has one; no zeros."""


def constant(value: Fraction) -> Form:
    """A form that is a number."""
    return {ONE: value} if value else {}


def plus(p: Form, q: Form, factor: Fraction | int = 1) -> Form:
    """p + factor q."""
    total = dict(p)
    for key, c in q.items():
        total[key] = bounded(total.get(key, Fraction(0)) + factor * c)
    return {key: c for key, c in total.items() if c}


def is_constant(p: Form) -> bool:
    """Whether neither actions nor units enter."""
    return p.keys() <= {ONE}


class Counterfactual:
    """The value of every feature where some are acted on.

    Parameters
    ----------
    acted
        The forms of the features acted on: actions, numbered from 0, or numbers.

    Attributes
    ----------
    values
        Feature -> form.
    natural
        What each feature would be if it were not acted on itself.
    units
        Key -> (function, level, argument), a unit after those in its argument.
    """

    def __init__(self, instance: Instance, acted: Mapping[str, Form]) -> None:
        self.instance, self.acted = instance, acted
        self.units: dict[int, tuple[str, int, Form]] = {}
        self._known: dict[Any, int] = {}
        factual = {f: constant(x) for f, x in instance.factual.items()}
        self.values: dict[str, Form] = {}
        self.natural: dict[str, Form] = {}
        self._ranges: dict[int, Interval] = {}
        self.before: dict[str, Form] = {}
        for f in instance.model.order:
            mechanism = instance.model.mechanisms.get(f, NOTHING)
            self.before[f] = self._lower(mechanism["equation"], factual)
            moved = plus(self._lower(mechanism["equation"], self.values), self.before[f], -1)
            link = mechanism["link"] if moved else None
            self.natural[f] = self._linked(f, link, moved) if link else plus(factual[f], moved)
            self.values[f] = acted.get(f, self.natural[f])

    def columns(self) -> list[Form]:
        """The classifier's inputs (section 4): values, or labels' numbers by one indicator per label."""
        found = []
        for f in self.instance.features:
            value = self.values[f.name]
            if f.table is None:
                found.append(value)
                continue
            labels = [self._unit("indicator", value, k) for k in range(len(f.table))]
            for column in zip(*f.table, strict=True):
                form: Form = {}
                for label, number in zip(labels, column, strict=True):
                    form = plus(form, label, number)
                found.append(form)
        return found

    def ball(self) -> tuple[list[tuple[Fraction, Form]], Fraction]:
        """Weight and residual of each square, in the order of ``features``, and the rest (section 4)."""
        squares, rest = [], Fraction(0)
        for f in self.instance.factual if self.instance.content["plausibility"] else ():
            mechanism, natural = self.instance.model.mechanisms.get(f, NOTHING), self.natural[f]
            if f not in self.acted:
                if mechanism["link"] and natural != constant(self.instance.factual[f]):
                    raise Rejected(f"{f}: its link moves under plausibility (section 9)")
                continue
            if mechanism["noise"] is None:
                raise Rejected(f"{f}: no noise is stated, and plausibility is asked for")
            if mechanism["noise"]["kind"] != "normal" or mechanism["link"]:
                raise Rejected(f"{f}: acted on under plausibility, and not plain normal noise (section 9)")
            u = plus(constant(self.instance.factual[f]), self.before[f], -1)
            weight = 1 / (2 * Fraction(mechanism["noise"]["sd"]) ** 2)
            squares.append((weight, plus(plus(u, self.values[f]), natural, -1)))
            rest -= weight * self.number(u, f) ** 2
        return squares, rest

    def number(self, form: Form, what: str) -> Fraction:
        """The value of a form that must be rational and constant."""
        if not is_constant(form):
            raise Rejected(f"{what}: not a rational number: a sigmoid does not cancel (section 9)")
        return form.get(ONE, Fraction(0))

    def range(self, form: Form) -> Interval:
        """Bounds of a form without actions: its value, but for sigmoids and logits of numbers."""
        low = high = form.get(ONE, Fraction(0))
        for key, c in form.items():
            if key != ONE:
                ends = sorted(c * end for end in self._range(key))
                low, high = low + ends[0], high + ends[1]
        return low, high

    def _range(self, key: int) -> Interval:
        if key not in self._ranges:
            function, level, argument = self.units[key]
            low, high = self.range(argument)
            if function == "sigmoid":
                low, high = curves.sigmoid(low)[0], curves.sigmoid(high)[1]
            elif function == "logit":
                low, high = curves.logit(low)
            elif function == "square":
                low, high = max(bounded(low), -high, Fraction(0)) ** 2, max(-low, bounded(high)) ** 2
            elif function == "indicator":
                low, high = Fraction(low == level == high), Fraction(low <= level <= high)
            else:
                low, high = max(low, Fraction(0)), max(high, Fraction(0))
            self._ranges[key] = low, high
        return self._ranges[key]

    def _linked(self, f: str, link: Mapping[str, float], moved: Form) -> Form:
        """offset + scale sigmoid(logit of the factual's share + what the equation adds) (section 3)."""
        offset, scale = Fraction(link["offset"]), Fraction(link["scale"])
        share = (Fraction(self.instance.factual[f]) - offset) / scale
        if not 0 < share < 1:
            raise Rejected(f"{f}: the factual lies outside its link's range")
        unit = self._unit("sigmoid", plus(self._unit("logit", constant(share)), moved))
        return plus(constant(offset), unit, scale)

    def _unit(self, function: str, argument: Form, level: int = 0) -> Form:
        """A unit, the same one for the same argument; a number where the argument is one (section 4)."""
        if is_constant(argument) and function not in ("sigmoid", "logit"):
            y = argument.get(ONE, Fraction(0))
            known = {
                "relu": max(y, Fraction(0)),
                "square": bounded(y) ** 2,
                "indicator": Fraction(y == level),
            }
            return constant(known[function])
        unit = (function, level, frozenset(argument.items()))
        if unit not in self._known:
            self._known[unit] = len(self.acted) + len(self.units)
            self.units[self._known[unit]] = (function, level, argument)
        return {self._known[unit]: Fraction(1)}

    def _product(self, p: Form, q: Form) -> Form:
        for a, b in ((p, q), (q, p)):
            if is_constant(a):
                return plus({}, b, a.get(ONE, Fraction(0)))
        difference = plus(self._unit("square", plus(p, q)), self._unit("square", plus(p, q, -1)), -1)
        return plus({}, difference, Fraction(1, 4))

    def _lower(self, expression: Any, values: Mapping[str, Form]) -> Form:
        """An equation where features have the given forms (section 4)."""
        if isinstance(expression, float):
            return constant(Fraction(expression))
        if isinstance(expression, str):
            return values[expression]
        if "network" in expression:
            return self._network(expression, [self._lower(e, values) for e in expression["inputs"]])
        form, inner = next(iter(expression.items()))
        if form in ("relu", "sigmoid", "square"):
            return self._unit(form, self._lower(inner, values))
        total = constant(Fraction(form == "product"))
        for part in inner:
            term = self._lower(part, values)
            total = plus(total, term) if form == "sum" else self._product(total, term)
        return total

    def _network(self, expression: Any, forms: list[Form]) -> Form:
        layers = Network(expression["network"]["layers"], len(forms), Fraction(0)).layers
        for k, layer in enumerate(layers):
            sums = [constant(Fraction(b, layer.unit)) for b in layer.bias]
            for j, row in enumerate(layer.rows):
                for w, form in zip(row, forms, strict=True):
                    sums[j] = plus(sums[j], form, Fraction(w, layer.unit))
            forms = [self._unit("relu", s) for s in sums] if k < len(layers) - 1 else sums
        return forms[0]
