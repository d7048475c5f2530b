"""Around any exact back end: problems that it does not take, by simpler ones that it does.

*Steps and lists of values*, by branch and bound. The problem is *relaxed*: actions may set every value of the
kind between two limits. An optimum of the relaxed problem bounds that of the problem. If all of its actions
are values that the levers may take, it is the optimum. Otherwise it sets some lever to a value v between two
neighbours :math:`p < v < q` that may be set, and two problems take its place: in one an action on the lever
sets at most p, in the other at least q. Not acting on it stays possible in both. Problems are taken cheapest
first.

*Trees and missing values*, under conditions that tie features together. The search of such problems knows no
missing value, so these are settled first. One that nobody acts on stays missing: where a tree splits on the
feature, the way is the one for missing values. A lever whose value is missing may be acted on, at the same
cost whatever it is set to. So there is a problem without missing values for each set S of these levers, in
which those of S must be acted on, at no cost, and the others may not; the cheapest of their optima, each with
the cost of S, is the optimum.

Each such lever doubles the number of sets. So only the empty set is solved by itself, and then one problem
for all others, in which each lever that costs less by itself than the best action in hand is a label: one for
each of its cells, and one for staying missing, which is the factual one and free. Where acting has a fixed
cost, that problem has another cost, and says only whether anybody has an action. There, and where a condition
counts actions or asks whether such a lever is acted on, sets are solved one by one, those that cost least by
themselves first, as long as they cost less than the best action in hand.

*Ensembles whose score is the largest of several sums*: one problem per sum, and the cheapest action.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import axis_of, without_twins
from milp_recourse.engine.forests.parts import each_part
from milp_recourse.judge import without_search
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.features import Feature, with_columns
from milp_recourse.problem.forest import MISSING, Tree, TreeEnsemble
from milp_recourse.problem.instance import Instance, kept_with
from milp_recourse.problem.options import Clock
from milp_recourse.program.demands import told_apart
from milp_recourse.program.presolve import folds_away
from milp_recourse.solvers.protocol import Options, Proposal

PATIENCE = 1.0
"""Seconds for a relaxed problem whose levers still have values to be told apart. One that takes longer, as
where levers have to move together exactly, is halved instead."""

Array = NDArray[np.float64]
Ranges = Mapping[str, tuple[float, float]]

MOST_ROUNDED = 16
"""Most actions that are tried for one optimum of a relaxed problem, its values rounded either way."""


def solve_relaxed(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """The optimum on steps and lists of values.

    Parameters
    ----------
    solve
        Solves an instance without them.
    """
    start = time.perf_counter()
    search = BestFirst[Ranges](instance, Clock.start(options.time_limit), watch=options.watch)
    search.push(0.0, {})
    everything = frozenset(range(len(instance.all_conditions)))
    rests_on = frozenset[int]()
    while taken := search.next():
        [(before, ranges)] = taken
        problem = relaxed(instance, ranges)
        left, halves = search.clock.left(), _halves(instance, problem)
        limit = min(PATIENCE, math.inf if left is None else left) if halves else left
        own = replace(options, time_limit=limit, starts=None, watch=None)
        found = without_search([problem])[0] or solve(problem, own)
        search.nodes += found.nodes or 1
        rests_on |= everything if found.rests_on is None else found.rests_on
        search.proof = search.proof if found.proof in (None, "rigorous") else found.proof
        bound = max(before, found.lower_bound or 0.0)
        if bound >= search.target:
            search.close(bound)
            continue
        for action in _rounded(instance, problem, found.action or {}):
            search.offer(action)
        parts = _parts(instance, problem, found.action or {}) or (halves if found.message else [])
        for part in parts:
            search.push(bound, {**ranges, **part})
        if not parts:
            search.close(bound)
            if found.message and bound < search.target:
                search.stop(found.message)
    return replace(search.outcome(time.perf_counter() - start), rests_on=rests_on)


def relaxed(instance: Instance, ranges: Ranges) -> Instance:
    """The problem without steps and lists of values, in which actions set values in narrower ranges."""
    features = tuple(replace(f, only=None) for f in instance.features)
    within = {name: instance.levers[name] for name in instance.levers if instance.by_name[name].only}
    own = replace(instance.preferences, ranges={**instance.preferences.ranges, **within, **ranges})
    return replace(instance, features=features, preferences=own, reference=None)


def _halves(instance: Instance, problem: Instance) -> list[Ranges]:
    """The ranges of both halves of the lever whose range has shrunk least; none where each that takes steps
    or listed values has one left at most."""
    most, parts = 0.0, list[Ranges]()
    for name, (low, high) in problem.levers.items():
        lattice, whole = instance.by_name[name].only, instance.levers.get(name)
        if lattice is None or whole is None or not low < high:
            continue
        below = lattice.floor(0.5 * (low + high))
        above, share = lattice.after(below), (high - low) / (whole[1] - whole[0])
        if low <= below and above <= high and share > most:
            most, parts = share, [{name: (low, below)}, {name: (above, high)}]
    return parts


def _parts(instance: Instance, problem: Instance, action: Mapping[str, float]) -> list[Ranges]:
    """The ranges of both sides of the value that is farthest from what its lever may be set to, as a part of
    the lever's interval; none if there is no such value."""
    worst, at = 0.0, None
    for name, value in action.items():
        lattice = instance.by_name[name].only
        if lattice is not None and value not in lattice:
            low, high = problem.levers[name]
            away = min(value - lattice.floor(value), lattice.ceil(value) - value) / ((high - low) or 1.0)
            if at is None or away > worst:
                worst, at = away, name
    if at is None:
        return []
    (low, high), lattice = problem.levers[at], instance.by_name[at].only
    assert lattice is not None
    return [{at: ends} for ends in ((low, lattice.floor(action[at])), (lattice.ceil(action[at]), high))]


