"""Random conditions on random problems: one seed, one list, as the JSON of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.formats.schema_conditions import StatedCondition, condition_to_dict
from milp_recourse.formats.stated import Known, validate
from milp_recourse.problem.instance import Instance
from milp_recourse.tables.from_data import near_rows
from tests.helpers.generators import sample_actions

NEAR = "near data"
KINDS = ("count", "acted", "feature", "sum", "label", "if", "any", "all", "not", "mixed", "product", NEAR)


def random_conditions(seed: int, instance: Instance, kind: str) -> list[dict[str, Any]]:
    """One to three conditions, the first of the kind asked for (mixed: of any)."""
    rng = np.random.default_rng(70_000 + seed)
    if kind == NEAR:
        rows, within, scale = random_neighbours(rng, instance)
        return [condition_to_dict(near_rows(instance, rows, within, scale), instance.features)]
    made = [_condition(rng, instance, kind, 0)]
    while rng.random() < 0.3 and len(made) < 3:
        made.append(_condition(rng, instance, "mixed", 0))
    return made


def random_neighbours(
    rng: np.random.Generator, instance: Instance
) -> tuple[NDArray[np.float64], float, dict[str, float]]:
    """Rows of random people, a distance and scales: what "near data" needs."""
    size = int(rng.integers(1, 8))
    with np.errstate(all="ignore"):
        rows = instance.scm.counterfactual(instance.factual_row, sample_actions(rng, instance, size))
    scale = {f.name: float(rng.uniform(0.3, 2.0)) for f in instance.features if f.kind != "categorical"}
    rows += rng.normal(0.0, 0.1, rows.shape)
    for k, f in enumerate(instance.features):
        if f.integral:
            most = len(f.categories) - 1 if f.categories else 1 if f.kind == "binary" else np.inf
            rows[:, k] = np.clip(np.round(rows[:, k]), 0 if f.labelled else -np.inf, most)
    rows = rows[np.isfinite(rows).all(axis=1)]
    return (rows if len(rows) else instance.factual_row[None]), float(rng.uniform(0.05, 0.6)), scale


def with_conditions(instance: Instance, said: list[dict[str, Any]]) -> Instance:
    """The instance with conditions read from JSON."""
    conditions = validate(list[StatedCondition], said, "conditions", Known(instance.features))
    return replace(instance, conditions=tuple(conditions))


def _condition(rng: np.random.Generator, instance: Instance, kind: str, depth: int) -> dict[str, Any]:
    if kind == "mixed":
        nested = ["if", "any", "all", "not"] if depth < 2 else []
        kind = str(rng.choice(["count", "acted", "feature", "feature", "sum", "sum", "label", *nested]))
    if kind == "count":
        return {"at_most_actions": int(rng.integers(0, max(2, len(instance.levers))))}
    if kind == "acted":
        return {"acted": _name(rng, instance)}
    if kind == "label":
        return _label(rng, instance) or _feature(rng, instance)
    if kind == "feature":
        return _feature(rng, instance)
    if kind == "sum":
        return _sum(rng, instance)
    if kind == "product":
        return _product(rng, instance)
    part = lambda: _condition(rng, instance, "mixed", depth + 1)  # noqa: E731
    if kind == "if":
        return {"if": part(), "then": part()}
    if kind == "not":
        return {"not": part()}
    return {kind: [part() for _ in range(int(rng.integers(1, 4)))]}


def _name(rng: np.random.Generator, instance: Instance) -> str:
    names = list(instance.levers) * 3 + [f.name for f in instance.features]
    return str(rng.choice(names))


def _label(rng: np.random.Generator, instance: Instance) -> dict[str, Any] | None:
    names = [f for f in instance.features if f.categories is not None]
    if not names:
        return None
    feature = names[int(rng.integers(len(names)))]
    labels = list(feature.categories)
    chosen = rng.choice(len(labels), int(rng.integers(1, len(labels) + 1)), replace=False).tolist()
    said = [labels[k] if rng.random() < 0.7 else k for k in chosen]
    return {
        "feature": feature.name,
        "of": str(rng.choice(["factual", "counterfactual", "counterfactual"])),
        "in": said,
    }


def _view(rng: np.random.Generator, instance: Instance, names: list[str]) -> str:
    views = ["factual", "counterfactual", "counterfactual", "change", "change"]
    if all(instance.factual[name] for name in names):
        views.append("relative-change")
    return str(rng.choice(views))


def _known(instance: Instance, name: str) -> float:
    """The feature's value; 1 where it is missing."""
    return 1.0 if name in instance.missing else instance.factual[name]


