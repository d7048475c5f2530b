"""Leaves that only an exact comparison closes, of levers in steps whose decimals are no doubles."""

from __future__ import annotations

import json
from pathlib import Path

from milp_recourse.certificates import certificates_for
from milp_recourse.formats import read_instance
from milp_recourse.questions.solve import solve
from verify.files.check import examine


def _lever(name: str, low: float, high: float, step: float, origin: float) -> dict[str, object]:
    steps = {"step": step, "from": origin}
    return {"name": name, "kind": "continuous", "actionable": True, "bounds": [low, high], "step": steps}


def test_a_leaf_on_the_edge_holds_for_the_values_that_are_set(tmp_path: Path) -> None:
    """With b at the sum of steps next to 7.123, the largest logit of a leaf is 1e-17 too low, and at 7.123
    itself it is not that low."""
    problem = {
        "format": "milp-recourse/instance-1",
        "features": [
            _lever("a", -2.2, -1.1, 1.1, -2.2),
            _lever("b", 0.123, 7.123, 1.0, 0.123),
            _lever("c", -4.0, 1.9, 1.7, 0.123),
            {"name": "y", "kind": "binary", "actionable": True, "bounds": [0, 1]},
        ],
        "scm": {"name": "independent"},
        "factual": {"a": -1.1, "b": 7.3, "c": -3.277, "y": 1},
        "preferences": {"actionable": ["a", "b", "c", "y"]},
        "cost": {
            "kind": "percentile",
            "quantiles": {
                "a": [[-1.04, 0.78], [-1.0, 0.9]],
                "b": [[7.0, 0.9], [7.1, 0.9]],
                "c": [[-1.7, 0.1], [-1.5, 0.4], [2.9, 0.9]],
                "y": [[0.2, 0.7], [0.8, 0.9]],
            },
        },
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [
                {"weight": [[0.07, 0.173, 0.34524515, -0.7]], "bias": [0.07974]},
                {"weight": [[1.10855963]], "bias": [-1.478]},
            ],
        },
        "accept": {"at_least": -0.7124648602842055, "margin": 0.0},
    }
    path, file = tmp_path / "instance.json", tmp_path / "certificate.json"
    path.write_text(json.dumps(problem))
    instance = read_instance(path)
    [certificate] = certificates_for([instance], [solve(instance, "bab")])
    file.write_text(json.dumps(certificate))
    assert examine(file, path, 60.0).line.startswith("VERIFIED optimal")
