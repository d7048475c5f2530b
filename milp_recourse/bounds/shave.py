"""Cutting slabs off a box, by contraction and back-substituted bounds of all slabs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.contract import contract
from milp_recourse.bounds.lagrangian import least_cost_where
from milp_recourse.bounds.tape import Tape

Array = NDArray[np.float64]


SLABS = 6
"""How many slabs a box is cut into along each lever."""


def shave(tape: Tape, low: Array, high: Array, cutoff: float) -> tuple[Array, Array]:
    """Cut slabs off the sides of a box where back-substituted bounds prove that nothing is accepted
    that costs at most ``cutoff``, up to four times.

    The slabs along all levers are bounded in one batch. Each is first contracted by cost and ball, which
    leave little of slabs near the sides. An empty box has low > high.
    """
    d = len(low)
    for _ in range(4):
        box_low, box_high = contract(tape, low[None], high[None], cutoff)
        low, high = box_low[0], box_high[0]
        if (low > high).any():
            return low, high
        with np.errstate(over="ignore", invalid="ignore"):
            cuts = np.linspace(low, high, SLABS + 1)  # (SLABS + 1, d)
        if not np.isfinite(cuts).all():
            return low, high
        slab_low, slab_high = np.tile(low, (d, SLABS, 1)), np.tile(high, (d, SLABS, 1))
        for k in range(d):
            slab_low[k, :, k], slab_high[k, :, k] = cuts[:-1, k], cuts[1:, k]
        flat_low, flat_high = contract(tape, slab_low.reshape(-1, d), slab_high.reshape(-1, d), cutoff)
        alive: NDArray[np.bool_] = np.asarray(~(flat_low > flat_high).any(axis=1))
        if alive.any():
            bounds = tape.bounds(flat_low[alive], flat_high[alive])
            refused = bounds.logit_high < tape.threshold
            limit = tape.threshold - bounds.offset
            cost = least_cost_where(tape, flat_low[alive], flat_high[alive], bounds.slope, limit)
            alive[alive] = ~(refused | (cost > cutoff))  # nan closes nothing
        alive = alive.reshape(d, SLABS)
        if not alive.any(axis=1).all():
            return tape.upper + 1.0, tape.lower - 1.0
        first, last = alive.argmax(axis=1), SLABS - 1 - alive[:, ::-1].argmax(axis=1)
        new_low, new_high = cuts[first, np.arange(d)], cuts[last + 1, np.arange(d)]
        whole = tape.integral
        new_low[whole], new_high[whole] = np.ceil(new_low[whole] - 1e-9), np.floor(new_high[whole] + 1e-9)
        done = np.prod((new_high - new_low + 1e-12) / (high - low + 1e-12)) > 0.6
        low, high = new_low, new_high
        if done:
            break
    return low, high
