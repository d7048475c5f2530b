"""ReLU networks in whole numbers over a common denominator, and their bounds on a box (section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from operator import mul
from typing import Any

from verify.bounds import Box, Interval, Row, whole_numbers
from verify.reading import Clock, Rejected

GRID = 2**32
"""Slopes of chords are multiples of 1 / GRID."""

MOST_LAYERS = 100
LAYERS = [{"weight": [[float]], "bias": [float]}]
"""The shape of a network's layers in a file."""

Signs = Mapping[tuple[int, int], int]
"""(layer, neuron) -> -1 or 1 for the neurons split on, in the order of the splits."""


class Layer:
    """weight x + bias, every number times ``unit``."""

    def __init__(self, weight: Sequence[Sequence[Fraction]], bias: Sequence[Fraction]) -> None:
        rows, self.unit = whole_numbers([*weight, bias])
        self.rows, self.bias = rows[:-1], rows[-1]
        self.columns = list(zip(*self.rows, strict=True))

    def extremes(self, low: Sequence[Fraction], high: Sequence[Fraction]) -> list[Fraction]:
        """The least outputs on inputs from ``low`` to ``high``; the largest, with the two exchanged."""
        return [
            (sum((c * (l if c > 0 else h) for c, l, h in zip(row, low, high, strict=True)), Fraction(b)))
            / self.unit
            for row, b in zip(self.rows, self.bias, strict=True)
        ]


class Network:
    """A network with one output, less what the output must reach."""

    def __init__(self, layers: Any, inputs: int, needed: Fraction) -> None:
        self.layers: list[Layer] = []
        for k, data in enumerate(layers, start=1):
            bias = [Fraction(b) - (needed if k == len(layers) else 0) for b in data["bias"]]
            weight = [[Fraction(w) for w in row] for row in data["weight"]]
            if len(weight) != len(bias) or not bias or any(len(row) != inputs for row in weight):
                raise Rejected(f"layers: number {k} does not fit the one before, or its own bias")
            self.layers.append(Layer(weight, bias))
            inputs = len(bias)
        if len(layers) > MOST_LAYERS:
            raise Rejected(f"layers: more than {MOST_LAYERS} (section 8)")
        if not layers or inputs != 1:
            raise Rejected("layers: allowed: one or more, the last with one output")
        self.widths = [len(layer.bias) for layer in self.layers[:-1]]

    def least(self, inputs: Sequence[Interval]) -> Fraction:
        """The output, from below where inputs are not known exactly; accepted where it is at least 0."""
        low, high = ([pair[k] for pair in inputs] for k in (0, 1))
        for k, layer in enumerate(self.layers):
            Clock.look()
            if k:
                low, high = ([max(v, Fraction(0)) for v in values] for values in (low, high))
            low, high = layer.extremes(low, high), layer.extremes(high, low)
        return low[0]


def computed(layers: Any, inputs: list[float], rounded: Callable[[float], float]) -> float:
    """The output in floats: every product and sum rounded, left to right, the bias last (section 3)."""
    values = [rounded(x) for x in inputs]
    for k, layer in enumerate(layers):
        if k:
            values = [0.0 if v <= 0 else v for v in values]  # what is not a number stays so
        sums = []
        for row, bias in zip(layer["weight"], layer["bias"], strict=True):
            total = 0.0
            for w, v in zip(row, values, strict=True):
                total = rounded(total + rounded(w * v))
            sums.append(rounded(total + bias))
        values = sums
    return values[0]


class Composed:
    """A network whose inputs are rows over 1, actions and units: its first layer in the same terms."""

    def __init__(self, network: Network, inputs: Sequence[Row]) -> None:
        first = network.layers[0]
        rows, unit = whole_numbers(inputs)
        columns = list(zip(*rows, strict=True))
        self.rows = [[sum(map(mul, row, column)) for column in columns] for row in first.rows]
        for row, b in zip(self.rows, first.bias, strict=True):
            row[0] += b * unit
        self.unit = first.unit * unit
        self.layers, self.widths = network.layers, network.widths


class Neurons:
    """Lines of every hidden neuron on a box, from the intervals of their arguments (section 6).

    Everything is a whole number: the arguments' intervals in layer k are ``scales[k]`` times what
    they stand for, slopes ``one`` times, intercepts ``GRID`` times ``scales[k]``; as in
    :class:`Box`, the quantities themselves are counted in units of the box's grid.
    """

    def __init__(self, network: Composed, box: Box, slopes: str, signs: Signs) -> None:
        self.network, self.box = network, box
        self.one = GRID * box.factor
        self.columns = list(zip(*network.rows, strict=True))
        self.columns[0] = tuple(c * box.grid for c in self.columns[0])
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
            lines = [self._line(k, j, lower, signs.get((k, j), 0)) for j in range(width)]
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

    def _line(self, k: int, j: int, lower: list[list[int]], sign: int) -> tuple[int, int, bool]:
        """Upper slope and intercept of neuron j in layer k, and whether its sign is open."""
        low, high = -self._most(k, j, -1, lower), self._most(k, j, 1, lower)
        low, high = (max(low, 0) if sign > 0 else low), (min(high, 0) if sign < 0 else high)
        if low > high:
            self.empty = True
        if low >= 0:
            return self.one, 0, False
        if high <= 0:
            return 0, 0, False
        slope = high * GRID // (high - low)
        return slope * self.box.factor, max(-slope * low, (GRID - slope) * high), True

    def _most(self, k: int, j: int, side: int, lower: list[list[int]]) -> int:
        """The maximum of an argument (side 1) or of its negative (-1), from above."""
        Clock.look()
        if not k:
            return self.box.most([side * column[j] for column in self.columns])
        weights = self.network.layers[k].rows[j]
        row = self.substitute(k - 1, [side * w for w in weights], lower)
        row[0] += side * self.biases[k][j]
        return self.box.most(row)

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
        self, slopes: str, logit: Fraction, signs: Sequence[tuple[tuple[int, int], Fraction]]
    ) -> list[Fraction]:
        """logit times the logit row plus multiples of arguments, from above, as a row (section 6.2)."""
        unit = lcm(logit.denominator, *(n.denominator for _, n in signs))
        times = int(logit * unit)
        if not self.network.widths:
            return [Fraction(times * c[0], unit * self.network.unit) for c in self.columns]
        last = self.network.layers[-1]
        top = len(self.network.widths) - 1
        scale = unit * last.unit * GRID * self.scales[top]
        rows = [[0] * width for width in self.network.widths]
        for (k, j), n in signs:
            rows[k][j] += int(n * (scale * self.box.factor // self.scales[k]))
        row = self.substitute(top, [times * w for w in last.rows[0]], self.lower(slopes), rows)
        row[0] += times * last.bias[0] * GRID * self.scales[top] * self.box.grid
        return [Fraction(c, scale) for c in row]
