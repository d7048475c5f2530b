"""Brute force as the judge of exact solvers: dense grids, zoomed in, and the exact judgement.

Nothing here uses the program, its bounds or an encoding: counterfactuals come straight from the SCM,
acceptance from the network, plausibility from the density.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import judge
from milp_recourse.problem.cost import Distance, Ranks, Relative
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status

POINTS = {1: 4001, 2: 121, 3: 25, 4: 11}
TOLERANCE = 1e-7  # how lenient the float check is; the exact one decides


@dataclass(frozen=True)
class Best:
    """The cheapest exactly feasible action brute force found."""

    cost: float
    action: dict[str, float]


def subsets(instance: Instance) -> Iterator[tuple[str, ...]]:
    """Every non-empty set of features the applicant can act on."""
    names = sorted(instance.levers)
    for size in range(1, len(names) + 1):
        yield from combinations(names, size)


def axis(instance: Instance, name: str, points: int) -> NDArray[np.float64]:
    """Values to try for one lever: all whole numbers, or a grid with both ends and the factual."""
    low, high = instance.levers[name]
    if instance.by_name[name].integral:
        return np.arange(low, high + 1)
    x = instance.factual[name]
    held = [x] if low <= x <= high else []
    return np.unique(np.concatenate([np.linspace(low, high, points), held]))


def rows_of(instance: Instance, acted: tuple[str, ...], values: NDArray) -> NDArray[np.float64]:
    """Action rows (n, d), nan where not acted on."""
    rows = np.full((len(values), len(instance.features)), np.nan)
    for k, f in enumerate(instance.features):
        if f.name in acted:
            rows[:, k] = values[:, acted.index(f.name)]
    return rows


def costs(instance: Instance, acted: tuple[str, ...], values: NDArray) -> NDArray[np.float64]:
    """Cost of each row of values (n, len(acted)), straight from the formulas in docs/formats.md."""
    c, total, parts = instance.cost, np.zeros(len(values)), [np.zeros(len(values))]
    for k, name in enumerate(acted):
        own, x = c.measures.get(name, Distance(1.0, 1.0)), instance.factual[name]
        delta = np.abs(values[:, k] - x)
        if instance.by_name[name].kind == "categorical":
            delta = (delta != 0).astype(np.float64)
        elif isinstance(own, Ranks):
            knots = own.levels.values, own.levels.probabilities
            delta = np.abs(np.interp(values[:, k], *knots) - np.interp(x, *knots))
        rise, fall = (abs(x), abs(x)) if isinstance(own, Relative) else (own.rise, own.fall)
        w, step = instance.weight(name), delta / np.where(values[:, k] < x, fall, rise)
        total += w * (c.l0 + c.l1 * step + c.l2_squared * step**2)
        parts.append(w * step)
    total += c.linf * np.max(parts, axis=0)
    return np.sqrt(total) if c.kind == "l2" else total


def looks_feasible(instance: Instance, acted: tuple[str, ...], values: NDArray) -> NDArray[np.bool_]:
    """Float check of every demand, within TOLERANCE, shape (n,)."""
    actions = rows_of(instance, acted, values)
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    with np.errstate(all="ignore"):
        rows = instance.scm.counterfactual(instance.factual_row, actions)
        logits = network.evaluate(instance.model_rows(rows))[:, 0]
        needed = instance.accept.threshold + instance.accept.margin
        good = logits >= needed - TOLERANCE * (1 + abs(needed))
        for k, f in enumerate(instance.features):
            if f.domain is not None:
                good &= (rows[:, k] >= f.domain[0] - TOLERANCE) & (rows[:, k] <= f.domain[1] + TOLERANCE)
        if instance.plausible:
            left = np.flatnonzero(good)
            gain = density_gain(instance, rows[left], ~np.isnan(actions[left]))
            good[left] = gain >= instance.offset - TOLERANCE
    return good


def density_gain(instance: Instance, rows: NDArray, acted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """log p(x_cf) - log p(x) from the SCM's own density; abducted noise kept where not acted on."""
    scm = instance.scm
    before, after = scm.abduct(instance.factual_row), scm.abduct(rows)
    gain = np.zeros(len(rows))
    for k, name in enumerate(scm.features):
        mechanism = scm.mechanisms[name]
        assert mechanism.noise is not None
        u = np.where(acted[:, k], after[:, k], before[k])
        gain += mechanism.noise.log_density(u) - mechanism.noise.log_density(before[k])
        if mechanism.link.kind == "sigmoid":
            new, old = (
                (v - mechanism.link.offset) / mechanism.link.scale
                for v in (rows[:, k], instance.factual[name])
            )
            gain += np.log(old) + np.log1p(-old) - np.log(new) - np.log1p(-new)
    return gain


def exactly_feasible(instance: Instance, acted: tuple[str, ...], row: NDArray) -> dict[str, float] | None:
    """The action, if the exact judgement and the deployed model let it pass."""
    action = {name: float(v) for name, v in zip(acted, row, strict=True)}
    return action if judge(instance, action).feasible else None


