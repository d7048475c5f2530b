"""The sets of levers that need a proof tree (section 5 of the document), and what they cost at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from milp_recourse.problem.conditions import Demand, unlabelled
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import exact_cost
from milp_recourse.program.demands import limited, told_apart
from milp_recourse.program.presolve import told_apart_by_scenarios


def counted(instance: Instance) -> tuple[int | None, Demand]:
    """How many levers may be acted on, None without a limit that proofs by prices count, and what else is
    demanded. In percentiles values may change at no cost, which those proofs do not count."""
    demand = unlabelled(instance.demand)
    free = any(not instance.lever_cost(f).measure.strict for f in instance.levers)  # Q may be flat
    return (None, demand) if free else limited(demand)


def not_idle(instance: Instance, priced: bool = False) -> list[str]:
    """Levers that are not idle: acting on them at their factual value is not allowed, or differs in cost or
    effect, in some scenario, from not acting on them.

    ``priced``: whether proofs are by prices, which themselves count how many values change.
    """
    levers, demand = list(instance.levers), instance.demand
    driven = {f for other in levers for f in instance.scm.descendants({other}) - {other}}
    told = told_apart(counted(instance)[1] if priced else demand, levers)
    apart = driven | told | told_apart_by_scenarios(instance)
    return [
        f for f in levers if instance.lever_cost(f).prices.fixed or f in apart or not instance.may_hold(f)
    ]


def acted_sets(instance: Instance, priced: bool = False) -> Iterator[tuple[str, ...]]:
    """Sets of levers that together stand for every set: every combination of those that are not idle, with
    all idle ones.

    Each set is in the order of the features, and not empty. With ``priced``, as in :func:`not_idle`, only
    sets that may be acted on are stood for; where there is room for one idle lever, each has its own set.
    """
    levers = [f.name for f in instance.features if f.name in instance.levers]
    others, most = not_idle(instance, priced), len(levers)
    if priced and (limit := counted(instance)[0]) is not None:
        most = limit
    idle = [f for f in levers if f not in others]
    for size in range(min(len(others), most) + 1):
        for chosen in combinations(others, size):
            for held in combinations(idle, most - size) if most - size <= 1 < len(idle) else [idle]:
                acted = tuple(f for f in levers if f in held or f in chosen)
                if acted:
                    yield acted


def dearest(instance: Instance, acted: Sequence[str]) -> Fraction:
    """At least what any action on these levers costs: the sum of each alone at its dearer end (more than the
    most where the cost has a maximum)."""
    ends = ([exact_cost([(instance.lever_cost(f), end)]) for end in instance.levers[f]] for f in acted)
    return sum(map(max, ends), Fraction(0))
