"""What an action can lead to, sampled or enumerated from the SCM's equations and the deployed model alone.

Nothing here uses the package's search for outcomes, its program or its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.expression import logit, sigmoid
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.questions.robust import Uncertainty
from tests.helpers.tree_samples import candidates

Array = NDArray[np.float64]


def ends(target: float, by: float) -> tuple[float, float]:
    """The least and the largest double within ``by`` of a target."""
    low, high = target - by, target + by
    if Fraction(low) < Fraction(target) - Fraction(by):
        low = float(np.nextafter(low, np.inf))
    if Fraction(high) > Fraction(target) + Fraction(by):
        high = float(np.nextafter(high, -np.inf))
    return low, high


def outcomes(
    instance: Instance, action: Mapping[str, float], missed: Mapping[str, Array], noise: Mapping[str, Array]
) -> Array:
    """Counterfactual rows (n, d) when targets are missed and noise is more than abducted by so much."""
    size = len(next(iter([*missed.values(), *noise.values()]), np.zeros(1)))
    factual = {f: np.full(size, instance.factual[f]) for f in instance.scm.features}
    values: dict[str, Array] = {}
    moved: set[str] = set()
    for f in instance.scm.order:
        m = instance.scm.mechanisms[f]
        if f in action:
            away = missed.get(f, np.zeros(size))
            low, high = ends(action[f], float(np.abs(away).max()))  # what rounding put outside comes back
            values[f] = np.clip(action[f] + away, low, high)
            moved.add(f)
        elif instance.scm.parents(f) & moved:
            shift = m.equation.evaluate(values) - m.equation.evaluate(factual) + noise.get(f, 0.0)
            if m.link.kind == "identity":
                values[f] = factual[f] + shift
            else:
                z = logit((factual[f] - m.link.offset) / m.link.scale) + shift
                values[f] = m.link.offset + m.link.scale * sigmoid(z)
            moved.add(f)
        else:
            values[f] = factual[f]
    return np.stack([np.broadcast_to(values[f.name], (size,)) for f in instance.features], axis=-1)


def sampled(
    instance: Instance, action: Mapping[str, float], limits: Uncertainty, size: int, rng: np.random.Generator
) -> Array:
    """Rows of random outcomes inside what is withstood, every other one at corners; the first as planned."""

    def drawn(low: float, high: float, whole: bool) -> Array:
        inside = rng.uniform(low, high, size)
        if whole:
            inside = np.round(inside)
        at_end = np.where(rng.random(size) < 0.5, low, high)
        made = np.where(np.arange(size) % 2 == 0, at_end, inside)
        made[0] = 0.0
        return made

    missed = {n: drawn(-d, d, instance.by_name[n].integral) for n, d in limits.missed.items() if n in action}
    noise = {n: drawn(*ends, False) for n, ends in limits.noise.items()}
    return outcomes(instance, action, missed, noise)


def lowest(instance: Instance, rows: Array, limits: Uncertainty) -> float:
    """How far above what is needed the lowest logit or score of rows lies."""
    highest = limits.threshold
    threshold = instance.accept.threshold if highest is None else max(highest, instance.accept.threshold)
    columns = instance.model_rows(rows)
    if isinstance(instance.classifier, ReluNetwork):
        logits = instance.classifier.evaluate(columns)[:, 0]
        return float(np.nanmin(logits) - threshold - instance.accept.margin)
    above = threshold if instance.accept.strict else np.nextafter(threshold, -np.inf)
    return float(instance.classifier.scores(columns).min() - above)


def every_cell(instance: Instance, action: Mapping[str, float], limits: Uncertainty) -> Array:
    """Rows of an outcome in every cell that outcomes reach, for trees whose features move only themselves."""
    axes = []
    for name, target in action.items():
        low, high = ends(target, limits.missed.get(name, 0.0))
        if instance.by_name[name].integral:
            axes.append(np.arange(np.ceil(low), np.floor(high) + 1))
            continue
        wide = replace(instance.by_name[name], bounds=(low, high), domain=None, monotone=None)
        features = tuple(wide if f.name == name else f for f in instance.features)
        own = replace(instance.preferences, actionable=(name,), ranges={}, weights={})
        problem = replace(instance, features=features, preferences=own, conditions=(), reference=None)
        axes.append(np.array(candidates(problem, name)))
    points = np.array(list(product(*axes)))
    missed = {n: points[:, k] - action[n] for k, n in enumerate(action)}
    rows = outcomes(instance, action, missed, {})
    for k, f in enumerate(instance.features):  # the values themselves, not target plus difference
        if f.name in action:
            rows[:, k] = points[:, list(action).index(f.name)]
    return rows