def _reached(rng: np.random.Generator, instance: Instance, name: str) -> float:
    """A value the feature may end at, more or less."""
    x = _known(instance, name)
    low, high = instance.levers.get(name, (x - 1, x + 1))
    value = float(rng.uniform(low, high)) if rng.random() < 0.8 else x
    return round(value) if instance.by_name[name].integral and rng.random() < 0.7 else round(value, 3)


def _seen(instance: Instance, name: str, value: float, of: str) -> float:
    x = _known(instance, name)
    if of == "factual":
        return x
    return value if of == "counterfactual" else value - x if of == "change" else (value - x) / abs(x)


def _feature(rng: np.random.Generator, instance: Instance) -> dict[str, Any]:
    usable = [f.name for f in instance.features if f.kind != "categorical"]
    if not usable:
        return {"acted": _name(rng, instance)}
    levers = [name for name in usable if name in instance.levers]
    name = str(rng.choice(levers if levers and rng.random() < 0.7 else usable))
    of = _view(rng, instance, [name])
    value = _seen(instance, name, _reached(rng, instance, name), of)
    feature = instance.by_name[name]
    said: dict[str, Any] = {"feature": name, "of": of}
    bound: Any = round(float(value), 4)
    if feature.categories is not None and of in ("factual", "counterfactual") and rng.random() < 0.5:
        bound = feature.categories[int(np.clip(round(bound), 0, len(feature.categories) - 1))]
    side = rng.random()
    if side < 0.45:
        return said | {"at_least": bound}
    if side < 0.9 or isinstance(bound, str):
        return said | {"at_most": bound}
    return said | {"at_least": bound, "at_most": round(bound + float(rng.random()) * 2, 4)}


def _sum(rng: np.random.Generator, instance: Instance) -> dict[str, Any]:
    usable = [f.name for f in instance.features if f.kind != "categorical"]
    if not usable:
        return {"acted": _name(rng, instance)}
    chosen = [
        str(n) for n in rng.choice(usable, int(rng.integers(1, min(3, len(usable)) + 1)), replace=False)
    ]
    of = _view(rng, instance, chosen)
    whole = rng.random() < 0.5
    terms = {n: float(rng.integers(-3, 4)) if whole else round(float(rng.normal()), 2) for n in chosen}
    total = sum(c * _seen(instance, n, _reached(rng, instance, n), of) for n, c in terms.items())
    bound = round(float(total), 3)
    side = str(rng.choice(["at_least", "at_most"]))
    return {"sum": terms, "of": of, side: bound}


def _product(rng: np.random.Generator, instance: Instance) -> dict[str, Any]:
    """A limit on a product of two features, sometimes with a value added."""
    usable = [f.name for f in instance.features if f.kind != "categorical"]
    usable = [name for name in usable if name not in instance.missing]
    if not usable:
        return {"acted": _name(rng, instance)}
    pair = [str(name) for name in rng.choice(usable, 2)]
    reached = np.prod([_reached(rng, instance, name) for name in pair])
    x = float(np.prod([instance.factual[name] for name in pair]))
    of = _view(rng, instance, pair)
    seen = {"factual": x, "counterfactual": reached, "change": reached - x}.get(of)
    end = (reached - x) / abs(x) if seen is None else seen
    more = {str(rng.choice(usable)): 0.5} if of == "counterfactual" and rng.random() < 0.3 else {}
    said = {"sum": more, "products": [[float(rng.choice([1, -2])), *pair]], "of": of}
    return said | {str(rng.choice(["at_least", "at_most"])): round(float(end), 3)}
