"""Thresholds that are logits: faces of boxes within rounding of what is needed are decided exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse import solve
from milp_recourse.result import Status
from tests.certificates.random_cases import complaints
from tests.helpers.at_a_logit import at_a_logit
from tests.properties.run import case


@pytest.mark.parametrize("seed", [117, 895, 1434, 1559, 1889, 2120, 2526])
def test_faces_on_the_edge_are_closed_and_certified(seed: int, tmp_path: Path) -> None:
    """They were split into ever smaller boxes, whose points were judged one by one, without an end."""
    instance = at_a_logit(seed)
    assert instance is not None
    result = solve(instance, "bab", 20.0, certificates=True)
    assert result.status is not Status.LIMIT
    assert (result.nodes or 0) < 400
    assert result.proof == "rigorous"
    assert not complaints(instance, result, tmp_path)


def test_units_that_bend_there_are_asked_for_their_signs() -> None:
    """A box's largest logit is above what is needed, at an action where a unit's argument has the wrong
    sign."""
    result = solve(case(712119), "bab", 20.0)
    assert result.status is Status.OPTIMAL
    assert result.cost == 2.0
