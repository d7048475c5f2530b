"""Small random problems of whole numbers and labels, as the values of instance files, and what to withstand.

All actions can be listed, and so can all outcomes that a classifier tells apart: targets are missed by whole
numbers, and effects and noise are multiples of a quarter, between which trees have their thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.tree import DecisionTreeRegressor

KINDS = ("mean", "sum", "smallest", "largest", "network", "linear")
"""Trees whose values are averaged or added up; the smallest or the largest of several sums; networks."""

WORDS = ("integer", "binary", "labels")

COSTS = ("l1", "l2-squared", "linf", "l2", "l0", "mixture")


@dataclass
class Drawn:
    """A problem, and what its answer is to withstand."""

    kind: str
    instance: dict[str, Any]
    missed: dict[str, float]
    threshold: float | None
    noise: dict[str, tuple[float, float]]


def draw(seed: int) -> Drawn:
    """The problem of a seed; neither the classifier's threshold nor what to withstand is set yet."""
    rng = np.random.default_rng([seed, 5])
    kind = KINDS[seed % len(KINDS)]
    caused = bool(rng.random() < 0.3)
    more = rng.choice(list(WORDS), int(rng.integers(0, 2 if caused else 3))).tolist()
    features = [
        _feature(rng, k, word) for k, word in enumerate(["integer", *(more or ["integer"]), "labels"])
    ]
    causes = [f["name"] for f in features if f["kind"] == "integer"]
    scm: dict[str, Any] = {"name": "independent"}
    if caused and causes:
        scm = {"name": "explicit", "mechanisms": _effects(rng, features, causes, kind != "network")}
    instance = {
        "format": "milp-recourse/instance-1",
        "features": features,
        "scm": scm,
        "factual": {f["name"]: _factual(rng, f) for f in features},
        "classifier": _network(rng, kind, features) if kind in KINDS[-2:] else _forest(rng, kind, features),
        "preferences": _preferences(rng, features),
        "cost": _cost(rng, features),
        "conditions": _conditions(rng, features) if rng.random() < 0.3 else [],
    }
    if kind in KINDS[:-2] and scm["name"] == "independent" and rng.random() < 0.15:
        _with_missing(rng, instance)
    return Drawn(kind, instance, *_withstand(rng, instance))


def _feature(rng: Generator, k: int, word: str) -> dict[str, Any]:
    kind = str(rng.choice(["ordinal", "categorical"])) if word == "labels" else word
    feature: dict[str, Any] = {"name": f"f{k}", "kind": kind, "actionable": bool(rng.random() < 0.9)}
    if word == "labels":
        labels = ["low", "mid", "high", "none"][: int(rng.integers(2, 5))]
        feature["categories"] = labels
        feature["encoding"] = str(rng.choice(["code", "one-hot", "table"]))
        if feature["encoding"] == "table":
            feature["table"] = (
                rng.integers(0, 3, (len(labels), int(rng.integers(1, 3)))).astype(float).tolist()
            )
        return feature
    low, high = (0, 1) if kind == "binary" else (int(rng.integers(0, 2)), int(rng.integers(3, 6)))
    feature["bounds"] = [low, high]
    if kind == "integer" and rng.random() < 0.15:
        feature["domain"] = [low, high - 1]
    if rng.random() < 0.15:
        feature["monotone"] = str(rng.choice(["increase", "decrease"]))
    return feature


def _effects(rng: Generator, features: list[dict[str, Any]], causes: list[str], two: bool) -> dict[str, Any]:
    """One or ``two`` continuous features that integers move; the second is moved by the first."""
    terms = [{"product": [float(rng.choice([-1.0, 0.5, 1.0, 2.0])), name]} for name in causes]
    mechanisms = {"c": {"equation": {"sum": [0.25, *terms]}}}
    features.append({"name": "c", "kind": "continuous", "actionable": False})
    if two and rng.random() < 0.3:
        features.append({"name": "d", "kind": "continuous", "actionable": False})
        mechanisms["d"] = {"equation": {"product": [1.0, "c"]}}
    return mechanisms


def _factual(rng: Generator, feature: dict[str, Any]) -> Any:
    if "categories" in feature:
        return str(rng.choice(feature["categories"]))
    if feature["kind"] == "continuous":
        return float(rng.integers(-8, 9)) / 4
    low, high = feature.get("domain") or feature["bounds"]
    return int(rng.integers(0 if feature["kind"] == "integer" and rng.random() < 0.3 else low, high + 1))


