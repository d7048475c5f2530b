r"""Structural units (SCM mechanisms) between linear functions of the actions.

Each unit is taken in computing order: its argument is linear in the actions and earlier units, so
their lines give an interval for it, and the function's own lines on that interval give the unit's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.bounds.curves import CURVES, band, value_range
from milp_recourse.bounds.tape import within_domain
from milp_recourse.engine.stack import Stack

Array = Any

_SLACK = 2.0**-46  # outward, relative to the absolute values of the sums behind a unit


@dataclass
class Signs:
    """ReLUs whose sign a node assumes, as signed numbers from 1 (0: none), (P, B).

    Numbers count the units first, then the hidden layers' neurons.
    """

    numbers: Array

    def clamp_one(self, number: int, low: Array, high: Array) -> tuple[Array, Array]:
        """The interval of one ReLU (numbered from 0), (B,)."""
        on = np.any(self.numbers == number + 1, axis=0)
        off = np.any(self.numbers == -number - 1, axis=0)
        return np.where(on, np.clip(low, 0.0, None), low), np.where(off, np.clip(high, None, 0.0), high)

    def clamp(self, first: int, low: Array, high: Array) -> tuple[Array, Array]:
        """Intervals of a layer whose neurons are numbered from ``first``, (h, B)."""
        numbers = np.arange(first + 1, first + 1 + low.shape[0], dtype=self.numbers.dtype)[:, None]
        for p in range(self.numbers.shape[0]):
            here = self.numbers[p]
            low = np.where(here[None] == numbers, np.clip(low, 0.0, None), low)
            high = np.where(here[None] == -numbers, np.clip(high, None, 0.0), high)
        return low, high


@dataclass
class UnitForms:
    """u units on B boxes.

    Attributes
    ----------
    lower, upper
        Linear functions of the actions below and above each unit, (d + 1, u, B).
    low, high
        The arguments' intervals, (u, B).
    size
        Largest absolute values of the units and of what was summed for them, (u, B).
    exact
        Whether every unit is a ReLU of one sign, so that lower and upper are the same function.
    arguments
        Linear functions below and above the arguments, (2, d + 1, u, B).
    open
        Which units are ReLUs of both signs, (u, B).
    operations
        How many roundings a unit's value can have behind it.
    """

    lower: Array
    upper: Array
    low: Array
    high: Array
    size: Array
    arguments: Array
    exact: bool
    open: Array
    operations: float

    def take(self, index: Array) -> UnitForms:
        """The nodes at ``index``."""

        def last(array: Array) -> Array:
            return np.take(array, index, axis=array.ndim - 1)

        lower = last(self.lower)
        return UnitForms(
            lower,
            lower if self.upper is self.lower else last(self.upper),
            last(self.low),
            last(self.high),
            last(self.size),
            last(self.arguments),
            self.exact,
            last(self.open),
            self.operations,
        )

    @property
    def count(self) -> int:
        """Number of units."""
        return int(self.low.shape[0])


def unit_forms(stack: Stack, low: Array, high: Array, who: Array, signs: Signs | None = None) -> UnitForms:
    """Linear bounds of every unit on boxes (d, B); ``signs`` says which ReLUs were split on."""
    d, batch = low.shape
    count = len(stack.units)
    middle, radius = (low + high) / 2, (high - low) / 2
    reach = np.maximum(np.abs(low), np.abs(high))
    lower: list[Array] = []
    upper: list[Array] = []
    lows: list[Array] = []
    highs: list[Array] = []
    sizes: list[Array] = []
    opens: list[Array] = []
    arguments: list[Array] = []
    exact = True
    for k, (function, level) in enumerate(stack.units):
        row = stack.unit_rows[k]
        offset = stack.unit_offset[k][who]
        up, down = _argument(row, offset, lower, upper, d, k, batch, low.dtype)
        size = np.abs(offset) + sum((abs(float(row[i])) * reach[i] for i in range(d)), 0.0)
        for j in range(k):
            size = size + abs(float(row[d + j])) * sizes[j]
        slack = _SLACK * (k + 1) * size
        l, h = (
            _end(down, middle, radius, -1.0) - slack,
            _end(up, middle, radius, 1.0) + slack,
        )
        if signs is not None and function == "relu":
            l, h = signs.clamp_one(k, l, h)
        below, above, l, h, spans, steep = _lines(function, level, l, h)
        exact = exact and function == "relu" and not bool(np.any(spans))
        lower.append(_scaled(below, down, up))
        upper.append(_scaled(above, up, down))
        arguments.append(
            np.stack(
                [
                    np.concat([down[:-1], (down[-1] - slack)[None]], axis=0),
                    np.concat([up[:-1], (up[-1] + slack)[None]], axis=0),
                ]
            )
        )
        lows.append(l)
        highs.append(h)
        opens.append(spans)
        sizes.append(steep * size + np.maximum(np.abs(below[1]), np.abs(above[1])))
    if not count:
        none = np.zeros((0, batch), dtype=low.dtype)
        empty = np.zeros((d + 1, 0, batch), dtype=low.dtype)
        return UnitForms(empty, empty, none, none, none, np.stack([empty, empty]), True, none > 0, 0.0)
    values = np.stack(sizes)
    tops, floors = np.stack(upper, axis=1), np.stack(lower, axis=1)
    if exact:
        floors = tops
    else:  # outward by the lines' own rounding, so that whoever uses them need not think of it
        hair = _SLACK * count * values
        tops = np.concat([tops[:-1], (tops[-1] + hair)[None]], axis=0)
        floors = np.concat([floors[:-1], (floors[-1] - hair)[None]], axis=0)
    return UnitForms(
        floors,
        tops,
        np.stack(lows),
        np.stack(highs),
        values,
        np.stack(arguments, axis=2),
        exact,
        np.stack(opens),
        16.0 * count,
    )


def _argument(
    row: Array,
    offset: Array,
    lower: list[Array],
    upper: list[Array],
    d: int,
    k: int,
    batch: int,
    dtype: Any,
) -> tuple[Array, Array]:
    """The argument of unit k as forms in the actions, from above and from below, (d + 1, B)."""
    start = [np.zeros(batch, dtype=dtype) + row[i] for i in range(d)]
    up = np.stack([*start, offset])
    down = up
    for j in range(k):
        c = float(row[d + j])
        if c:
            up = up + c * (upper[j] if c > 0 else lower[j])
            down = down + c * (lower[j] if c > 0 else upper[j])
    return up, down


def _end(form: Array, middle: Array, radius: Array, sign: float) -> Array:
    value = form[-1]
    for i in range(middle.shape[0]):
        value = value + form[i] * middle[i] + sign * np.abs(form[i]) * radius[i]
    return value


def _scaled(line: tuple[Array, Array], same: Array, other: Array) -> Array:
    """slope * argument + intercept, with the argument's form on the side that keeps the bound."""
    slope, intercept = line
    form = np.where(slope[None] >= 0, slope[None] * same, slope[None] * other)
    return np.concat([form[:-1], (form[-1] + intercept)[None]], axis=0)


