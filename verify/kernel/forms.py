"""Counterfactuals as forms: affine in actions and in units, which are functions of forms (section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from verify.kernel.shapes import Clock, Rejected, bounded

if TYPE_CHECKING:
    from verify.kernel.problem import Problem

ONE = -1
Form = dict[int, Fraction]
"""Coefficient of 1 (key ONE) and of every action and unit that has one; no zeros."""

ZERO = Fraction(0)


class Unit(NamedTuple):
    """A function of a form over 1, the actions and units of smaller keys; ``level``: an indicator's."""

    function: str
    level: int
    argument: Form


def constant(value: Fraction) -> Form:
    """A form that is a number."""
    return {ONE: value} if value else {}


def plus(p: Form, q: Form, factor: Fraction | int = 1) -> Form:
    """p + factor q."""
    total = dict(p)
    add(total, q, factor)
    return total


def add(total: Form, q: Form, factor: Fraction | int) -> None:
    """Add factor q to a form."""
    for key, c in q.items():
        total[key] = bounded(total.get(key, ZERO) + factor * c)
        if not total[key]:
            del total[key]


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
        Key -> unit; keys go on from the actions'.
    neurons
        Key -> (hidden layer, neuron) of the network's units, once :attr:`logit` was asked for.
    chances, positive
        Once :meth:`ball` was called: Bernoulli noises of what is acted on, each of which must be 0 or 1; and
        what logarithms are taken of, all of which must be above 0, also where the logarithms cancel.
    """

    def __init__(self, problem: Problem, acted: Mapping[str, Form]) -> None:
        self.problem, self.acted = problem, acted
        self.units: dict[int, Unit] = {}
        self.neurons: dict[int, tuple[int, int]] = {}
        self.values: dict[str, Form] = {}
        self.natural: dict[str, Form] = {}
        self._known: dict[Any, int] = {}
        self.chances: list[Form] = []
        self.positive: list[Form] = []
        self._before: dict[str, Form] = {}
        self._after: dict[str, Form] = {}
        self._linked_arguments: dict[str, Form] = {}
        factual = {f: constant(x) for f, x in problem.factual.items()}
        for f in problem.model.order:
            mechanism = problem.model.mechanisms[f]
            self._before[f] = self._lower(mechanism["equation"], factual)
            self._after[f] = self._lower(mechanism["equation"], self.values)
            moved = plus(self._after[f], self._before[f], -1)
            link = mechanism["link"] if moved else None
            self.natural[f] = self._linked(f, link, moved) if link else plus(factual[f], moved)
            self.values[f] = acted.get(f, self.natural[f])

    def columns(self) -> list[Form]:
        """The classifier's inputs (section 5): values, or labels' numbers by one indicator per label."""
        found = []
        for f in self.problem.features:
            value = self.values[f.name]
            if f.table is None:
                found.append(value)
                continue
            labels = [self._folded("indicator", value, k) for k in range(len(f.table))]
            for column in zip(*f.table, strict=True):
                form: Form = {}
                for label, number in zip(labels, column, strict=True):
                    add(form, label, number)
                found.append(form)
        return found

    @cached_property
    def logit(self) -> Form:
        """The network's logit less what it must reach; on a box every neuron becomes a unit of its own."""
        forms = self.columns()
        for k, layer in enumerate(self.problem.model.layers):
            if k and all(map(is_constant, self.acted.values())):
                forms = [self._folded("relu", argument) for argument in forms]
            elif k:
                keys = [self._new(Unit("relu", 0, argument)) for argument in forms]
                self.neurons |= {key: (k - 1, j) for j, key in enumerate(keys)}
                forms = [{key: Fraction(1)} for key in keys]
            forms = _layer(layer, forms)
        return plus(forms[0], constant(self.problem.model.needed), -1)

    def ball(self) -> tuple[list[tuple[Fraction, Form]], Form]:
        """Weight and residual of each square, and the rest: log p(factual) + offset - log p, at most 0.

        Squares are those of normal noise, in the order of ``features``; see sections 2 and 5.
        """
        squares: list[tuple[Fraction, Form]] = []
        rest: Form = {}
        if self.problem.offset:
            add(rest, constant(self.problem.offset), 1)
        for f, x in self.problem.factual.items() if self.problem.model.plausible else ():
            mechanism, value, noise = self.problem.model.mechanisms[f], self.values[f], Form()
            if mechanism["link"] and (f in self.acted or value != constant(x)):
                offset, scale = (Fraction(mechanism["link"][key]) for key in ("offset", "scale"))
                share, own = (x - offset) / scale, plus({}, plus(value, constant(-offset)), 1 / scale)
                for side in (constant(share), constant(1 - share)):
                    add(rest, self._log(side), -1)
                if f in self.acted:
                    for side in (own, plus(constant(Fraction(1)), own, -1)):
                        add(rest, self._log(side), 1)
                    noise, own = self._folded("logit", constant(share)), self._folded("logit", own)
                else:
                    add(rest, self._folded("density", self._linked_arguments[f]), 1)
            else:
                noise, own = constant(x), value
            if f not in self.acted:
                continue
            before, after = plus(noise, self._before[f], -1), plus(own, self._after[f], -1)
            self._noise(mechanism["noise"], before, after, squares, rest)
        return squares, rest

    def _noise(
        self, noise: Any, before: Form, after: Form, squares: list[tuple[Fraction, Form]], rest: Form
    ) -> None:
        """Add what -log of its density grows by from one value of a noise to another."""
        if noise["kind"] == "normal":
            weight = 1 / (2 * Fraction(noise["sd"]) ** 2)
            squares.append((weight, after))
            add(rest, self._folded("square", before), -weight)
        elif noise["kind"] == "gamma":
            shape = Fraction(noise["shape"]) - 1
            for form, sign in ((after, 1), (before, -1)):
                add(rest, form, sign / Fraction(noise["scale"]))
                add(rest, self._log(form), -sign * shape)
        else:
            self.chances += [after] if after != before else []
            p = Fraction(noise["p"])
            for form, sign in ((after, 1), (before, -1)):
                chance = plus(plus({}, form, 2 * p - 1), constant(1 - p))
                add(rest, self._log(chance) if p != Fraction(1, 2) else {}, -sign)

    def _log(self, form: Form) -> Form:
        """The logarithm of what a density is a power of."""
        self.positive.append(form)
        return self._folded("log", form)

    def _linked(self, f: str, link: Mapping[str, float], moved: Form) -> Form:
        """offset + scale sigmoid(logit of the factual's share + what the equation adds) (section 2)."""
        offset, scale = Fraction(link["offset"]), Fraction(link["scale"])
        share = (self.problem.factual[f] - offset) / scale
        if not 0 < share < 1:
            raise Rejected(f"{f}: the factual lies outside its link's range")
        self._linked_arguments[f] = plus(self._folded("logit", constant(share)), moved)
        unit = self._folded("sigmoid", self._linked_arguments[f])
        return plus(constant(offset), unit, scale)

    def _folded(self, function: str, argument: Form, level: int = 0) -> Form:
        """A unit, the same one for the same argument; a number where the argument is one (section 5)."""
        Clock.look()
        if is_constant(argument) and function in ("relu", "square", "indicator"):
            y = argument.get(ONE, ZERO)
            known = {"relu": max(y, ZERO), "square": bounded(y) ** 2, "indicator": Fraction(y == level)}
            return constant(known[function])
        unit = (function, level, frozenset(argument.items()))
        if unit not in self._known:
            self._known[unit] = self._new(Unit(function, level, argument))
        return {self._known[unit]: Fraction(1)}

    def _new(self, unit: Unit) -> int:
        self.units[len(self.acted) + len(self.units)] = unit
        return len(self.acted) + len(self.units) - 1

    def _product(self, p: Form, q: Form) -> Form:
        for a, b in ((p, q), (q, p)):
            if is_constant(a):
                return plus({}, b, a.get(ONE, ZERO))
        difference = plus(self._folded("square", plus(p, q)), self._folded("square", plus(p, q, -1)), -1)
        return plus({}, difference, Fraction(1, 4))

    def _lower(self, expression: Any, values: Mapping[str, Form]) -> Form:
        """An equation where features have the given forms (section 5)."""
        if isinstance(expression, float):
            return constant(Fraction(expression))
        if isinstance(expression, str):
            return values[expression]
        if "network" in expression:
            forms = [self._lower(e, values) for e in expression["inputs"]]
            for k, layer in enumerate(expression["network"]["layers"]):
                forms = _layer(layer, [self._folded("relu", form) for form in forms] if k else forms)
            return forms[0]
        function, inner = next(iter(expression.items()))
        if function in ("relu", "sigmoid", "square"):
            return self._folded(function, self._lower(inner, values))
        total = constant(Fraction(function == "product"))
        for part in inner:
            term = self._lower(part, values)
            if function == "sum":
                add(total, term, 1)
            else:
                total = self._product(total, term)
        return total


def _layer(layer: Mapping[str, Any], inputs: Sequence[Form]) -> list[Form]:
    """weight x + bias."""
    outputs = []
    for row, bias in zip(layer["weight"], layer["bias"], strict=True):
        form = constant(Fraction(bias))
        for w, x in zip(row, inputs, strict=True):
            add(form, x, Fraction(w))
        outputs.append(form)
    return outputs
