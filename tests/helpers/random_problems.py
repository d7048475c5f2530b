"""Random problems for the checker, in the file format, with everything that version 1 covers."""

from __future__ import annotations

import random
from fractions import Fraction


def random_instance(rng: random.Random) -> dict:
    """Six features: whole numbers, labels, kinks, squares and products, a ball at times."""
    plausible = rng.random() < 0.5
    noise = {"kind": "normal", "sd": rng.choice([0.5, 1.0, 3.0])}

    def number(low=-2.0, high=2.0):
        return round(rng.uniform(low, high), 3)

    features = [
        {"name": "a", "kind": "continuous", "bounds": [-3, 3]},
        {"name": "b", "kind": "integer", "bounds": [-4.5, 4]},
        {"name": "c", "kind": "continuous", "bounds": [number(-3, 0), 3], "domain": [-5, 9]},
        {"name": "d", "kind": "continuous", "bounds": [-6, 6], "domain": [number(-9, -4), 20]},
        {"name": "e", "kind": "continuous", "domain": [-40, number(20, 60)]},
        {"name": "f", "kind": "ordinal", "categories": ["x", "y", "z"]},
    ]
    features[5]["encoding"] = rng.choice(["code", "one-hot"])
    if not plausible:
        features.append({"name": "g", "kind": "categorical", "categories": ["p", "q", "r"]})
    for f in features:
        f["actionable"] = f["name"] != "e"
    equations = {
        "a": 0,
        "b": number(),
        "c": {"sum": [{"product": [number(), {"relu": {"sum": ["a", number()]}}]}, {"product": [0.5, "b"]}]},
        "d": {"sum": [{"product": ["a", "c"]}, {"relu": "c"}, number()]},
        "e": {"sum": [{"square": "a"}, {"product": [number(), "d"]}, {"relu": {"product": [-1, "d"]}}]},
        "f": 0,
    }
    one_hot = [f.get("encoding") == "one-hot" or f["kind"] == "categorical" for f in features]
    columns = sum(3 if hot else 1 for hot in one_hot)
    layers, width = [], columns
    for out in rng.choice([[1], [4, 1], [5, 4, 1], [3, 4, 3, 1]]):
        weight = [[number() for _ in range(width)] for _ in range(out)]
        layers.append({"weight": weight, "bias": [number() for _ in range(out)]})
        width = out
    factual = {f["name"]: number() for f in features} | {"b": rng.randint(-3, 3), "f": "y", "g": "q"}
    names = [f["name"] for f in features if f["actionable"]]
    kind = rng.choice(["l2-squared", "l1", "linf", "l0", "mixture"])
    cost = {"kind": kind, "scale": {f: number(0.5, 3) for f in names}}
    if kind == "mixture":
        cost |= {part: number(0, 2) for part in ("l0", "l1", "l2-squared", "linf")}
    return {
        "format": "milp-recourse/instance-1",
        "features": features,
        "scm": {
            "name": "explicit",
            "mechanisms": {f: {"equation": e, "noise": noise} for f, e in equations.items()},
        },
        "classifier": {"kind": "relu-network", "dtype": "float64", "layers": layers},
        "accept": {"at_least": number(), "margin": 0.125},
        "factual": {f["name"]: factual[f["name"]] for f in features},
        "preferences": {"actionable": names, "weights": {f: number(0.5, 2) for f in names}},
        "cost": cost,
        "plausibility": {"kind": "scm-density", "at_least": "factual"} if plausible else None,
    }


def evaluate(expression, values: dict[str, Fraction]) -> Fraction:
    """An equation at a point, by the book."""
    if isinstance(expression, str):
        return values[expression]
    if not isinstance(expression, dict):
        return Fraction(expression)
    ((form, inner),) = expression.items()
    if form == "relu":
        return max(evaluate(inner, values), Fraction(0))
    if form == "square":
        return evaluate(inner, values) ** 2
    total = Fraction(form == "product")
    for part in inner:
        term = evaluate(part, values)
        total = total + term if form == "sum" else total * term
    return total
