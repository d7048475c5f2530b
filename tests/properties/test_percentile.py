"""Percentile costs: a distribution function is not convex; the answers are exact all the same."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost, Quantiles, Ranks
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from milp_recourse.program import lower
from milp_recourse.solvers import backend, listed
from milp_recourse.solvers.rows.bounds import Configuration
from tests.helpers.brute_force import costs
from tests.helpers.generators import (
    Style,
    random_instance,
    sample_actions,
    supported_instance,
    with_percentile_cost,
)
from tests.properties.run import Tally, examine_instance

CASES = int(os.environ.get("MILP_RECOURSE_CASES", "24"))
STYLES = (Style(levers=2, curves=False), Style(levers=1), Style(levers=3, curves=False, discrete=False))
Q = Quantiles((0.0, 1.0, 2.0, 4.0), (0.1, 0.5, 0.5, 0.9))


def percentile_case(seed: int) -> Instance:
    return with_percentile_cost(seed, random_instance(seed, STYLES[seed % len(STYLES)]))


@pytest.mark.parametrize("name", ["bab", "highs"])
def test_percentiles_survive_brute_force(name: str) -> None:
    """Demands met, nothing cheaper than a bound, nothing feasible where infeasible; most decided."""
    tally = Tally()
    for seed in range(CASES):
        examine_instance(seed, percentile_case(seed), name, None, 5.0, tally)
    assert tally.disagreements == []
    assert tally.counts["unsupported"] <= 0.1 * CASES
    assert tally.counts["limit"] <= 0.05 * CASES
    assert tally.counts["optimal"] >= 0.3 * CASES
    pairs = tally.counts["confirmed, up to two levers"], tally.counts["compared, up to two levers"]
    assert pairs[0] >= 0.95 * pairs[1] > 0, pairs


def stepped(seed: int) -> Instance:
    """Percentiles that jump between neighbouring doubles, or squared ones, or both: not for the engine."""
    instance, rng = percentile_case(seed), np.random.default_rng(seed)
    ranks = {}
    for name, own in instance.cost.measures.items():
        if not isinstance(own, Ranks):
            continue
        q = own.levels
        values, shares = list(q.values), list(q.probabilities)
        at = int(rng.integers(1, len(values) + 1))
        values.insert(at, float(np.nextafter(values[at - 1], np.inf)))
        shares.insert(at, shares[at] if at < len(shares) else 1.0)
        ranks[name] = Ranks(Quantiles(tuple(values), tuple(shares))) if seed % 3 else own
    squared = {"l2_squared": 1.0} if seed % 3 != 1 else {}
    measures = {**instance.cost.measures, **ranks}
    return replace(instance, cost=replace(instance.cost, measures=measures, **squared))


def test_percentiles_that_the_engine_does_not_take_survive_brute_force() -> None:
    """They go to highs, which counts them as what the nearest value of a box costs."""
    tally, refused = Tally(), 0
    for seed in range(CASES):
        instance = stepped(seed)
        refused += backend("bab").why_not(instance) is not None
        examine_instance(seed, instance, "highs", None, 5.0, tally)
    assert tally.disagreements == []
    assert refused >= CASES // 2, refused
    assert tally.counts["optimal"] >= 0.2 * CASES, tally.counts
    assert tally.counts["limit"] <= 0.1 * CASES, (tally.counts, tally.notes)


def exact_back_ends(instance: Instance) -> list[str]:
    """Every registered one that proves optima and does not refuse the instance; a new one joins by itself."""
    able = [name for name, reason in listed().items() if reason is None and backend(name).proves]
    able = [name for name in able if backend(name).why_not(instance) is None and "gurobi" not in name]
    assert {"bab", "highs", "pyomo:scip_direct"} <= set(able)
    return able


@pytest.mark.parametrize("seed", range(0, 30, 6))
def test_back_ends_agree(seed: int) -> None:
    """Whatever proves; the grid is never cheaper."""
    instance = percentile_case(seed)
    exact = solve(instance, "highs", 10.0)
    for name in exact_back_ends(instance):
        other = solve(instance, name, 10.0)
        assert exact.status is other.status, name
        if exact.cost is not None:
            assert exact.cost == pytest.approx(other.cost, rel=2e-6, abs=2e-9), name
    grid = solve(instance, "grid")
    if grid.cost is not None:
        assert exact.cost is not None and grid.cost >= exact.lower_bound * (1 - 1e-12) - 1e-12


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-3.0, "0.1"), (0.0, "0.1"), (0.25, "0.2"), (1.0, "0.5"), (1.5, "0.5"), (3.0, "0.7"), (9.0, "0.9")],
)
def test_the_distribution_function_by_hand(value: float, expected: str) -> None:
    """Linear between knots, constant outside."""
    assert float(abs(Q.exact(Fraction(value)) - Fraction(expected))) < 1e-16


def test_a_flat_stretch_is_free_and_the_answer_jumps_it() -> None:
    """From 0.5 to at least 2.5: the probability goes from 0.3 to 0.6, though 1 to 2 costs nothing."""
    instance = Instance(
        (Feature("a", "continuous", True, (-5.0, 5.0)),),
        independent(("a",)),
        ReluNetwork.from_layers([([[1.0]], [-2.5])]),
        {"a": 0.5},
        Preferences(("a",), {"a": 2.0}),
        Cost.percentile("percentile", {"a": Q}),
    )
    for name in exact_back_ends(instance):
        result = solve(instance, name)
        assert result.status is Status.OPTIMAL
        assert result.cost == pytest.approx(2 * 0.3, rel=1e-6)
        assert result.action["a"] == pytest.approx(2.5, abs=1e-5)
    saturated = replace(instance, factual={"a": -1.0}, accept=replace(instance.accept, threshold=2.2))
    assert solve(saturated).cost == pytest.approx(2 * 0.8, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_boxes_lose_nothing_and_costs_are_bounded_from_below(seed: int) -> None:
    """Contraction keeps every action within the cutoff; the least cost is at most any action's."""
    rng = np.random.default_rng(seed)
    instance = with_percentile_cost(seed, supported_instance(seed, STYLES[seed % len(STYLES)]))
    for row in sample_actions(rng, instance, 20):
        action = {f.name: float(v) for f, v in zip(instance.features, row, strict=True) if not np.isnan(v)}
        if not action:
            continue
        part = Configuration(instance, lower(instance).fix(frozenset(action)))
        a = np.array(part.program.values(action))
        verdict = judge(instance, action)
        cost = verdict.cost
        assert costs(instance, tuple(action), np.array([list(action.values())]))[0] == pytest.approx(
            float(cost), rel=1e-12, abs=1e-14
        )
        if not verdict.feasible:
            continue
        near = np.maximum(part.lower, a - 0.1), np.minimum(part.upper, a + 0.1)
        for low, high in ((part.lower, part.upper), near):
            found = part.bound(low, high, float(cost) * (1 + 1e-12) + 1e-15)
            assert found is not None and (found.low <= a).all() and (a <= found.high).all()
            assert found.least <= float(cost) + 1e-15
