"""Problems with many sets of acted features; with more than the engine tells apart: another back end, and an
action."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from milp_recourse import Status, solve
from milp_recourse.engine.networks.nearby import first_action
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Variable, as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scenario import Scenario
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.solvers import backend


def chain(levers: int, share: float) -> Instance:
    """Each lever moves the next one by a share of its change."""
    names = [f"x{k:02}" for k in range(levers)]
    none = as_expression(0.0)
    causes = [none, *(share * Variable(name) if share else none for name in names[:-1])]
    mechanisms = {n: Mechanism(cause, Link(), None) for n, cause in zip(names, causes, strict=True)}
    rng = np.random.default_rng(1)
    layers = [(rng.normal(size=(8, levers)), [0.0] * 8), (rng.normal(size=(1, 8)), [-2.0])]
    return Instance(
        tuple(Feature(name, "continuous", True, (-1.0, 1.0)) for name in names),
        StructuralCausalModel(names, mechanisms),
        ReluNetwork.from_layers(layers),
        dict.fromkeys(names, 0.0),
        Preferences(tuple(names)),
        Cost.pure("l1", dict.fromkeys(names, 1.0)),
    )


def test_a_chain_of_fourteen_is_solved() -> None:
    """8192 sets; from 8192 on, problems used to go to another back end."""
    result = solve(chain(14, 0.5))
    assert (result.backend, result.status) == ("bab", Status.OPTIMAL)


def test_a_long_chain_has_an_action() -> None:
    """The default had none at its limit, although one sampled action in eight is feasible; and it came long
    after its limit, when it had made a program of each of 131 072 sets."""
    instance = chain(18, 0.5)
    assert "sets of acted features" in (backend("bab").why_not(instance) or "")
    action = first_action(instance)
    assert action is not None
    assert judge(instance, action).feasible
    result = solve(instance, time_limit=1.0)
    assert result.backend == "highs"
    assert result.action
    assert result.seconds < 6.0


def test_who_may_miss_is_told_apart_from_who_does_not_act() -> None:
    """The engine took many levers with a scenario, and ended at once without an action."""
    instance = replace(chain(16, 0.0), scenarios=(Scenario({"x00": 0.1}),))
    assert "sets of acted features" in (backend("bab").why_not(instance) or "")
    assert backend("bab").why_not(replace(instance, scenarios=())) is None
    fewer = replace(chain(13, 0.0), scenarios=(Scenario({"x00": 0.1}),))
    assert solve(fewer, time_limit=20.0).status is Status.OPTIMAL
