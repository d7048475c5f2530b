"""Exact candidates: recourses that differ, each the certified optimum of a problem of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.judge import judge
from milp_recourse.preferences.cost_parts import levers
from milp_recourse.preferences.hare import FloatArray, repulsion
from milp_recourse.preferences.known_optima import Optima
from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.moved import moved
from milp_recourse.problem.result import Result
from milp_recourse.questions.choices import choices
from milp_recourse.questions.solve import solve

By = Literal["weights", "features", "directions"]

ALONG = 0.01
"""Share of the sum of changes in the cost of a direction, so that no lever moves for nothing; and in the
squared distance to an aim, which is so near 0 beside the boundary that no search would end."""


@dataclass(frozen=True)
class Candidate:
    """A recourse and what is proven of it.

    Attributes
    ----------
    action
        Labels by their index.
    problem, result
        The problem whose certified answer it is, and the answer. In a direction, the answer's cost is how far
        one has to go that way; the action is then the furthest corner, if that is accepted.
    """

    action: Mapping[str, float]
    problem: Instance
    result: Result


def exact_candidates(
    instance: Instance,
    count: int,
    by: By = "weights",
    seed: int = 0,
    backend: str | None = None,
    time_limit: float | None = None,
) -> list[Candidate]:
    """At most ``count`` distinct recourses, each with a proof.

    Parameters
    ----------
    by
        ``weights``: the cheapest under weights drawn uniformly; ``features``: the cheapest on each set of
        features, cheapest first; ``directions``: the first in each of ``count`` directions that differ, see
        :func:`in_direction`.
    backend, time_limit
        As for :func:`milp_recourse.solve`, for each search.
    """
    if count < 1:
        raise BadInput("count", count, "a whole number, 1 or more")
    if by == "features":
        found = choices(instance, count, "features", backend=backend, time_limit=time_limit)
        listed = [
            (found.problem(k), one.result)
            for k, one in enumerate(found.choices)
            if one.result.action is not None
        ]
        return _distinct([Candidate(p.numbers(r.action or {}), p, r) for p, r in listed])[:count]
    names, rng = levers(instance), np.random.default_rng(seed)
    if by == "directions":
        ways = spread(rng, count, instance)
        made = [in_direction(instance, way, backend, time_limit) for way in ways]
        return _distinct([one for one in made if one is not None])
    optima = Optima(instance, None, backend, time_limit)
    drawn = rng.dirichlet(np.ones(len(names)), 4 * count) * len(names) if names else np.zeros((0, 0))
    drawn = np.maximum(drawn, 1e-3)
    listed = []
    for block in range(0, len(drawn), count):
        for one in optima.at([tuple(w) for w in drawn[block : block + count].tolist()]):
            if one.result.action is not None:
                listed.append((optima.problem(one.weights), one.result))
        distinct = _distinct([Candidate(p.numbers(r.action or {}), p, r) for p, r in listed])
        if len(distinct) >= count:
            break
    return distinct[:count] if listed else []


def spread(rng: np.random.Generator, count: int, instance: Instance, tries: int = 50) -> FloatArray:
    """Directions of change, one coordinate per lever, that are far apart; only ways that the lever can go."""
    names = levers(instance)
    sides = np.array([_sides(instance, name) for name in names]).reshape(len(names), 2)
    best: FloatArray | None = None
    for _ in range(tries):
        ways = np.abs(rng.normal(size=(count, len(names))))
        up = rng.random(ways.shape) < sides[:, 1] / np.maximum(sides.sum(axis=1), 1)
        ways = np.where(up, ways, -ways)
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        if best is None or repulsion(ways) < repulsion(best):
            best = ways
    assert best is not None
    return best


def _sides(instance: Instance, name: str) -> tuple[bool, bool]:
    """Whether a lever can fall, and rise."""
    low, high = instance.levers[name]
    if not instance.by_amount(name):
        return False, True
    x = instance.factual[name]
    return low < x, high > x


def in_direction(
    instance: Instance, way: FloatArray, backend: str | None = None, time_limit: float | None = None
) -> Candidate | None:
    r"""The first recourse in a direction, with proof; None if there is none that way.

    With s_f the distance between the bounds of lever f, it is the least t such that some recourse changes
    every lever f by at most :math:`t |p_f| s_f`, and in the sense of p_f; plus a small share of the sum of
    changes. The action is the corner, every lever changed by :math:`t p_f s_f`, if the judge accepts it."""
    names = levers(instance)
    ranges, weights = dict(instance.preferences.ranges), dict[str, float]()
    for name, part in zip(names, way.tolist(), strict=True):
        weights[name] = 1 / max(abs(part), 1e-3)
        if not instance.by_amount(name):
            continue
        x, (low, high) = instance.factual[name], instance.levers[name]
        ranges[name] = (max(low, x), max(high, x)) if part >= 0 else (min(low, x), min(high, x))
    cost = Cost(l1=ALONG, linf=1.0, measures=measured(_spans(instance)))
    own = replace(instance.preferences, ranges=ranges, weights={**instance.preferences.weights, **weights})
    problem = replace(instance, cost=cost, preferences=own, reference=None)
    result = solve(problem, backend, time_limit)
    if not result.action:
        return None
    action = problem.numbers(result.action)
    reach = max(abs(_moved(problem, f, v)) * weights[f] for f, v in action.items())
    corner = _corner(problem, dict(zip(names, way.tolist(), strict=True)), reach, action)
    return Candidate(corner if judge(problem, corner).feasible else action, problem, result)


def nearest_to(
    instance: Instance,
    aim: Mapping[str, float],
    backend: str | None = None,
    time_limit: float | None = None,
) -> Candidate | None:
    """The recourse nearest to an action, with proof; None if there is none.

    Its problem is that of somebody who has taken the action, and can set the levers to what the person can.
    Distances are squared, in units of the distance between a lever's bounds, plus a small share of the sum of
    changes. Conditions are theirs, too: the judge has to say whether the action is allowed to the person."""
    begin = moved(instance, judge(instance, aim).counterfactual, aim)
    if begin is None:
        return None
    features = tuple(replace(f, monotone=None) for f in instance.features)
    own = replace(begin.preferences, ranges=instance.levers, weights={})
    cost = Cost(l2_squared=1.0, l1=ALONG, measures=measured(_spans(instance)))
    problem = replace(begin, features=features, cost=cost, preferences=own)
    result = solve(problem, backend, time_limit)
    if result.action is None:
        return None
    after = judge(problem, problem.numbers(result.action)).counterfactual
    action = {n: after[n] for n in instance.levers if after[n] != instance.factual[n]}
    return Candidate({n: v for n, v in action.items() if not math.isnan(v)}, problem, result)


def _spans(instance: Instance) -> dict[str, float]:
    """The distance between each lever's bounds; 1 for another label."""
    found = {}
    for name in instance.preferences.actionable:
        low, high = instance.by_name[name].action_bounds
        found[name] = (high - low or 1.0) if instance.by_amount(name) else 1.0
    return found


def _moved(problem: Instance, name: str, value: float) -> float:
    """A lever's change in units of the distance between its bounds; 1 for another label."""
    if not problem.by_amount(name):
        return 1.0
    return (value - problem.factual[name]) / problem.lever_costs[name].rise


def _corner(
    problem: Instance, way: Mapping[str, float], reach: float, action: Mapping[str, float]
) -> dict[str, float]:
    corner = dict(action)
    for name, part in way.items():
        if not problem.by_amount(name) or name not in problem.levers:
            continue
        feature, (low, high) = problem.by_name[name], problem.levers[name]
        value = problem.factual[name] + reach * part * problem.lever_costs[name].rise
        value = float(np.clip(feature.nearest(value), low, high))
        if value != problem.factual[name]:
            corner[name] = value
    return corner


def _distinct(found: list[Candidate]) -> list[Candidate]:
    """Without those whose action is that of an earlier one, or empty."""
    seen: dict[tuple[tuple[str, float], ...], Candidate] = {}
    for one in found:
        if one.action:
            seen.setdefault(tuple(sorted(one.action.items())), one)
    return list(seen.values())
