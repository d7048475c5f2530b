"""Small problems, as JSON values, that the format tests start from."""

from __future__ import annotations

from typing import Any

LOAN_FEATURES = ("gender", "age", "education", "amount", "duration", "income", "savings")
LEVERS = ("amount", "duration", "income", "savings")


def loan_features() -> list[dict[str, Any]]:
    bounds = {"amount": [-10, 10], "duration": [-10, 20], "income": [-5, 15], "savings": [-10, 20]}
    features = []
    for name in LOAN_FEATURES:
        feature = {
            "name": name,
            "kind": "binary" if name == "gender" else "continuous",
            "actionable": name in LEVERS,
        }
        if name in bounds:
            feature["bounds"] = bounds[name]
        features.append(feature)
    return features


def loan_instance() -> dict[str, Any]:
    """An applicant rejected by a network that adds income and savings and takes off the debt."""
    return {
        "format": "milp-recourse/instance-1",
        "name": "sample",
        "features": loan_features(),
        "scm": {"name": "loan"},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float32",
            "layers": [
                {
                    "weight": [[0, 0, 0, -1, -1, 1, 1], [0, 0, 0, 1, 1, -1, -1]],
                    "bias": [0, 0],
                },
                {"weight": [[1, -1]], "bias": [0.5]},
            ],
        },
        "accept": {"at_least": 0, "margin": 0.001},
        "factual": {
            "gender": 1,
            "age": 3.5,
            "education": 0.1,
            "amount": 1.25,
            "duration": 2.5,
            "income": 0.75,
            "savings": -3.0,
        },
        "preferences": {
            "actionable": ["amount", "income", "savings"],
            "weights": {"savings": 2},
            "ranges": {"income": [0, 5]},
        },
        "cost": {"kind": "l2-squared", "scale": {"amount": 2, "duration": 3, "income": 2, "savings": 5}},
        "plausibility": {"kind": "scm-density", "at_least": "factual"},
    }


def tree_instance() -> dict[str, Any]:
    """Mixed kinds, two trees, no causes."""
    return {
        "format": "milp-recourse/instance-1",
        "name": "trees",
        "features": [
            {"name": "income", "kind": "continuous", "actionable": True, "bounds": [0, 100]},
            {
                "name": "cards",
                "kind": "integer",
                "actionable": True,
                "bounds": [0, 5],
                "monotone": "increase",
            },
            {"name": "owner", "kind": "binary", "actionable": False, "domain": [0, 1]},
            {
                "name": "degree",
                "kind": "ordinal",
                "actionable": True,
                "categories": ["none", "school", "college"],
            },
            {
                "name": "job",
                "kind": "categorical",
                "actionable": True,
                "categories": ["none", "part", "full"],
            },
        ],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float32",
            "trees": [
                {
                    "feature": [0, -2, 6, -2, -2],
                    "threshold": [50.5, -2.0, 0.5, -2.0, -2.0],
                    "left": [1, -1, 3, -1, -1],
                    "right": [2, -1, 4, -1, -1],
                    "value": [0.5, 0.1, 0.6, 0.4, 0.9],
                },
                {"feature": [-2], "threshold": [-2.0], "left": [-1], "right": [-1], "value": [0.6]},
            ],
        },
        "accept": {"above": 0.5},
        "factual": {"income": 40.25, "cards": 2, "owner": 0, "degree": "school", "job": "part"},
        "preferences": {
            "actionable": ["income", "degree", "job"],
            "weights": {"job": 3},
            "ranges": {"income": [10, 90], "degree": [0, 2]},
        },
        "cost": {"kind": "mixture", "l1": 1, "l0": 0.25, "scale": {"income": 10, "degree": 1, "job": 1}},
        "plausibility": None,
        "reference": {"status": "optimal", "cost": 1.0, "lower_bound": 1.0},
    }


def loan_population() -> dict[str, Any]:
    """Three applicants who share one mask."""
    data = loan_instance()
    data["format"] = "milp-recourse/population-1"
    factual = data.pop("factual")
    data["factuals"] = [factual | {"income": income} for income in (0.75, 1.5, 9.0)]
    return data
