"""An exact condition on one set value that no double meets is seen at once."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from milp_recourse import solve
from milp_recourse.formats.instances_path import instances_path

DOUBLES = (0.1, 0.3, 1.1, 1.7, 2.3, 0.7)


@pytest.mark.parametrize("acted", [False, True])
def test_a_change_that_no_double_has(tmp_path, acted: bool) -> None:
    """Savings, which other levers move, is to change by exactly c, and x + c is not a double."""
    folder = instances_path() / "loan"
    document = json.loads((folder / "loan_007.json").read_text(encoding="utf-8"))
    (tmp_path / "classifier.json").write_bytes((folder / "classifier.json").read_bytes())
    x = Fraction(document["factual"]["savings"])
    change = next(c for c in DOUBLES if Fraction(float(x + Fraction(c))) != x + Fraction(c))
    exact = {"feature": "savings", "of": "change", "at_least": change, "at_most": change}
    document.pop("reference", None)
    document["conditions"] = [{"if": {"acted": "savings"}, "then": exact} if acted else exact]
    (tmp_path / "one.json").write_text(json.dumps(document), encoding="utf-8")
    result = solve(tmp_path / "one.json", "bab", 20.0)
    assert result.status.value == ("optimal" if acted else "infeasible") and result.nodes < 1000
