"""Costs in percentiles: what the engine takes for a lever's cost is nowhere above it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.certificates import certificates_for
from milp_recourse.engine.networks import levers
from milp_recourse.engine.networks.lever_arrays import INTERVAL, LEVER
from milp_recourse.engine.networks.numerics import Slacks, slacks
from milp_recourse.errors import Unsupported
from milp_recourse.problem.cost import Cost, Quantiles, Ranks
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.lever_cost import LeverCost, lever_costs
from milp_recourse.problem.network import ReluNetwork
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
    slacks: Slacks
    start: np.ndarray


def drawn(seed: int) -> tuple[LeverCost, float, float, float]:
    """Percentiles with flat and steep parts, from a factual inside or outside, under any parts of a cost; an
    interval; a unit."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 12))
    values = np.cumsum(rng.uniform(0.01, 3.0, count)) - 5.0
    steps = rng.random(count) * (rng.random(count) < 0.7)
    shares = np.cumsum(steps) / max(steps.sum(), 1.0)
    x = float(rng.choice(values)) if rng.random() < 0.3 else float(rng.uniform(-7.0, values[-1] + 2.0))
    low, high = sorted(rng.uniform(-9.0, values[-1] + 3.0, 2).tolist())
    unit = float(2.0 ** rng.integers(-2, 5))
    ranks = {"x": Ranks(Quantiles(tuple(values.tolist()), tuple(shares.tolist())))}
    parts = {"l1": 1.7, "l2_squared": 0.9 * (seed % 3 > 0), "linf": 0.6, "l0": 0.3 * (seed % 2)}
    cost = Cost(**parts, measures=ranks)
    return lever_costs(cost, {"x": False}, {"x": x}, {})["x"], low, high, unit


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


@pytest.mark.parametrize("seed", range(24))
def test_knots_are_nowhere_above_the_percentiles(seed: int) -> None:
    """In exact arithmetic, at random points of the interval and next to every knot; and not far below."""
    cost, low, high, unit = drawn(seed)
    places, shares = ([Fraction(v) for v in row] for row in cost.knots(low, high, unit).tolist())
    rng = np.random.default_rng(seed)
    near = [v for v in cost.measure.levels.values if low <= v <= high]
    for value in [*rng.uniform(low, high, 50).tolist(), *near]:
        at = (Fraction(value) - Fraction(cost.factual)) / Fraction(unit)
        known = cost.size(value)
        k = sum(place <= at for place in places)
        if k in (0, len(places)):
            ours = shares[0] if k == 0 else shares[-1]
        else:
            part = (at - places[k - 1]) / (places[k] - places[k - 1])
            ours = shares[k - 1] + part * (shares[k] - shares[k - 1])
        assert known - Fraction(1, 10**12) <= ours <= known


def test_a_node_s_line_is_nowhere_above_the_cost() -> None:
    """Over random intervals, on one side of the factual or over it; and nothing that is paid for is cut."""
    assert sum(map(_chords, range(12))) > 30


def _chords(seed: int) -> int:
    """Check one lever's lines; how many of them are chords."""
    cost, low, high, unit = drawn(seed)
    knots = cost.knots(low, high, unit)
    rng, made = np.random.default_rng(seed), slacks([4], 1, 1, 8, 0, 0, 0)
    lever = np.zeros(1, LEVER)
    lever[0].rate, lever[0].square_rate, lever[0].top_rate = cost.prices.rounded(Fraction(1))
    lever["knots"], lever["own_fixed"] = knots.shape[1], cost.parts[0]
    p = OneLever(lever, knots[:, None, :], made, np.zeros(2, dtype=int))
    ends, chords = ((low - cost.factual) / unit, (high - cost.factual) / unit), 0
    for _ in range(20):
        box = np.zeros(1, INTERVAL)
        box["lo"], box["hi"] = sorted(rng.uniform(*ends, 2).tolist())
        if rng.random() < 0.3:
            box["lo"] = min(0.0, box[0].hi)
        box["mode"] = int(rng.random() < 0.7)
        PLAIN["relevel"](p, box)
        money, most = rng.uniform(0.0, 1.5), rng.uniform(0.0, 0.6)
        reach = [PLAIN["affordable"](p, 0, money, most, side) for side in (1, -1)]
        names = "fixed", "linear", "square", "largest", "least", "down"
        fixed, linear, square, largest, least, down = (Fraction(float(lever[0][name])) for name in names)
        chords += down < 0
        for u in rng.uniform(box[0].lo, box[0].hi, 30).tolist():
            # the value is a double only where the coordinate is one of its change
            share = _size(cost, Fraction(cost.factual) + Fraction(unit) * Fraction(u))
            paid, entry = cost.prices.paid(share)
            size = max(Fraction(u), -down * Fraction(u))
            assert fixed + (linear + square * size) * size <= paid
            assert least + largest * size <= entry
            if paid <= Fraction(money) and entry <= Fraction(most):
                assert -reach[1] <= u <= reach[0]
    return chords


def _size(cost: LeverCost, value: Fraction) -> Fraction:
    """The size of the change to a rational."""
    piece = next(piece for piece in cost.pieces if piece.low <= value <= piece.high)
    return piece.start + piece.rate * abs(value - Fraction(piece.near))


@pytest.mark.parametrize(
    "parts", [{"l2_squared": 1.0}, {"l2_squared": 2.0, "l1": 0.1, "linf": 0.5, "l0": 0.01}]
)
@pytest.mark.parametrize("seed", range(4))
def test_squared_percentiles_are_solved_and_proven(parts: dict[str, float], seed: int) -> None:
    """By the engine, as HiGHS and a fine grid say; the checker accepts the proof."""
    rng = np.random.default_rng(seed)
    names, values = ("x", "y"), np.sort(rng.normal(size=(2, 6)) * 2.0)
    quantiles = {
        name: Quantiles(tuple(row.tolist()), tuple(np.linspace(0.0, 1.0, 6).tolist()))
        for name, row in zip(names, values, strict=True)
    }
    layers = [(rng.normal(size=(4, 2)), rng.normal(size=4)), (np.ones((1, 4)), np.array([-2.0 - seed]))]
    instance = Instance(
        tuple(Feature(n, "continuous", True, (-5.0, 5.0)) for n in names),
        independent(names),
        ReluNetwork.from_layers(layers, "float64"),
        dict(zip(names, rng.normal(size=2).tolist(), strict=True)),
        Preferences(names, {"x": 2.0}),
        Cost(**parts, measures={n: Ranks(q) for n, q in quantiles.items()}),
    )
    found, other, grid = (solve(instance, backend) for backend in ("bab", "highs", "grid"))
    assert found.status is other.status is Status.OPTIMAL
    assert found.cost == pytest.approx(other.cost, rel=3e-6, abs=1e-9)
    assert grid.cost is None or grid.cost >= found.lower_bound
    assert certificates_for([instance], [found])[0] is not None
