"""Costs and density offsets: back ends against each other and against brute force, certificates checked.

For every kind (:data:`tests.helpers.cost_kinds.KINDS`) and so many draws each back end solves the
problem. The cost it states is computed a second time from the formula; statuses and costs must agree; a
grid, zoomed in (networks), or every combination of cells (trees) must find nothing cheaper than the stated
bound, and nothing at all where the answer is "infeasible". Trees whose levers have effects get the grid of
:mod:`tests.conditions.compare_conditions`. Run from the repository root:
``python -m tests.costs.compare_costs``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from milp_recourse.certificates import instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.program import lower
from tests.conditions.compare_conditions import cheaper_than
from tests.helpers import tree_samples
from tests.helpers.brute_force import attack, complaints, costs, number
from tests.helpers.brute_force import brute_force as grid
from tests.helpers.cost_kinds import DENSITIES, KINDS, with_kind
from tests.helpers.generators import Style, supported_instance
from tests.properties.agreement import BRUTE, agreed, compare, count_verdict, verdict_of

STYLES = (
    Style(levers=3, curves=False, gamma=False, plausible=0.0),
    Style(levers=2, plausible=0.3),
    Style(levers=3, causes=False, plausible=0.0),
    Style(levers=2, curves=False, gamma=False, plausible=0.5),
)
LEVERS = 3
"""Grids over more levers find nothing."""
LARGEST = 20_000
"""Combinations of cells that brute force tries at most."""


def problem(seed: int, kind: str, trees: bool) -> Instance | None:
    """The problem of a seed and a kind; None where it has nothing to act on, or is beyond brute force."""
    if not trees:
        style = STYLES[seed % len(STYLES)]
        if kind in DENSITIES:
            style = replace(style, plausible=1.0)
        made = with_kind(seed, kind, supported_instance(seed, style))
        try:
            lower(made)
        except Unsupported:
            return None
        return made
    causal = kind in DENSITIES or seed % 3 == 0
    drawn = (
        tree_samples.random_causal_instance(seed, one_hot=seed % 2 == 0)
        if causal
        else tree_samples.random_tree_instance(seed)
    )
    if drawn is None or not drawn.levers or (not causal and tree_samples.size_of(drawn) > LARGEST):
        return None
    return with_kind(seed, kind, drawn)


def second_opinion(instance: Instance, result: Result) -> str | None:
    """What is wrong with the stated cost, by the formula of the docs in float64."""
    if not result.action or result.cost is None:
        return None
    acted = tuple(result.action)
    row = np.array([[number(instance, n, result.action[n]) for n in acted]])
    own = float(costs(instance, acted, row)[0])
    close = abs(own - result.cost) <= 1e-8 * (1 + abs(own))
    return None if close else f"states {result.cost!r}, the formula says {own!r}"


def cheaper(instance: Instance, result: Result, seed: int) -> float | None:
    """What brute force finds below the stated bound; None: nothing."""
    if not hasattr(instance.classifier, "trees"):
        near = attack(instance, result, np.random.default_rng(seed), 500)
        found = [one.cost for one in (grid(instance), near) if one is not None]
        best = min(found, default=None)
    elif moves_others(instance):
        some = cheaper_than(instance, [], np.inf if result.lower_bound is None else result.lower_bound)
        best = None if some is None else some[0]
    else:
        exact = tree_samples.brute_force(instance)
        best = None if exact is None else float(exact)
    least = np.inf if result.lower_bound is None else result.lower_bound * (1 - 1e-12) - 1e-12
    return best if best is not None and best < least else None


def moves_others(instance: Instance) -> bool:
    """Whether acting on a lever has effects, so that cells of levers are not all there is."""
    return any(instance.scm.descendants({name}) != {name} for name in instance.levers)


def unreadable(instance: Instance, file: Path) -> str | None:
    """That no file may have the instance; None where the file is the instance."""
    try:
        same = read_instance(file)
    except BadInput:  # a label as a cause, which no file may have
        return "no file"
    assert instance_digest(same) == instance_digest(instance)
    return None


def check(
    seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float, certify: bool = False
) -> tuple[Counter[str], list[str]]:
    """One draw: what happened, and what is wrong."""
    instance = problem(seed, kind, trees)
    if instance is None:
        return Counter({"left out": 1}), []
    counts, wrong = Counter[str](), list[str]()

    def about(result: Result) -> list[str]:
        said = second_opinion(instance, result)
        return ([] if said is None else [said]) + ([] if trees else complaints(instance, result))

    sure = agreed(instance, backends, limit, about, counts, wrong)
    if certify:
        count_verdict(verdict_of(instance, limit, partial(unreadable, instance)), counts, wrong)
    for name, result in list(sure.items())[:1]:
        counts[BRUTE] += 1
        better = cheaper(instance, result, seed)
        if better is not None:
            wrong.append(f"{name}: {result.status.value} at {result.lower_bound}, but {better}")
    return counts, wrong


if __name__ == "__main__":
    raise SystemExit(compare(__doc__, KINDS, check))
