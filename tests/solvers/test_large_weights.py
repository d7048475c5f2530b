"""Weights so large that a solver's tolerance hides an action."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse.formats import read_instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve

HERE = Path(__file__).parent


@pytest.mark.parametrize("back_end", ["bab", "highs"])
def test_infeasible_is_not_said_where_the_tolerance_is_larger_than_the_rows(back_end: str) -> None:
    """Weights of 1e8 make coefficients of 5e14: HiGHS called the MILP infeasible, yet an action costs 2."""
    result = solve(read_instance(HERE / "large_weights" / "extreme_1004.json"), back_end, 60.0)
    assert result.status in (Status.OPTIMAL, Status.LIMIT)
    assert result.cost == 2.0


@pytest.mark.parametrize("back_end", ["bab", "highs"])
def test_infeasible_is_not_said_where_rounding_takes_the_tolerance(back_end: str) -> None:
    """Values near 2^24 times 8, in rows with room for a few: HiGHS called the MILP infeasible, and ``highs``
    said that no action exists, yet one costs 2.3."""
    result = solve(read_instance(HERE / "large_weights" / "wide_values.json"), back_end, 60.0)
    assert result.status in (Status.OPTIMAL, Status.LIMIT)
    assert result.action == {"whole 0": 16777214}
