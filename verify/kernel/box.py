"""Affine bounds on a box of actions, in plain fractions (section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from verify.kernel.curves import ZERO, Interval, Line, lines
from verify.kernel.forms import ONE, Counterfactual, Form, add, constant
from verify.kernel.shapes import Clock, Empty, Rejected

Neuron = tuple[int, int]
"""Hidden layer, and number in it."""

Signs = Mapping[Neuron, int]
"""-1 or 1 for the neurons split on, in the order of the splits."""


class Box:
    """A box of actions with the lines of every unit that was needed so far, made in the order of keys.

    ``verify/fast`` has one that says the same: the rules ask for :attr:`empty`, :meth:`interval`,
    :meth:`least` and :meth:`above`.
    """

    def __init__(
        self,
        moved: Counterfactual,
        ends: Sequence[Interval] = (),
        slopes: str = "",
        signs: Signs | None = None,
    ) -> None:
        self.moved, self.ends, self.slopes, self.signs = moved, ends, slopes, signs or {}
        self.first = len(moved.acted)  # the first unit's key
        self.arguments: list[Interval] = []
        self.lines: list[tuple[Line | None, Line | None]] = []

    def look_at_logarithms(self) -> None:
        """Raise :class:`Empty` where one is nowhere defined: whatever the leaf says, nothing is plausible."""
        logs = (key for key, unit in self.moved.units.items() if unit.function in ("log", "logit"))
        self._make(max(logs, default=-1))

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has nowhere to lie."""
        assert self.moved.logit is not None  # it makes the neurons
        self._make(max(self.moved.neurons, default=-1))
        return any(low > high for low, high in self.arguments)

    def interval(self, form: Form) -> Interval:
        """The form's interval: from below and from above (section 7)."""
        return self.least(form), self._most(form)

    def least(self, form: Form) -> Fraction:
        """The minimum of the form from below."""
        return -self._most({key: -c for key, c in form.items()})

    def above(
        self, form: Form, slopes: str, logit: Fraction, arguments: Sequence[tuple[Neuron, Fraction]]
    ) -> Form:
        """A form in the actions alone, nowhere below form + logit times the logit + sum m argument.

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
            key = next(key for key, place in self.moved.neurons.items() if place == neuron)
            add(total, self.moved.units[key].argument, factor)
        return self._replaced(total, slopes)

    def _replaced(self, form: Form, slopes: str) -> Form:
        """The form with its units replaced from above, the last first."""
        total, first = dict(form), next(iter(self.moved.neurons), 0)  # their keys follow one another
        self._make(max(form, default=-1))
        for key in range(max(form, default=-1), self.first - 1, -1):
            c = total.pop(key, ZERO)
            if not c:
                continue
            line = self.lines[key - self.first][c > 0]
            if line is None:
                raise Rejected("no line beyond the end of a logarithm's domain (section 7)")
            (slope, intercept), (low, high) = line, self.arguments[key - self.first]
            if c < 0 and low < 0 < high and slopes and key in self.moved.neurons:
                slope = Fraction(int(slopes[key - first]))
            add(total, self.moved.units[key].argument, c * slope)
            add(total, constant(intercept), c)
        return total

    def _most(self, form: Form) -> Fraction:
        """The maximum of the form from above."""
        affine = self._replaced(form, self.slopes)
        most = affine.pop(ONE, ZERO)
        return most + sum(c * self.ends[key][c > 0] for key, c in affine.items())

    def _make(self, last: int) -> None:
        """Lines for all units up to a key; a neuron's interval is cut at 0 where its sign was split on."""
        for key in range(self.first + len(self.lines), last + 1):
            Clock.look()
            function, level, argument = self.moved.units[key]
            low, high = self.interval(argument)
            sign = self.signs.get(self.moved.neurons[key], 0) if key in self.moved.neurons else 0
            low, high = max(low, ZERO) if sign > 0 else low, min(high, ZERO) if sign < 0 else high
            self.arguments.append((low, high))
            self.lines.append(lines(function, level, low, high))
