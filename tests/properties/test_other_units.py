"""Units do not matter: the same problem in other units, exactly, has the same answer.

A feature in units of 2^k (its bounds, factual and cost scale times 2^k, its weights in the first
layer over 2^k) and layers whose scales cancel are the same problem, so any two answers must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.problem.scm import independent
from milp_recourse.program import equilibrate, lower
from milp_recourse.questions.solve import solve

KINDS = ("l2-squared", "l1", "linf", "l0", "mixture")


def drawn(seed: int) -> Instance:
    """Two to four features, some whole or fixed, and a small network with a threshold hard to reach."""
    rng = np.random.default_rng(seed)
    d, depth = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    features, factual = [], {}
    for k in range(d):
        whole = rng.random() < 0.15
        x = float(np.round(rng.normal() * 2)) if whole else float(rng.normal())
        free = k < d - 1 or rng.random() < 0.7
        bounds = (float(np.floor(x - 3)), float(np.ceil(x + 3))) if free else None
        features.append(Feature(f"f{k}", "integer" if whole else "continuous", free, bounds))
        factual[f"f{k}"] = x
    sizes = [d] + [int(rng.integers(3, 11)) for _ in range(depth)] + [1]
    layers = [
        (rng.normal(size=(b, a)) / np.sqrt(a) * 1.5, rng.normal(size=b) * 0.5) for a, b in pairwise(sizes)
    ]
    kind = str(rng.choice(KINDS, p=[0.5, 0.15, 0.15, 0.05, 0.15]))
    scale = {f.name: float(rng.choice([1.0, 0.5, 2.0])) for f in features if f.actionable}
    x = np.array(list(factual.values()))
    low, high = (np.array([f.bounds[k] if f.bounds else factual[f.name] for f in features]) for k in (0, 1))
    network = ReluNetwork.from_layers(layers)
    logits = network.evaluate(low + (high - low) * rng.random((2000, d)))[:, 0]
    threshold = float(np.quantile(logits, rng.choice([0.6, 0.9, 0.98, 1.0])))
    if rng.random() < 0.2:
        threshold = float(logits.max() + 0.05 * np.ptp(logits))
    layers[-1][1][0] -= max(threshold, float(network.evaluate(x)[0]) + 0.01)
    mixture = Cost(l2_squared=1.0, l1=0.5, linf=0.25, l0=0.125, measures=measured(scale))
    names = tuple(factual)
    return Instance(
        tuple(features),
        independent(names),
        ReluNetwork.from_layers(layers),
        factual,
        Preferences(tuple(scale)),
        mixture if kind == "mixture" else Cost.pure(kind, scale),
    )


def in_units(instance: Instance, exponents: Sequence[int], layer: int = 0) -> Instance:
    """The same problem: feature i times 2^k_i unless whole, first layer times 2^layer, last divided by it."""
    unit = {f.name: 1.0 if f.integral else 2.0**k for f, k in zip(instance.features, exponents, strict=True)}
    network = instance.classifier
    weights, biases = list(network.weights), list(network.biases)
    weights[0] = weights[0] / np.array(list(unit.values())) * 2.0**layer
    biases = [b * 2.0**layer for b in biases[:-1]] + [biases[-1]]
    weights[-1] = weights[-1] / 2.0**layer
    return replace(
        instance,
        features=tuple(
            replace(f, bounds=(f.bounds[0] * unit[f.name], f.bounds[1] * unit[f.name])) if f.bounds else f
            for f in instance.features
        ),
        classifier=replace(network, weights=tuple(weights), biases=tuple(biases)),
        factual={n: v * unit[n] for n, v in instance.factual.items()},
        cost=replace(
            instance.cost, measures={n: own.times(unit[n]) for n, own in instance.cost.measures.items()}
        ),
    )


def agree(one: Result, other: Result) -> None:
    """Neither claims what the other disproves."""
    assert Status.LIMIT not in (one.status, other.status)
    assert one.status == other.status
    if one.cost is not None and other.cost is not None:
        assert one.cost - other.lower_bound <= 2 * gap_tolerance(one.cost)
        assert other.cost - one.lower_bound <= 2 * gap_tolerance(other.cost)


def exponents(instance: Instance, which: str, k: int) -> list[int]:
    """k for every feature, or for the first alone."""
    d = len(instance.features)
    return [k] * d if which == "all" else [k] + [0] * (d - 1)


# an earlier version answered each wrongly in its other unit: a worse "optimal", or "infeasible"
CASES = (
    (1026, "all", 27, 0),
    (1034, "all", 27, 0),
    (1034, "all", 30, 0),
    (1034, "all", 0, -30),
    (1038, "all", 30, 0),
    (1045, "all", 30, 0),
    (1070, "all", -30, 0),
    (1012, "all", 30, 0),
    (1014, "all", 30, 0),
    (2111, "one", 30, 0),
    (2129, "one", 30, 0),
    (2140, "one", 30, 0),
    (2302, "one", -24, 0),
)


@pytest.mark.parametrize(
    ("seed", "which", "k", "layer"),
    [*CASES[:-3], *(pytest.param(*case, marks=pytest.mark.long) for case in CASES[-3:])],
)
def test_the_same_problem_in_other_units_has_the_same_answer(
    seed: int, which: str, k: int, layer: int
) -> None:
    """Features in large and small units, one or all of them, and rescaled layers."""
    instance = drawn(seed)
    other = in_units(instance, exponents(instance, which, k), layer)
    agree(solve(instance, "highs", 30), solve(other, "highs", 30))


@pytest.mark.parametrize("seed", range(30))
def test_equilibrated_programs_are_the_same_in_every_unit(seed: int) -> None:
    """Numbers are the same to the last bit; only what decode multiplies by differs."""
    instance = drawn(seed)
    rng = np.random.default_rng(seed)
    plain, _ = equilibrate(lower(instance))
    moved = in_units(instance, rng.integers(-40, 41, size=len(instance.features)), 30)
    other, _ = equilibrate(lower(moved))
    for a, b in zip(plain.classifier.weights, other.classifier.weights, strict=True):
        assert np.array_equal(a, b)
    assert plain.columns == other.columns
    assert plain.cost_terms == other.cost_terms
    assert plain.factual == other.factual
    assert [replace(a, unit=1.0) for a in plain.actions] == [replace(a, unit=1.0) for a in other.actions]
