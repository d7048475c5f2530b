"""Certificates of random trees and forests are accepted by the solver-free checker."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tree_samples import random_tree_instance

from milp_recourse.certificates.produce import certificates_for, why_not
from milp_recourse.formats.write import write_instance
from milp_recourse.recipe.files import write_json
from milp_recourse.solve import solve
from verify.__main__ import examine


def test_every_certificate_verifies(tmp_path: Path) -> None:
    """Whole numbers and labels between thresholds included, where the checker's rule is the weaker one."""
    seen: Counter[str] = Counter()
    for seed in range(90):
        instance = random_tree_instance(seed)
        if not instance.levers or why_not(instance) is not None:
            continue
        [certificate] = certificates_for([instance], [solve(instance)])
        assert certificate is not None, seed
        file = tmp_path / f"{seed}.json"
        write_instance(instance, file)
        write_json(tmp_path / "certificate.json", certificate)
        outcome = examine(tmp_path / "certificate.json", file, 60)
        assert outcome.line.startswith("VERIFIED"), (seed, outcome.line)
        seen[str(outcome.claim)] += 1
    assert seen["optimal"] >= 10 and seen["infeasible"] >= 10, seen
