"""Products of two features that a condition names again, or whose sum no double holds."""

from __future__ import annotations

from typing import Any

import pytest

from milp_recourse import solve
from milp_recourse.errors import RecourseError
from milp_recourse.formats import instance_from_dict
from milp_recourse.formats.strict_json import write_gzipped, write_json
from verify.__main__ import examine


def problem(products: list[Any], **more: Any) -> dict[str, Any]:
    """x + y >= 4 from 1 and 1, under a condition on products."""
    return {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": name, "kind": "continuous", "actionable": True, "bounds": [0, 5]} for name in "xy"
        ],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": [[1, 1]], "bias": [-4]}],
        },
        "factual": {"x": 1, "y": 1},
        "preferences": {"actionable": ["x", "y"]},
        "cost": {"kind": "l1", "scale": {"x": 1, "y": 1}},
        "plausibility": None,
        "conditions": [{"sum": {}, "products": products, "of": "counterfactual", **more}],
    }


def test_coefficients_of_one_product_add_up_exactly(tmp_path) -> None:
    """1e16 + 1 - 1e16 is 1; in doubles it was 0, and the answer "proven: infeasible", also to the checker."""
    asked = problem([[1e16, "x", "y"], [1, "x", "y"], [-1e16, "y", "x"]], at_least=4)
    result = solve(instance_from_dict(asked), None, None, True)
    assert result.cost == pytest.approx(2.0)
    write_json(asked, tmp_path / "problem.json")
    write_gzipped(result.evidence, tmp_path / "proof.json.gz")
    assert examine(tmp_path / "proof.json.gz", tmp_path / "problem.json").line.startswith("VERIFIED optimal")


@pytest.mark.parametrize(
    ("products", "said"),
    [
        ([[1e308, "x", "y"], [1e308, "y", "x"]], "the sum of a condition could pass 1e+150"),
        ([[1e308, "x", "x"]], "the sum of a condition could pass 1e+150"),
        ([[1, "x"]], "conditions.0.products.0.2: got nothing"),
    ],
)
def test_what_cannot_be_read_or_searched_is_one_line(products: list[Any], said: str) -> None:
    """These ended in an OverflowError or an IndexError."""
    with pytest.raises(RecourseError, match=said.replace("+", r"\+")):
        solve(instance_from_dict(problem(products, at_least=1)), None, None, True)
