"""Costs in percentiles: what the engine takes for a lever's cost is nowhere above it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.engine.networks import levers
from milp_recourse.engine.networks.layout import FIXED, HI, KNOTS, LARGEST, LINEAR, LO, MODE, RATE, TOP_RATE
from milp_recourse.engine.networks.numerics import slacks
from milp_recourse.errors import Unsupported
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.quantiles import Quantiles
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent


def as_python() -> dict[str, Any]:
    """The functions of :mod:`milp_recourse.engine.networks.levers` without the compiler."""
    names: dict[str, Any] = {}
    exec(Path(levers.__file__).read_text(encoding="utf-8").replace("@compiled\n", ""), names)
    return names


PLAIN = as_python()


class OneLever(NamedTuple):
    """What the functions ask of a problem."""

    lever: np.ndarray
    knot: np.ndarray
    cost: float
    up: float


def drawn(seed: int) -> tuple[Quantiles, float, float, float, float]:
    """A distribution function with flat and steep parts, a factual inside or outside, an interval, a unit."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 12))
    values = np.cumsum(rng.uniform(0.01, 3.0, count)) - 5.0
    steps = rng.random(count) * (rng.random(count) < 0.7)
    shares = np.cumsum(steps) / max(steps.sum(), 1.0)
    x = float(rng.choice(values)) if rng.random() < 0.3 else float(rng.uniform(-7.0, values[-1] + 2.0))
    low, high = sorted(rng.uniform(-9.0, values[-1] + 3.0, 2).tolist())
    unit = float(2.0 ** rng.integers(-2, 5))
    return Quantiles(tuple(values.tolist()), tuple(shares.tolist())), x, low, high, unit


def test_where_rounding_decides_about_a_percentile_another_back_end_answers() -> None:
    """0.3 and 0.1 + 0.2 are as far from -0.5 in doubles, and a third of the people lie between them."""
    quantiles = {"x": Quantiles((-0.5, 0.2, 0.3, 0.1 + 0.2, 1.0), (0.0, 0.1, 0.3, 0.6, 1.0))}
    quantiles["y"] = Quantiles((0.0, 1.0), (0.0, 1.0))
    features = tuple(
        Feature(n, "continuous", True, bounds) for n, bounds in (("x", (0.1 + 0.2, 1.0)), ("y", (0.0, 1.0)))
    )
    either = [([[100.0, 0.0], [0.0, 100.0]], [-20.0, -40.0]), ([[1.0, 1.0]], [-1.0])]
    instance = Instance(
        features,
        independent(["x", "y"]),
        ReluNetwork.from_layers(either),
        {"x": -0.5, "y": 0.0},
        Preferences(("x", "y")),
        Cost.percentile("percentile", quantiles, []),
    )
    with pytest.raises(Unsupported, match="percentiles of 'x' jump"):
        solve(instance, "bab")
    found = solve(instance)
    assert found.status is Status.OPTIMAL and found.backend == "highs" and abs(found.cost - 0.41) < 1e-5
    beside = replace(instance, preferences=Preferences(("y",)))  # nobody acts on x
    assert solve(beside).backend == "bab"


@pytest.mark.parametrize("seed", range(40))
def test_knots_are_nowhere_above_the_percentiles(seed: int) -> None:
    """In exact arithmetic, at random points of the interval and next to every knot; and not far below."""
    quantiles, x, low, high, unit = drawn(seed)
    places, shares = ([Fraction(v) for v in row] for row in quantiles.around(x, low, high, unit).tolist())
    near = [Fraction(v) for v in quantiles.values if low <= v <= high]
    rng = np.random.default_rng(seed)
    for value in [*map(Fraction, rng.uniform(low, high, 50).tolist()), *near]:
        at = (value - Fraction(x)) / Fraction(unit)
        known = abs(quantiles.exact(value) - quantiles.exact(Fraction(x)))
        k = sum(place <= at for place in places)
        if k in (0, len(places)):
            ours = shares[0] if k == 0 else shares[-1]
        else:
            part = (at - places[k - 1]) / (places[k] - places[k - 1])
            ours = shares[k - 1] + part * (shares[k] - shares[k - 1])
        assert known - Fraction(1, 10**12) <= ours <= known


@pytest.mark.parametrize("seed", range(60))
def test_a_node_s_line_is_nowhere_above_the_cost(seed: int) -> None:
    """Over random intervals, on one side of the factual or over it; and nothing that is paid for is cut."""
    quantiles, x, low, high, unit = drawn(seed)
    knots = quantiles.around(x, low, high, unit)
    rng, made = np.random.default_rng(seed), slacks([4], 1, 1, 8, 0, 0, 0)
    lever = np.zeros((13, 1))
    lever[KNOTS], lever[RATE], lever[TOP_RATE] = knots.shape[1], 1.7, 0.6
    p = OneLever(lever, knots[:, None, :], made.cost, made.up)
    ends = (low - x) / unit, (high - x) / unit
    for _ in range(20):
        box = np.zeros((3, 1))
        box[LO], box[HI] = sorted(rng.uniform(*ends, 2).tolist())
        if rng.random() < 0.3:
            box[LO] = min(0.0, box[HI, 0])
        box[MODE] = int(rng.random() < 0.7)
        PLAIN["relevel"](p, box)
        money = float(rng.uniform(0.0, 1.0))
        reach = [PLAIN["percentiles_pay_for"](p, 0, money, 1.7, side) for side in (1, -1)]
        for u in rng.uniform(box[LO, 0], box[HI, 0], 30).tolist():
            value = Fraction(x) + Fraction(unit) * Fraction(u)
            share = abs(quantiles.exact(value) - quantiles.exact(Fraction(x)))
            line = Fraction(float(lever[FIXED, 0])) + Fraction(float(lever[LINEAR, 0])) * abs(Fraction(u))
            assert line <= Fraction(1.7) * share
            assert Fraction(float(lever[LARGEST, 0])) * abs(Fraction(u)) <= Fraction(0.6) * share
            if Fraction(1.7) * share <= Fraction(money):
                assert -reach[1] <= u <= reach[0]
