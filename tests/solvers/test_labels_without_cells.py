"""CP-SAT on causal trees with a lever whose labels move no cell of the ensemble."""

import pytest

from milp_recourse import solve
from milp_recourse.formats import instance_from_dict


@pytest.mark.parametrize("encoding", ["one-hot", "table"])
def test_a_label_that_no_tree_asks_for_may_be_any(encoding):
    """Whether it is acted on is decided by a condition alone. It was taken to be the first of its labels, and
    an action that leaves it was never found: cpsat called 10.2 optimal where 0.7 is."""
    labels = {
        "kind": "ordinal",
        "actionable": True,
        "categories": ["low", "mid", "high"],
        "encoding": encoding,
    }
    if encoding == "table":
        labels["table"] = [[0.0], [0.0], [0.0]]
    columns = 3 if encoding == "one-hot" else 1
    problem = {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "x", "kind": "integer", "actionable": True, "bounds": [0, 3]},
            {"name": "f"} | labels,
            {"name": "c", "kind": "continuous", "actionable": False},
        ],
        "scm": {
            "name": "explicit",
            "mechanisms": {"c": {"equation": {"sum": [0.25, {"product": [1.0, "x"]}]}}},
        },
        "factual": {"x": 1, "f": "mid", "c": 0.75},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float64",
            "trees": [
                {
                    "feature": [1 + columns, -2, -2],
                    "threshold": [1.25, -2.0, -2.0],
                    "left": [1, -1, -1],
                    "right": [2, -1, -1],
                    "value": [0.0, 0.0, 1.0],
                }
            ],
            "aggregate": "sum",
            "base": 0.0,
            "sum_dtype": "float64",
        },
        "accept": {"at_least": 1.0},
        "preferences": {"actionable": ["x", "f"], "weights": {"x": 1.0, "f": 1.0}, "ranges": {}},
        "cost": {"kind": "l1", "scale": {"x": 1.0, "f": 1.0}},
    }
    not_up = {"if": {"acted": "x"}, "then": {"feature": "f", "of": "change", "at_most": 0}}
    for conditions in ([], [not_up]):
        instance = instance_from_dict(problem | {"conditions": conditions})
        found = {name: solve(instance, name) for name in ("bab", "cpsat")}
        assert {(r.status.value, r.action["x"], r.cost) for r in found.values()} == {("optimal", 2, 1.0)}, (
            found
        )