def _rounded(
    instance: Instance, problem: Instance, action: Mapping[str, float]
) -> Iterator[dict[str, float]]:
    """The action with its values rounded to what may be set: to the nearest, then in other ways."""
    ways = []
    for name, value in action.items():
        lattice = instance.by_name[name].only
        if lattice is None:
            ways.append([value])
            continue
        low, high = problem.levers[name]
        both = {min(max(one, low), high) for one in (lattice.floor(value), lattice.ceil(value))}
        ways.append(sorted(both, key=lambda one, value=value: abs(one - value)))  # type: ignore[misc]
    if action:
        for values in islice(product(*ways), MOST_ROUNDED):
            yield dict(zip(action, values, strict=True))


_FAR = float(np.finfo(np.float64).max)


def has_gaps(instance: Instance) -> bool:
    """Whether an instance of trees has missing values beside conditions that cells alone cannot express."""
    forest = isinstance(instance.classifier, TreeEnsemble)
    return forest and bool(instance.missing) and not folds_away(instance)


def why_not_gaps(instance: Instance) -> str | None:
    """Why such an instance is not solved, or None."""
    prices = [instance.lever_costs[name].prices for name in _levers(instance)]
    if any(one.largest and any(one[:3]) for one in prices):
        return "a missing value, conditions on sums or on holding a feature, and a maximum within the cost"
    return None


