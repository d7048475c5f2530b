"""Curves of causal units: values within their derived error, lines on their side, answers as elsewhere."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_recourse.engine.compiling import allocated
from milp_recourse.engine.networks import elementary
from milp_recourse.engine.networks.causes import NotCovered
from milp_recourse.engine.networks.elementary import LOG, SIGMOID, SQUARE
from milp_recourse.engine.networks.numerics import CURVE, FARTHEST, LN2, LN2_REST
from milp_recourse.engine.networks.problem_arrays import impossible, lower
from milp_recourse.engine.networks.work import Units
from milp_recourse.errors import Unsupported
from milp_recourse.judge import already_good, judge
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers import backend
from milp_recourse.solvers.protocol import Options
from tests.helpers.brute_force import brute_force
from tests.helpers.engine_alone import solve_alone
from tests.helpers.generators import Style, bernoulli_instance, random_instance

NAMES = {SIGMOID: "sigmoid", LOG: "log", SQUARE: "square"}
EDGE = 1e-9


def as_python() -> dict[str, Any]:
    """The functions of :mod:`milp_recourse.engine.networks.elementary` without the compiler."""
    names: dict[str, Any] = {}
    exec(Path(elementary.__file__).read_text(encoding="utf-8").replace("@compiled\n", ""), names)
    return names


PLAIN = as_python()


def exact(kind: int, point: float) -> Enclosure:
    result: Enclosure = getattr(Enclosure.of(point), NAMES[kind])()
    return result


def points_of(kind: int, rng: np.random.Generator, size: int) -> np.ndarray:
    """Points at every scale, where a kind is defined."""
    if kind == LOG:
        near = 1.0 + rng.normal(size=size // 2) * 10.0 ** rng.uniform(-15, -1, size // 2)
        return np.concatenate([10.0 ** rng.uniform(-9, 6, size - size // 2), near])
    return rng.normal(size=size) * 10.0 ** rng.uniform(-12, 2.3, size)


@pytest.mark.parametrize("kind", NAMES)
def test_values_are_within_their_derived_error(kind: int) -> None:
    """Against 50 digits; the error is far from zero too, so a constant that is too small would be seen."""
    points = points_of(kind, np.random.default_rng(kind), 4000)
    worst = 0.0
    for point in points.tolist():
        value = PLAIN["curve"](kind, point, EDGE)
        known = exact(kind, point).midpoint
        if known:
            worst = max(worst, float(abs(Fraction(value) - known) / abs(known)))
    assert 2.0**-54 < worst < CURVE


def test_the_exponential_is_within_its_derived_error() -> None:
    points = np.random.default_rng(0).uniform(-FARTHEST, FARTHEST, 4000)
    context = Context(prec=50)
    for point in points.tolist():
        value = PLAIN["exp"](point)
        known = Fraction(context.exp(Decimal(point)))
        assert abs(Fraction(value) - known) < Fraction(CURVE) * known


def test_log_2_in_two_parts() -> None:
    """The first part leaves room for the exponents of doubles; the sum is log 2 to 2^-85."""
    numerator, _ = LN2.as_integer_ratio()
    assert (numerator * 1010).bit_length() <= 53
    known = Fraction(Context(prec=60).ln(Decimal(2)))
    assert abs(Fraction(LN2) + Fraction(LN2_REST) - known) < Fraction(1, 2**85)


@pytest.mark.parametrize("kind", NAMES)
def test_lines_stay_on_their_side(kind: int) -> None:
    """Above and below over the whole interval, wherever they are to touch; and near where the interval is
    narrow."""
    rng = np.random.default_rng(10 + kind)
    for _ in range(150):
        ends = np.sort(points_of(kind, rng, 2))
        if rng.random() < 0.3:
            ends[1] = ends[0] + abs(ends[0]) * 10.0 ** rng.uniform(-15, -2)
        low, high = float(ends[0]), float(ends[1])
        unit = allocated(Units, layers=1, n=1, L=0)
        unit.low[:], unit.high[:] = low, high
        PLAIN["draw_lines"](unit, 0, kind, EDGE, float(rng.uniform(low, high)))
        above = Fraction(float(unit.slope[0, 0])), Fraction(float(unit.rise[0, 0]))
        below = Fraction(float(unit.alpha[0, 0])), Fraction(float(unit.fall[0, 0]))
        for point in (low, high, *rng.uniform(low, high, 20).tolist()):
            if not low <= point <= high:
                continue
            value, z = exact(kind, point), Fraction(point)
            assert above[0] * z + above[1] >= value.lower, (kind, low, high, point)
            assert below[0] * z + below[1] <= value.upper, (kind, low, high, point)
        if kind == SIGMOID:  # its second derivative is at most 0.097
            assert PLAIN["distance"](unit, 0) <= 0.097 * (high - low) ** 2 + 1e-12, (low, high)
        if high - low < 1e-4 * abs(low) and abs(low) < 100 and (kind != LOG or low > 1e-3):
            apart = float((above[0] - below[0]) * Fraction(low) + above[1] - below[1])
            assert apart < 1e-6 * (1 + abs(low) ** 2), (kind, low, high)


def curved(seed: int) -> Instance | None:
    """A problem that has curves, where it asks for a search."""
    styles = (Style(), Style(levers=2, plausible=1.0), Style(levers=4, plausible=0.0))
    instance = bernoulli_instance(seed) if seed % 10 == 9 else random_instance(seed, styles[seed % 3])
    if not instance.levers or already_good(instance) or impossible(instance, instance.scm.features):
        return None
    try:
        made = lower(instance)
    except (NotCovered, Unsupported):
        return None
    return instance if (made.kind > 0).any() else None


@pytest.mark.long
def test_curved_problems_as_highs_and_brute_force() -> None:
    """Statuses and costs agree; nothing that is found otherwise is cheaper than a bound."""
    counted = {"optimal": 0, "infeasible": 0}
    for seed in range(30):
        instance = curved(seed)
        if instance is None:
            continue
        found = solve_alone(instance, Options(time_limit=60))
        assert found.message is None, (seed, found)
        other = backend("highs").solve(instance, Options(time_limit=20))
        known = brute_force(instance)
        for action in (other.action, known.action if known else None):
            verdict = None if action is None else judge(instance, action)
            if verdict is not None and verdict.feasible:
                assert Fraction(found.lower_bound) <= verdict.cost, seed
        if found.action is None:
            assert found.lower_bound == math.inf
            counted["infeasible"] += 1
            continue
        verdict = judge(instance, found.action)
        assert verdict.feasible, seed
        gap = instance.gap_tolerance(float(verdict.cost))
        assert float(verdict.cost) - found.lower_bound <= gap, seed
        if other.message is None and other.lower_bound is not None:
            assert float(verdict.cost) >= other.lower_bound * (1 - 1e-9) - gap, seed
        counted["optimal"] += 1
    assert counted["optimal"] >= 2 and counted["infeasible"] >= 2, counted
