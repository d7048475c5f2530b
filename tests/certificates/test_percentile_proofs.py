"""Networks under costs in percentiles: proofs, which the checker accepts, of optima and impossibilities."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.formats import write_instance
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
