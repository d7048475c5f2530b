"""Random problems: choices and certain actions, back ends against each other and against brute force.

For every kind and so many draws. ``features``, ``distance``, ``effect``: three recourses that differ; each
is found by one back end, the problem that it answers is solved by another, and a dense grid must hold nothing
cheaper than the stated bound that differs, which is judged here by its own few lines. ``least total``: every
set of features is solved by itself, and every pair of them tried. ``missed``,
``threshold``, ``noise``, ``together``: the cheapest action that withstands it, by two back ends; 10 000
sampled outcomes must not refute it, and every cheaper grid point must be refuted by some outcome (for trees
without causes both are done by enumeration, exactly). Run from the repository root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Acceptance, Instance, demanding
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.choices import Choice, Choices, choices, far_from, other_features
from milp_recourse.questions.robust import Uncertainty, robust, uncertainty_of
from tests.conditions.compare_conditions import cheap_points, problem
from tests.helpers.brute_force import costs, number, subsets
from tests.helpers.generators import Style, supported_instance
from tests.helpers.plain_outcomes import every_cell, lowest, sampled
from tests.helpers.tree_samples import candidates, random_tree_instance
from tests.properties.agreement import BRUTE, TWO, compare, same

CHOICE_KINDS = ("features", "distance", "effect")
TOTAL = "least total"
CERTAIN_KINDS = ("missed", "threshold", "noise", "together")
KINDS = (*CHOICE_KINDS, TOTAL, *CERTAIN_KINDS)
Outcome = tuple[Counter[str], list[str]]
Way = tuple[float, frozenset[str]]
SAMPLES = 10_000
_POINTS = 150  # grid points that are looked at, cheapest first


def refused(seed: int, trees: bool, many_ways: bool = False) -> Instance | None:
    """The first problem of seed, seed + 1000, ... of somebody who is refused and has recourse."""
    for k in range(20):
        drawn = with_many_ways if many_ways and seed % 4 else problem
        instance = drawn(seed + 1000 * k, trees)
        if instance is not None and not instance.missing and solve(instance, time_limit=10).action:
            return instance
    return None


def with_many_ways(seed: int, trees: bool) -> Instance | None:
    """A problem of several levers where fewer of them cost more, or where any of them will do."""
    if trees:
        made = random_tree_instance(seed, 6, 6)
        here = made.classifier.score(made.model_rows(made.factual_row))  # any higher score will do
        easy = replace(made, accept=Acceptance(here, 0.0, strict=True)) if seed % 2 else made
        return easy if len(made.levers) > 2 else None
    made = supported_instance(seed, Style(levers=4, curves=False, gamma=False, plausible=0.0))
    squared = replace(made, cost=Cost.pure("l2-squared", made.cost.measures), reference=None)
    return squared if len(made.levers) > 2 else None


def differs(instance: Instance, action: dict[str, float], earlier: Sequence[Choice], kind: str, apart: float,
            scale: dict[str, float]) -> bool:  # fmt: skip
    """Whether an action differs from every earlier choice, from the words of the format."""
    after = judge(instance, action).counterfactual
    for one in earlier:
        assert one.result.action is not None and one.result.counterfactual is not None
        if kind == "features":
            if set(one.result.action) <= set(action):
                return False
            continue
        far = False
        for name, unit in scale.items():
            here, there = after[name], number(instance, name, one.result.counterfactual[name])
            moved = abs(Fraction(repr(here)) - Fraction(repr(there)))  # as written
            if instance.by_name[name].kind == "categorical":
                moved = Fraction(here != there)
            far = far or moved >= Fraction(repr(apart)) * Fraction(repr(unit))
        if not far:
            return False
    return True


def check_choices(seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float) -> Outcome:
    """The choices of one draw: what happened, and what is wrong."""
    instance = refused(seed, trees, kind == "features")
    if instance is None:
        return Counter({"no problem": 1}), []
    counts, wrong = Counter[str](), list[str]()
    apart = 1.0 if kind == "features" else 0.15
    found = choices(instance, 3, kind, apart, None, backends[0], 4 * limit)  # type: ignore[arg-type]
    scale, two = dict(found.scale), True
    for k, one in enumerate(found.choices):
        action = {n: number(instance, n, v) for n, v in (one.result.action or {}).items()}
        if not differs(instance, action, found.choices[:k], kind, apart, scale):
            wrong.append(f"choice {k} does not differ")
        if one.result.status is not Status.OPTIMAL:
            two = False
            continue
        others = list(other_costs(found.problem(k), backends[1:], limit))
        two &= bool(others)
        wrong += [
            f"choice {k}: {n} {c}, {one.result.cost}" for n, c in others if not same(c, one.result.cost)
        ]
        bound = (one.result.lower_bound or 0.0) * (1 - 1e-9) - 1e-9
        better = cheaper(instance, found.choices[:k], kind, apart, scale, bound)
        if better is not None:
            wrong.append(f"choice {k} at {one.result.lower_bound}, but {better}")
    if found.exhausted and not any(one.result.action == {} for one in found.choices):
        others = list(other_costs(after_all(found), backends[1:], limit))
        two &= bool(others)
        wrong += [f"nothing is left, but {n} finds {c}" for n, c in others if c is not None]
        better = cheaper(instance, found.choices, kind, apart, scale, np.inf)
        if better is not None:
            wrong.append(f"nothing is left, but {better}")
    happened = f"{len(found.choices)} choices{', exhausted' if found.exhausted else ''}"
    counts[happened if found.proven else f"{happened}, limit"] += 1
    counts[TWO] += two
    counts[BRUTE] += 1
    return counts, wrong


def after_all(found: Choices) -> Instance:
    """The problem of finding what differs from every one of the choices."""
    demands = found.choices[-1].conditions if found.choices else ()
    for one in found.choices[-1:]:
        near = found.differ == "features"
        demands += (
            other_features(one.result)
            if near
            else far_from(found.instance, one.result, found.apart, found.scale),
        )
    return demanding(found.instance, demands)


def check_total(seed: int, trees: bool, backends: Sequence[str], limit: float) -> Outcome:
    """Ways of least total cost of which any two differ in two features, against the best set of masks.

    The second back end solves every mask by itself; the best set is found by trying all.
    """
    instance = refused(seed, trees, True)
    if instance is None:
        return Counter({"no problem": 1}), []
    count, apart, wrong = 2, 2, list[str]()
    found = choices(instance, count, "features", apart, None, backends[0], 4 * limit, together=True)
    counts = Counter({f"{len(found.choices)} ways{'' if found.proven else ', limit'}": 1})
    ways: list[Way] = []
    settled = found.proven
    for acted in subsets(instance):
        own = replace(instance.preferences, actionable=acted)
        [*answers] = other_costs(replace(instance, preferences=own), backends[1:], limit)
        settled &= bool(answers)
        if answers and answers[0][1] is not None:
            ways.append((answers[0][1], frozenset(acted)))
    if not settled or found.total is None:
        return counts, wrong
    counts[TWO] += 1
    counts[BRUTE] += 1
    ways = [way for way in ways if not any(needless(way, other) for other in ways)]
    most, least = 0, np.inf
    for size in range(1, count + 1):
        for some in combinations(ways, size):
            if all(len(a[1] ^ b[1]) >= apart for a, b in combinations(some, 2)):
                total = sum(w[0] for w in some)
                most, least = (size, total) if size > most else (most, min(least, total))
    if len(found.choices) != most:
        wrong.append(f"{len(found.choices)} ways, but there are {most}")
    elif not same(found.total[0], float(least)):
        wrong.append(f"a total of {found.total[0]}, but there is {least}")
    return counts, wrong


def other_costs(
    instance: Instance, backends: Sequence[str], limit: float
) -> Iterator[tuple[str, float | None]]:
    """What other back ends prove to be the cost; None: infeasible."""
    for name in backends:
        try:
            result = solve(instance, name, limit)
        except Unsupported:
            continue
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE):
            yield name, result.cost


def cheaper(instance: Instance, earlier: Sequence[Choice], kind: str, apart: float, scale: dict[str, float],
            bound: float) -> tuple[float, dict[str, float]] | None:  # fmt: skip
    """A feasible grid point below the bound that differs from the earlier choices."""
    for acted in subsets(instance):
        for looked, (cost, action) in enumerate(cheap_points(instance, acted, bound)):
            if looked >= _POINTS:
                break
            if differs(instance, action, earlier, kind, apart, scale) and judge(instance, action).feasible:
                return cost, action
    return None


def drawn(seed: int, kind: str, instance: Instance) -> Uncertainty:
    """What is to be withstood in a draw."""
    rng = np.random.default_rng([seed, 77])
    missed, noise, threshold = {}, {}, None
    for f in instance.features:
        if f.name in instance.levers and f.kind in ("continuous", "integer"):
            low, high = f.action_bounds
            share = float(rng.uniform(0.0, 0.12))
            missed[f.name] = float(rng.integers(0, 2)) if f.integral else share * (high - low)
        if instance.scm.parents(f.name) and not f.integral:
            noise[f.name] = (-float(rng.uniform(0, 0.4)), float(rng.uniform(0, 0.4)))
    if kind in ("threshold", "together"):
        size = 0.3 if isinstance(instance.classifier, ReluNetwork) else 0.05
        threshold = instance.accept.threshold + float(rng.uniform(0, size))
    return uncertainty_of(
        instance,
        missed if kind in ("missed", "together") else None,
        threshold,
        noise if kind in ("noise", "together") else None,
    )


def needless(way: Way, other: Way) -> bool:
    """Whether another way acts on a part of these features only, and costs no more."""
    return other[1] < way[1] and (other[0] <= way[0] or same(other[0], way[0]))


def check_certain(seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float) -> Outcome:
    """The certain actions of one draw: what happened, and what is wrong."""
    instance = refused(seed, trees)
    if instance is None:
        return Counter({"no problem": 1}), []
    limits, rng = drawn(seed, kind, instance), np.random.default_rng(seed)
    results: dict[str, Result] = {}
    wrong = []
    for name in backends:
        try:
            found = robust(instance, limits.missed, limits.threshold, limits.noise, name, limit)
        except Unsupported:
            continue
        results[name] = result = found.result
        wrong += [f"{name}: {line}" for line in refutations(instance, result, limits, trees, rng)]
    if not results:
        return Counter({"refused": 1}), []
    sure = {n: r for n, r in results.items() if r.status in (Status.OPTIMAL, Status.INFEASIBLE)}
    if len({r.status for r in sure.values()}) > 1:
        wrong.append(f"statuses differ: { {n: r.status.value for n, r in sure.items()} }")
    elif not all(same(r.cost, next(iter(sure.values())).cost) for r in sure.values()):
        wrong.append(f"costs differ: { {n: r.cost for n, r in sure.items()} }")
    for result in results.values():  # bounds hold for everybody
        bounds = [r.lower_bound for r in results.values() if r.lower_bound is not None]
        if result.cost is not None and any(b > result.cost * (1 + 2e-6) + 1e-9 for b in bounds):
            wrong.append(f"a bound above a cost: {bounds}, {result.cost}")
    for name, result in list(sure.items())[:1]:
        bound = np.inf if result.lower_bound is None else result.lower_bound * (1 - 1e-9) - 1e-9
        better = cheaper_certain(instance, limits, bound, trees, rng)
        if better is not None:
            wrong.append(f"{name}: {result.status.value} at {result.lower_bound}, but {better}")
    counts = Counter([f"{name} {result.status.value}" for name, result in results.items()])
    counts[TWO] += len(sure) > 1
    counts[BRUTE] += bool(sure)
    return counts, wrong


def refutations(
    instance: Instance, result: Result, limits: Uncertainty, trees: bool, rng: np.random.Generator
) -> Iterator[str]:
    """Outcomes that are refused, of an action that is said to be certain."""
    if not result.action:
        return
    action = {n: number(instance, n, v) for n, v in result.action.items()}
    least = lowest(instance, sampled(instance, action, limits, SAMPLES, rng), limits)
    if least < -1e-9 if not trees else least <= 0:
        yield f"an outcome is refused by {least}: {action}"
    if exact(instance, trees) and lowest(instance, every_cell(instance, action, limits), limits) <= 0:
        yield f"an outcome is refused: {action}"


def exact(instance: Instance, trees: bool) -> bool:
    """Whether outcomes can be enumerated: trees whose levers move only themselves."""
    return trees and all(instance.scm.descendants({name}) == {name} for name in instance.levers)


def cheaper_certain(
    instance: Instance, limits: Uncertainty, bound: float, trees: bool, rng: np.random.Generator
) -> tuple[float, dict[str, float]] | None:
    """A grid point below the bound that no outcome seems to refute."""
    for acted in subsets(instance):
        points = (
            tree_points(instance, acted, limits, bound) if trees else cheap_points(instance, acted, bound)
        )
        for looked, (cost, action) in enumerate(points):
            if looked >= _POINTS:
                break
            if exact(instance, trees):
                if lowest(instance, every_cell(instance, action, limits), limits) <= 0:
                    continue
            else:
                clear = 0.0 if trees else 1e-6
                if any(
                    lowest(instance, sampled(instance, action, limits, size, rng), limits) <= clear
                    for size in (200, 20_000)
                ):
                    continue
            if judge(instance, action).feasible:
                return cost, action
    return None


def tree_points(instance: Instance, acted: tuple[str, ...], limits: Uncertainty, bound: float):
    """Points just far enough from every threshold, cheapest first."""
    axes = []
    for name in acted:
        low, high = instance.levers[name]
        values, by = np.array(candidates(instance, name)), limits.missed.get(name, 0.0)
        steps = [values]
        for shifted in (values - by, values + by):
            steps += [shifted, np.nextafter(shifted, -np.inf), np.nextafter(shifted, np.inf)]
        every = np.unique(np.concatenate(steps))
        whole = instance.by_name[name].integral
        axes.append(values if whole else every[(every >= low) & (every <= high)])
    if np.prod([len(a) for a in axes]) > 60_000:
        return
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(acted))
    price = costs(instance, acted, points)
    some = np.flatnonzero(price < bound)
    for k in some[np.argsort(price[some], kind="stable")]:
        action = dict(zip(acted, points[k].tolist(), strict=True))
        if lowest(instance, sampled(instance, action, limits, 1, np.random.default_rng(0)), limits) > 0:
            yield float(price[k]), action


def check(
    seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float, certify: bool = False
) -> tuple[Counter[str], list[str]]:
    """What happened in a draw, and what is wrong."""
    assert not certify
    if kind == TOTAL:
        return check_total(seed, trees, backends, limit)
    run = check_choices if kind in CHOICE_KINDS else check_certain
    return run(seed, kind, trees, backends, limit)


if __name__ == "__main__":
    raise SystemExit(compare(__doc__, KINDS, check))
