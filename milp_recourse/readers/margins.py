"""How far the logit that a model computes can be from that of the network that was read from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.errors import BadInput
from milp_recourse.problem.derived_networks import Bends
from milp_recourse.problem.expression import sigmoid
from milp_recourse.problem.network import products
from milp_recourse.readers.layers import UNIT, FloatArray, Map

_SPARE = 8  # roundings per map beyond one per term: in a reciprocal, a factor, a shift and the like
_OUTWARD = 1 + 2.0**-30  # more than the rounding of the bound itself, up to 2**20 roundings in a row
_TINY = {UNIT["float32"]: 2.0**-126, UNIT["float64"]: 2.0**-1022}


@dataclass(frozen=True, eq=False)
class Entry:
    """One number that enters the model's first affine map.

    Attributes
    ----------
    start
        The classifier's input column of the number, or the first input column of the labels.
    values
        For labels, the number that each label enters as; None for a number.
    apart
        Bound on the distance between the raw number used for a missing value and the one whose scaled value
        the model's imputer puts in, in raw units.
    """

    start: int
    values: tuple[float, ...] | None = None
    apart: float = 0.0


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """What is needed to bound a model's rounding errors: its inputs, affine maps, and closing function.

    Attributes
    ----------
    entries
        The numbers that enter, in the order of the first map's outputs.
    segments
        As in :class:`milp_recourse.readers.layers.Layers`; the first map makes the entries from the
        classifier's inputs.
    bends
        Of each segment but the last, likewise.
    slack
        How far above 0 a logit may be while the closing sigmoid or softmax ties the classes.
    softmax_unit
        Unit roundoff of a softmax, which subtracts the largest logit first; 0 without one.
    input_unit
        Unit roundoff of the precision to which raw numbers are rounded first; 0 if they are not rounded.
    """

    entries: tuple[Entry, ...]
    segments: tuple[tuple[Map, ...], ...]
    bends: tuple[Bends, ...] = ()
    slack: float = 0.0
    softmax_unit: float = 0.0
    input_unit: float = 0.0


def margins_of(arithmetic: Arithmetic, lower: ArrayLike, upper: ArrayLike) -> FloatArray:
    r"""For each of several boxes of inputs, (n, columns), a bound on how far the logit that the model
    computes is from the network's, (n,); infinite where there is no bound.

    For the formulas see :func:`milp_recourse.readers.rounding_margin`. ``computed`` bounds the difference
    between the model's computation and its exact maps, ``folded`` that between the exact maps and the
    network. No box's bound depends on the others, to the last bit.
    """
    low, high = _start(arithmetic.entries, lower, upper)
    apart = np.array([entry.apart for entry in arithmetic.entries])
    numbers = np.array([entry.values is None for entry in arithmetic.entries])
    computed = np.where(numbers, arithmetic.input_unit, 0.0) * _size(low, high)
    folded = np.zeros(low.shape)
    settled, extra = np.zeros(len(low)), np.zeros(len(low))
    last = len(arithmetic.segments) - 1
    with np.errstate(over="ignore", invalid="ignore"):
        computed = computed + apart
        for k, segment in enumerate(arithmetic.segments):
            size, terms = _size(low, high), low.shape[1]
            for step in segment[1:] if k == 0 else segment:
                weight = np.abs(step.weight)
                inputs = weight.shape[1]
                if step.choice:
                    settled = products(computed, weight).max(axis=1)
                    reached = (_size(low, high) + computed + folded).max(axis=1)
                    extra = 8 * arithmetic.softmax_unit * (reached + 1 + np.log(inputs))
                    computed = np.zeros_like(computed)
                reach = products(_size(low, high) + computed + folded, weight) + step.size
                computed = products(computed, weight) + gamma(inputs + _SPARE, step.unit) * reach
                computed += _tiny(step.unit, inputs) + step.off
                folded = products(folded, weight)
                size = products(size, weight) + step.size
                low, high = _image(step, low, high)
                terms += inputs + 2
            rounding = gamma(terms, UNIT["float64"]) * size
            folded, low, high = folded + rounding, low - rounding, high + rounding
            if k < last:
                state, unit = (low, high, computed, folded), max(step.unit for step in segment)
                low, high, computed, folded = _bent(arithmetic.bends[k], state, unit)
        total = (computed.max(axis=1) + folded.max(axis=1) + settled + extra + arithmetic.slack) * _OUTWARD
        return np.where(np.isfinite(total), np.nextafter(total, np.inf), np.inf)


_State = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Lowest and highest arguments, and bounds of the differences ``computed`` and ``folded``."""


