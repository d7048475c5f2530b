"""Units do not matter: the same problem in other units, exactly, has the same answer.

A feature in units of 2^k (its bounds, factual and cost scale times 2^k, its weights in the first
layer over 2^k) and layers whose scales cancel are the same problem, so any two answers must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import independent
from milp_recourse.instance import Instance, Preferences
from milp_recourse.program import equilibrate, lower
from milp_recourse.result import Result, Status, gap_tolerance
from milp_recourse.solve import solve

COSTS = ("l2-squared", "l1", "linf")


def drawn(seed: int) -> Instance:
    """Two to four features and a small random network whose threshold is hard to reach."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    names = tuple(f"f{k}" for k in range(d))
    x = rng.normal(size=d)
    sizes = [d, *rng.integers(3, 8, size=int(rng.integers(1, 3))).tolist(), 1]
    layers = [
        (rng.normal(size=(b, a)) / np.sqrt(a), rng.normal(size=b) / 2)
        for a, b in zip(sizes, sizes[1:], strict=False)
    ]
    low, high = np.floor(x - 3), np.ceil(x + 3)
    network = ReluNetwork.from_layers(layers)
    sample = network.evaluate(low + (high - low) * rng.random((2000, d)))[:, 0]
    least = float(network.evaluate(x)[0]) + 0.01
    layers[-1][1][0] -= max(least, float(np.quantile(sample, rng.choice([0.9, 0.99, 1.0]))))
    return Instance(
        tuple(
            Feature(n, actionable=True, bounds=(float(l), float(h)))
            for n, l, h in zip(names, low, high, strict=True)
        ),
        independent(names),
        ReluNetwork.from_layers(layers),
        dict(zip(names, x.tolist(), strict=True)),
        Preferences(names),
        Cost.pure(COSTS[seed % 3], {n: float(rng.choice([0.5, 1.0, 2.0])) for n in names}),
    )


def in_units(instance: Instance, exponents: Sequence[int], layers: Sequence[int] = ()) -> Instance:
    """The same problem: feature i times 2^k_i, layer j times 2^k_j (which must cancel)."""
    unit = {f.name: 2.0**k for f, k in zip(instance.features, exponents, strict=True)}
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    weights, biases, total = list(network.weights), list(network.biases), 0
    weights[0] = weights[0] / np.array(list(unit.values()))
    for j, k in enumerate(layers):
        total += k
        weights[j], biases[j] = weights[j] * 2.0**k, biases[j] * 2.0**total
    assert total == 0
    return replace(
        instance,
        features=tuple(
            replace(f, bounds=(f.bounds[0] * unit[f.name], f.bounds[1] * unit[f.name]))
            for f in instance.features
        ),
        classifier=replace(network, weights=tuple(weights), biases=tuple(biases)),
        factual={n: v * unit[n] for n, v in instance.factual.items()},
        cost=replace(instance.cost, scale={n: s * unit[n] for n, s in instance.cost.scale.items()}),
    )


def agree(one: Result, other: Result) -> None:
    """Neither claims what the other disproves."""
    assert Status.LIMIT not in (one.status, other.status)
    assert one.status == other.status
    if one.cost is not None and other.cost is not None:
        assert one.cost - other.lower_bound <= 2 * gap_tolerance(one.cost)
        assert other.cost - one.lower_bound <= 2 * gap_tolerance(other.cost)


def variants(instance: Instance, seed: int) -> dict[str, Instance]:
    rng = np.random.default_rng(1000 + seed)
    d, depth = len(instance.features), len(instance.classifier.weights)
    one = [0] * d
    one[0] = int(rng.choice([-30, -24, 30]))
    turned = [0] * depth
    turned[0], turned[-1] = 30, -30
    return {
        "all": in_units(instance, [int(rng.choice([-30, 27, 30]))] * d),
        "one": in_units(instance, one),
        "any": in_units(instance, rng.integers(-40, 41, size=d).tolist()),
        "layers": in_units(instance, [0] * d, turned),
    }


@pytest.mark.parametrize("seed", range(12))
def test_the_same_problem_in_other_units_has_the_same_answer(seed: int) -> None:
    """Features in large and small units, one or all of them, and rescaled layers."""
    instance = drawn(seed)
    answer = solve(instance, "highs", 20)
    for scaled in variants(instance, seed).values():
        agree(answer, solve(scaled, "highs", 20))


@pytest.mark.parametrize("seed", range(12))
def test_equilibrated_programs_do_not_know_their_units(seed: int) -> None:
    """Numbers are the same to the last bit; only what decode multiplies by differs."""
    instance = drawn(seed)
    plain = equilibrate(lower(instance))
    for scaled in variants(instance, seed).values():
        other = equilibrate(lower(scaled))
        for a, b in zip(plain.classifier.weights, other.classifier.weights, strict=True):
            assert np.array_equal(a, b)
        assert plain.columns == other.columns
        assert plain.cost_terms == other.cost_terms
        assert plain.factual == other.factual
        assert [replace(a, unit=1.0) for a in plain.actions] == [replace(a, unit=1.0) for a in other.actions]
