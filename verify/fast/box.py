"""Affine bounds on a box as the kernel defines them, in whole numbers over common denominators.

The same numbers as :class:`verify.kernel.box.Box`, which is what to read; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from math import floor, lcm
from operator import mul
from typing import Any

from verify.fast.cells import TooLarge
from verify.fast.neurons import Composed, Neurons
from verify.fast.prices import Prices
from verify.fast.rows import Row, whole_numbers
from verify.fast.spending import Spending
from verify.kernel import box, problem
from verify.kernel.box import FREE, Budget, Signs
from verify.kernel.checks import Clock, Empty, Rejected
from verify.kernel.curves import ZERO, lines
from verify.kernel.feasible import row_form
from verify.kernel.forms import ONE, Configuration, Form
from verify.kernel.prices import Exact
from verify.kernel.prices import Prices as KernelPrices
from verify.kernel.problem import Demand, Interval

MOST_COLUMNS = 600
"""Rows are dense: a configuration with more actions and units is left to the kernel, whose forms are not."""

Line = list[tuple[int, int]]
"""A unit's line: the coefficients that are not 0, with their places."""


def arithmetic(configuration: Configuration) -> Exact:
    """The fast path, or the kernel's own where that takes less room."""
    size = len(configuration.acted) + len(configuration.units)
    size += sum(len(f.table) for f in configuration.model.features if f.table)
    return Scaled(configuration) if size <= MOST_COLUMNS else Exact(configuration)


def prices(configuration: Configuration, tables: Any) -> KernelPrices:
    """The configuration's tables of prices; the kernel's own where leaves would take too much room."""
    try:
        return Prices(configuration, tables)
    except TooLarge:
        return KernelPrices(configuration, tables)


