"""Fronts of random problems: one back end's points against another's, and against brute force.

``actions``: the cost for at most k actions is the least over all sets of k features, each solved by
itself by the second back end. ``density``: at every offset the second back end solves the problem by itself.
A grid must hold nothing cheaper than a point's bound, and nothing at all where there is none. Run from the
repository root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from milp_recourse import solve
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.density_front import density_fronts
from milp_recourse.questions.front import front
from tests.conditions.compare_conditions import cheaper_than
from tests.helpers.brute_force import subsets
from tests.helpers.generators import Style, supported_instance
from tests.helpers.tree_samples import random_causal_instance
from tests.properties.agreement import BRUTE, TWO, compare, same
from tests.questions.choices.compare_choices import Outcome, other_costs, refused

KINDS = ("actions", "density")
OFFSETS = (-2.0, -0.5, -0.1, 0.0, 0.2, 1.0)


def check_actions(seed: int, trees: bool, backends: Sequence[str], limit: float) -> Outcome:
    """Cost against the number of actions."""
    instance = refused(seed, trees, many_ways=True)
    if instance is None:
        return Counter({"no problem": 1}), []
    counts, wrong = Counter[str](), list[str]()
    found, settled = front(instance, backends[0], 10 * limit), True
    counts[f"{len(found.points)} points{'' if found.complete else ', open'}"] += 1
    least = dict.fromkeys(range(1, len(instance.levers) + 1), np.inf)
    for acted in subsets(instance):
        own = replace(instance.preferences, actionable=acted)
        answers = list(other_costs(replace(instance, preferences=own), backends[1:], limit))
        settled &= bool(answers)
        cost = answers[0][1] if answers and answers[0][1] is not None else np.inf
        for k in range(len(acted), len(instance.levers) + 1):
            least[k] = min(least[k], cost)
    if not (found.complete and settled):
        return counts, wrong
    counts[TWO] += 1
    counts[BRUTE] += 1
    for k, known in least.items():
        here = min((p.result.cost for p in found.points if p.actions <= k), default=None)
        if not same(here, None if known == np.inf else float(known)):
            wrong.append(f"with {k} actions {here}, but {known}")
        below = min((p.result.lower_bound for p in found.points if p.actions <= k), default=np.inf)
        point = cheaper_than(instance, [{"at_most_actions": k}], below * (1 - 1e-9) - 1e-9)
        if point is not None:
            wrong.append(f"with {k} actions at least {below}, but {point}")
    fewest = min((k for k, known in least.items() if known < np.inf), default=None)
    if found.points and found.fewest != fewest:
        wrong.append(f"fewest {found.fewest}, but {fewest}")
    return counts, wrong


def check_density(seed: int, trees: bool, backends: Sequence[str], limit: float) -> Outcome:
    """Cost against the density offset."""
    instance = with_density(seed, trees)
    if instance is None:
        return Counter({"no problem": 1}), []
    counts, wrong = Counter[str](), list[str]()
    [found] = density_fronts([instance], OFFSETS, backends[0], limit)
    two, before = found.complete, 0.0
    for point in found.points:
        own = replace(instance.preferences, density_offset=point.offset)
        there = replace(instance, plausible=point.offset is not None, preferences=own)
        result = point.result
        counts[result.status.value] += 1
        answers = list(other_costs(there, backends[1:], limit))
        two &= bool(answers)
        for name, cost in answers if settled(result) else ():
            if not same(cost, result.cost):
                wrong.append(f"offset {point.offset}: {result.cost}, {name} {cost}")
        cost = np.inf if result.cost is None else result.cost
        if settled(result) and cost < before * (1 - 3e-6) - 1e-9:
            wrong.append(f"offset {point.offset}: {cost} after {before}")
        before = cost if settled(result) else before
        bound = np.inf if result.lower_bound is None else result.lower_bound * (1 - 1e-9) - 1e-9
        better = cheaper_than(there, [], bound) if settled(result) else None
        if better is not None:
            wrong.append(f"offset {point.offset}: at least {result.lower_bound}, but {better}")
    counts[TWO] += two
    counts[BRUTE] += 1
    return counts, wrong


def settled(result: Result) -> bool:
    """Whether a point is proven."""
    return result.status in (Status.OPTIMAL, Status.INFEASIBLE)


def with_density(seed: int, trees: bool) -> Instance | None:
    """Of seed, seed + 1000, ... the first problem with a density and recourse at all."""
    for k in range(20):
        drawn = seed + 1000 * k
        if trees:
            made = random_causal_instance(drawn, one_hot=seed % 2 == 0)
        else:
            curves = seed % 4 == 0
            style = Style(levers=2 + seed % 2, curves=curves, gamma=curves, plausible=1.0)
            made = supported_instance(drawn, style)
        if made is None or not made.scm.has_density or made.missing:
            continue
        if solve(replace(made, plausible=False), time_limit=5.0).action:
            return made
    return None


def check(
    seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float, certify: bool = False
) -> Outcome:
    """What happened in a draw, and what is wrong."""
    assert not certify
    run = check_actions if kind == "actions" else check_density
    return run(seed, trees, backends, limit)


if __name__ == "__main__":
    raise SystemExit(compare(__doc__, KINDS, check))