def solve_gaps(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """The cheapest of the optima with no missing lever acted on, and with some of them: of all sets together
    where they can be labels, else set by set.

    Parameters
    ----------
    solve
        Solves an instance without missing values.
    """
    start, levers = time.perf_counter(), _levers(instance)
    apart = not told_apart(instance.demand, instance.missing).isdisjoint(instance.missing)
    search = BestFirst[tuple[int, ...]](instance, Clock.start(options.time_limit), watch=options.watch)

    def least_cost(acted: Collection[str]) -> float:
        costs = [instance.lever_costs[name].paid(0.0) for name in acted]
        return round_down(sum(paid for paid, _ in costs) + max(entry for _, entry in costs))

    def solved(problem: Instance) -> Proposal:
        own = replace(options, time_limit=search.clock.left(), starts=None, watch=None)
        found = without_search([problem])[0] or solve(problem, own)
        search.nodes += found.nodes or 0
        search.proof = search.proof if found.proof in (None, "rigorous") else found.proof
        return found

    search.push(0.0, ())
    while taken := search.next():
        [(_, set_)] = taken
        acted = [levers[k] for k in set_]
        (paid, entry), found = _cost_of(instance, acted), solved(_settled(instance, acted))
        search.message = search.message or found.message
        least = found.lower_bound or 0.0
        search.close(least if math.isinf(least) else round_down(max(entry, paid + Fraction(least))))
        if found.action is not None:
            search.offer(found.action)
        if not set_ and not search.clock.over and not apart:
            cheap = [name for name in levers if least_cost([name]) < search.target]
            fixed = any(instance.lever_costs[name].prices.fixed for name in instance.levers)
            if len(cheap) > 1 and (not fixed or search.best.action is None):
                problem, values = _as_choice(instance, cheap)
                found = solved(problem)
                if found.action is not None:
                    search.offer(_chosen(found.action, values))
                least = found.lower_bound or 0.0
                if math.isinf(least) or not fixed:
                    search.message = search.message or found.message
                    search.close(min(least, search.target))
                    continue
        for k in range(max(set_, default=-1) + 1, len(levers)):
            search.push(least_cost([*acted, levers[k]]), (*set_, k))
    return search.outcome(time.perf_counter() - start)


def _levers(instance: Instance) -> list[str]:
    """The levers whose value is missing."""
    return [name for name in instance.levers if name in instance.missing]


def _as_choice(instance: Instance, cheap: Collection[str]) -> tuple[Instance, dict[str, Array]]:
    """The problem without missing values in which each of some missing levers is a label and the others stay
    missing, and what labels stand for: the first for staying missing (nan), every other for a cell.

    A fixed cost becomes one per size, so that the levers with a value cost something else.
    """
    forest, features, values = instance.classifier, list(instance.features), dict[str, Array]()
    assert isinstance(forest, TreeEnsemble)
    gone, twice = set[int](), set[int]()
    for k, feature, columns in _gaps(instance):
        if feature.name not in cheap:
            features[k] = _unread(feature)
            gone |= set(columns)
            continue
        axis, _ = without_twins(axis_of(instance, forest, feature, columns), forest)
        values[feature.name], on, table = axis.values, dict(axis.columns), list[NDArray[np.int64]]()
        for c in columns:
            cells = on.get(c, np.zeros(len(axis), dtype=np.int64))
            table += [cells, np.where(cells == MISSING, len(forest.cuts[c]), cells)]
        rows = tuple(map(tuple, np.array(table, dtype=np.float64).T.tolist()))
        labels = tuple(map(str, range(len(axis))))
        features[k] = Feature(
            feature.name, "categorical", True, categories=labels, encoding="table", table=rows
        )
        twice |= set(columns)
    own = instance.preferences
    mask = tuple(name for name in own.actionable if name not in instance.missing or name in values)
    ranges = {name: ends for name, ends in own.ranges.items() if name not in values}
    made = replace(
        instance,
        features=tuple(features),
        classifier=_read_twice(_without_columns(forest, frozenset(gone)), frozenset(twice)),
        factual={**instance.factual, **dict.fromkeys(instance.missing, 0.0)},
        preferences=replace(own, actionable=mask, ranges=ranges),
        cost=instance.cost.by_size(values, instance.by_name),
        reference=None,
    )
    return made, values


def _chosen(action: Mapping[str, float], values: Mapping[str, Array]) -> dict[str, float]:
    """The action with the values that labels stand for."""
    known = {name: float(values[name][int(v)]) if name in values else v for name, v in action.items()}
    return {name: value for name, value in known.items() if not math.isnan(value)}


def _cost_of(instance: Instance, acted: Collection[str]) -> tuple[Fraction, Fraction]:
    """What acting on missing levers costs besides what is fixed, and their entry in the maximum, one of which
    is 0 (:func:`why_not_gaps`). The settled problem has that of labels without order, as changed labels."""
    labels = {f.name for f in instance.features if f.kind == "categorical"}
    levers = {name: instance.lever_costs[name] for name in acted if name not in labels}
    nothing = Fraction(0)
    each = [one.prices._replace(fixed=nothing).paid(one.size(0.0)) for one in levers.values()]
    return sum((paid for paid, _ in each), nothing), max((entry for _, entry in each), default=nothing)


def _settled(instance: Instance, acted: Collection[str]) -> Instance:
    """The problem without missing values in which exactly ``acted`` of the missing levers are acted on. They
    cost what is fixed, labels without an order also what a changed label does, and nothing else."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    factual, features, gone = dict(instance.factual), list(instance.features), set[int]()
    ends = dict[str, tuple[float, float]]()
    for k, feature, columns in _gaps(instance):
        name = feature.name
        if name in acted:
            low, high = instance.levers[name]
            features[k], factual[name] = x = _outside(feature, low, high)
            ends[name] = min(low, x[1]), max(high, x[1])
        else:
            features[k], factual[name] = _unread(feature), 0.0
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


def _gaps(instance: Instance) -> Iterator[tuple[int, Feature, range]]:
    """The features whose value is missing, each with its position and the columns that it fills."""
    for k, (feature, columns) in enumerate(with_columns(instance.features)):
        if feature.name in instance.missing:
            yield k, feature, columns


def _unread(feature: Feature) -> Feature:
    """A feature that stays missing, which no domain binds: it may have any value that trees do not read."""
    return replace(feature, domain=None, monotone=None)


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


MOST_SETTLED = 64
"""So many ensembles that are made of one are kept with it: applicants often miss the same values."""


@kept_with(MOST_SETTLED)
def _without_columns(forest: TreeEnsemble, columns: frozenset[int]) -> TreeEnsemble:
    """The ensemble in which every split on these columns goes the way of a missing value."""
    return replace(forest, trees=tuple(_on_the_way(t, list(columns)) for t in forest.trees))


def _on_the_way(tree: Tree, columns: list[int]) -> Tree:
    split = (tree.left != -1) & np.isin(tree.feature, columns)
    if tree.missing_left is None or not split.any():
        return tree
    ends = np.where(tree.missing_left, _FAR, -_FAR)
    return replace(tree, threshold=np.where(split, ends, tree.threshold))


@kept_with(MOST_SETTLED)
def _read_twice(forest: TreeEnsemble, columns: frozenset[int]) -> TreeEnsemble:
    """The ensemble with two columns in place of each of these, which hold the number of its cell: the first
    is read by splits whose missing values go left, the second by the others."""
    split = np.isin(np.arange(forest.inputs), list(columns))
    place = np.arange(forest.inputs) + np.cumsum(split) - split
    ends = np.cumsum([len(tree.left) for tree in forest.trees])[:-1]
    trees = []
    for tree, last in zip(forest.trees, np.split(forest.last_cells, ends), strict=True):
        inner, threshold = tree.left != -1, tree.threshold
        read = np.where(inner, tree.feature, 0)
        feature = np.where(inner, place[read], tree.feature)
        if tree.missing_left is not None:
            twice = inner & split[read]
            feature, threshold = feature + (twice & ~tree.missing_left), np.where(twice, last, threshold)
        trees.append(replace(tree, feature=feature, threshold=threshold))
    return replace(forest, trees=tuple(trees), inputs=forest.inputs + len(columns))


def cheapest_part(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """Solve one problem per sum. What is accepted is accepted by at least one of the sums, so the least bound
    of these problems is a bound of the whole.

    The time limit is for all of them together; each may take an equal share of what is left of it.
    """
    parts = each_part(instance)
    if len(parts) == 1:
        return solve(parts[0], options)
    start, clock = time.perf_counter(), Clock.start(options.time_limit)
    search = BestFirst[Instance](instance, clock)
    for part in parts:
        search.push(0.0, part)
    waiting = len(parts)
    while taken := search.next():
        [(_, part)], left = taken, clock.left()
        share = None if left is None else max(left / waiting, 1e-3)
        found = solve(part, replace(options, time_limit=share))
        waiting, search.nodes = waiting - 1, search.nodes + (found.nodes or 0)
        search.proof = found.proof or search.proof
        search.message = search.message or found.message
        search.close(found.lower_bound or 0.0)
        if found.action is not None:
            search.offer(found.action)
    return search.outcome(time.perf_counter() - start)