def _bent(bends: Bends, state: _State, unit: float) -> _State:
    """What a layer's functions make of their arguments; each function's own rounding in a library is part of
    :attr:`Map.off`, a square's is added here."""
    if bends is None:
        return _FUNCTIONS["relu"](state, unit)
    made: _State = tuple(one.copy() for one in state)  # type: ignore[assignment]
    for name in {*bends} - {"identity"}:
        some = np.array([one == name for one in bends])
        own: _State = tuple(one[:, some] for one in state)  # type: ignore[assignment]
        for whole, part in zip(made, _FUNCTIONS[name](own, unit), strict=True):
            whole[:, some] = part
    return made


def _relu(state: _State, unit: float) -> _State:
    low, high, computed, folded = state
    off = high + computed + folded < 0
    computed, folded = np.where(off, 0.0, computed), np.where(off, 0.0, folded)
    return np.maximum(low, 0.0), np.maximum(high, 0.0), computed, folded


def _sigmoid(state: _State, unit: float) -> _State:
    low, high, computed, folded = state
    return sigmoid(low) - _ROUNDED, sigmoid(high) + _ROUNDED, computed / 4, folded / 4


def _square(state: _State, unit: float) -> _State:
    low, high, computed, folded = state
    size = _size(low, high)
    reach = size + computed + folded
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    ends = least**2 * (1 - _ROUNDED), size**2 * (1 + _ROUNDED)
    return *ends, (size + reach) * computed + gamma(4, unit) * reach**2, (size + reach) * folded


_ROUNDED = 2.0**-48
_FUNCTIONS = {"relu": _relu, "sigmoid": _sigmoid, "square": _square}


def _start(entries: tuple[Entry, ...], lower: ArrayLike, upper: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest value of every entry on boxes of the classifier's inputs, (n, entries) each.

    Raises
    ------
    BadInput
        A box has too few numbers, one that is not finite, or a lower end above the upper.
    """
    below, above = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    count = max((e.start + (1 if e.values is None else len(e.values)) for e in entries), default=0)
    for name, ends in (("lower", below), ("upper", above)):
        if ends.ndim != 2 or ends.shape[1] < count:
            raise BadInput(name, f"shape {ends.shape[1:]}", "one number per input column of the classifier")
        if not np.isfinite(ends).all():
            raise BadInput(name, float(ends[~np.isfinite(ends)][0]), "finite numbers")
    if (below > above).any():
        box, at = np.argwhere(below > above)[0].tolist()
        got = f"{below[box, at]} above {above[box, at]} in column {at}"
        raise BadInput("lower", got, "lower ends below upper ends")
    low, high = (np.zeros((len(below), len(entries))) for _ in range(2))
    known: dict[tuple[int, int], tuple[NDArray[np.bool_], NDArray[np.intp]]] = {}
    for k, entry in enumerate(entries):
        if entry.values is None:
            low[:, k], high[:, k] = below[:, entry.start], above[:, entry.start]
            continue
        values = np.array(entry.values)
        key = entry.start, len(values)
        if key not in known:
            possible = above[:, entry.start : entry.start + len(values)] > 0
            possible |= ~possible.any(axis=1, keepdims=True)
            known[key] = possible, np.count_nonzero(possible, axis=1)
        own = np.flatnonzero(values)  # of one label in a one-hot column
        some, all_possible = known[key][0][:, own], known[key][1]
        zero = all_possible > np.count_nonzero(some, axis=1)
        low[:, k] = np.where(some, values[own], np.inf).min(axis=1, initial=np.inf)
        high[:, k] = np.where(some, values[own], -np.inf).max(axis=1, initial=-np.inf)
        low[zero, k], high[zero, k] = np.minimum(low[zero, k], 0.0), np.maximum(high[zero, k], 0.0)
    return low, high


def _image(step: Map, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Enclose W z + b over low <= z <= high."""
    positive, negative = np.maximum(step.weight, 0.0), np.minimum(step.weight, 0.0)
    size = products(_size(low, high), np.abs(step.weight)) + np.abs(step.bias)
    spare = gamma(low.shape[1] + 2, UNIT["float64"]) * size
    return (
        products(low, positive) + products(high, negative) + step.bias - 2 * spare,
        products(high, positive) + products(low, negative) + step.bias + 2 * spare,
    )


def _size(low: FloatArray, high: FloatArray) -> FloatArray:
    return np.maximum(np.abs(low), np.abs(high))


def gamma(roundings: int, unit: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Higham's n u / (1 - n u) for n roundings; infinite if n u is 1/2 or more."""
    product = roundings * np.asarray(unit, dtype=np.float64)
    return np.where(product < 0.5, product / np.maximum(1 - product, 0.5), np.inf)


def _tiny(unit: float, inputs: int) -> float:
    """A bound on what underflow loses in one map, if subnormal numbers are replaced by 0."""
    return (inputs + _SPARE) * _TINY.get(unit, 0.0)
