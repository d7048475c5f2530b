r"""Steps and lists of values by branch and bound, around any exact back end.

The problem is *relaxed*: actions may set every value of the kind between two limits. An optimum of the
relaxed problem bounds that of the problem. If all of its actions are values that the levers may take, it is
the optimum. Otherwise it sets some lever to a value v between two neighbours :math:`p < v < q` that may be
set, and two problems take its place: in one an action on the lever sets at most p, in the other at least q.
Not acting on it stays possible in both. Problems are taken cheapest first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, product

from milp_recourse.judge import without_search
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.solvers.protocol import Backend, Options, Proposal

PATIENCE = 1.0
"""Seconds for a relaxed problem whose levers still have values to be told apart. One that takes longer, as
where levers have to move together exactly, is halved instead."""

Ranges = Mapping[str, tuple[float, float]]

MOST_ROUNDED = 16
"""Most actions that are tried for one optimum of a relaxed problem, its values rounded either way."""


def to_relax(instance: Instance, backend: Backend) -> bool:
    """Whether a back end that proves bounds does not itself keep to the steps or values of some lever."""
    if not backend.proves or all(instance.feature(name).only is None for name in instance.levers):
        return False
    keeps: Callable[[Instance], bool] | None = getattr(backend, "keeps_lattices", None)
    return keeps is None or not keeps(instance)


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
    within = {name: instance.levers[name] for name in instance.levers if instance.feature(name).only}
    own = replace(instance.preferences, ranges={**instance.preferences.ranges, **within, **ranges})
    return replace(instance, features=features, preferences=own, reference=None)


def _halves(instance: Instance, problem: Instance) -> list[Ranges]:
    """The ranges of both halves of the lever whose range has shrunk least; none where each that takes steps
    or listed values has one left at most."""
    most, parts = 0.0, list[Ranges]()
    for name, (low, high) in problem.levers.items():
        lattice, whole = instance.feature(name).only, instance.levers.get(name)
        if lattice is None or whole is None or not low < high:
            continue
        below = lattice.floor(0.5 * (low + high))
        above, share = lattice.ceil(math.nextafter(below, math.inf)), (high - low) / (whole[1] - whole[0])
        if low <= below and above <= high and share > most:
            most, parts = share, [{name: (low, below)}, {name: (above, high)}]
    return parts


def _parts(instance: Instance, problem: Instance, action: Mapping[str, float]) -> list[Ranges]:
    """The ranges of both sides of the value that is farthest from what its lever may be set to, as a part of
    the lever's interval; none if there is no such value."""
    worst, at = 0.0, None
    for name, value in action.items():
        lattice = instance.feature(name).only
        if lattice is not None and value not in lattice:
            low, high = problem.levers[name]
            away = min(value - lattice.floor(value), lattice.ceil(value) - value) / ((high - low) or 1.0)
            if at is None or away > worst:
                worst, at = away, name
    if at is None:
        return []
    (low, high), lattice = problem.levers[at], instance.feature(at).only
    assert lattice is not None
    return [{at: ends} for ends in ((low, lattice.floor(action[at])), (lattice.ceil(action[at]), high))]


def _rounded(
    instance: Instance, problem: Instance, action: Mapping[str, float]
) -> Iterator[dict[str, float]]:
    """The action with its values rounded to what may be set: to the nearest, then in other ways."""
    ways = []
    for name, value in action.items():
        lattice = instance.feature(name).only
        if lattice is None:
            ways.append([value])
            continue
        low, high = problem.levers[name]
        both = {min(max(one, low), high) for one in (lattice.floor(value), lattice.ceil(value))}
        ways.append(sorted(both, key=lambda one, value=value: abs(one - value)))  # type: ignore[misc]
    if action:
        for values in islice(product(*ways), MOST_ROUNDED):
            yield dict(zip(action, values, strict=True))
