"""Where to cut a box in two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.tape import Tape

Array = NDArray[np.float64]
Box = tuple[Array, Array]


def at_kink(tape: Tape, low: Array, high: Array) -> tuple[Box, Box] | None:
    """Two parts of a box, cut at the kink of a ReLU that depends on one action alone; None if there is none.

    ReLUs that only the cost uses do not count: a distribution function has too many.
    """
    for place, unit, row, offset in tape.units:
        active = np.flatnonzero(row[0])
        if (
            place in tape.cost_only
            or unit.function != "relu"
            or len(active) != 1
            or active[0] not in tape.actions
        ):
            continue
        k = int(np.flatnonzero(tape.actions == active[0])[0])
        kink = -offset[0] / row[0, active[0]]
        if low[k] < kink < high[k] and not tape.integral[k]:
            return _halves(low, high, k, kink, kink)
    return None


def widest(tape: Tape, low: Array, high: Array) -> tuple[Box, Box] | None:
    """Two halves of the box along its widest side, measured in cost; None when it is a point."""
    splittable = high - low > 1e-9 * (1 + np.abs(low))
    if not splittable.any():
        return None
    width = (high - low) * np.sqrt(tape.cost_weights) / tape.cost_lengths
    k = int(np.argmax(np.where(splittable, width, -1.0)))
    middle = (low[k] + high[k]) / 2
    if tape.integral[k]:
        return _halves(low, high, k, np.floor(middle), np.floor(middle) + 1)
    return _halves(low, high, k, middle, middle)


def _halves(low: Array, high: Array, k: int, left_end: float, right_start: float) -> tuple[Box, Box]:
    """The box with side k up to one value, and from another on."""
    left, right = high.copy(), low.copy()
    left[k], right[k] = left_end, right_start
    return (low, left), (right, high)
