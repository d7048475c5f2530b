"""Sampled actions, and the cheapest of those that are feasible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.grid import as_action, looks_accepted, looks_feasible
from tests.helpers.brute_force import Best

COUNT = 10_000
MOST_JUDGED = 50
"""So many sampled actions that look feasible are judged, the nearest first."""

Array = NDArray[np.float64]


def actions(instance: Instance, rows: Array | None, count: int, rng: np.random.Generator) -> Array:
    """Sampled actions, a row of values in the order of features each, nan where not acted on."""
    x, levers = instance.factual_row, list(instance.levers)
    place = [[f.name for f in instance.features].index(name) for name in levers]
    low, high = (np.array([instance.levers[name][end] for name in levers], dtype=float) for end in (0, 1))
    whole = np.array([instance.by_name[name].integral for name in levers])

    def drawn(values: Array) -> Array:
        values = np.clip(np.where(whole, np.round(values), values), low, high)
        rest = rng.random(values.shape) < rng.random((len(values), 1))
        found = np.full((len(values), len(x)), np.nan)
        found[:, place] = np.where(rest, np.nan, values)
        return found

    uniform = drawn(low + (high - low) * rng.random((count // 3, len(levers))))
    if rows is None or not len(rows):
        after = instance.scm.counterfactual(x, uniform)
        rows = after[looks_accepted(instance, after)]
    if not len(rows):
        return np.concatenate(
            [uniform, drawn(low + (high - low) * rng.random((count - len(uniform), len(levers))))]
        )
    towards = rows[rng.integers(len(rows), size=count - len(uniform))][:, place]
    start = np.where(np.isnan(x[place]), 0.5 * (low + high), x[place])
    return np.concatenate([uniform, drawn(start + rng.random((len(towards), 1)) * (towards - start))])


def cheapest(instance: Instance, sampled: Array) -> tuple[int, Best | None]:
    """How many sampled actions look feasible, and the cheapest of the nearest that are judged feasible."""
    kept = sampled[looks_feasible(instance, sampled)]
    low, high = (
        np.array([instance.levers.get(f.name, (0.0, 1.0))[end] for f in instance.features]) for end in (0, 1)
    )
    far = np.nansum(np.abs(kept - instance.factual_row) / np.where(high > low, high - low, 1.0), axis=1)
    found = []
    for row in kept[np.argsort(far, kind="stable")[:MOST_JUDGED]]:
        action = as_action(instance, row)
        judged = judge(instance, action)
        if judged.feasible:
            found.append(Best(float(judged.cost), action))
    return len(kept), min(found, key=lambda b: b.cost, default=None)
