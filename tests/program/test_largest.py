"""The largest logit in a box, in rational arithmetic, against the exact logit at every corner."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent
from milp_recourse.program.largest import best_of_box, largest_logit
from milp_recourse.program.lower import lower
from milp_recourse.program.neutral_program import Program
from tests.helpers.generators import Style, random_instance

STYLES = Style(levers=3, curves=False, gamma=False), Style(levers=3, causes=False), Style(levers=4)
TINY = Fraction(1, 2**300)


def active_at(instance: Instance, action: dict[str, float]) -> list[list[bool]] | None:
    """Which units are active after an action, by float64; None where one is nearly not or nearly so."""
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    acted = np.array([action.get(f.name, np.nan) for f in instance.features])
    with np.errstate(all="ignore"):
        after = instance.scm.counterfactual(instance.factual_row, acted[None])
    values, found = instance.model_rows(after)[0], []
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        values = weight @ values + bias
        if not np.isfinite(values).all() or (np.abs(values) < 1e-6).any():
            return None
        found.append((values > 0.0).tolist())
        values = np.maximum(values, 0.0)
    return found


def exact_logit(program: Program, action: dict[str, float]) -> Fraction:
    """The logit after an action, evaluated layer by layer."""
    assert isinstance(program.classifier, ReluNetwork)
    atoms = program.enclose(action)
    [logit] = program.classifier.enclose([column.enclose(atoms) for column in program.columns])
    assert logit.exact
    return logit.lower


def box_without_bends(seed: int) -> tuple[Instance, list[list[bool]], dict[str, list[float]]] | None:
    """A random problem, units, and values of all its levers between which no unit bends."""
    instance = replace(random_instance(seed, STYLES[seed % len(STYLES)]), plausible=False)
    if not isinstance(instance.classifier, ReluNetwork) or not instance.levers:
        return None
    rng, values = np.random.default_rng(seed), {}
    for name, (low, high) in instance.levers.items():
        middle = rng.uniform(low, high)
        ends = [middle, min(high, middle + 1e-3 * (high - low))]
        if instance.by_name[name].integral:
            ends = sorted({float(np.floor(middle)), float(min(np.floor(middle) + 1, np.floor(high)))})
            ends = [end for end in ends if low <= end <= high] or [float(np.ceil(low))]
        values[name] = ends
    patterns = [active_at(instance, dict(zip(values, one, strict=True))) for one in product(*values.values())]
    if patterns[0] is None or any(one != patterns[0] for one in patterns):
        return None
    return instance, patterns[0], values


def test_it_is_the_largest_of_the_corners() -> None:
    """With labels, causes and ReLUs in the equations; an action that reaches it is returned."""
    compared = labels = 0
    for seed in range(400):
        drawn = box_without_bends(seed)
        if drawn is None:
            continue
        instance, units, values = drawn
        program, active = lower(instance).fix(frozenset(values)), [np.array(one) for one in units]
        most = largest_logit(program, active, values)
        if most is None:
            continue
        corners = [dict(zip(values, one, strict=True)) for one in product(*values.values())]
        assert most == max(exact_logit(program, one) for one in corners), seed
        best = best_of_box(program, active, values, most)
        assert best, seed
        assert exact_logit(program, best) == most
        assert best_of_box(program, active, values, most + TINY) is None
        compared += 1
        labels += any(instance.by_name[name].categories for name in values)
    assert compared > 60
    assert labels > 15


def test_signs_that_units_are_to_have_are_asked_for() -> None:
    """1 - 2 max(0, x - 0.5) where the unit is active: at most 1, although the line reaches 1.2 at 0.4."""
    network = ReluNetwork.from_layers([([[1.0]], [-0.5]), ([[-2.0]], [1.0])])
    feature = Feature("x", "continuous", True, (0.0, 1.0))
    cost = Cost.pure("l1", {"x": 1.0})
    instance = Instance((feature,), independent(["x"]), network, {"x": 0.0}, Preferences(("x",)), cost)
    program, values = lower(instance).fix(frozenset("x")), {"x": [0.4, 0.6]}
    on, off = [np.array([True])], [np.array([False])]
    assert largest_logit(program, on, values) == 2 - 2 * Fraction(0.4)
    assert best_of_box(program, on, values, 1 + TINY) is None
    assert best_of_box(program, on, values, Fraction(1)) == {"x": 0.4}
    assert best_of_box(program, off, values, Fraction(1)) is not None
    assert best_of_box(program, off, values, 1 + TINY) is None


@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_a_network(seed: int) -> None:
    """Every unit's argument, and the logit, are what the network computes where these units are active."""
    rng = np.random.default_rng(seed)
    sizes = [3, 4, 5, 2, 1]
    layers = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in pairwise(sizes)]
    network, x = ReluNetwork.from_layers(layers), rng.normal(size=3)
    values, active, arguments = x, [], []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        values = weight @ values + bias
        arguments.append(values)
        active.append(values > 0.0)
        values = np.maximum(values, 0.0)
    row = [Fraction(v) for v in x.tolist()]
    for layer, exact in enumerate(network.arguments(row, active[:-1])):
        for unit, z in enumerate(exact):
            slopes, constant = network.piece(active[:-1], layer, unit)
            assert sum((s * v for s, v in zip(slopes, row, strict=True)), constant) == z
            assert float(z) == pytest.approx(arguments[layer][unit], abs=1e-12)
