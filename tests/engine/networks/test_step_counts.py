"""The values of steps that the engine counts are as near to what may be set as its slacks assume."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.engine.networks.lever_arrays import Levers, counts_steps, roundings
from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.features import Feature, Steps, Values
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent

U = Fraction(1, 2**53)


def one_lever(only: Steps | Values, x: float, low: float, high: float) -> Instance:
    """A linear model of one lever."""
    return Instance(
        features=(Feature("a", actionable=True, bounds=(low, high), only=only),),
        scm=independent(["a"]),
        classifier=ReluNetwork.from_layers([(np.ones((1, 1)), np.zeros(1))], "float64"),
        factual={"a": x},
        preferences=Preferences(actionable=("a",)),
        cost=Cost(kind="l1", measures=measured({"a": 1.0})),
    )


def worst_error(instance: Instance) -> Fraction:
    """The largest relative error of the engine's values, in roundings."""
    lever = Levers([instance], [False]).numbers[0, 0]
    unit, grid, shift = float(lever.unit), float(lever.grid), float(lever.shift)
    x, lattice, (low, high) = instance.factual["a"], instance.by_name["a"].lattice, instance.levers["a"]
    assert lattice is not None
    worst = Fraction(0)
    for value in lattice.within(low, high).tolist():
        exact = (Fraction(value) - Fraction(x)) / Fraction(unit)
        k = round((exact - Fraction(shift)) / Fraction(grid))
        counted = Fraction(k * grid + shift)
        worst = max(worst, abs(counted - exact) / abs(exact) if exact else abs(counted) / U)
    return worst / U


@pytest.mark.parametrize("seed", range(20))
def test_values_are_as_accurate_as_the_slacks_assume(seed: int) -> None:
    """Decimal steps from anywhere, the factual anywhere within the bounds."""
    rng = random.Random(seed)
    step, origin = rng.choice([0.1, 0.3, 0.7, 0.05, 1.1]), round(rng.uniform(-5, 5), 2)
    high = round(rng.uniform(5, 200), 2)
    instance = one_lever(Steps(step, origin), rng.uniform(-high, high), -high, high)
    assert counts_steps(instance, "a")
    assert worst_error(instance) <= roundings(instance)


@pytest.mark.parametrize("step", [1.0, 0.5, 50.0])
def test_where_decimals_are_doubles_three_roundings_do(step: float) -> None:
    """Whole numbers and halves need no slack of their own."""
    instance = one_lever(Steps(step), 0.3, -1000.0, 1000.0)
    assert counts_steps(instance, "a")
    assert roundings(instance) == 0
    assert worst_error(instance) <= 3


def test_tenths_need_their_slack() -> None:
    """A tenth is no double: some value next to the factual is off by more than three roundings."""
    assert worst_error(one_lever(Steps(0.1), 99.95, -100.0, 100.0)) > 3


def test_what_is_not_counted() -> None:
    """Uneven lists, and steps too fine for their slack, are branched on instead."""
    assert not counts_steps(one_lever(Values((0.0, 0.5, 2.0)), 0.25, -5.0, 5.0), "a")
    assert not counts_steps(one_lever(Steps(0.001), 0.25, -50.0, 50.0), "a")
    assert counts_steps(one_lever(Values((12.0, 24.0, 36.0)), 7.5, 0.0, 50.0), "a")
