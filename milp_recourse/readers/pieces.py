r"""Piecewise linear functions in the place of functions of one column of numbers.

.. math:: p(x) = c + \sum_j w_j \max(0, x - t_j), \quad t_0 \le x,

which interpolates a function g between knots. Between neighbouring knots of slopes :math:`s_{j-1}, s_j,
s_{j+1}` a function that is convex or concave there differs from its chord of length h by at most

.. math:: h \, \frac{a b}{a + b}, \quad a = |s_j - s_{j-1}|, \; b = |s_{j+1} - s_j|,

since it lies between the chord and the neighbouring chords, continued. Where the slopes turn, the larger of
a and b is taken instead. The bound is tried at further points, as :mod:`milp_recourse.readers.rising` tries
that a function rises. On columns of whole numbers only whole numbers count, so that functions that jump have
their piecewise linear functions, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.operations import is_whole
from milp_recourse.readers.refusal import OR_ASK, refuse

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

KNOTS = 1600
"""The most knots of all columns of a model together."""

_TABLE = 256
"""Of so many whole numbers, each is a knot; other columns share :data:`KNOTS`."""

_COARSE = 1e-3
"""A function that is farther from its piecewise linear one, as a share of what it spans on X, is refused."""

_BEYOND = (1.0, 0.2, 0.0)
"""So many ranges of X beyond X's numbers the functions are taken, or fewer where they bend too much."""

_FINE = 1e-9
"""Of a function that is nearer than this share, no more knots are taken."""

_ROUNDING = 2.0**-44


