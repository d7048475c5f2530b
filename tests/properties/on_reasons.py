"""Reasons of random people: ``python -m tests.properties.on_reasons --cases 200 --json FILE``.

Every set of up to three levers of trees against all values on both sides of every threshold; every set of up
to two of networks inside causal models against HiGHS.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

from milp_recourse.judge import judge
from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.reasons import Sufficient, reasons
from tests.helpers import tree_samples
from tests.helpers.generators import Style, supported_instance
from tests.properties.repeated import Checked, repeated


def of_trees(seed: int) -> Checked:
    """Against enumeration."""
    instance, counts, wrong = tree_samples.random_tree_instance(seed, features=5), Counter[str](), list[str]()
    if seed % 4 == 0:
        instance = replace(instance, conditions=(*instance.conditions, AtMostActions(1)))
    for one in reasons(instance, 3):
        own = replace(instance.preferences, actionable=one.levers)
        least = tree_samples.brute_force(replace(instance, preferences=own, reference=None))
        counts[f"trees: {one.result.status.value}"] += 1
        within = None if least is None else (float(least), float(least))
        wrong += faults(f"trees {seed}", instance, one, within)
    return counts, wrong


def of_networks(seed: int) -> Checked:
    """Against HiGHS, where it comes to an end."""
    instance, counts, wrong = (
        supported_instance(seed, Style(levers=3, depth=2, width=4)),
        Counter[str](),
        list[str](),
    )
    others = {one.levers: one.result for one in reasons(instance, 2, "highs", 60.0)}
    for one in reasons(instance, 2):
        other: Result = others[one.levers]
        counts[f"networks: {one.result.status.value}, HiGHS {other.status.value}"] += 1
        if other.status is Status.INFEASIBLE:
            wrong += faults(f"networks {seed}", instance, one, None)
        elif other.status is Status.OPTIMAL:
            wrong += faults(f"networks {seed}", instance, one, (other.lower_bound or 0.0, other.cost or 0.0))
    return counts, wrong


def faults(name: str, instance: Instance, one: Sufficient, within: tuple[float, float] | None) -> list[str]:
    """What contradicts that the least cost lies within two numbers, or that there is none."""
    found = one.result
    if found.action is not None and not judge(instance, instance.numbers(found.action)).feasible:
        return [f"{name}: {one.levers}: an action that is not feasible"]
    if within is None or found.status is Status.INFEASIBLE:
        agreed = within is None and found.status is not Status.OPTIMAL
    else:
        low, high = within
        agreed = (found.lower_bound or 0.0) <= high * (1 + 1e-9)
        agreed &= found.cost is None or found.cost >= low * (1 - 1e-9) - instance.gap_tolerance(low)
    return [] if agreed else [f"{name}: {one.levers}: {found.status.value} {found.cost} against {within}"]


def check(seed: int) -> Checked:
    """A person of trees, and one of a network."""
    (counts, wrong), (more, others) = of_trees(seed), of_networks(seed)
    return counts + more, wrong + others


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 200))
