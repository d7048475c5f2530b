"""Products of two features that a condition names again, or whose sum no double holds."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from milp_recourse import Recourse, solve
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


def test_a_hostile_value_is_nobody_elses_fault() -> None:
    """Of 5e-324 the relative change passes every double."""
    X = pd.DataFrame({"a": [0.5, 1, 2, 3, 4, 5.5] * 5, "b": [1.0, 2.5, 3] * 10})
    recourse = Recourse(
        LogisticRegression().fit(X, X["a"] > 2), X, conditions=["b change at most +200%", "a * b <= 90"]
    )
    alone = recourse.certify(X.head(2)).table
    table = recourse.certify(pd.concat([X.head(2), X.head(1).assign(b=5e-324).set_axis([9])])).table
    same = ["status", "cost", "lower_bound", "margin"]
    assert table[same].head(2).equals(alone[same])
    assert table["status"].tolist() == ["optimal", "optimal", "limit"]
