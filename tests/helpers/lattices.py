"""Random small problems whose levers take steps or listed values, and their optima by enumeration."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.grid import looks_feasible

LABELS = ["p", "q", "r", "s"]


def random_problem(rng: random.Random, trees: bool, causes: bool, conditions: bool) -> dict[str, Any]:
    """A problem as in files: two or three numeric features and one with labels, all with few values."""

    def number(low: float = -2.0, high: float = 2.0) -> float:
        return round(rng.uniform(low, high), rng.choice([1, 2, 3]))

    names = ["a", "b", "c"][: rng.choice([2, 3])]
    features = [_numeric(rng, name, number) for name in names]
    kind = rng.choice(["ordinal", "categorical"])
    encoding = "code" if kind == "ordinal" and rng.random() < 0.5 else "one-hot"
    labels = {"name": "d", "kind": kind, "actionable": True, "categories": LABELS, "encoding": encoding}
    if rng.random() < 0.7:
        labels["values"] = rng.sample(LABELS, rng.randint(1, 3))
    features.append(labels)
    features.append({"name": "e", "kind": "continuous", "actionable": False})
    mechanisms: dict[str, Any] = {}
    if causes:
        mechanisms["e"] = {"equation": {"sum": [{"product": [number(), "a"]}, {"product": [number(), "b"]}]}}
    factual = {one["name"]: number() for one in features} | {"d": rng.choice(LABELS)}
    for one in features:
        if one["kind"] == "integer":
            factual[one["name"]] = rng.randint(-3, 3)
        elif "step" in one and rng.random() < 0.4:
            factual[one["name"]] = 1.0 if one["step"] == 5 else factual[one["name"]]
    movable = [*names, "d"]
    cost_kind = rng.choice(["l1", "l1", "l2-squared", "linf", "l0", "l2"])
    scale: dict[str, Any] = {
        f: rng.choice([number(0.5, 3), {"increase": number(0.5, 3), "decrease": number(0.5, 3)}])
        for f in movable
    }
    scale["d"] = number(0.5, 3)
    problem: dict[str, Any] = {
        "format": "milp-recourse/instance-1",
        "features": features,
        "scm": {"name": "explicit", "mechanisms": mechanisms} if causes else {"name": "independent"},
        "factual": factual,
        "preferences": {"actionable": movable, "weights": {f: number(0.5, 2) for f in movable}},
        "cost": {"kind": cost_kind, "scale": {} if cost_kind == "l0" else scale},
    }
    width = len(features) + (3 if encoding == "one-hot" else 0)
    if trees:
        many = rng.choice([1, 4])
        problem["classifier"] = {
            "kind": "tree-ensemble",
            "dtype": rng.choice(["float32", "float64"]),
            "aggregate": "mean",
            "trees": [_tree(rng, width) for _ in range(many)],
        }
        problem["accept"] = {"above": 0.75 if many == 1 else 0.45}
    else:
        problem["classifier"] = {"kind": "relu-network", "dtype": "float64", "layers": _layers(rng, width)}
        problem["accept"] = {"at_least": number(0, 2), "margin": 1e-6}
    if conditions:
        problem["conditions"] = rng.sample(
            [
                {"at_most_actions": 1},
                {"sum": {"a": 1.0, "b": 2.0}, "of": "counterfactual", "at_most": number(0, 3)},
                {"if": {"acted": "a"}, "then": {"acted": "d"}},
                {"any": [{"feature": "b", "of": "change", "at_least": 0.25}, {"not": {"acted": "b"}}]},
            ],
            rng.choice([1, 2]),
        )
    return problem


def _numeric(rng: random.Random, name: str, number: Callable[..., float]) -> dict[str, Any]:
    """A lever with steps, listed values or whole numbers."""
    one: dict[str, Any] = {"name": name, "kind": "continuous", "actionable": True}
    one["bounds"] = [number(-3, -1), number(1, 3)]
    way = rng.choice(["step", "from", "values", "integer", "fives"])
    if way == "step":
        one["step"] = rng.choice([0.5, 1, 0.7, 0.1 * rng.randint(5, 9)])
    elif way == "from":
        one["step"] = {"step": rng.choice([0.6, 0.9, 1.1]), "from": number()}
    elif way == "values":
        one["values"] = sorted({number(-3, 3) for _ in range(rng.randint(2, 6))})
    elif way == "integer":
        one |= {"kind": "integer", "bounds": [-3, 3]}
        one |= rng.choice([{"step": 2}, {"values": [-2, 1, 3]}, {}])
    else:
        one |= {"bounds": [-10, 10], "step": {"step": 5, "from": 1}}
    if rng.random() < 0.2:
        one["monotone"] = rng.choice(["increase", "decrease"])
    if rng.random() < 0.2:
        one["domain"] = [-2.5, 2.5]
    return one


def _tree(rng: random.Random, width: int) -> dict[str, Any]:
    """A full tree of depth 3 with random splits."""
    count, inner = 15, range(7)
    cuts = [rng.choice([0.5, round(rng.uniform(-2, 2), 1)]) for _ in inner]
    return {
        "feature": [rng.randrange(width) if k in inner else -2 for k in range(count)],
        "threshold": [*cuts, *[0.0] * 8],
        "left": [2 * k + 1 if k in inner else -1 for k in range(count)],
        "right": [2 * k + 2 if k in inner else -1 for k in range(count)],
        "value": [round(rng.random() ** 2, 2) for _ in range(count)],
    }


def _layers(rng: random.Random, width: int) -> list[dict[str, Any]]:
    layers = []
    for out in rng.choice([[1], [4, 1], [4, 3, 1]]):
        weight = [[round(rng.uniform(-2, 2), 3) for _ in range(width)] for _ in range(out)]
        layers.append({"weight": weight, "bias": [round(rng.uniform(-1, 1), 3) for _ in range(out)]})
        width = out
    return layers


def enumerated(instance: Instance) -> Fraction | None:
    """The least cost of a feasible action, from all actions; None if there is none."""
    ways = [[math.nan, *settable(instance, name)] for name in instance.levers]
    places = [[f.name for f in instance.features].index(name) for name in instance.levers]
    rows = np.full((math.prod(map(len, ways)), len(instance.features)), np.nan)
    rows[:, places] = np.array(list(product(*ways))).reshape(len(rows), len(places))
    if not judge(instance, {}).accepted_exact:
        rows = rows[~np.isnan(rows).all(axis=1)]
    names = [f.name for f in instance.features]
    actions = [
        {name: float(v) for name, v in zip(names, row, strict=True) if not math.isnan(v)}
        for row in rows[np.flatnonzero(looks_feasible(instance, rows))]
    ]
    for action in sorted(actions, key=instance.cost_of):
        if judge(instance, action).feasible:
            return instance.cost_of(action)
    return None


def settable(instance: Instance, name: str) -> list[float]:
    """All values that an action on a lever may set, from the definition of steps and lists."""
    feature, (low, high) = instance.by_name[name], instance.levers[name]
    only: Any = feature.only
    if hasattr(only, "values"):
        return [v for v in only.values if low <= v <= high]
    step, start = (only.step, only.origin) if only else (1.0, 0.0)
    s, v = Fraction(repr(step)), Fraction(repr(start))
    ks = range(math.floor((Fraction(low) - v) / s) - 1, math.ceil((Fraction(high) - v) / s) + 2)
    return sorted({x for x in (float(v + k * s) for k in ks) if low <= x <= high})
