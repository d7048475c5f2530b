r"""Trees and an applicant with missing values, under conditions that tie features together.

The search of such problems knows no missing value, so these are settled first. One that nobody acts on stays
missing: where a tree splits on the feature, the way is the one for missing values. A lever whose value is
missing may be acted on, at the same cost whatever it is set to. So there is a problem without missing values
for each set S of these levers, in which those of S must be acted on, at no cost, and the others may not; the
cheapest of their optima, each with the cost of S, is the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np

from milp_recourse.judge import without_search
from milp_recourse.judge.best_first import Incumbent
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Proof
from milp_recourse.program.presolve import folds_away
from milp_recourse.solvers.protocol import Options, Proposal

MOST_GAPS = 6
"""Levers whose value is missing; each doubles the number of problems."""

_FAR = float(np.finfo(np.float64).max)


def has_gaps(instance: Instance) -> bool:
    """Whether an instance of trees has missing values beside conditions that cells alone cannot express."""
    forest = isinstance(instance.classifier, TreeEnsemble)
    return forest and bool(instance.missing) and not folds_away(instance)


def why_not_gaps(instance: Instance) -> str | None:
    """Why such an instance is not solved, or None."""
    levers = _levers(instance)
    if len(levers) > MOST_GAPS:
        return f"{len(levers)} levers without a value beside conditions on sums or on holding a feature"
    prices = [instance.lever_cost(name).prices for name in levers]
    if any(one.largest and any(one[:3]) for one in prices):
        return "a missing value, conditions on sums or on holding a feature, and a maximum within the cost"
    return None


def solve_gaps(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """The cheapest of the optima with each set of missing levers acted on.

    Parameters
    ----------
    solve
        Solves an instance without missing values.
    """
    start, clock, best = time.perf_counter(), Clock.start(options.time_limit), Incumbent(instance)
    least, nodes = math.inf, 0
    message: str | None = None
    proof: Proof | None = "rigorous"
    for acted in _sets(instance):
        paid, entry = _cost_of(instance, acted)
        if paid + entry >= best.target:
            least = min(least, round_down(paid + entry))
            continue
        settled = _settled(instance, acted)
        own = replace(options, time_limit=clock.left(), starts=None, watch=None)
        found = without_search([settled])[0] or solve(settled, own)
        if found.action is not None:
            best.take(found.action)
        own_bound = found.lower_bound or 0.0
        if own_bound < math.inf:
            least = min(least, round_down(max(entry, paid + Fraction(own_bound))))
        nodes, message = nodes + (found.nodes or 1), found.message or message
        proof = found.proof if found.proof != "rigorous" else proof
    bound = min(least, best.proven)
    stopped, seconds = message if bound < best.target else None, time.perf_counter() - start
    return Proposal(best.action, bound, proof, nodes, stopped, seconds, best.judgement)


def _levers(instance: Instance) -> list[str]:
    """The levers whose value is missing."""
    return [name for name in instance.levers if name in instance.missing]


def _sets(instance: Instance) -> Iterator[tuple[str, ...]]:
    """Sets of these levers, small ones first."""
    names = _levers(instance)
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def _cost_of(instance: Instance, acted: Collection[str]) -> tuple[Fraction, Fraction]:
    """What acting on missing levers costs besides what is fixed, and their entry in the maximum, one of which
    is 0 (:func:`why_not_gaps`). The settled problem has that of labels without order, as changed labels."""
    labels = {f.name for f in instance.features if f.kind == "categorical"}
    levers = {name: instance.lever_cost(name) for name in acted if name not in labels}
    nothing = Fraction(0)
    each = [one.prices._replace(fixed=nothing).paid(one.size(0.0)) for one in levers.values()]
    return sum((paid for paid, _ in each), nothing), max((entry for _, entry in each), default=nothing)


def _settled(instance: Instance, acted: Collection[str]) -> Instance:
    """The problem without missing values in which exactly ``acted`` of the missing levers are acted on. They
    cost what is fixed, labels without an order also what a changed label does, and nothing else."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    factual, features, gone, column = dict(instance.factual), list(instance.features), set[int](), 0
    ends = dict[str, tuple[float, float]]()
    for k, feature in enumerate(instance.features):
        name, columns = feature.name, range(column, column + len(feature.columns))
        column = columns.stop
        if name in acted:
            low, high = instance.levers[name]
            features[k], factual[name] = x = _outside(feature, low, high)
            ends[name] = min(low, x[1]), max(high, x[1])
        elif name in instance.missing:
            features[k], factual[name] = replace(feature, domain=None, monotone=None), 0.0
            gone |= set(columns)
    mask = tuple(
        name for name in instance.preferences.actionable if name not in instance.missing or name in acted
    )
    return replace(
        instance,
        features=tuple(features),
        classifier=_without_columns(forest, frozenset(gone)),
        factual=factual,
        preferences=replace(instance.preferences, actionable=mask),
        cost=instance.cost.without_sizes(ends),
        reference=None,
    )


def _outside(feature: Feature, low: float, high: float) -> tuple[Feature, float]:
    """The feature with the domain [low, high], and a factual value outside it: so it must be acted on.

    Labels get one more label for that, whose numbers do not matter.
    """
    kept = replace(feature, domain=(low, high), monotone=None, bounds=(low, high))
    if feature.categories is None:
        return kept, min(low - 1.0, math.nextafter(low, -math.inf))
    labels = (*feature.categories, "".join(feature.categories) + "'")
    if feature.by_label:
        assert feature.lookup is not None
        rows = (*map(tuple, feature.lookup.tolist()), (0.0,) * feature.lookup.shape[1])
        kept = replace(kept, encoding="table", table=rows)
    return replace(kept, categories=labels), float(len(feature.categories))


@lru_cache(maxsize=64)
def _without_columns(forest: TreeEnsemble, columns: frozenset[int]) -> TreeEnsemble:
    """The ensemble in which every split on these columns goes the way of a missing value."""
    return replace(forest, trees=tuple(_on_the_way(tree, list(columns)) for tree in forest.trees))


def _on_the_way(tree: Tree, columns: list[int]) -> Tree:
    split = (tree.left != -1) & np.isin(tree.feature, columns)
    if tree.missing_left is None or not split.any():
        return tree
    ends = np.where(tree.missing_left, _FAR, -_FAR)
    return replace(tree, threshold=np.where(split, ends, tree.threshold))