def _lines(
    function: str, level: int, l: Array, h: Array
) -> tuple[tuple[Array, Array], tuple[Array, Array], Array, Array, Array, Array]:
    """Lines below and above a function on [l, h], its interval, where a ReLU is open, its steepest slope."""
    if function == "relu":
        h = np.maximum(h, l)
        spans = (l < 0) & (h > 0)
        width = np.where(spans, h - l, 1.0)
        on = np.where(l >= 0, 1.0, 0.0)
        chord = np.where(spans, h / width, on)
        intercept = np.where(spans, np.maximum(-chord * l, (1.0 - chord) * h) * (1 + 2.0**-48), 0.0)
        alpha = np.where(spans, np.where(h > -l, 1.0, 0.0), on)
        return (alpha, np.zeros_like(l)), (chord, intercept), l, h, spans, np.ones_like(l)
    # Curves are few and their formulas are numpy's, whatever library the kernel runs on.
    lo, hi = (v for v in (l, h))
    if function == "indicator":  # of a whole number: what rounding widened is undone
        lo, hi = np.ceil(lo - 1e-6), np.floor(hi + 1e-6)
        possible = (lo <= level) & (hi >= level)
        certain = possible & (lo == hi)
        zero = np.zeros_like(lo)
        parts = [zero, certain.astype(np.float64), zero, possible.astype(np.float64), lo, hi, zero]
    else:
        lo, hi = within_domain(function, lo, np.maximum(lo, hi))
        m, below, above = band(function, lo, hi)
        flat_low, flat_high = value_range(function, lo, hi)
        flat = flat_high - flat_low < above - below  # a step at the end of a domain
        m = np.where(flat, 0.0, m)
        below, above = np.where(flat, flat_low, below), np.where(flat, flat_high, above)
        slope = CURVES[function].derivative
        steep = 0.25 + np.maximum(np.abs(slope(lo)), np.abs(slope(hi)))
        parts = [m, below, m, above, lo, hi, steep]
    a, b, c, e, lo, hi, steep = (np.asarray(v, dtype=l.dtype) for v in parts)
    return (a, b), (c, e), lo, hi, np.zeros_like(lo) > 0, steep
