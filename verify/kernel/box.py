"""Affine bounds on a box of actions, in plain fractions (section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

from verify.kernel.checks import Clock, Empty, Rejected
from verify.kernel.curves import ZERO, Line, lines
from verify.kernel.forms import ONE, Counterfactual, Form, add, constant
from verify.kernel.problem import Interval, Term

Signs = Mapping[int, int]
"""-1 or 1 for the neurons split on, counted layer by layer from 0, in the order of the splits."""

Part = tuple[Fraction, dict[int, Fraction]]
"""What a form says of one action: its coefficient, and what is added at numbers of labels."""


class Budget(NamedTuple):
    """What actions may cost, the fixed part apart, and every neuron's two thetas (section 7)."""

    most: Fraction = ZERO
    thetas: Sequence[tuple[Fraction, Fraction]] = ()


FREE = Budget()
"""No budget."""


class Box:
    """A box of actions with the lines of every unit that was needed so far, made in the order of keys.

    ``verify/fast`` has one that says the same: the rules ask for :attr:`empty`, :meth:`interval`,
    :meth:`least` and :meth:`above`.
    """

    def __init__(
        self,
        moved: Counterfactual,
        ends: Sequence[Interval] = (),
        terms: Sequence[Term] = (),
        slopes: str = "",
        signs: Signs | None = None,
        budget: Budget = FREE,
    ) -> None:
        self.moved, self.ends, self.terms, self.slopes = moved, ends, terms, slopes
        self.signs, self.budget = signs or {}, budget
        self.first = len(moved.acted)  # the first unit's key
        self.arguments: list[Interval] = []
        self.lines: list[tuple[Line | None, Line | None]] = []
        if ends:  # a logarithm that is nowhere defined raises Empty, whatever the box is asked for
            logs = (key for key, unit in moved.units.items() if unit.function == "log")
            self._make(max(logs, default=-1))

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has nowhere to lie."""
        assert self.moved.logit is not None  # it makes the neurons
        self._make(self.moved.neurons.stop - 1)
        return any(low > high for low, high in self.arguments)

    def interval(self, form: Form) -> Interval:
        """The form's interval: from below and from above (section 7)."""
        return self.least(form), self._most(form)

    def least(self, form: Form) -> Fraction:
        """The minimum of the form from below."""
        return -self._most(negative(form))

    def above(
        self, form: Form, slopes: str, logit: Fraction, arguments: Sequence[tuple[int, Fraction]]
    ) -> Form:
        """A form in actions and labels alone, nowhere below form + logit times the logit + sum m argument.

        Parameters
        ----------
        slopes
            The neurons' lower lines, a character 0 or 1 each.
        arguments
            Neurons and what their arguments are multiplied with.
        """
        total = dict(form)
        if (logit or arguments) and self.empty:
            raise Empty
        if logit:
            add(total, self.moved.logit, logit)
        for neuron, factor in arguments:
            add(total, self.moved.units[self.moved.neurons[neuron]].argument, factor)
        return self._replaced(total, slopes)

    def _replaced(self, form: Form, slopes: str) -> Form:
        """The form with its units replaced from above, the last first."""
        total, neurons = dict(form), self.moved.neurons
        self._make(max(form, default=-1))
        for key in range(max(form, default=-1), self.first - 1, -1):
            c = ZERO if key in self.moved.labels else total.pop(key, ZERO)
            if not c:
                continue
            line = self.lines[key - self.first][c > 0]
            if line is None:
                raise Rejected("no line beyond the end of a logarithm's domain (section 7)")
            (slope, intercept), (low, high) = line, self.arguments[key - self.first]
            if c < 0 and low < 0 < high and slopes and key in neurons:
                slope = Fraction(int(slopes[neurons.index(key)]))
            add(total, self.moved.units[key].argument, c * slope)
            add(total, constant(intercept), c)
        return total

    def _most(self, form: Form, theta: Fraction = ZERO) -> Fraction:
        """The maximum of the form from above, where no more than the budget is spent unless theta is 0."""
        Clock.look()
        affine = self._replaced(form, self.slopes)
        most = affine.get(ONE, ZERO) + theta * self.budget.most
        for term, ends, part in zip(self.terms, self.ends, parts(self.moved, affine), strict=False):
            if theta or any(part):  # most forms are of few actions; a point has none
                most += highest(term, *ends, part, theta)
        return most

    def _make(self, last: int) -> None:
        """Lines for all units up to a key; a neuron's interval is cut at 0 where its sign was split on."""
        for key in range(self.first + len(self.lines), last + 1):
            (function, argument), up, down, sign = self.moved.units[key], ZERO, ZERO, 0
            if key in self.moved.labels:
                argument, function = {}, "relu"  # it stays as it is
            if key in self.moved.neurons:
                number = self.moved.neurons.index(key)
                sign = self.signs.get(number, 0)
                up, down = self.budget.thetas[number] if self.budget.thetas else (ZERO, ZERO)
            low, high = -self._most(negative(argument), down), self._most(argument, up)
            low, high = max(low, ZERO) if sign > 0 else low, min(high, ZERO) if sign < 0 else high
            self.arguments.append((low, high))
            self.lines.append(lines(function, low, high))


def negative(form: Form) -> Form:
    """The form times -1."""
    return {key: -c for key, c in form.items()}


def parts(moved: Counterfactual, affine: Form) -> list[Part]:
    """A form in the actions and their labels, action by action."""
    found: list[Part] = [(affine.get(k, ZERO), {}) for k in range(len(moved.acted))]
    for key in affine.keys() & moved.labels.keys():
        action, level = moved.labels[key]
        found[action][1][level] = affine[key]
    return found


def highest(
    term: Term, low: Fraction, high: Fraction, part: Part, theta: Fraction, share: Fraction = ZERO
) -> Fraction:
    """The maximum over [low, high] of a part less theta times the cost, its share of the maximum counted.

    Labels' numbers are tried one by one. Else it lies at an end of a piece, or where the derivative is 0.
    """
    (slope, at_labels), beta, found = part, theta * (term.beta + share * term.omega), list[Fraction]()
    for piece in term.within(low, high):
        first, last = Fraction(piece.low), Fraction(piece.high)
        points = [Fraction(k) for k in range(floor(first), floor(last) + 1)] if at_labels else [first, last]
        if (bend := 2 * theta * term.kappa * piece.rate) and not at_labels:
            size = (slope / piece.rate - beta) * piece.rate / bend
            points.append(min(max((size - piece.start) / piece.rate, first), last))
        for a in points:
            size = piece.size(a)
            cost = theta * term.kappa * size * size + beta * size
            found.append(slope * a + at_labels.get(floor(a), ZERO) - cost)
    return max(found)