def is_short(seen: Array) -> bool:
    """Whether a column's numbers are whole and few, so that each can be a knot."""
    held = seen[np.isfinite(seen)]
    return is_whole(held) and bool(3 * np.ptp(held) <= _TABLE)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Several functions of one column, with knots in common.

    Attributes
    ----------
    knots
        t, ascending.
    weights, constants
        w, shape (functions, knots), and c.
    off
        For each function, how far g, as the model computes it, can be from p.
    within
        Where that holds.
    whole
        Whether it holds of whole numbers only.
    """

    knots: Array
    weights: Array
    constants: Array
    off: Array
    within: tuple[float, float]
    whole: bool


def pieces_of(
    functions: Sequence[Function],
    seen: Array,
    marks: Array,
    stepped: Sequence[bool],
    known: tuple[float, float] | None,
    filled: float | None,
    most: int,
    where: str,
    name: str,
) -> Pieces:
    """The piecewise linear functions of a column.

    Parameters
    ----------
    functions
        g, each as the model computes it, on raw numbers.
    seen
        The numbers of X. The functions hold from a range of them below the least to one above the largest.
    marks
        Where the functions may bend or jump: the first number of each piece.
    stepped
        Whether a function is constant between marks.
    known
        Where the functions have values; None: everywhere.
    filled
        What is taken for a missing number; the functions of nan are what the model makes of it.
    most
        The most knots, unless each whole number is one.
    where, name
        The column and the transformer, for messages.

    Raises
    ------
    Unsupported
        A function jumps, or bends too much.
    """
    held = seen[np.isfinite(seen)]
    whole = is_whole(held)
    if any(stepped) and not whole:
        allowed = "bins of whole numbers, or of every column, before a linear model; or a forest or boosting"
        raise refuse(where, f"steps of {name} beside columns that have none", allowed)
    first, last = (float(held.min()), float(held.max())) if len(held) else (0.0, 1.0)
    least, greatest = (-np.inf, np.inf) if known is None else known

    def values(x: Array) -> Array:
        return np.array([one(x) for one in functions])

    some = np.concatenate([np.linspace(first, last, 65), held])
    spans = np.maximum(np.ptp(values(np.round(some) if whole else some), axis=1), 1e-9)
    smooth = np.array([not one for one in stepped])
    for share in _BEYOND:
        width = share * max(last - first, 1.0)
        low, high = max(first - width, least), min(last + width, greatest)
        if whole:
            low, high = float(np.ceil(low)), float(np.floor(high))
        if whole and high - low <= _TABLE:
            knots, off = np.arange(low, high + 1.0), np.zeros(len(functions))
        else:
            knots = _placed(values, held, marks, low, high, whole, smooth, most)
            off = np.where(smooth, _bounds(values, knots, whole).max(axis=1), 0.0)
        at = values(knots)
        if np.isfinite(at).all() and (off <= _COARSE * spans).all():
            break
    else:
        got = f"{name}, which jumps or bends too much between {first:g} and {last:g}"
        raise refuse(
            where, got, f"trees, or the column as it is after that step in place of the raw one, {OR_ASK}"
        )
    slopes = np.diff(at, axis=1) / np.diff(knots) if len(knots) > 1 else np.zeros((len(at), 0))
    weights = np.diff(np.hstack([np.zeros((len(at), 1)), slopes, np.zeros((len(at), 1))]), axis=1)[:, :-1]
    weights = np.hstack([weights, np.zeros((len(at), len(knots) - weights.shape[1]))])
    weights = np.where(np.abs(weights) <= 1e-13 * np.abs(weights).max(axis=1, keepdims=True), 0.0, weights)
    used = np.flatnonzero((weights != 0.0).any(axis=0) | (np.arange(len(knots)) == 0))
    off = off + _apart(knots, weights, at) + _ROUNDING * np.abs(at).max(axis=1)
    if filled is not None:
        taken, stands = values(np.array([np.nan])), values(np.array([filled]))
        off = off + np.where(np.isnan(taken[:, 0]), 0.0, 2 * np.abs(taken - stands)[:, 0])
    return Pieces(knots[used], weights[:, used], at[:, 0], off, (low, high), whole)


def _placed(
    values: Callable[[Array], Array],
    held: Array,
    marks: Array,
    low: float,
    high: float,
    whole: bool,
    smooth: NDArray[np.bool_],
    most: int,
) -> Array:
    """Knots, most of them where the functions bend most."""
    inner = marks[np.isfinite(marks)]
    inner = np.concatenate([np.ceil(inner) + shift for shift in (-1.0, 0.0, 1.0)]) if whole else inner
    chosen = np.concatenate([[low, high], inner, np.quantile(held, np.linspace(0, 1, 9))])
    knots = _within(chosen, low, high, whole)
    gaps = np.diff(knots)
    thirds = [knots[:-1] + gaps * share for share in (1 / 3, 2 / 3)]
    if smooth.any():
        knots = _within(np.concatenate([knots, *thirds]), low, high, whole)
    while smooth.any() and len(knots) < most:
        at = values(knots)
        spans = np.maximum(np.ptp(at, axis=1), 1e-300)[:, None]
        worst = (_bounds(values, knots, whole)[smooth] / spans[smooth]).max(axis=0)
        chosen = np.flatnonzero(worst > max(_FINE, worst.max() / 8))[: most - len(knots)]
        more = _within(np.concatenate([knots, (knots[chosen] + knots[chosen + 1]) / 2]), low, high, whole)
        if not len(chosen) or len(more) == len(knots):
            break
        knots = more
    return knots


def _within(knots: Array, low: float, high: float, whole: bool) -> Array:
    knots = np.round(knots) if whole else knots
    return np.unique(np.clip(knots, low, high))


def _bounds(values: Callable[[Array], Array], knots: Array, whole: bool) -> Array:
    """For each function and each interval between knots, how far the function can be from its chord."""
    at, gaps = values(knots), np.diff(knots)
    slopes = np.diff(at, axis=1) / gaps
    turns = np.diff(slopes, axis=1)
    before = np.hstack([turns[:, :1], turns])
    after = np.hstack([turns, turns[:, -1:]])
    a, b = np.abs(before), np.abs(after)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(a + b > 0, a * b / (a + b), 0.0)
    bound = gaps * np.where(before * after >= 0, mean, np.maximum(a, b))
    bound[:, [0, -1]] = gaps[[0, -1]] * np.maximum(a, b)[:, [0, -1]]
    for share in (0.25, 0.5, 0.8):
        x = knots[:-1] + gaps * share
        x = np.clip(np.round(x), knots[:-1], knots[1:]) if whole else x
        off = np.abs(values(x) - (at[:, :-1] + slopes * (x - knots[:-1])))
        bound = np.where(off > bound, 2.0 * off, bound)
    return np.where(gaps <= 1.0, 0.0, bound) if whole else bound


def _apart(knots: Array, weights: Array, at: Array) -> Array:
    """How far the piecewise linear function is from its values at the knots, by rounding."""
    reach = np.maximum(knots[:, None] - knots[None, :], 0.0)  # knot x minus knot t
    made = at[:, :1] + weights @ reach.T
    size = np.abs(at[:, :1]) + np.abs(weights) @ reach.T
    off: Array = (np.abs(made - at) + 4 * len(knots) * 2.0**-53 * size).max(axis=1)
    return off
