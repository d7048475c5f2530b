"""Rows whose large terms cancel: rounding is proportional to the terms, not to what is left of them."""

import pytest

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.formats.schema import instance_from_dict


def cancelling(slope: float) -> dict:
    """B = slope A - (slope / 0.3) relu(0.3 A) stays at B's noise but for the rounding of its coefficients."""
    equation = {
        "sum": [
            {"product": [slope, "A"]},
            {"product": [-slope / 0.3, {"relu": {"product": [0.3, "A"]}}]},
        ]
    }
    return {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "A", "kind": "continuous", "bounds": [1, 10], "actionable": True},
            {"name": "B", "kind": "continuous", "bounds": [0, 1], "actionable": False, "domain": [-1, 4]},
        ],
        "scm": {"name": "explicit", "mechanisms": {"B": {"equation": equation}}},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": [[1.0, 0.0]], "bias": [0.0]}],
        },
        "accept": {"at_least": 5.0},
        "factual": {"A": 1.0, "B": 0.0},
        "preferences": {"actionable": ["A"]},
        "cost": {"kind": "l2-squared", "scale": {"A": 1.0}},
        "plausibility": None,
    }


@pytest.mark.parametrize("slope", [1429365116109.8, 3.7e11, 8.1e12, 5.0])
def test_a_domain_whose_terms_cancel_hides_no_action(slope):
    """A = 5 is feasible and costs 16 (B moves by less than 4); a false infeasible was found here."""
    result = solve(instance_from_dict(cancelling(slope)), "bab", time_limit=20)
    assert result.status.value == "optimal"
    assert result.cost == pytest.approx(16.0, rel=1e-6)


def test_mixed_integer_back_ends_refuse_what_their_rows_cannot_say():
    """One line that names the constraint and who can; the same domain with small terms is solved."""
    with pytest.raises(Unsupported, match=r"domain_B: its terms nearly cancel.*use bab"):
        solve(instance_from_dict(cancelling(1429365116109.8)), "highs")
    assert solve(instance_from_dict(cancelling(5.0)), "highs").cost == pytest.approx(16.0, rel=1e-6)
