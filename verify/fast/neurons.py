"""A network's neurons on a box in whole numbers over a common denominator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm
from operator import mul
from typing import TYPE_CHECKING, Any

from verify.fast.rows import Row, whole_numbers
from verify.kernel.box import Signs
from verify.kernel.checks import Clock
from verify.kernel.curves import GRID
from verify.kernel.forms import ZERO
from verify.kernel.problem import Model

if TYPE_CHECKING:
    from verify.fast.box import Box


class Layer:
    """weight x + bias less what the output must reach, every number times ``unit``."""

    def __init__(self, layer: Mapping[str, Any], needed: Fraction) -> None:
        weight = ([Fraction(w) for w in row] for row in layer["weight"])
        rows, self.unit = whole_numbers([*weight, [Fraction(b) - needed for b in layer["bias"]]])
        self.rows, self.bias = rows[:-1], rows[-1]
        self.columns = list(zip(*self.rows, strict=True))


@lru_cache(2)
def whole_layers(model: Model) -> list[Layer]:
    """A model's layers, once for all its applicants and configurations."""
    last, needed = len(model.layers or ()) - 1, Fraction(model.at_least) + Fraction(model.margin)
    return [Layer(layer, needed if k == last else Fraction(0)) for k, layer in enumerate(model.layers or ())]


class Composed:
    """A network whose inputs are rows over 1, actions and units: its first layer in the same terms.

    Numbers of layer k are counted in units of 1 / ``layers[k].unit``, those of the first of 1 / ``unit``.
    """

    def __init__(self, model: Model, inputs: Sequence[Row]) -> None:
        self.layers = whole_layers(model)
        first = self.layers[0]
        rows, unit = whole_numbers(inputs)
        columns = list(zip(*rows, strict=True))
        fine = 1 << max(0, 64 - (first.unit * unit).bit_length())  # thetas: quotients are rounded
        self.rows: list[list[int]] = []
        for row, b in zip(first.rows, first.bias, strict=True):
            Clock.look()
            self.rows.append([fine * sum(map(mul, row, column)) for column in columns])
            self.rows[-1][0] += fine * b * unit
        self.unit = first.unit * unit * fine
        self.widths = [len(layer.bias) for layer in self.layers[:-1]]
        self.places = [(k, j) for k, width in enumerate(self.widths) for j in range(width)]


