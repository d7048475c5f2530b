"""Candidate actions to start from: anchors and random points, judged in float arithmetic."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.tape import Tape
from milp_recourse.search.local import descend, feasible

Array = NDArray[np.float64]


def candidates(tape: Tape, size: int, rng: np.random.Generator) -> Array:
    """Points (n, d): corners and held values (while few), then random ones, denser near the factual."""
    low, high = tape.lower, tape.upper
    x = np.array([tape.program.factual[a.feature] for a in tape.program.actions])
    x = np.clip(x, low, high)
    d = len(x)
    anchors = np.array(list(product(*zip(low, x, high, strict=True)))) if d <= 5 else np.array([low, x, high])
    radius = rng.random((size, 1)) ** 2
    random = x + radius * (low + rng.random((size, d)) * (high - low) - x)
    points = np.clip(np.concatenate([anchors, random]), low, high)
    points[:, tape.integral] = np.round(points[:, tape.integral])
    return points


def first_incumbent(tape: Tape, size: int = 2000, starts: int = 4, seed: int = 0) -> Array | None:
    """A feasible point found by sampling and descent, or None; proves nothing either way."""
    if not len(tape.actions):
        return None
    points = candidates(tape, size, np.random.default_rng(seed))
    v = tape.evaluate(points)
    with np.errstate(all="ignore"):
        cost = tape.costs(v)
        good = feasible(tape, points)
        logits, excess = tape.logits(v), np.maximum(tape.ball_excess(v), tape.row_excess(v))
    best: Array | None = None
    best_cost = np.inf
    if good.any():
        order = np.argsort(np.where(good, cost, np.inf))[: min(starts, int(good.sum()))]
    else:
        shortfall = np.maximum(tape.threshold - logits, 0) / (1 + np.std(logits))
        order = np.argsort(np.nan_to_num(shortfall + np.maximum(excess, 0), nan=np.inf))[: 2 * starts]
    for k in order:
        if good[k] and cost[k] < best_cost:
            best, best_cost = points[k], float(cost[k])
        found = descend(tape, points[k])
        if found is not None:
            value = float(tape.costs(tape.evaluate(found[None]))[0])
            if value < best_cost:
                best, best_cost = found, value
    return best
