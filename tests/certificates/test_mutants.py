"""A few hundred mutants here; ``python -m tests.certificates.fuzz`` runs ten thousand."""

from __future__ import annotations

from tests.certificates.attacks import ACCEPTED
from tests.certificates.fuzz import run


def test_no_mutant_passes_with_a_false_claim():
    """Some pass, being true, and most are rejected; the checker never lies and never breaks down."""
    counts, lies = run(160, 8, list(ACCEPTED))
    assert lies == []
    assert counts["rejected"] > 80 and counts["accepted, true"] > 2
