r"""The elementary functions of programs in float64: value, range, and lines that bound each on an interval.

On [l, u] a smooth function f lies between the lines :math:`m x + c_{lo}` and :math:`m x + c_{hi}`, where m
is the chord's slope. The offsets are the extremes of f(x) - m x, which it takes at the ends or where
f'(x) = m; for each function here these points have a closed form. The distance :math:`c_{hi} - c_{lo}` bounds
the error of the linearisation and shrinks with the square of the width. ReLU, which has no curvature, is
bounded elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.expression import Array, logit, sigmoid

Function = Literal["relu", "sigmoid", "logit", "log", "square", "indicator"]
"""``indicator`` is 1 if the argument, a whole number, equals the atom's level, else 0."""

EDGE = 1e-9
"""Arguments of log and logit stay this far inside their domain; see
:func:`milp_recourse.program.lower.check_edges`."""

_SLACK = 1e-13  # relative error, more than the rounding in an offset


@dataclass(frozen=True)
class Curve:
    """A smooth function f.

    Parameters
    ----------
    value
        f, elementwise.
    slope_points
        The function from slopes m to the points (up to two) where f'(x) = m, stacked on a new last axis; nan
        where there is none.
    derivative
        f', elementwise.
    low, high
        The ends of the open interval on which f is defined.
    """

    value: Callable[[Array], Array]
    slope_points: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    low: float = -np.inf
    high: float = np.inf


def _sigmoid_points(m: Array) -> Array:
    root = np.sqrt(np.maximum(1 - 4 * m, 0.0))
    return np.stack([logit((1 + root) / 2), logit((1 - root) / 2)], axis=-1)


def _logit_points(m: Array) -> Array:
    root = np.sqrt(np.maximum(1 - 4 / m, 0.0))
    return np.stack([(1 + root) / 2, (1 - root) / 2], axis=-1)


CURVES: dict[str, Curve] = {
    "sigmoid": Curve(sigmoid, _sigmoid_points, lambda x: sigmoid(x) * (1 - sigmoid(x))),
    "logit": Curve(logit, _logit_points, lambda p: 1 / (p * (1 - p)), 0.0, 1.0),
    "log": Curve(np.log, lambda m: (1 / m)[..., None], lambda x: 1 / x, low=0.0),
    "square": Curve(np.square, lambda m: (m / 2)[..., None], lambda x: 2 * x),
}


def band(function: str, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Slope m and offsets (c_lo, c_hi) with m x + c_lo <= f(x) <= m x + c_hi on [low, high].

    Parameters
    ----------
    function
        A name in :data:`CURVES`.
    low, high
        Ends, any common shape; inside the function's domain.
    """
    curve = CURVES[function]
    with np.errstate(divide="ignore", invalid="ignore"):
        width = high - low
        chord = (curve.value(high) - curve.value(low)) / width
        middle = curve.derivative((low + high) / 2)
        m = np.where(width > 1e-9 * (1 + np.abs(low)), chord, middle)
        points = np.stack([low, high], axis=-1)
        inside = np.clip(np.nan_to_num(curve.slope_points(m), nan=0.0), low[..., None], high[..., None])
        points = np.concatenate([points, inside], axis=-1)
        offsets = curve.value(points) - m[..., None] * points
    slack = _SLACK * (1 + np.abs(m) * np.maximum(np.abs(low), np.abs(high)) + np.abs(offsets).max(axis=-1))
    return m, offsets.min(axis=-1) - slack, offsets.max(axis=-1) + slack


def evaluate(function: Function, x: Array, level: int = 0) -> Array:
    """The function in float64; nan outside its domain, infinite at its edge."""
    if function == "indicator":
        chosen: NDArray[np.bool_] = np.round(x) == level
        return chosen.astype(np.float64)
    return np.maximum(x, 0.0) if function == "relu" else CURVES[function].value(x)


def value_range(function: str, low: Array, high: Array, level: int = 0) -> tuple[Array, Array]:
    """Smallest and largest value of a function on [low, high], rounded outward."""
    if function == "relu":
        return np.maximum(low, 0.0), np.maximum(high, 0.0)
    if function == "indicator":
        possible = (low <= level) & (high >= level)
        return (possible & (low == high)).astype(np.float64), possible.astype(np.float64)
    if function == "square":
        ends = np.stack([np.square(low), np.square(high)])
        smallest = np.where((low <= 0) & (high >= 0), 0.0, ends.min(axis=0))
        lowest, highest = smallest, ends.max(axis=0)
    else:
        curve = CURVES[function]
        lowest, highest = curve.value(low), curve.value(high)  # increasing
    return lowest - _SLACK * (1 + np.abs(lowest)), highest + _SLACK * (1 + np.abs(highest))


def within_domain(function: str, low: Array, high: Array) -> tuple[Array, Array]:
    """Intervals of arguments, cut at :data:`EDGE` from the ends of a curve's domain.

    :func:`milp_recourse.program.lower.check_edges` makes sure that this loses no plausible action. An
    interval between the edge and the end of the domain stays, and one outside the domain, where the density
    is zero, is replaced by a short one at the edge.
    """
    if function == "log":
        return _from_edge(low, high)
    if function == "logit":
        low, high = _from_edge(low, high)
        below, above = _from_edge(1 - high, 1 - low)
        return 1 - above, 1 - below
    return low, high


def _from_edge(low: Array, high: Array) -> tuple[Array, Array]:
    outside = high <= 0
    cut = np.where(high > 2 * EDGE, np.maximum(low, EDGE), np.maximum(low, np.finfo(np.float64).tiny))
    return np.where(outside, EDGE, cut), np.where(outside, 2 * EDGE, high)
