"""Candidate actions to start from: anchors and random points, judged in float arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
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


def first_incumbent(
    tapes: Sequence[Tape], size: int = 1000, starts: int = 2, hops: int = 6, seed: int = 0
) -> tuple[Tape, Array] | None:
    """A good feasible point of any of the tapes, by sampling and descent; proves nothing either way.

    Parameters
    ----------
    size
        Random points per tape.
    starts
        Descents in all when a sample is feasible, else per tape.
    hops
        Linear regions visited by each descent.
    """
    rng = np.random.default_rng(seed)
    ranked: list[tuple[float, int, Array, Tape]] = []
    hopeful: list[tuple[float, int, Array, Tape]] = []
    for tape in tapes:
        if not len(tape.actions):
            continue
        points = candidates(tape, size, rng)
        with np.errstate(all="ignore"):
            v = tape.evaluate(points)
            good, cost = feasible(tape, points), tape.costs(v)
            logits, excess = tape.logits(v), np.maximum(tape.ball_excess(v), tape.row_excess(v))
            shortfall = np.maximum(tape.threshold - logits, 0) / (1 + np.std(logits)) + np.maximum(excess, 0)
        for k in np.argsort(np.where(good, cost, np.inf))[: min(starts, int(good.sum()))]:
            ranked.append((float(cost[k]), len(ranked), points[k], tape))
        if not good.any():
            for k in np.argsort(np.nan_to_num(shortfall, nan=np.inf))[:starts]:
                hopeful.append((float(shortfall[k]), len(hopeful), points[k], tape))
    best: tuple[float, Tape, Array] | None = None
    for cost_, _, start, tape in sorted(ranked, key=lambda r: r[:2])[:starts] or sorted(
        hopeful, key=lambda r: r[:2]
    ):
        if ranked and (best is None or cost_ < best[0]):
            best = cost_, tape, start
        found = descend(tape, start, hops)
        if found is not None:
            value = float(tape.costs(tape.evaluate(found[None]))[0])
            if best is None or (value < best[0] and feasible(tape, found[None])[0]):
                best = value, tape, found
    return None if best is None else (best[1], best[2])
