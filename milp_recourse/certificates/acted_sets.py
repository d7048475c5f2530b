"""The sets of levers that need a proof tree (section 5 of the document), and what they cost at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from milp_recourse.judge import deltas
from milp_recourse.problem.instance import Instance
from milp_recourse.program.demands import told_apart
from milp_recourse.program.fold import told_apart_by_scenarios


def not_idle(instance: Instance) -> list[str]:
    """Levers that are not idle: acting on them at their factual value is not allowed, or differs in cost or
    effect, in some scenario, from not acting on them."""
    levers = list(instance.levers)
    driven = {f for other in levers for f in instance.scm.descendants({other}) - {other}}
    apart = driven | told_apart(instance.demand, levers) | told_apart_by_scenarios(instance)
    return [f for f in levers if instance.cost.l0 or f in apart or not instance.may_hold(f)]


def acted_sets(instance: Instance) -> Iterator[tuple[str, ...]]:
    """Sets of levers that together stand for every set: every combination of those that are not idle, with
    all idle ones.

    Each set is in the order of the features, and not empty.
    """
    levers, others = [f.name for f in instance.features if f.name in instance.levers], not_idle(instance)
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            acted = tuple(f for f in levers if f not in others or f in chosen)
            if acted:
                yield acted


def dearest(instance: Instance, acted: Sequence[str]) -> Fraction:
    """At least what any action on these levers costs: the sum of each alone at its dearer end (more than the
    most where the cost has a maximum)."""
    cost, weights = instance.cost, instance.weights
    ends = ([cost.exact(deltas(instance, {f: end}), weights) for end in instance.levers[f]] for f in acted)
    return sum(map(max, ends), Fraction(0))
