"""float32 networks without margin: the deployed model refuses the edge, and an action inside is found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from milp_recourse import Status, solve
from milp_recourse.engine.networks.nearby import inside_the_edge, near
from milp_recourse.engine.networks.propose import Run, ready
from milp_recourse.engine.networks.search_on import search_on
from milp_recourse.engine.smallest_instance import smallest
from milp_recourse.formats import read_instance
from milp_recourse.judge import already_good, best_first, judge
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Clock
from milp_recourse.solvers.protocol import Options
from tests.helpers import engine_alone
from tests.helpers.generators import supported_instance

EDGES = Path(__file__).parent / "deployed_edge"


@pytest.mark.parametrize("name", ["f32m0-4012", "f32m0-7020", "f32m0-20026"])
def test_where_the_deployed_model_refuses_the_edge_an_action_is_found(name: str) -> None:
    """The first ended without an action. In the others the one inside the edge was dearer than the gap
    allows, and what the deployed model accepts between it and the edge was not looked for."""
    result = solve(read_instance(EDGES / f"{name}.json"), "bab", 20.0)
    assert result.action
    assert result.cost is not None
    assert result.lower_bound is not None
    assert result.cost - result.lower_bound <= 1e-6 * result.cost
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize(("name", "cost"), [("one-whole-lever", 2.0), ("plateau", 0.01456)])
def test_an_action_behind_one_that_the_deployed_model_refuses(name: str, cost: float) -> None:
    """Both ended without an action. In the first the search for a higher logit counted the refused action as
    the cheapest; in the second no logit is higher than what is needed by more than 1.5e-11."""
    result = solve(read_instance(EDGES / f"{name}.json"), "bab", 5.0)
    assert result.action
    assert result.cost <= cost
    assert judge(read_instance(EDGES / f"{name}.json"), result.action).feasible


def at_the_edge(instance: Instance, lever: str) -> Iterator[Instance]:
    """The instance at other values of a lever, each accepted exactly, hardly so, and refused as deployed.

    Which values these are depends on how the machine adds up in float32.
    """
    low, high = instance.levers[lever]
    for value in np.linspace(low, high, 60, dtype=np.float32):
        own = replace(instance, factual={**instance.factual, lever: float(value)})
        logit = judge(own, {}).logit
        threshold = np.nextafter(np.float32(float(logit.midpoint)), np.float32(-np.inf))
        own = replace(own, accept=Acceptance(float(threshold), 0.0))
        verdict = judge(own, {})
        if verdict.accepted_exact and not verdict.accepted_deployed:
            yield own


def test_an_action_is_found_where_the_edge_is_at_the_factual() -> None:
    """What is cheap is refused by the deployed model; these searches ended without an action."""
    seen = 0
    for instance in islice(at_the_edge(read_instance(EDGES / "f32edge-4006.json"), "f05"), 6):
        result = solve(instance, "bab", 20.0)
        assert result.action and result.status is Status.LIMIT
        assert "set accept.margin" in (result.message or "")
        seen += 1
    assert seen == 6


def test_looking_inside_the_edge_ends_with_the_time_limit() -> None:
    """It took up to ten seconds more. Now searches end, and only points beyond the action are judged."""
    instance = read_instance(EDGES / "f32m0-20026.json")
    ready()
    edge = Run(instance)
    search_on(edge)
    assert edge.refused is not None
    assert near(instance, edge.refused) is not None
    assert near(instance, edge.refused, Clock.start(0.0)) is None
    begun = time.perf_counter()
    inside_the_edge(edge, Clock(begun))
    assert time.perf_counter() - begun < 1.0


def test_an_action_that_costs_less_than_the_gap_allows() -> None:
    """The bound was below 0, of which a root was taken: a traceback."""
    result = solve(read_instance(EDGES / "cheaper-than-the-gap.json"), "bab", 20.0)
    assert result.lower_bound == 0.0


def without_margin(seed: int) -> tuple[Instance, Instance] | None:
    """A random problem of a float32 network with a margin that covers its rounding, and without."""
    instance = supported_instance(seed)
    network, accept = instance.classifier, instance.accept
    if not isinstance(network, ReluNetwork) or network.dtype != "float32" or not instance.levers:
        return None
    bare = replace(instance, accept=Acceptance(float(np.float32(accept.threshold + accept.margin)), 0.0))
    wide = replace(instance, accept=Acceptance(bare.accept.threshold, accept.margin))
    return None if already_good(wide) else (wide, bare)


def test_what_a_margin_allows_is_found_without_one() -> None:
    """Whatever is accepted with a margin is accepted without one, for no more; most such searches meet the
    edge, and a good share of the actions there is refused as deployed."""
    decided = edges = 0
    for seed in range(120):
        drawn = without_margin(seed)
        if drawn is None:
            continue
        wide, bare = drawn
        known, result = solve(wide, "bab", 10.0), solve(bare, "bab", 10.0)
        if result.action is not None:
            assert judge(bare, bare.numbers(result.action)).feasible
        if known.status is not Status.OPTIMAL:
            continue
        decided += 1
        edges += result.status is Status.LIMIT
        assert result.cost is not None, seed
        assert result.cost <= known.cost, seed
        assert result.lower_bound <= result.cost, seed
    assert decided > 15


@pytest.mark.parametrize("watch", [None, lambda cost, bound: None])
def test_an_action_that_does_not_pass_after_all_caps_the_bound(
    watch: Callable[[float, float], object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes are closed against the cost of an action before it is judged, so that without the action nothing
    above its cost is proven, let alone that there is none."""
    for module in (best_first, engine_alone):
        monkeypatch.setattr(module, "judge", lambda *both: replace(judge(*both), faults=("refused",)))
    proposal = engine_alone.solve_alone(smallest(), Options(watch=watch, starts=np.array([[0.75]])))
    assert proposal.action is None
    assert proposal.lower_bound is not None
    assert 0.7 < proposal.lower_bound <= 0.75