def cheapest(instance: Instance, acted: tuple[str, ...], zooms: int = 12) -> Best | None:
    """Grid over one set of features, then the grid zoomed in around its best points."""
    points = POINTS.get(len(acted), 7)
    axes = [axis(instance, name, points) for name in acted]
    values = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(acted))
    best = _first(instance, acted, values, np.inf)
    if best is None:
        return None
    width = np.array([(a[-1] - a[0]) / max(len(a) - 1, 1) for a in axes])
    free = np.array([not instance.by_name[name].integral for name in acted])
    low = np.array([instance.levers[name][0] for name in acted])
    high = np.array([instance.levers[name][1] for name in acted])
    fine = {1: 201, 2: 31, 3: 11}.get(len(acted), 7)
    for _ in range(zooms if free.any() else 0):
        centre = np.array([best.action[name] for name in acted])
        around = [
            np.unique(np.clip(c + 1.5 * w * np.linspace(-1, 1, fine), l, h)) if f else np.array([c])
            for c, w, f, l, h in zip(centre, width, free, low, high, strict=True)
        ]
        values = np.stack(np.meshgrid(*around, indexing="ij"), axis=-1).reshape(-1, len(acted))
        best = _first(instance, acted, values, best.cost) or best
        width = width * 0.35
    return best


def brute_force(instance: Instance) -> Best | None:
    """The cheapest action found over every set of features; None when none was found."""
    found = [best for acted in subsets(instance) if (best := cheapest(instance, acted)) is not None]
    return min(found, key=lambda b: b.cost, default=None)


def attack(instance: Instance, result: Result, rng: np.random.Generator, tries: int = 2000) -> Best | None:
    """The cheapest feasible action near the one returned and between it and the factual."""
    if not result.action or result.cost is None:
        return None
    acted = tuple(sorted(result.action))
    centre = np.array([number(instance, n, result.action[n]) for n in acted])
    low = np.array([instance.levers[n][0] for n in acted])
    high = np.array([instance.levers[n][1] for n in acted])
    x = np.array([instance.factual[n] for n in acted])
    radius = 10.0 ** rng.uniform(-9, 0, (tries, 1)) * (high - low + 1e-12)
    values = centre + radius * rng.normal(size=(tries, len(acted)))
    values[: tries // 2] += (
        (x - centre) * rng.random((tries // 2, 1)) * radius[: tries // 2] / (high - low + 1e-12)
    )
    values = np.clip(values, low, high)
    whole = np.array([instance.by_name[n].integral for n in acted])
    values[:, whole] = np.round(values[:, whole])
    return _first(instance, acted, values, result.cost)


def number(instance: Instance, name: str, shown: float | int | str) -> float:
    """A value of a result as the package's number: labels by index."""
    categories = instance.by_name[name].categories
    return float(categories.index(str(shown))) if categories is not None else float(shown)


def complaints(instance: Instance, result: Result) -> list[str]:
    """Everything wrong with a result on its own: demands, numbers, status; nothing about optimality."""
    said = []
    if result.status is Status.OPTIMAL and not result.cost - result.lower_bound <= result.tolerance:
        said.append("optimal with an open gap")
    if result.status is Status.INFEASIBLE and result.action is not None:
        said.append("infeasible with an action in hand")
    if result.action is None:
        return said
    action = {n: number(instance, n, v) for n, v in result.action.items()}
    for name, value in action.items():
        f = instance.by_name[name]
        if name not in instance.preferences.actionable or not f.actionable:
            said.append(f"mask: {name}")
            continue
        low, high = f.action_bounds
        limits = [(low, high), instance.preferences.ranges.get(name, (low, high)), f.domain or (low, high)]
        if any(not l <= value <= h for l, h in limits):
            said.append(f"bounds: {name} = {value!r}")
        if f.integral and value != round(value):
            said.append(f"bounds: {name} = {value!r} is not whole")
        if (f.monotone == "increase" and value < instance.factual[name]) or (
            f.monotone == "decrease" and value > instance.factual[name]
        ):
            said.append(f"bounds: {name} moves the wrong way")
    if not (action or result.cost == 0):
        said.append("no action but a cost")
    said += _judged(instance, result, action)
    return said


def _judged(instance: Instance, result: Result, action: dict[str, float]) -> list[str]:
    said = []
    verdict = judge(instance, action)
    said += [f"judge: {fault}" for fault in verdict.faults]
    if abs(verdict.cost - Fraction(result.cost)) > Fraction(1, 10**15) * (1 + verdict.cost):
        said.append(f"cost: stated {result.cost!r}, exactly {float(verdict.cost)!r}")
    stated = [number(instance, f.name, result.counterfactual[f.name]) for f in instance.features]
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    z = instance.model_rows(np.array(stated)).astype(network.dtype)
    for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        z = (w.astype(network.dtype) @ (np.maximum(z, 0) if k else z) + b.astype(network.dtype)).astype(
            network.dtype
        )
    if not z[0] >= instance.accept.threshold or not result.accepted_deployed:
        said.append(f"deployed: logit {z[0]!r}")
    return said


def _first(instance: Instance, acted: tuple[str, ...], values: NDArray, below: float) -> Best | None:
    """The cheapest exactly feasible row that costs less than ``below``."""
    price = costs(instance, acted, values)
    order = np.argsort(price, kind="stable")
    order = order[price[order] < below]
    good = order[looks_feasible(instance, acted, values[order])] if len(order) else order
    for k in good[:60]:
        action = exactly_feasible(instance, acted, values[k])
        if action is not None:
            exact = judge(instance, action).cost
            return Best(float(exact), action)
    return None
