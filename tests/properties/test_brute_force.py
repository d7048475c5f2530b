"""highs against brute force on random small problems. More of them: MILP_RECOURSE_CASES=2000 pytest ...,

or ``python -m tests.properties.run --cases 2000``, which shows progress and writes the counts.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from tests.helpers.brute_force import (
    attack,
    axis,
    brute_force,
    complaints,
    costs,
    looks_feasible,
    rows_of,
    subsets,
)
from tests.helpers.generators import PIECEWISE_LINEAR, Style, random_instance, sample_actions
from tests.properties.run import Tally, case, examine

CASES = int(os.environ.get("MILP_RECOURSE_CASES", "6"))
FORMER = (15, 159, 342, 351, 679, 808, 814, 843, 1667, 1818, 1837, 49, 604, 712, 1021, 1093, 1300, 1312, 5195)
"""Cases that once went wrong: bounds too high, a fair coin refused, a solver fed nan, crashes, integers
that numpy took for floats."""
TIME_LIMIT = 5.0


@pytest.mark.parametrize(
    "seed", [*range(CASES), *(pytest.param(s, marks=pytest.mark.long) for s in FORMER if s >= CASES)]
)
def test_highs_survives_brute_force(seed: int) -> None:
    """Every demand met, deployed too; nothing cheaper than the bound; nothing feasible where infeasible."""
    tally = Tally()
    examine(seed, "highs", None, TIME_LIMIT, tally)
    assert tally.disagreements == []
    assert tally.counts["solved"] == 1 or tally.counts["unsupported"] == 1


def test_most_cases_are_decided_and_confirmed() -> None:
    """The judge is strong enough to notice: brute force finds nearly every optimum again, to 1e-4."""
    tally = Tally()
    for seed in range(1000, 1020):
        examine(seed, "highs", None, TIME_LIMIT, tally)
    assert tally.disagreements == []
    assert tally.counts["optimal"] >= 5
    assert tally.counts["infeasible"] >= 2
    assert tally.counts["limit"] <= 1
    assert (
        tally.counts["confirmed, up to two levers"] >= 0.95 * tally.counts["compared, up to two levers"] > 0
    )


@pytest.mark.parametrize("seed", range(25))
def test_one_lever_optima_are_those_of_the_linear_pieces(seed: int) -> None:
    """One continuous lever, piecewise linear: the exact optimum by enumerating breakpoints, to 1e-6."""
    instance = one_lever_instance(seed)
    result = solve(instance, "highs", TIME_LIMIT)
    expected = best_of_pieces(instance)
    if expected is None:
        assert result.status is Status.INFEASIBLE
    else:
        assert result.status is Status.OPTIMAL
        assert result.cost == pytest.approx(expected, rel=2e-6, abs=2e-9)
        assert result.lower_bound <= expected + 1e-12


def one_lever_instance(seed: int) -> Instance:
    """The first of the seed's draws with one continuous lever and a rejected factual."""
    style = Style(levers=1, curves=False, discrete=False, plausible=0.0, gamma=False)
    while True:
        instance = random_instance(seed, style)
        if len(instance.levers) == 1 and instance.cost.kind != "l0" and not judge(instance, {}).feasible:
            (ends,) = instance.levers.values()
            if abs(slack(instance, np.linspace(*ends, 2001)).max()) > 1e-9:  # not a matter of rounding
                return instance
        seed += 1000


def slack(instance: Instance, values: np.ndarray) -> np.ndarray:
    """How clearly each value of the one lever is accepted and in every domain; negative: it is not."""
    (name,) = instance.levers
    actions = np.full((len(values), len(instance.features)), np.nan)
    actions[:, instance.scm.features.index(name)] = values
    rows = instance.scm.counterfactual(instance.factual_row, actions)
    needed = instance.accept.threshold + instance.accept.margin
    margins = [instance.classifier.evaluate(instance.model_rows(rows))[:, 0] - needed]
    for j, f in enumerate(instance.features):
        if f.domain is not None:
            margins += [rows[:, j] - f.domain[0], f.domain[1] - rows[:, j]]
    return np.min(margins, axis=0)


