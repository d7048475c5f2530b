"""Searches that start from accepted rows: what is found there must be an action of the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve


def _problem(kind: str, a: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The model accepts b - 2 a >= 3. The person has a = 0, so a has to rise wherever that is demanded."""
    return {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "a", "kind": kind, "actionable": True, "bounds": [0, 4], **(a or {})},
            {"name": "b", "kind": kind, "actionable": True, "bounds": [0, 5]},
        ],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": [[-2.0, 1.0]], "bias": [-3.0]}],
        },
        "factual": {"a": 0, "b": 0},
        "preferences": {"actionable": ["a", "b"]},
        "cost": {"kind": "l1", "scale": {"a": 1.0, "b": 1.0}},
        **more,
    }


DEMANDS: dict[str, dict[str, Any]] = {
    "domain": {"a": {"domain": [2, 3]}},
    "condition": {"conditions": [{"feature": "a", "of": "counterfactual", "at_least": 2}]},
    "change": {"conditions": [{"feature": "a", "of": "change", "at_least": 2}]},
    "possible": {"a": {"domain": [1, 3]}},
}


@pytest.mark.parametrize("kind", ["integer", "continuous"])
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_lever_that_must_act_does_not_rest(demand: str, kind: str) -> None:
    """The model accepts rows in which a is what it is, but a must rise: these rows are no actions. Where none
    is left, that is proven; a start that was filed as an action that the model refuses kept it from it."""
    instance = instance_from_dict(_problem(kind, **DEMANDS[demand]))
    starts = np.array([[0.0, 5.0], [0.0, 4.0], [1.0, 5.0]])
    alone, started = solve(instance, "bab"), solve(instance, "bab", starts=starts)
    assert started.status is alone.status
    assert started.status is (Status.OPTIMAL if demand == "possible" else Status.INFEASIBLE)
    if demand == "possible":
        assert started.action == {"a": 1, "b": 5} and started.cost == 6.0
