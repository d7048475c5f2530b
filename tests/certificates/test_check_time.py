"""No answer is called rigorous whose certificate would take more than a minute to check."""

from __future__ import annotations

import gzip
import json

import pytest

from milp_recourse.certificates import engine_proofs, limits
from milp_recourse.certificates.limits import MOST_SECONDS, check_seconds
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from tests.helpers.certificate_kinds import KINDS


def test_the_estimate_is_what_stops_it(monkeypatch):
    """The same with another limit: the estimate adds up over all configurations, and alone decides."""
    instance = KINDS["other units"](10545)
    certificate = solve(instance, None, 30.0, certificates=True).evidence
    assert certificate is not None
    trees = json.loads(gzip.decompress(certificate))["configurations"]
    estimate = sum(check_seconds(instance, len(one["acted"]), one["tree"]) for one in trees)
    assert 0.01 < estimate < MOST_SECONDS
    for module, limit, proof in (
        (limits, 0.9 * estimate, "solver"),
        (engine_proofs, 0.9 * estimate, "solver"),
        (limits, 1.1 * estimate, "rigorous"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, "MOST_SECONDS", limit)
            result = solve(instance, None, 30.0, certificates=True)
            assert result.status is Status.OPTIMAL and result.proof == proof
            assert ("No certificate: " in (result.message or "")) == (proof == "solver")


@pytest.mark.parametrize("kind", ["e", "d", "p", "t", "m"])
def test_every_node_that_is_bounded_counts(kind):
    """More nodes take more time, each as much as the last; splits take none."""
    instance = KINDS["ensembles" if kind in "ptm" else "networks"](2)
    node = {"d": ["d", "", []], "e": ["e"], "m": ["m"]}.get(kind, [kind, 0])
    one, two, three = (check_seconds(instance, 2, [node] * count) for count in (1, 2, 3))
    assert one > 0 and two > one and three - two == pytest.approx(two - one)
    if kind == "p":
        made = solve(instance, None, 30.0, certificates=True).evidence
        assert made is not None
        configurations = json.loads(gzip.decompress(made))["configurations"]
        tables = [table for one in configurations for table in one.get("prices", []) if table["runs"]]
        few, many = (
            check_seconds(instance, 2, [node], own)
            for own in ([{**one, "runs": ""} for one in tables], tables)
        )
        assert many > few
    assert check_seconds(instance, 2, [["a", 0, 0.5], ["n", 0, 0]]) == 0