def columns(feature: dict[str, Any]) -> int:
    """How many columns of the classifier a feature fills."""
    if feature.get("encoding") == "one-hot":
        return len(feature["categories"])
    return len(feature["table"][0]) if "table" in feature else 1


def _forest(rng: Generator, kind: str, features: list[dict[str, Any]]) -> dict[str, Any]:
    owners = [f for f in features for _ in range(columns(f))]
    parts = [int(rng.integers(1, 5)) for _ in range(2 if rng.random() < 0.7 else 3)]
    count = int(rng.integers(1, 9)) if kind in ("mean", "sum") else sum(parts)
    grown = rng.random() < 0.6 and features[-1]["kind"] != "continuous"
    trees = [_tree(rng, owners, kind == "mean") for _ in range(count)]
    if grown:
        trees = _grown(rng, features, count, kind == "mean")
    forest: dict[str, Any] = {
        "kind": "tree-ensemble",
        "dtype": str(rng.choice(["float32", "float64"])),
        "trees": trees,
    }
    if kind != "mean":
        forest |= {"aggregate": "sum", "base": float(rng.integers(-2, 3)) / 8}
        forest["sum_dtype"] = "float64" if grown else str(rng.choice(["float32", "float64"]))
    if kind in ("smallest", "largest"):
        forest |= {"parts": parts, "combine": kind}
    return forest


def _tree(rng: Generator, owners: list[dict[str, Any]], mean: bool) -> dict[str, list[Any]]:
    nodes: list[list[Any]] = []

    def grow(depth: int) -> int:
        number = len(nodes)
        value = float(rng.integers(0, 9)) / 8 if mean else float(rng.integers(-8, 9)) / 8
        nodes.append([-2, -2.0, -1, -1, value])
        if depth and rng.random() < 0.85:
            column = int(rng.integers(len(owners)))
            nodes[number][:2] = [column, _threshold(rng, owners[column])]
            nodes[number][2] = grow(depth - 1)
            nodes[number][3] = grow(depth - 1)
        return number

    grow(int(rng.integers(2, 5)))
    names = ("feature", "threshold", "left", "right", "value")
    return {name: [node[k] for node in nodes] for k, name in enumerate(names)}


def _grown(rng: Generator, features: list[dict[str, Any]], count: int, mean: bool) -> list[dict[str, Any]]:
    """Trees fitted to a table in which numbers and labels make up for each other."""
    drawn, target = [], rng.normal(size=300)
    for f in features:
        low, high = f.get("bounds", (0, len(f.get("categories", ())) - 1))
        values = rng.integers(low, high + 1, 300)
        target += rng.normal(0, 2, int(high) + 1)[values] if "categories" in f else rng.normal() * values
        table = np.eye(int(high) + 1) if f.get("encoding") == "one-hot" else np.array(f.get("table", ()))
        drawn.append(table[values] if len(table) else values[:, None])
    rows, good = np.hstack(drawn), target > np.quantile(target, 0.7)
    found = []
    for _ in range(count):
        some = rng.integers(0, 300, 300)
        tree = DecisionTreeRegressor(max_depth=5, random_state=0, max_features=0.7)
        inner = tree.fit(rows[some], good[some] if mean else target[some] / count).tree_
        found.append(
            {
                "feature": np.maximum(inner.feature, -2).tolist(),
                "threshold": inner.threshold.tolist(),
                "left": inner.children_left.tolist(),
                "right": inner.children_right.tolist(),
                "value": inner.value[:, 0, 0].tolist(),
            }
        )
    return found


def _threshold(rng: Generator, feature: dict[str, Any]) -> float:
    if feature["kind"] == "continuous":
        return float(rng.integers(-12, 13)) / 2 + 0.125
    if feature.get("encoding") == "one-hot":
        return 0.5
    if feature.get("encoding") == "table":
        return float(rng.integers(0, 2)) + 0.5
    last = len(feature["categories"]) - 1 if "categories" in feature else feature["bounds"][1]
    return float(rng.integers(0, max(last, 1))) + 0.5


