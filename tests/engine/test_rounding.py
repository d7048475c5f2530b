"""Layers and lines against rational arithmetic at corners, where large weights cancel: no tolerance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.backends.bab import People
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.enclosure import Enclosure
from milp_recourse.domain.expression import Relu, Variable, as_expression
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.noise import Normal
from milp_recourse.domain.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.engine import evaluate
from milp_recourse.engine.kernel import costs_of
from milp_recourse.engine.relaxation import Budget, adaptive, logit_line, relax, rounding
from milp_recourse.instance import Instance, Preferences
from tests.properties.generators import Style, supported_instance

SIZE = 1e8
PLAIN = Style(levers=4, curves=False, discrete=False, plausible=0.0, gamma=False)


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


def broken(instance: Instance, seed: int, slack_share: float = 1.0) -> tuple[int, int]:
    """Corners where a layer's interval or the logit's line is wrong, and how many were compared.

    With ``slack_share`` below 1 only so much of the rounding error is paid for.
    """
    people = People([instance])
    k = max(range(len(people.stacks)), key=lambda k: people.stacks[k][0].actions)
    stack = people.stacks[k][0]
    tape = people.members[k][0][1]
    rng = np.random.default_rng(seed)
    batch = 8
    size = (stack.upper - stack.lower) * 10.0 ** -rng.integers(0, 10, (1, batch))
    low = stack.lower + (stack.upper - stack.lower - size) * rng.random((stack.actions, batch))
    high = np.minimum(low + size, stack.upper)
    low[:, 0], high[:, 0] = stack.lower[:, 0], stack.upper[:, 0]
    who = np.zeros(batch, dtype=np.int64)
    errors = [slack_share * e[who] for e in rounding(stack, stack.lower, stack.upper, who[:1])]
    target = np.full(batch, 1e9)
    nothing_cut = np.zeros((low.shape[0] + 1, len(who)))
    budget = Budget(costs_of(stack, who), target, nothing_cut)
    relaxed = relax(stack, low, high, who, errors, None, budget)
    slope, offset, _ = logit_line(relaxed, [adaptive(layer) for layer in relaxed.layers], relaxed.errors[-1])
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    wrong = compared = 0
    for b in range(batch):
        for bits in range(min(8, 2**stack.actions)):
            a = [(low, high)[bits >> i & 1][i, b] for i in range(stack.actions)]
            exact = instance.scm.counterfactual_exact(instance.factual, tape.program.decode(np.array(a)))
            inputs = [exact[f.name] for f in instance.features]
            assert all(e.lower == e.upper for e in inputs), "rational"
            for depth, layer in enumerate(relaxed.layers):
                for neuron, y in enumerate(arguments(network, depth, inputs)):
                    wrong += not (
                        Fraction(float(layer.low[neuron, b])) <= y <= Fraction(float(layer.high[neuron, b]))
                    )
                    compared += 1
            logit = arguments(network, len(relaxed.layers), inputs)[0]
            line = Fraction(float(offset[b])) + sum(
                (Fraction(float(s)) * Fraction(float(v)) for s, v in zip(slope[:, b], a, strict=True)),
                Fraction(0),
            )
            wrong += line < logit
            compared += 1
    return wrong, compared


def points_beyond(instance: Instance, seed: int, share: float = 1.0) -> tuple[int, int]:
    """Points whose logit is off by more than ``share`` of its error bound, of how many."""
    people = People([instance])
    stack, _ = people.stacks[0]
    tape = people.members[0][0][1]
    rng = np.random.default_rng(seed)
    batch = 20
    a = stack.lower + (stack.upper - stack.lower) * rng.random((stack.actions, batch))
    who = np.zeros(batch, dtype=np.int64)
    units = evaluate.unit_values(stack, a, who)
    error = evaluate.logit_error(stack, a, units, who)
    computed = evaluate.logits(stack, a, units, who)
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    beyond = 0
    for b in range(batch):
        action = tape.program.decode(a[:, b])
        exact = instance.scm.counterfactual_exact(instance.factual, action)
        logit = arguments(network, len(network.weights) - 1, [exact[f.name] for f in instance.features])[0]
        beyond += abs(Fraction(float(computed[b])) - logit) > Fraction(share * float(error[b]))
    return beyond, batch


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("cancel", [False, True], ids=["independent", "causes"])
def test_the_running_error_of_a_logit_holds(depth: int, cancel: bool) -> None:
    """At points of networks whose weights cancel."""
    assert sum(points_beyond(problem(seed, depth, cancel), seed)[0] for seed in range(6)) == 0


def test_less_than_the_running_error_does_not() -> None:
    """So the test above can fail."""
    assert sum(points_beyond(problem(seed, 2, False), seed, 1e-4)[0] for seed in range(6)) > 0


def arguments(network: ReluNetwork, depth: int, inputs: list[Enclosure]) -> list[Fraction]:
    """Exact arguments of a layer's neurons."""
    head = ReluNetwork(network.weights[: depth + 1], network.biases[: depth + 1])
    return [e.lower for e in head.enclose(inputs)]


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("cancel", [False, True], ids=["independent", "causes"])
def test_cancelling_weights(depth: int, cancel: bool) -> None:
    """Arguments of 1e8 to 1e32 that cancel to a few, in every layer and, with causes, before the first."""
    total = 0
    for seed in range(6):
        wrong, compared = broken(problem(seed, depth, cancel), seed)
        assert wrong == 0
        total += compared
    assert total >= 150


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_without_the_rounding_errors_paid_the_bounds_are_wrong(depth: int) -> None:
    """So the test above can fail."""
    assert sum(broken(problem(seed, depth, False), seed, 0.0)[0] for seed in range(6)) > 0


def test_ordinary_networks() -> None:
    """Random piecewise linear problems with weights around 1."""
    for seed in range(12):
        assert broken(supported_instance(seed, PLAIN), seed)[0] == 0