class Scaled(Exact):
    """One configuration's forms as rows: coefficients of 1, actions, labels and the units that are needed."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.box, self.prices = partial(Box, self), partial(prices, configuration)
        layers, units, labels = configuration.model.layers, configuration.units, configuration.labels
        columns = configuration.columns() if layers else list(configuration.values.values())
        energy = configuration.energy
        forms = [
            *columns,
            energy.rest,
            *(r for _, r in energy.squares),
            *(configuration.values[f.name] for f in configuration.model.features if f.domain),
            *(row_form(row, configuration.values) for row in leaves(configuration.demand)),
        ]
        logs = {key for key, unit in units.items() if unit.function == "log"}
        needed = logs.union(*forms)
        for key in sorted(units, reverse=True):
            if key in needed:
                needed |= units[key].argument.keys()
        self.place = {ONE: 0} | {k: k + 1 for k in range(len(configuration.acted))}
        self.labels: dict[int, dict[int, int]] = {}  # an action's place -> number -> place
        for key in sorted(labels.keys() & needed):
            action, number = labels[key]
            self.labels.setdefault(action + 1, {})[number] = self.place[key] = len(self.place)
        self.keys = list(self.place)
        self.units: list[tuple[str, Row]] = []
        for key in sorted((units.keys() & needed) - labels.keys()):
            function, argument = units[key]
            row = list(self.row(argument))
            while len(row) > len(self.keys) and not row[-1]:
                row.pop()
            self.units.append((function, row))
            self.place[key] = len(self.place)
        inputs = [self.row(column) for column in columns]
        self.network = Composed(configuration.model, inputs) if layers else None

    def row(self, form: Form) -> Row:
        """A form as coefficients of 1, the actions and the units so far."""
        row = [Fraction(0)] * len(self.place)
        for key, c in form.items():
            row[self.place[key]] = c
        return row


def leaves(demand: Demand) -> Iterator[problem.Row]:
    """The rows in a demand."""
    if isinstance(demand, problem.Row):
        yield demand
    else:
        yield from chain.from_iterable(map(leaves, demand.parts))


def sparse(row: Sequence[int]) -> Line:
    """Where a row is not 0, and what it is there: most lines are of a single action, or constants."""
    return [(place, c) for place, c in enumerate(row) if c]


class Box(box.Box):
    """A box of actions, and the lines of every unit on it; those of neurons when they are first needed.

    Actions are counted in units of 1 / grid, so that the box has whole ends, and every other
    quantity with them: a row of a form f stands for ``grid`` f. Replacing the units multiplies a row by
    ``factor``.
    """

    def __init__(
        self, forms: Scaled, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE
    ) -> None:
        self.forms, self.ends, self.slopes, self.signs, self.budget = forms, ends, slopes, signs, budget
        self.grid = lcm(*(end.denominator for pair in ends for end in pair))
        labels = [0] * (len(forms.keys) - len(ends) - 1)
        self.low, self.high = ([1, *(int(p[k] * self.grid) for p in ends), *labels] for k in (0, 1))
        self.numbers: list[tuple[int, range, dict[int, int]]] = []
        for action, places in forms.labels.items():  # their maximum is taken number by number
            first, last = map(floor, ends[action - 1])
            self.numbers.append((action, range(first, last + 1), places))
            self.low[action] = self.high[action] = 0
        self.still: dict[int, int] = {}  # what does not move counts as a constant
        for place, (low, high) in enumerate(ends, start=1):
            if low == high:
                self.still[place] = int(low * self.grid)
                at = forms.labels.get(place, {})
                self.still |= {column: self.grid * (number == low) for number, column in at.items()}
        self.lower: list[Line | None] = []
        self.upper: list[Line] = []
        self.factors: list[int] = []
        self.factor = 1
        for function, argument in forms.units:
            Clock.look()
            below, above = lines(function, *self._interval(argument))
            rows = []
            for slope, intercept in filter(None, (below, above)):
                rows.append([slope * c for c in self.row(argument)])
                rows[-1][0] += intercept * self.grid
            whole, factor = whole_numbers(rows)
            self.upper.append(sparse(whole.pop()))
            self.lower.append(sparse(whole.pop()) if below else None)
            self.factors.append(factor)
            self.factor *= factor

    @cached_property
    def neurons(self) -> Neurons:
        """The network's lines."""
        assert self.forms.network is not None
        return Neurons(self.forms.network, self, self.slopes, self.signs)

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has nowhere to lie."""
        return self.neurons.empty

    def above(
        self, form: Form, slopes: str, logit: Fraction, arguments: Sequence[tuple[int, Fraction]]
    ) -> Form:
        """The sum's units replaced from above, the last first."""
        row = self.row(self.forms.row(form))
        if logit or arguments:
            if self.empty:
                raise Empty
            more = self.neurons.from_above(slopes, logit, arguments)
            row = [a + b for a, b in zip(row, more, strict=True)]
        [whole], unit = whole_numbers([row])
        constant, *inclines = (Fraction(c, unit * self.factor) for c in self.replaced(whole))
        return {ONE: constant / self.grid} | dict(zip(self.forms.keys[1:], inclines, strict=True))

    def row(self, form: Row) -> list[Fraction]:
        """A form in the box's own units."""
        return [form[0] * self.grid, *form[1:]]

    def replaced(self, row: Sequence[Any]) -> list[Any]:
        """The row with each unit replaced from above, the last first; times the factors."""
        form = list(row)
        for k in range(len(form) - len(self.low) - 1, -1, -1):
            c, factor = form.pop(), self.factors[k]
            if factor != 1:
                form = [factor * a for a in form]
            if not c:
                continue
            line = self.upper[k] if c > 0 else self.lower[k]
            if line is None:
                raise Rejected("no line beyond the end of a logarithm's domain (section 7)")
            for place, b in line:
                form[place] += c * b
        return form

    def most_of(self, row: Sequence[Any]) -> Any:
        """The maximum of a row from above."""
        form = self.replaced(row) if len(row) > len(self.low) else row
        found = sum(map(max, map(mul, form, self.low), map(mul, form, self.high)))
        for action, numbers, places in self.numbers:
            c = form[action]
            found += self.grid * max(c * k + (form[places[k]] if k in places else 0) for k in numbers)
        return found

    def most_within(self, row: Sequence[int], unit: int, theta: Fraction) -> int:
        """The same where no more than the budget is spent, by one theta, rounded up.

        Parameters
        ----------
        unit
            What the row's numbers are times, besides the grid.
        """
        form = self.replaced(row) if len(row) > len(self.low) else row
        return form[0] + self.spending.most(form, theta.numerator * unit * self.grid, theta.denominator)

    @cached_property
    def spending(self) -> Spending:
        """What the actions cost on this box."""
        terms = self.forms.configuration.terms
        return Spending(self.budget.most, terms, self.ends, self.grid, self.forms.labels)

    def interval(self, form: Form) -> Interval:
        """The form's interval: from below and from above (section 7)."""
        return self._interval(self.forms.row(form))

    def most(self, form: Form, theta: Fraction = ZERO) -> Fraction:
        """The maximum of the form from above; without a budget."""
        assert not theta
        return self._maximum(self.forms.row(form))

    def least(self, form: Form) -> Fraction:
        """The minimum of the form from below."""
        return -self._maximum([-c for c in self.forms.row(form)])

    def _interval(self, form: Row) -> Interval:
        return -self._maximum([-c for c in form]), self._maximum(form)

    def _maximum(self, form: Row) -> Fraction:
        factor = self.grid
        for k in range(len(form) - len(self.low)):
            factor *= self.factors[k]
        [whole], unit = whole_numbers([self.row(form)])
        return Fraction(self.most_of(whole), factor * unit)
