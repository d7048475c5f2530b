"""Random applicants in whose way something stands: masks, ranges, domains, conditions, density."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from milp_recourse import Status, solve
from milp_recourse.problem.conditions import AtMostActions, Sum
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.why import lift, restrictions
from tests.helpers.generators import Style, supported_instance
from tests.helpers.random_conditions import random_conditions, with_conditions
from tests.helpers.tree_samples import random_causal_instance, random_tree_instance

TRIES = 12
MOST = 5
"""Restrictions at most, so that every set of them can be tried."""


def problem(seed: int, trees: bool) -> Instance | None:
    """Networks with and without causes, curves and densities; trees with and without causes."""
    if not trees:
        return supported_instance(seed, Style(levers=3, curves=seed % 3 == 0, plausible=0.3))
    made = random_tree_instance(seed) if seed % 3 else random_causal_instance(seed, one_hot=seed % 2 == 0)
    return made if made is not None and made.levers and not made.missing else None


def stuck(seed: int, trees: bool) -> Instance | None:
    """Of the problems seed, seed + 1000, ... the first that restrictions make impossible.

    It has recourse without any of its restrictions, and at most :data:`MOST` of them.
    """
    for k in range(TRIES):
        plain = problem(seed + 1000 * k, trees)
        if plain is None:
            continue
        for attempt in range(4):
            made = restricted(np.random.default_rng([seed, k, attempt]), plain)
            ids = restrictions(made)
            if not 1 <= len(ids) <= MOST or solve(made, time_limit=10).status is not Status.INFEASIBLE:
                continue
            if solve(lift(made, ids), time_limit=10).action is not None:
                return made
    return None


def restricted(rng: np.random.Generator, instance: Instance) -> Instance:
    """The problem with narrow ranges, fewer levers and further conditions."""
    own, levers = instance.preferences, list(instance.levers)
    ranges, conditions = dict(own.ranges), list(instance.conditions)
    for name in levers:
        feature, x = instance.by_name[name], instance.factual[name]
        low, high = feature.action_bounds
        if feature.kind == "categorical" or rng.random() > 0.6:
            continue
        down, up = rng.uniform(0, 0.4, 2) ** 2 * (high - low)
        if feature.categories is None and rng.random() < 0.6:
            ends = (np.floor(x - down), np.ceil(x + up)) if feature.integral else (x - down, x + up)
            ranges[name] = float(ends[0]), float(ends[1])
        else:
            side = (
                {"at_most": float(round(up, 3))}
                if rng.random() < 0.5
                else {"at_least": float(round(-down, 3))}
            )
            conditions.append(Sum(((name, 1.0),), "change", **side))
    if len(levers) > 1 and rng.random() < 0.5:
        levers = [name for name in levers if name != str(rng.choice(levers))]
    if rng.random() < 0.25:
        conditions.append(AtMostActions(int(rng.integers(0, 2))))
    if rng.random() < 0.4:
        said = random_conditions(int(rng.integers(10**6)), instance, "mixed")[:1]
        conditions += with_conditions(instance, said).conditions
    preferences = replace(own, actionable=tuple(n for n in own.actionable if n in levers), ranges=ranges)
    return replace(instance, preferences=preferences, conditions=tuple(conditions), reference=None)
