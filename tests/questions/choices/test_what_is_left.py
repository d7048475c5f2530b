"""What ``choices`` says of the ways that it does not list, against every way there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions import choices as choosing
from milp_recourse.questions.choices import Choice, choices


def knapsack(seed: int) -> Instance:
    """Equal levers whose weighted sum must reach a number, so that many actions cost the same."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    names = tuple(f"x{k}" for k in range(n))
    kind = str(rng.choice(["integer", "continuous"]))
    high = float(rng.integers(1, 4))
    gains = rng.integers(1, 4, n).astype(float)
    need = float(rng.integers(1, int(gains.sum() * high) + 1))
    network = ReluNetwork.from_layers([([gains.tolist()], [-need])], "float64")
    features = tuple(Feature(name, kind, True, (0.0, high)) for name in names)  # type: ignore[arg-type]
    scale = {name: float(rng.choice([1, 2])) for name in names}
    cost = Cost.pure(str(rng.choice(["l1", "linf", "l0"])), scale)
    return Instance(
        features, independent(names), network, dict.fromkeys(names, 0.0), Preferences(names), cost
    )


def ways(instance: Instance) -> dict[frozenset[str], float]:
    """Every set of features whose own optimum acts on all of them, each solved by itself."""
    names, least = instance.preferences.actionable, dict[frozenset[str], float]()
    for size in range(len(names) + 1):
        for some in combinations(names, size):
            cost = solve(replace(instance, preferences=Preferences(some))).cost
            least[frozenset(some)] = np.inf if cost is None else cost
    return {
        some: cost
        for some, cost in least.items()
        if cost < np.inf and all(cost < least[some - {name}] * (1 - 1e-5) for name in some)
    }


@pytest.mark.parametrize("seed", [3, 52, 62, 82, 86, 92])
def test_every_way_is_listed_once_and_acts_on_nothing_needless(seed: int) -> None:
    """Optima that tie may act on a feature in vain: listed with it, a way came twice."""
    instance = knapsack(seed)
    found = choices(instance, 40)
    listed = [frozenset(one.result.action or {}) for one in found.choices]
    assert found.exhausted and len(set(listed)) == len(listed)
    assert set(listed) == set(ways(instance))


def test_whole_numbers_are_as_far_apart_as_the_decimals_say() -> None:
    """0.1 scales of 10 are 1, though the double 0.1 is more than a tenth."""
    network = ReluNetwork.from_layers([([[1.0]], [-1.0])], "float64")
    feature, cost = Feature("x", "integer", True, (0.0, 3.0)), Cost.pure("l1", {"x": 1.0})
    one = Instance((feature,), independent(("x",)), network, {"x": 0.0}, Preferences(("x",)), cost)
    found = choices(one, 5, "distance", 0.1, {"x": 10.0})
    assert [result.result.action for result in found.choices] == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert found.exhausted
    assert choices(one, 5, "distance", 1e300, {"x": 1e300}).exhausted  # no number is so far away


def stated(action: frozenset[str], cost: float) -> Choice:
    """A way that is listed with this cost."""
    values: dict[str, float] = dict.fromkeys(sorted(action), 1.0)
    return Choice(
        Result(
            Status.OPTIMAL, cost, cost, "rigorous", values, {}, accepted_exact=True, accepted_deployed=True
        ),
        (),
    )


@pytest.mark.parametrize("seed", range(440, 460))
def test_what_a_selection_leaves_costs_no_less_than_is_said(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least total of ways with any costs; the bound for the others was that of the dearest one seen."""
    rng = np.random.default_rng(seed)
    names = "abcdef"
    sets = {frozenset(n for n in names if rng.random() < 0.5) for _ in range(int(rng.integers(1, 12)))}
    every = sorted((float(rng.integers(4, 12)), list(some)) for some in sorted(map(sorted, sets)) if some)
    nothing = Choice(Result(Status.INFEASIBLE, proof="rigorous"), ())
    listing = [stated(frozenset(some), cost) for cost, some in every] + [nothing]
    monkeypatch.setattr(choosing, "differing", lambda *_: iter(listing))
    count, apart = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    found = choices(knapsack(0), count, "features", apart, together=True)
    chosen = [set(one.result.action or {}) for one in found.choices]
    totals = {
        size: min(total)
        for size in range(count + 1)
        if (total := [
            sum(cost for cost, _ in some)
            for some in combinations(every, size)
            if all(len(set(a[1]) ^ set(b[1])) >= apart for a, b in combinations(some, 2))
        ])
    }  # fmt: skip
    assert len(chosen) == max(totals) and found.total == (totals[len(chosen)],) * 2
    left = [cost for cost, some in every if all(len(set(some) ^ other) >= apart for other in chosen)]
    if found.lower_bound is None:
        assert found.exhausted and not left
    else:
        assert not found.exhausted and len(chosen) == count
        assert min(left, default=np.inf) >= found.lower_bound
