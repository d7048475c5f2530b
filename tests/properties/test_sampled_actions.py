"""The comparison with sampled actions sees a missed action, and a claim that a sample contradicts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from milp_recourse.problem.result import Status
from tests.helpers.certificate_kinds import linear
from tests.properties import sampled_actions


@pytest.mark.parametrize(
    ("status", "cost", "bound", "missed", "false"),
    [
        (Status.LIMIT, None, 0.0, True, False),
        (Status.LIMIT, 5.0, 0.0, False, False),
        (Status.INFEASIBLE, None, None, False, True),
        (Status.OPTIMAL, 1e6, 1e6, False, True),
    ],
)
def test_what_sampling_contradicts(monkeypatch, status, cost, bound, missed, false):
    """Whatever the solver says of a problem with many actions: the samples find some."""
    said = SimpleNamespace(status=status, cost=cost, lower_bound=bound)
    monkeypatch.setattr(sampled_actions, "solve", lambda *_: said)
    row = sampled_actions.row_of("linear", linear(11), None, 1.0, 0)
    assert row["cheapest"] is not None and row["sampled"] > 0
    assert (row["missed"], row["false"]) == (missed, false)


def test_an_honest_answer_is_not_contradicted():
    """`bab` on the same problem."""
    row = sampled_actions.row_of("linear", linear(11), None, 5.0, 0)
    assert row["status"] == "optimal" and not row["missed"] and not row["false"]
    assert row["cheapest"] >= row["lower_bound"]
