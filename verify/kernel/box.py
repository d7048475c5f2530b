"""Affine bounds on a box of actions, in plain fractions (section 7)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

from verify.kernel.checks import ZERO, Empty, Rejected
from verify.kernel.curves import Line, lines
from verify.kernel.forms import ONE, Configuration, Form, add, constant, plus
from verify.kernel.problem import Interval, Term

Signs = Mapping[int, int]
"""Number of a neuron -> the sign assumed for its argument (-1 or 1), in the order of the splits.

Neurons are numbered from 0, layer by layer.
"""

Part = dict[int | None, Fraction]
"""The part of a form that depends on one action: its coefficient (key None), and what each label adds."""


class Budget(NamedTuple):
    """The target less the fixed part of the cost, and two thetas for every neuron (section 7)."""

    most: Fraction = ZERO
    thetas: Sequence[tuple[Fraction, Fraction]] = ()


FREE = Budget()
"""No thetas: intervals hold for all actions of the box, whatever they cost."""


class Box:
    """A box of actions. The lines of its units are made when they are needed, in the order of their keys.

    :class:`verify.fast.box.Box` has the same methods and can take its place.

    Parameters
    ----------
    slopes
        For every neuron, "0" or "1": the slope of the line below it, where its sign is open.
    budget
        Narrows neurons' intervals to what actions that cost less than the target can reach.

    Raises
    ------
    Empty
        A logarithm's argument is nowhere positive on the box.
    """

    def __init__(
        self, moved: Configuration, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE
    ) -> None:
        self.configuration, self.ends, self.slopes = moved, ends, slopes
        self.units, self.signs, self.budget = moved.units, signs, budget
        self.arguments, self.lines = list[Interval](), list[tuple[Line | None, Line | None]]()
        # lines of logarithms are made at once: where one is nowhere defined, making the box raises Empty
        self._make(max((key for key, unit in self.units.items() if unit.function == "log"), default=-1))

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has an empty interval, so that the box holds nothing."""
        assert self.configuration.logit is not None  # it makes the neurons
        self._make(self.configuration.neurons.stop - 1)
        return any(low > high for low, high in self.arguments)

    def interval(self, form: Form) -> Interval:
        """Bounds of the form on the box, from below and from above (section 7)."""
        return self.least(form), self.most(form)

    def least(self, form: Form) -> Fraction:
        """A lower bound of the form on the box."""
        return -self.most(plus({}, form, -1))

    def above(
        self, form: Form, slopes: str, logit: Fraction, arguments: Sequence[tuple[int, Fraction]]
    ) -> Form:
        """Bound form + logit * (the logit row) + sum of m * argument from above.

        Returns a form in actions and labels alone, which is nowhere below that sum on the box.

        Parameters
        ----------
        slopes
            The slopes of the neurons' lower lines, a character 0 or 1 each.
        arguments
            (number of a neuron, m) for every neuron whose argument is added.

        Raises
        ------
        Empty
            A neuron's argument has an empty interval.
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
        """An upper bound of the form: on the box; with a theta above 0, where the cost is in the budget."""
        affine = self._replaced(form, self.slopes)
        moved, most = parts(self.configuration, affine), affine.get(ONE, ZERO) + theta * self.budget.most
        for k in range(len(self.ends)) if theta else moved:
            most += self.highest(k, moved.get(k, {}), theta)
        return most

    def highest(self, k: int, part: Part, theta: Fraction, share: Fraction = ZERO) -> Fraction:
        """The maximum of action k's part less theta times its cost (:func:`highest`)."""
        return highest(self.configuration.terms[k], self.ends[k], part, theta, share)

    def _replaced(self, form: Form, slopes: str) -> Form:
        """The form with each unit replaced by a line, the last unit first: nowhere below the form itself."""
        total, neurons, first = dict(form), self.configuration.neurons, len(self.ends)
        self._make(max(form, default=-1))
        for key in range(max(form, default=-1), first - 1, -1):
            c = ZERO if key in self.configuration.labels else total.pop(key, ZERO)
            if not c:
                continue
            line = self.lines[key - first][c > 0]
            if line is None:
                raise Rejected("no lower line of a logarithm whose argument reaches below 1e-9 (section 7)")
            (slope, intercept), (low, high) = line, self.arguments[key - first]
            if c < 0 and low < 0 < high and slopes and key in neurons:
                slope = Fraction(int(slopes[neurons.index(key)]))
            if slope:
                add(total, self.units[key].argument, c * slope)
            add(total, constant(intercept), c)
        return total

    def _make(self, last: int) -> None:
        """Make the lines of all units up to a key; a split on a neuron's sign cuts its interval at 0."""
        for key in range(len(self.ends) + len(self.lines), last + 1):
            (function, argument), up, down, sign = self.units[key], ZERO, ZERO, 0
            if key in self.configuration.labels:
                argument, function = {}, "relu"  # labels are never replaced, so this line is not used
            if key in self.configuration.neurons:
                number = self.configuration.neurons.index(key)
                sign = self.signs.get(number, 0)
                up, down = self.budget.thetas[number] if self.budget.thetas else (ZERO, ZERO)
            low, high = -self.most(plus({}, argument, -1), down), self.most(argument, up)
            low, high = max(low, ZERO) if sign > 0 else low, min(high, ZERO) if sign < 0 else high
            self.arguments.append((low, high))
            # where its sign is assumed negative a neuron is 0, also if its interval is 0 alone
            self.lines.append(((ZERO, ZERO),) * 2 if sign < 0 else lines(function, low, high))


def parts(configuration: Configuration, affine: Form) -> dict[int, Part]:
    """Split a form in actions and labels into its parts: by action, all but the constant."""
    found: dict[int, Part] = {}
    for action, k in configuration.labels.values():
        found.setdefault(action, {})[k] = ZERO
    for key in affine.keys() - {ONE}:
        action, label = configuration.labels.get(key, (key, None))
        found.setdefault(action, {})[label] = affine[key]
    return found


def highest(term: Term, ends: Interval, part: Part, theta: Fraction, share: Fraction = ZERO) -> Fraction:
    """The maximum over an interval of an action's part less theta times its cost.

    The cost includes ``share`` times the action's entry in the cost's maximum. Where labels have numbers in
    the part, each label is tried; else the maximum lies at an end of a piece, or where the derivative is 0.
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
