"""A search that ends without a proof still has an action where there are any."""

from __future__ import annotations

import pytest

from milp_recourse import solve
from milp_recourse.problem.result import Status
from tests.helpers.certificate_kinds import KINDS
from tests.properties.run import case

NARROW = 271129049
"""Two levers: plausibility leaves one of them its factual value only, and the boxes around that, on which the
relaxed optimum is beside it by 1e-9, become too small to split."""

EDGE = 271129600
"""In one of sixteen configurations, the cheapest, the largest logit is what is needed but for rounding, and a
curve keeps rational arithmetic from deciding; actions are in others."""


def test_in_boxes_too_small_to_split() -> None:
    result = solve(case(NARROW), "bab")
    assert result.status is Status.OPTIMAL
    assert result.action == {"b": 1}


def test_more_samples_the_longer_there_is_none() -> None:
    """Hardly ever is one of the 500 random points of a search for actions feasible here. There was no action
    after 218 000 nodes, when these searches were made once for four times as many nodes."""
    result = solve(KINDS["deep networks"](393010201), "bab", 10.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes < 50_000


@pytest.mark.parametrize("time_limit", [0.02, 1.0])
def test_in_another_configuration(time_limit: float) -> None:
    """Also if the time is over before the first longer search for actions."""
    result = solve(case(EDGE), "bab", time_limit=time_limit)
    assert result.action is not None
    assert result.cost < (10.0 if time_limit < 1.0 else 7.5)
