"""The problem on one configuration of acted features: rows, ball and cost (section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import NamedTuple

from verify.bounds import Interval, Row, Unit
from verify.equations import ONE, Counterfactual, Form
from verify.instance import Instance
from verify.network import Composed
from verify.trees import Range, float64, inputs

Cells = dict[str, tuple[float, float]]
"""Least and largest double of features whose values were split on."""


class Term(NamedTuple):
    """One action's kappa delta^2 + beta |delta| + jump [delta != 0], and omega |delta| in the maximum."""

    factual: Fraction
    kappa: Fraction
    beta: Fraction
    omega: Fraction
    jump: Fraction
    label: bool

    def parts(self, value: Fraction) -> tuple[Fraction, Fraction]:
        """The cost at a value, and what enters the maximum."""
        delta = abs(value - self.factual)
        size = Fraction(bool(delta)) if self.label else delta
        return self.kappa * size * size + self.beta * size + self.jump * bool(delta), self.omega * size


def term(instance: Instance, name: str) -> Term:
    """The cost term of a feature that is acted on (section 4)."""
    w, s, part = instance.weight[name], instance.scale[name], instance.part
    kappa, beta, omega = part["l2-squared"] * w / s**2, part["l1"] * w / s, part["linf"] * w / s
    label = next(f.kind == "categorical" for f in instance.features if f.name == name)
    jump, zero = kappa + beta, Fraction(0)
    if name in instance.missing:  # delta / s is 1 for every value: a label other than all of them changes
        w = instance.weight[name]
        jump, omega = (part["l2-squared"] + part["l1"]) * w, part["linf"] * w
        return Term(instance.levers[name][0] - 1, zero, zero, omega, jump, True)
    x = instance.factual[name]
    return Term(x, zero, zero, omega, jump, True) if label else Term(x, kappa, beta, omega, zero, False)


def total(parts: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Costs added up, and the largest of what enters the maximum."""
    listed = list(parts)
    return sum((cost for cost, _ in listed), Fraction(0)) + max((most for _, most in listed), default=0)


def fixed(instance: Instance, acted: Sequence[str]) -> Fraction:
    """The part of the cost that only depends on which features are acted on."""
    return instance.part["l0"] * sum((instance.weight[f] for f in acted), Fraction(0))


class Problem:
    """One configuration: every form a row over 1, the actions and the units that are needed.

    ``columns`` are a network's inputs; for trees the values of the features, whose labels' numbers they see.
    """

    def __init__(self, instance: Instance, acted: list[str]) -> None:
        self.acted = acted
        self.box: list[Interval] = [instance.levers[f] for f in acted]
        kinds = {f.name: f for f in instance.features}
        self.whole = [kinds[f].whole for f in acted]
        self.terms = [term(instance, f) for f in acted]
        self.fixed = fixed(instance, acted)
        low = Counterfactual(instance, {f: {k: Fraction(1)} for k, f in enumerate(acted)})
        self.idle = {
            f for f, (least, most), whole in zip(acted, self.box, self.whole, strict=True)
            if not instance.part["l0"] and f not in instance.missing and least <= instance.factual[f] <= most
            and (not whole or instance.factual[f].denominator == 1)
            and low.natural[f] == ({ONE: instance.factual[f]} if instance.factual[f] else {})
        }  # fmt: skip
        trees = instance.model.network is None
        columns = [low.values[f.name] for f in instance.features] if trees else low.columns()
        self.plausible = instance.content["plausibility"]
        squares, self.rest = low.ball()
        self.missing = instance.missing - set(acted)
        domains = {
            f.name: (low.values[f.name], f.domain)
            for f in instance.features
            if f.domain is not None and f.name not in self.missing
        }
        self._order(low, [*columns, *(r for _, r in squares), *(value for value, _ in domains.values())])
        self.squares = [(w, self.row(r)) for w, r in squares]
        self.domains: dict[str, tuple[Row, Fraction, Fraction]] = {
            f: (self.row(form), Fraction(low_), Fraction(high)) for f, (form, (low_, high)) in domains.items()
        }
        self.columns = [self.row(c) for c in columns]
        self.tables = {f.name: f.table for f in instance.features}
        self.places = {f.name: k for k, f in enumerate(instance.features) if f.table is None}
        self.splittable = set() if instance.model.network else self.places.keys() - self.missing - set(acted)
        self.network = Composed(instance.model.network, self.columns) if instance.model.network else None
        self.trees = None if instance.model.network else instance.model.trees
        self.neurons = sum(self.network.widths) if self.network else 0

    def _order(self, low: Counterfactual, forms: list[Form]) -> None:
        """Number the units that the forms need, each after those in its argument."""
        needed: set[int] = set().union(*forms)
        for key in sorted(low.units, reverse=True):
            if key in needed:
                needed |= low.units[key][2].keys()
        self.place = {ONE: 0} | {k: k + 1 for k in range(len(self.acted))}
        self.units: list[Unit] = []
        for key in sorted(low.units.keys() & needed):
            function, level, argument = low.units[key]
            self.units.append(Unit(function, level, self.row(argument)))
            self.place[key] = len(self.place)

    def row(self, form: Form) -> Row:
        """A form as coefficients of 1, the actions and the units so far."""
        row = [Fraction(0)] * len(self.place)
        for key, c in form.items():
            row[self.place[key]] = c
        return row

    def rows(self, cells: Cells) -> dict[str, tuple[Row, Fraction | float, Fraction | float]]:
        """The domain rows, narrowed to the reals whose nearest doubles are in the cells (section 5)."""
        found: dict[str, tuple[Row, Fraction | float, Fraction | float]] = dict(self.domains)
        for f, (least, most) in cells.items():
            value, low, high = found.get(f, (self.columns[self.places[f]], -inf, inf))
            found[f] = (
                value,
                max(low, _exact(nextafter(least, -inf))),
                min(high, _exact(nextafter(most, inf))),
            )
        return found

    def seen(self, intervals: list[Interval], cells: Cells) -> list[Range | None] | None:
        """What the trees can see where values are in these intervals; None where one holds no double."""
        doubles: list[Range] = [(float64(low), float64(high)) for low, high in intervals]
        for f, (least, most) in cells.items():
            low, high = doubles[self.places[f]]
            doubles[self.places[f]] = max(low, least), min(high, most)
        if any(low > high for low, high in doubles):
            return None
        known = zip(self.tables, doubles, strict=True)
        return inputs(self.tables.values(), [None if f in self.missing else ends for f, ends in known])

    def largest_cost(self) -> Fraction:
        """The most that an action in the whole box can cost, each term at its farther end (section 4)."""
        ends = zip(self.terms, self.box, strict=True)
        return self.fixed + total(max(term.parts(low), term.parts(high)) for term, (low, high) in ends)

    def least_cost(self, box: Sequence[Interval]) -> Fraction:
        """The least that each part of the cost can be on a box, added up (section 6.1, rule 1)."""
        ends = zip(self.terms, box, strict=True)
        return self.fixed + total(term.parts(min(max(term.factual, low), high)) for term, (low, high) in ends)


def _exact(end: float) -> Fraction | float:
    return end if abs(end) == inf else Fraction(end)
