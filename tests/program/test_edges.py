"""Where the program has no proven bounds it says so instead of cutting plausible actions off."""

from __future__ import annotations

import pytest

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.formats import instance_from_dict


def pushed_to_the_end(high: float) -> dict[str, object]:
    """A lever a up to ``high``, and y = sigmoid(a + noise) downstream of it; accepted from a = 0.9 high."""
    return {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "a", "kind": "continuous", "actionable": True, "bounds": [0, high]},
            {"name": "y", "kind": "continuous", "actionable": False},
        ],
        "scm": {
            "name": "explicit",
            "mechanisms": {
                "a": {"equation": 0, "noise": {"kind": "normal", "sd": 5.2}},
                "y": {"equation": "a", "link": {"kind": "sigmoid"}, "noise": {"kind": "normal", "sd": 1}},
            },
        },
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": [[1, 0]], "bias": [-0.9 * high]}],
        },
        "factual": {"a": 0, "y": 0.5},
        "preferences": {"actionable": ["a"]},
        "cost": {"kind": "l2-squared", "scale": {"a": 1}},
        "plausibility": {"kind": "scm-density", "at_least": "factual"},
    }


def test_a_downstream_sigmoid_pushed_to_its_end_is_refused() -> None:
    """At a = 40 the share of y is closer to 1 than the program's bounds reach: not called infeasible."""
    with pytest.raises(Unsupported, match="end of its support"):
        solve(instance_from_dict(pushed_to_the_end(60)))


def test_a_moderate_push_is_solved() -> None:
    """Well inside, the same model is solved."""
    assert solve(instance_from_dict(pushed_to_the_end(4))).status.value in ("optimal", "infeasible")
