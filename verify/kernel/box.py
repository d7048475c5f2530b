"""Affine bounds on a box of actions, in plain fractions (section 7)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

from verify.kernel.checks import Empty, Rejected
from verify.kernel.curves import ZERO, Line, lines
from verify.kernel.forms import ONE, Configuration, Form, add, constant, plus
from verify.kernel.problem import Interval, Term

Signs = Mapping[int, int]
"""-1 or 1 for the neurons split on, counted layer by layer from 0, in the order of the splits."""

Part = dict[int | None, Fraction]
"""What a form says of one action: its coefficient (None), and what is added at numbers of labels."""


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

    Parameters
    ----------
    slopes, budget
        For the neurons' intervals.
    """

    def __init__(
        self, moved: Configuration, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE
    ) -> None:
        self.configuration, self.ends, self.slopes = moved, ends, slopes
        self.units, self.signs, self.budget = moved.units, signs, budget
        self.arguments, self.lines = list[Interval](), list[tuple[Line | None, Line | None]]()
        # a logarithm that is nowhere defined raises Empty, whatever the box is asked for
        self._make(max((key for key, unit in self.units.items() if unit.function == "log"), default=-1))

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has nowhere to lie."""
        assert self.configuration.logit is not None  # it makes the neurons
        self._make(self.configuration.neurons.stop - 1)
        return any(low > high for low, high in self.arguments)

    def interval(self, form: Form) -> Interval:
        """The form's interval: from below and from above (section 7)."""
        return self.least(form), self.most(form)

    def least(self, form: Form) -> Fraction:
        """The minimum of the form from below."""
        return -self.most(plus({}, form, -1))

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
            add(total, self.configuration.logit, logit)
        for neuron, factor in arguments:
            add(total, self.units[self.configuration.neurons[neuron]].argument, factor)
        return self._replaced(total, slopes)

    def most(self, form: Form, theta: Fraction = ZERO) -> Fraction:
        """The maximum of the form from above, where no more than the budget is spent unless theta is 0."""
        affine = self._replaced(form, self.slopes)
        moved, most = parts(self.configuration, affine), affine.get(ONE, ZERO) + theta * self.budget.most
        for k in range(len(self.ends)) if theta else moved:
            most += highest(self.configuration.terms[k], self.ends[k], moved.get(k, {}), theta)
        return most

    def _replaced(self, form: Form, slopes: str) -> Form:
        """The form with its units replaced from above, the last first."""
        total, neurons, first = dict(form), self.configuration.neurons, len(self.ends)
        self._make(max(form, default=-1))
        for key in range(max(form, default=-1), first - 1, -1):
            c = ZERO if key in self.configuration.labels else total.pop(key, ZERO)
            if not c:
                continue
            line = self.lines[key - first][c > 0]
            if line is None:
                raise Rejected("no line beyond the end of a logarithm's domain (section 7)")
            (slope, intercept), (low, high) = line, self.arguments[key - first]
            if c < 0 and low < 0 < high and slopes and key in neurons:
                slope = Fraction(int(slopes[neurons.index(key)]))
            if slope:
                add(total, self.units[key].argument, c * slope)
            add(total, constant(intercept), c)
        return total

    def _make(self, last: int) -> None:
        """Lines for all units up to a key; a neuron's interval is cut at 0 where its sign was split on."""
        for key in range(len(self.ends) + len(self.lines), last + 1):
            (function, argument), up, down, sign = self.units[key], ZERO, ZERO, 0
            if key in self.configuration.labels:
                argument, function = {}, "relu"  # it stays as it is
            if key in self.configuration.neurons:
                number = self.configuration.neurons.index(key)
                sign = self.signs.get(number, 0)
                up, down = self.budget.thetas[number] if self.budget.thetas else (ZERO, ZERO)
            low, high = -self.most(plus({}, argument, -1), down), self.most(argument, up)
            low, high = max(low, ZERO) if sign > 0 else low, min(high, ZERO) if sign < 0 else high
            self.arguments.append((low, high))
            self.lines.append(lines(function, low, high))


def parts(configuration: Configuration, affine: Form) -> dict[int, Part]:
    """A form in the actions and their labels, action by action."""
    found: dict[int, Part] = {}
    for action, k in configuration.labels.values():
        found.setdefault(action, {})[k] = ZERO
    for key in affine.keys() - {ONE}:
        action, label = configuration.labels.get(key, (key, None))
        found.setdefault(action, {})[label] = affine[key]
    return found


def highest(term: Term, ends: Interval, part: Part, theta: Fraction, share: Fraction = ZERO) -> Fraction:
    """The maximum over an interval of a part less theta times the cost, its share of the maximum counted.

    Labels' numbers are tried one by one. Else it lies at an end of a piece, or where the derivative is 0.
    """
    slope, labelled, found = part.get(None, ZERO), bool(part.keys() - {None}), list[Fraction]()
    kappa, beta = theta * term.kappa, theta * (term.beta + share * term.omega)
    for piece in term.within(*ends):
        first, last = Fraction(piece.low), Fraction(piece.high)
        points = [Fraction(k) for k in range(floor(first), floor(last) + 1)] if labelled else [first, last]
        if kappa * piece.rate and not labelled:
            bend = ((slope / piece.rate - beta) / (2 * kappa) - piece.start) / piece.rate
            points.append(min(max(bend, first), last))
        for a in points:
            size, label = piece.size(a), part.get(floor(a), ZERO) if labelled else ZERO
            found.append(slope * a + label - (kappa * size + beta) * size)
    return max(found)
