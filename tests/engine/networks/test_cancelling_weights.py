"""Bounds of layers against rational arithmetic at corners, where large weights cancel: no tolerance."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from milp_recourse.engine.networks import propose
from milp_recourse.engine.networks.lever_arrays import in_units
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Relu, Variable, as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel

SIZE = 1e8


def cancelling_layers(rng: np.random.Generator, inputs: int, depth: int) -> ReluNetwork:
    """Pairs of neurons that are all but equal, with weights of +-1e8 on them."""
    layers, width = [], inputs
    for k in range(depth + 1):
        outputs = 6 if k < depth else 1
        weight = rng.normal(size=(outputs, width))
        if k:
            big = SIZE * rng.normal(size=(outputs, width // 2))
            weight = weight + np.stack([big, -big], axis=2).reshape(outputs, -1)
        else:
            weight[:, 0] += SIZE
        if outputs > 1:
            weight[1::2] = weight[::2] * (1 + 1e-9 * rng.normal(size=weight[::2].shape))
        bias = rng.normal(size=outputs) * (SIZE if rng.random() < 0.5 else 1.0)
        layers.append((weight, bias))
        width = outputs
    return ReluNetwork.from_layers(layers)


def causes(rng: np.random.Generator, cancel: bool) -> StructuralCausalModel:
    """c = 1e8 relu(a) - 1e8 relu(a + 1e-8 b) + b, or no causes."""
    noise = Normal(1.0)
    zero = Mechanism(as_expression(0.0), Link(), noise)
    if not cancel:
        return StructuralCausalModel(["a", "b", "c"], {n: zero for n in "abc"})
    a, b = Variable("a"), Variable("b")
    big = SIZE * float(rng.random())
    equation = big * Relu(a + 0.1) - big * Relu(a + 0.1 + 1e-8 * b) + b
    return StructuralCausalModel(
        ["a", "b", "c"], {"a": zero, "b": zero, "c": Mechanism(equation, Link(), noise)}
    )


def problem(seed: int, depth: int, cancel: bool) -> Instance:
    rng = np.random.default_rng(seed)
    scm = causes(rng, cancel)
    factual = dict(zip("abc", rng.normal(size=3).tolist(), strict=True))
    features = tuple(
        Feature(n, "continuous", n != "c", (factual[n] - 1.7, factual[n] + 1.3) if n != "c" else None)
        for n in "abc"
    )
    network = cancelling_layers(rng, 3, depth)
    cost = Cost.pure("l2-squared", {"a": 1.0, "b": 1.0})
    return Instance(features, scm, network, factual, Preferences(("a", "b")), cost)


def broken(instance: Instance, seed: int, slack: float = 1.0) -> tuple[int, int]:
    """Arguments outside their bounds at corners of random boxes, exactly, and how many were compared.

    With ``slack`` below 1 only so much of the rounding is paid for.
    """
    rng = np.random.default_rng(seed)
    network, levers = instance.classifier, list(instance.levers.values())
    assert isinstance(network, ReluNetwork)
    wrong = compared = 0
    for part in range(8):
        share = 1.0 if part == 0 else 10.0 ** -rng.integers(0, 10)
        ends = []
        for low, high in levers:
            first = low + (high - low) * (1 - share) * float(rng.random())
            ends.append((first, min(first + (high - low) * share, high)))
        state = propose.Run(instance)
        p, box = state.problem, state.problem.box.copy()
        for i, (low, high) in enumerate(ends):
            box["lo"][:, i], box["hi"][:, i] = in_units(low, high, p.lever[i].factual, p.lever[i].unit)
        p = state.problem = p._replace(box=box, slacks=p.slacks._replace(line=slack * p.slacks.line))
        state.examine(1)
        unit = state.work.unit
        for corner in product(*ends):
            action = dict(zip(instance.levers, corner, strict=True))
            exact = instance.scm.counterfactual_exact(instance.factual, action)
            inputs = [exact[f.name] for f in instance.features]
            for k, count in enumerate(p.widths[1:], start=1):
                head = ReluNetwork(network.weights[:k], network.biases[:k])
                for j, argument in enumerate(head.enclose(inputs)[:count]):
                    assert argument.exact
                    wrong += not float(unit.low[k, j]) <= argument.lower <= float(unit.high[k, j])
                    compared += 1
    return wrong, compared


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("cancel", [False, True], ids=["independent", "causes"])
def test_cancelling_weights(depth: int, cancel: bool) -> None:
    """Arguments of 1e8 to 1e32 that cancel to a few, in every layer and, with causes, before the first."""
    total = 0
    for seed in range(3):
        wrong, compared = broken(problem(seed, depth, cancel), seed)
        assert wrong == 0
        total += compared
    assert total >= 75


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_without_the_rounding_errors_paid_the_bounds_are_wrong(depth: int) -> None:
    """So the test above can fail."""
    assert sum(broken(problem(seed, depth, False), seed, 0.0)[0] for seed in range(6)) > 0