class Neurons:
    """Lines of every hidden neuron on a box, from the intervals of their arguments (section 7).

    Everything is a whole number: the arguments' intervals in layer k are ``scales[k]`` times what
    they stand for, slopes ``one`` times, intercepts ``GRID`` times ``scales[k]``; as in
    :class:`Box`, the quantities themselves are counted in units of the box's grid.
    """

    def __init__(self, network: Composed, box: Box, slopes: str, signs: Signs) -> None:
        self.network, self.box = network, box
        self.one = GRID * box.factor
        columns = list(zip(*network.rows, strict=True))
        still = [(columns[place], value) for place, value in box.still.items() if value]
        columns[0] = tuple(
            c * box.grid + sum(column[j] * value for column, value in still) for j, c in enumerate(columns[0])
        )
        self.columns = [() if place in box.still else column for place, column in enumerate(columns)]
        self.scales = [network.unit * box.factor]
        self.biases: list[list[int]] = [[]]
        self.upper: list[list[int]] = []
        self.intercept: list[list[int]] = []
        self.split: list[list[bool]] = []
        self.empty = False
        for k, width in enumerate(network.widths):
            layer = network.layers[k]
            if k:
                grown = GRID * self.scales[-1]
                self.biases.append([b * grown * box.grid for b in layer.bias])
                self.scales.append(layer.unit * grown * box.factor)
            lower = self.lower(slopes)
            first = sum(network.widths[:k])
            pairs = box.budget.thetas[first : first + width] or [(ZERO, ZERO)] * width
            lines = [self._line(k, j, lower, signs.get(first + j, 0), pairs[j]) for j in range(width)]
            if self.empty:
                return
            self.upper.append([slope for slope, _, _ in lines])
            self.intercept.append([intercept for _, intercept, _ in lines])
            self.split.append([split for _, _, split in lines])

    def lower(self, slopes: str) -> list[list[int]]:
        """Slopes of the lower lines of the layers done so far."""
        start, tables = 0, []
        for upper, split in zip(self.upper, self.split, strict=True):
            chosen = slopes[start : start + len(upper)]
            tables.append([
                (self.one if c == "1" else 0) if open_ else u
                for u, open_, c in zip(upper, split, chosen, strict=True)
            ])  # fmt: skip
            start += len(upper)
        return tables

    def _line(
        self, k: int, j: int, lower: list[list[int]], sign: int, thetas: tuple[Fraction, Fraction]
    ) -> tuple[int, int, bool]:
        """Upper slope and intercept of neuron j in layer k, and whether its sign is open."""
        up, down = thetas
        low, high = -self._most(k, j, -1, lower, down), self._most(k, j, 1, lower, up)
        low, high = (max(low, 0) if sign > 0 else low), (min(high, 0) if sign < 0 else high)
        if low > high:
            self.empty = True
        if low >= 0:
            return self.one, 0, False
        if high <= 0:
            return 0, 0, False
        slope = high * GRID // (high - low)
        return slope * self.box.factor, max(-slope * low, (GRID - slope) * high), True

    def _most(self, k: int, j: int, side: int, lower: list[list[int]], theta: Fraction) -> int:
        """The maximum of an argument (side 1) or of its negative (-1), from above."""
        Clock.look()
        if not k:
            row = [side * column[j] if column else 0 for column in self.columns]
            return self.box.most_within(row, self.scales[0], theta) if theta else self.box.most_of(row)
        weights = self.network.layers[k].rows[j]
        row = self.substitute(k - 1, [side * w for w in weights], lower)
        row[0] += side * self.biases[k][j]
        return self.box.most_within(row, self.scales[k], theta) if theta else self.box.most_of(row)

    def substitute(
        self, k: int, outputs: Sequence[int], lower: list[list[int]], rows: Sequence[Sequence[int]] = ()
    ) -> list[int]:
        """A form over the outputs of hidden layer k, from above, as a row over 1, actions and units.

        Parameters
        ----------
        rows
            By layer, what to add to the coefficients of the neurons' arguments (sign rows).
        """
        constant = 0
        for layer in range(k, -1, -1):
            Clock.look()
            constant += sum(c * b for c, b in zip(outputs, self.intercept[layer], strict=True) if c > 0)
            arguments = [
                c * (u if c > 0 else l)
                for c, u, l in zip(outputs, self.upper[layer], lower[layer], strict=True)
            ]
            if rows:
                arguments = [a + r for a, r in zip(arguments, rows[layer], strict=True)]
            if layer:
                constant += sum(map(mul, arguments, self.biases[layer]))
                outputs = [sum(map(mul, arguments, column)) for column in self.network.layers[layer].columns]
        row = [sum(map(mul, arguments, column)) for column in self.columns]
        row[0] += constant
        return row

    def from_above(
        self, slopes: str, logit: Fraction, signs: Sequence[tuple[int, Fraction]]
    ) -> list[Fraction]:
        """logit times the logit row plus multiples of arguments, from above, as a row (section 7.2)."""
        unit = lcm(logit.denominator, *(n.denominator for _, n in signs))
        times = int(logit * unit)
        if not self.network.widths:
            return [Fraction(times * sum(c), unit * self.network.unit) for c in self.columns]
        last = self.network.layers[-1]
        top = len(self.network.widths) - 1
        scale = unit * last.unit * GRID * self.scales[top]
        rows = [[0] * width for width in self.network.widths]
        for number, n in signs:
            k, j = self.network.places[number]
            rows[k][j] += int(n * (scale * self.box.factor // self.scales[k]))
        row = self.substitute(top, [times * w for w in last.rows[0]], self.lower(slopes), rows)
        row[0] += times * last.bias[0] * GRID * self.scales[top] * self.box.grid
        return [Fraction(c, scale) for c in row]
