"""float32 networks without margin: the deployed model refuses the edge, and an action inside is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from milp_recourse import Status, solve
from milp_recourse.backends.protocol import Options
from milp_recourse.compiled import engine, propose
from milp_recourse.compiled.nearby import inside_the_edge, near
from milp_recourse.compiled.propose import Run, ready, search_on, smallest
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.formats import read_instance
from milp_recourse.instance import Acceptance, Instance
from milp_recourse.judge import already_good, judge
from tests.helpers.engine_alone import solve_alone
from tests.helpers.generators import supported_instance

EDGES = Path(__file__).parent / "deployed_edge"


@pytest.mark.parametrize(
    ("name", "gap"),
    [("f32m0-4012", 1e-6), ("f32m0-7020", 1e-6), ("f32m0-20026", 1e-6), ("f32edge-4006", 1.0)],
)
def test_where_the_deployed_model_refuses_the_edge_an_action_is_found(name: str, gap: float) -> None:
    """The first and the last ended without an action; in the last the edge is at the factual: what is cheap
    is refused. In the others the one inside the edge was dearer than the gap allows, and what the deployed
    model accepts between it and the edge was not looked for."""
    result = solve(read_instance(EDGES / f"{name}.json"), "bab", 20.0)
    assert result.action
    assert result.cost is not None
    assert result.lower_bound is not None
    assert result.cost - result.lower_bound <= gap * result.cost
    assert result.status is (Status.OPTIMAL if gap < 1.0 else Status.LIMIT)
    assert gap < 1.0 or "set accept.margin" in (result.message or "")


def test_looking_inside_the_edge_ends_with_the_time_limit() -> None:
    """It took up to ten seconds more."""
    instance = read_instance(EDGES / "f32m0-20026.json")
    ready()
    edge = Run(instance)
    search_on(edge, lambda: None)
    assert edge.refused is not None
    assert near(instance, edge.refused) is not None
    assert near(instance, edge.refused, late=time.perf_counter()) is None
    inside_the_edge(edge, late=time.perf_counter())
    assert edge.action is None


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
    for module in (engine, propose):
        monkeypatch.setattr(module, "judge", lambda *both: replace(judge(*both), faults=("refused",)))
    proposal = solve_alone(smallest(), Options(watch=watch, starts=np.array([[0.75]])))
    assert proposal.action is None
    assert proposal.lower_bound is not None
    assert 0.7 < proposal.lower_bound <= 0.75