def best_of_pieces(instance: Instance) -> float | None:
    """The slack is piecewise linear in the action: its zeros by bisection, a grid, the factual."""
    (name,) = instance.levers
    low, high = instance.levers[name]
    cells = np.linspace(low, high, 20001)
    s = slack(instance, cells)
    candidates = [cells[s >= 0]]
    x = instance.factual[name]
    if low <= x <= high and slack(instance, np.array([x]))[0] >= 0:
        candidates.append(np.array([x]))
    for i in np.flatnonzero((s[:-1] >= 0) != (s[1:] >= 0)):
        a, b = (cells[i], cells[i + 1]) if s[i] >= 0 else (cells[i + 1], cells[i])
        for _ in range(60):
            middle = (a + b) / 2
            a, b = (middle, b) if slack(instance, np.array([middle]))[0] >= 0 else (a, middle)
        candidates.append(np.array([a]))
    values = np.concatenate(candidates)
    return float(costs(instance, (name,), values[:, None]).min()) if len(values) else None


@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_points_that_only_touch_the_threshold_are_found(kind: str) -> None:
    """0.1 a - 0.1 k >= 0 with a <= k: the corner is the answer where it is exactly accepted."""
    statuses = set()
    for k in range(1, 40):
        instance = Instance(
            (Feature("a", kind, True, (0.0, float(k))),),
            independent(("a",)),
            ReluNetwork.from_layers([([[0.1]], [-0.1 * k])]),
            {"a": 0.0},
            Preferences(("a",)),
            Cost.pure("l2-squared", {"a": 1.0}),
        )
        result = solve(instance, "highs", TIME_LIMIT)
        if judge(instance, {"a": float(k)}).feasible:
            assert (result.status, result.action) == (Status.OPTIMAL, {"a": k})
        else:
            assert result.action is None
        statuses.add(result.status)
    assert Status.OPTIMAL in statuses


# -- the brute force itself ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_float_check_lets_every_feasible_action_through(seed: int) -> None:
    """Nothing the exact judge accepts is lost before it is asked."""
    instance = random_instance(seed)
    for row in sample_actions(np.random.default_rng(seed), instance, 40):
        action = {f.name: float(v) for f, v in zip(instance.features, row, strict=True) if not np.isnan(v)}
        if action and judge(instance, action).feasible:
            acted = tuple(action)
            assert looks_feasible(instance, acted, np.array([[action[n] for n in acted]])).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_grids_costs_are_the_judges(seed: int) -> None:
    """To float accuracy."""
    instance = random_instance(seed, PIECEWISE_LINEAR)
    for acted in subsets(instance):
        values = np.stack([axis(instance, n, 5)[:1] for n in acted], axis=1)
        action = dict(zip(acted, values[0].tolist(), strict=True))
        assert costs(instance, acted, values)[0] == pytest.approx(
            float(judge(instance, action).cost), rel=1e-12, abs=1e-15
        )
        assert rows_of(instance, acted, values).shape == (1, len(instance.features))


def test_brute_force_catches_a_bound_that_is_too_high() -> None:
    """A solver that claims half of the truth more is found out, near its own action at the latest."""
    from dataclasses import replace

    caught = 0
    for seed in range(9):
        instance = case(seed)
        result = solve(instance, "highs", TIME_LIMIT)
        if result.status is Status.OPTIMAL and result.action and instance.cost.l0 == 0:
            lie = replace(result, cost=result.cost * 1.5, lower_bound=result.cost * 1.5)
            assert any("cost" in text for text in complaints(instance, lie))
            found = brute_force(instance)
            assert found is not None
            caught += found.cost < lie.lower_bound
            near = attack(instance, lie, np.random.default_rng(seed))
            assert near is None or near.cost < lie.cost
    assert caught >= 3


def test_complaints_name_mask_bounds_and_numbers() -> None:
    """A result bent in each way is complained about."""
    from dataclasses import replace

    instance, result = next(
        (i, r)
        for i in map(case, range(40))
        if (r := solve(i, "highs", TIME_LIMIT)).action and len(r.action) == 1 and r.status is Status.OPTIMAL
        if not i.by_name[next(iter(r.action))].labelled
    )
    (name,) = result.action
    assert complaints(instance, result) == []
    bare = replace(instance, preferences=replace(instance.preferences, actionable=()))
    assert any(text.startswith("mask") for text in complaints(bare, result))
    assert any(
        text.startswith("bounds") for text in complaints(instance, replace(result, action={name: 1e6}))
    )
    assert any(
        text.startswith("cost") for text in complaints(instance, replace(result, cost=result.cost + 1e-7))
    )
    other = {n: 0 if isinstance(v, (int, float)) else v for n, v in result.counterfactual.items()}
    bent = replace(result, counterfactual=other)
    rejected = [text for text in complaints(instance, bent) if text.startswith("deployed")]
    zero = np.array([0.0 if isinstance(v, (int, float)) else instance.factual[n] for n, v in other.items()])
    accepted = instance.classifier.deployed_logit(instance.model_rows(zero)) >= instance.accept.threshold
    assert bool(rejected) != accepted
