"""Logarithms whose argument reaches beyond their domain, which the rules have no line below for."""

from __future__ import annotations

from pathlib import Path

from milp_recourse import read_instance, solve
from verify.__main__ import examine


def test_no_leaf_rests_on_a_line_below_a_logarithm_beyond_its_domain(tmp_path: Path) -> None:
    """A feature with a sigmoid link follows: bounds of its value reach the end, and the checker rejected a
    certificate whose leaf priced plausibility there."""
    file = Path(__file__).parent / "logarithms" / "dens-7028.json"
    result = solve(read_instance(file), "bab", 60.0, certificates=True)
    assert result.evidence is not None
    certificate = tmp_path / "certificate.json.gz"
    certificate.write_bytes(result.evidence)
    said = examine(certificate, file, 60).line
    assert said.startswith("VERIFIED optimal"), said
