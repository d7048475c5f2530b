"""Networks under costs in percentiles: proofs, which the checker accepts, of optima and impossibilities."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from milp_recourse import solve
from milp_recourse.engine.forests.axes import separable
from milp_recourse.errors import Unsupported
from milp_recourse.formats import write_instance
from tests.costs.compare_costs import problem
from tests.helpers.certificate_kinds import KINDS
from verify.files.check import examine


def test_most_have_certificates(tmp_path: Path) -> None:
    """Random problems, optima and impossibilities: what has a certificate is verified."""
    counts = Counter[str]()
    for seed in range(5000, 5020):
        instance = KINDS["percentiles"](seed)
        assert instance is not None
        try:
            result = solve(instance, "bab", 10.0, True)
        except Unsupported:
            continue
        if result.evidence is None:
            continue
        assert result.proof == "rigorous"
        write_instance(instance, tmp_path / "i.json")
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        outcome = examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60.0)
        assert outcome.claim == result.status.value, outcome.line
        counts[outcome.claim] += 1
    assert counts["optimal"] >= 4
    assert counts["infeasible"] >= 7


@pytest.mark.parametrize("kind", ["percentile", "log-percentile", "two scales, mixture"])
def test_trees_in_causal_models_have_certificates(kind: str, tmp_path: Path) -> None:
    """Where levers move each other: every answer that is proven has one, and it is verified."""
    proven = 0
    for seed in range(0, 18, 3):
        instance = problem(seed, kind, True)
        if instance is None:
            continue
        assert not separable(instance)
        result = solve(instance, "bab", 20.0, True)
        assert result.evidence is not None, result.message
        write_instance(instance, tmp_path / "i.json")
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60.0).line.startswith("VERIFIED")
        proven += 1
    assert proven >= 2