def _network(rng: Generator, kind: str, features: list[dict[str, Any]]) -> dict[str, Any]:
    """Whole weights, for ties, or any; in float32 at times, with a margin that covers its rounding."""
    width, single = sum(map(columns, features)), bool(rng.random() < 0.3)
    sizes = [width, *([] if kind == "linear" else [int(rng.integers(2, 6))]), 1]
    whole = rng.random() < 0.3

    def numbers(*shape: int) -> Any:
        drawn = rng.integers(-2, 3, shape) if whole else rng.normal(size=shape)
        return np.asarray(drawn, dtype=np.float32 if single else np.float64).astype(float).tolist()

    pairs = zip(sizes[1:], sizes, strict=False)
    layers = [{"weight": numbers(into, out), "bias": numbers(into)} for into, out in pairs]
    return {"kind": "relu-network", "dtype": "float32" if single else "float64", "layers": layers}


def _preferences(rng: Generator, features: list[dict[str, Any]]) -> dict[str, Any]:
    able = [f["name"] for f in features if f["actionable"]]
    mask = [name for name in able if rng.random() < 0.9]
    weights = {name: float(rng.integers(1, 9)) / 4 for name in mask if rng.random() < 0.5}
    whole = [f["name"] for f in features if f["kind"] == "integer" and f["name"] in mask]
    ranges = {name: [0.0, float(rng.integers(2, 6))] for name in whole if rng.random() < 0.15}
    return {"actionable": mask, "weights": weights, "ranges": ranges}


def _cost(rng: Generator, features: list[dict[str, Any]]) -> dict[str, Any]:
    kind = str(rng.choice(COSTS, p=[0.3, 0.3, 0.2, 0.05, 0.1, 0.05]))
    scale: dict[str, Any] = {f["name"]: float(rng.integers(1, 5)) / 2 for f in features if f["actionable"]}
    if kind == "l0":
        return {"kind": kind}
    if rng.random() < 0.15:
        numbers = [f["name"] for f in features if f["actionable"] and "categories" not in f]
        scale |= {name: {"increase": scale[name], "decrease": 2 * scale[name]} for name in numbers}
    parts = {"l1": 0.5, "l2-squared": 1.0, "linf": 0.25} if kind == "mixture" else {}
    return {"kind": kind, **parts, "scale": scale}


def _conditions(rng: Generator, features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    able = [f for f in features if f["actionable"]]
    whole = [f["name"] for f in able if f["kind"] == "integer"]
    labelled = [f for f in able if "categories" in f]
    found: list[dict[str, Any]] = [{"at_most_actions": int(rng.integers(1, 3))}]
    if len(able) > 1:
        a, b = (f["name"] for f in rng.choice(able, 2, replace=False))
        found.append({"if": {"acted": a}, "then": {"acted": b}})
        found.append({"any": [{"acted": a}, {"not": {"acted": b}}]})
    if whole:
        found.append({"feature": whole[0], "of": "change", "at_most": int(rng.integers(1, 4))})
    if len(whole) > 1:
        found.append({"sum": {whole[0]: 1.0, whole[1]: 1.0}, "of": "counterfactual", "at_most": 6.0})
    if labelled:
        one = labelled[0]
        some = one["categories"][: len(one["categories"]) - 1]
        found.append({"feature": one["name"], "of": "counterfactual", "in": some})
    return [found[k] for k in sorted(rng.choice(len(found), min(len(found), 2), replace=False))]


def _with_missing(rng: Generator, instance: dict[str, Any]) -> None:
    """Take a factual value away, and give every node a rule for it."""
    asked = str(instance["conditions"])
    free = [f["name"] for f in instance["features"] if repr(f["name"]) not in asked]
    if not free:
        return
    instance["factual"][str(rng.choice(free))] = None
    for tree in instance["classifier"]["trees"]:
        tree["missing_left"] = [bool(rng.integers(2)) for _ in tree["left"]]


def _withstand(
    rng: Generator, instance: dict[str, Any]
) -> tuple[dict[str, float], float | None, dict[str, tuple[float, float]]]:
    """What may be missed and by how much, by how much the threshold rises, and what is added to noise."""
    which = str(rng.choice(["missed", "together", "threshold", "noise"], p=[0.6, 0.2, 0.1, 0.1]))
    missed = {
        f["name"]: float(rng.integers(1, 3) if rng.random() < 0.3 else 1)
        for f in instance["features"]
        if f["kind"] == "integer" and rng.random() < 0.8
    }
    noise = {
        name: (-float(rng.integers(0, 5)) / 4, float(rng.integers(0, 5)) / 4)
        for name in instance["scm"].get("mechanisms", ())
    }
    rise = float(rng.integers(0, 3)) / 8
    return (
        missed if which in ("missed", "together") or not noise else {},
        rise if which in ("threshold", "together") else None,
        noise if which in ("noise", "together") else {},
    )
