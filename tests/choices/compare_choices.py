"""Random problems: choices and certain actions, back ends against each other and against brute force.

For every kind and so many draws. ``features``, ``distance``, ``effect``: three recourses that differ; each
is found by one back end, the problem that it answers is solved by another, and a dense grid must hold nothing
cheaper than the stated bound that differs, which is judged here by its own few lines. ``missed``,
``threshold``, ``noise``, ``together``: the cheapest action that withstands it, by two back ends; 10 000
sampled outcomes must not refute it, and every cheaper grid point must be refuted by some outcome (for trees
without causes both are done by enumeration, exactly). Run from the repository root.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse import solve
from milp_recourse.choices import Choice, choices
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.errors import Unsupported
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.reports.progress import progress_bar
from milp_recourse.result import Result, Status
from milp_recourse.robust import Uncertainty, robust, uncertainty_of
from tests.choices.plain_outcomes import every_cell, lowest, sampled
from tests.conditions.compare_conditions import cheap_points, problem
from tests.forests.tree_samples import candidates
from tests.properties.brute_force import costs, number, subsets

CHOICE_KINDS = ("features", "distance", "effect")
CERTAIN_KINDS = ("missed", "threshold", "noise", "together")
SAMPLES = 10_000
_POINTS = 150  # grid points that are looked at, cheapest first


def refused(seed: int, trees: bool) -> Instance | None:
    """The first problem of seed, seed + 1000, ... of somebody who is refused and has recourse."""
    for k in range(20):
        instance = problem(seed + 1000 * k, trees)
        if instance is not None and not instance.missing and solve(instance, time_limit=10).action:
            return instance
    return None


def same(one: float | None, other: float | None) -> bool:
    """Whether two proven costs are the same up to both gaps."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 2e-6 * max(one, other) + 1e-9


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
            distance = abs(here - there) / unit
            if instance.feature(name).kind == "categorical":
                distance = float(here != there) / unit
            far = far or distance >= apart
        if not far:
            return False
    return True


def check_choices(seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float) -> list[str]:
    """Everything wrong with the choices of one draw; the first of ``said`` is what happened."""
    instance = refused(seed, trees)
    if instance is None:
        return ["no problem"]
    apart = 1.0 if kind == "features" else 0.15
    found = choices(instance, 3, kind, apart, None, backends[0], 4 * limit)  # type: ignore[arg-type]
    scale, wrong = dict(found.scale), list[str]()
    for k, one in enumerate(found.choices):
        action = {n: number(instance, n, v) for n, v in (one.result.action or {}).items()}
        if not differs(instance, action, found.choices[:k], kind, apart, scale):
            wrong.append(f"choice {k} does not differ")
        if one.result.status is not Status.OPTIMAL:
            continue
        others = other_costs(found.problem(k), backends[1:], limit)
        wrong += [
            f"choice {k}: {n} {c}, {one.result.cost}" for n, c in others if not same(c, one.result.cost)
        ]
        bound = (one.result.lower_bound or 0.0) * (1 - 1e-9) - 1e-9
        better = cheaper(instance, found.choices[:k], kind, apart, scale, bound)
        if better is not None:
            wrong.append(f"choice {k} at {one.result.lower_bound}, but {better}")
    if found.exhausted and not any(one.result.action == {} for one in found.choices):
        better = cheaper(instance, found.choices, kind, apart, scale, np.inf)
        if better is not None:
            wrong.append(f"nothing is left, but {better}")
    happened = f"{len(found.choices)} choices{', exhausted' if found.exhausted else ''}"
    return [happened if found.proven else f"{happened}, limit", *wrong]


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


def check_certain(seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float) -> list[str]:
    """Everything wrong with the certain actions of one draw, after what happened."""
    instance = refused(seed, trees)
    if instance is None:
        return ["no problem"]
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
        return ["refused"]
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
    said = [f"{name} {result.status.value}" for name, result in results.items()]
    return [", ".join(said), *wrong]


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
        whole = instance.feature(name).integral
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


def check(seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float) -> tuple[str, list[str]]:
    """What happened in a draw, and what is wrong."""
    run = check_choices if kind in CHOICE_KINDS else check_certain
    happened, *wrong = run(seed, kind, trees, backends, limit)
    return happened, [f"case {seed} {kind}: {line}" for line in wrong]


def main() -> int:
    """Every kind, so many draws each; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--backends", default="bab,highs")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--kinds", default=",".join((*CHOICE_KINDS, *CERTAIN_KINDS)))
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    backends = asked.backends.split(",")
    said = {"classifiers": "trees" if asked.trees else "networks", "backends": asked.backends}
    said |= {"first": asked.first, "time_limit": asked.time_limit}
    faults, table = 0, kept(asked.out, said)
    for kind in asked.kinds.split(","):
        begun, counts, wrong = time.process_time(), Counter[str](), list[str]()
        with progress_bar(kind, asked.draws) as bar:
            for seed in range(asked.first, asked.first + asked.draws):
                happened, lines = check(seed, kind, asked.trees, backends, asked.time_limit)
                counts[happened] += 1
                wrong += lines
                bar.advance()
        faults += len(wrong)
        spent = round(time.process_time() - begun, 1)
        table[kind] = {"draws": asked.draws, "wrong": wrong, "processor_seconds": spent, "happened": counts}
        print(kind, json.dumps(table[kind]), flush=True)
        if asked.out is not None:
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            asked.out.write_text(json.dumps({"asked": said, "kinds": table}, indent=1) + "\n")
    return int(faults > 0)


def kept(file: Path | None, said: dict[str, Any]) -> dict[str, Any]:
    """The kinds that a results file has already, asked for in the same way: a run can be had in parts."""
    if file is None or not file.exists():
        return {}
    known = json.loads(file.read_text())
    return dict(known["kinds"]) if known["asked"] == said else {}


if __name__ == "__main__":
    raise SystemExit(main())
