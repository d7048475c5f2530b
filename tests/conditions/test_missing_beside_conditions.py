"""Conditions on one feature where another one's value is missing."""

from milp_recourse.questions.solve import solve


def test_acting_that_a_domain_forces_is_no_demand():
    """Two conditions together: a is acted on, and must end below where it is. That is its domain alone."""
    instance = {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "a", "kind": "ordinal", "actionable": True, "categories": ["low", "middle", "high"]},
            {"name": "m", "kind": "continuous", "actionable": True, "bounds": [0.0, 1.0]},
        ],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float64",
            "trees": [
                {
                    "feature": [1, -2, -2],
                    "threshold": [0.5, 0.0, 0.0],
                    "left": [1, -1, -1],
                    "right": [2, -1, -1],
                    "value": [0.5, 0.0, 1.0],
                    "missing_left": [True, False, False],
                }
            ],
        },
        "factual": {"a": "middle", "m": None},
        "preferences": {"actionable": ["a", "m"]},
        "cost": {"kind": "l1", "scale": {"a": 1.0, "m": 1.0}},
        "conditions": [{"acted": "a"}, {"feature": "a", "of": "counterfactual", "at_most": "low"}],
    }
    result = solve(instance)
    assert (result.status.value, result.cost) == ("optimal", 2.0)
    assert result.action is not None and result.action.keys() == {"a", "m"} and result.action["a"] == "low"
