"""Certificates of ensembles where prices are large: leaf values far above costs, a score just refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from milp_recourse import solve
from milp_recourse.certificates import certificates_for, encode
from milp_recourse.formats import write_instance
from milp_recourse.problem.instance import Acceptance
from tests.helpers.tree_samples import random_tree_instance
from verify.__main__ import examine


@pytest.mark.parametrize(("seed", "trees", "depth"), [(8, 40, 5), (14, 15, 4), (23, 15, 4), (29, 15, 4)])
def test_tables_are_written_as_they_are_judged(seed: int, trees: int, depth: int, tmp_path: Path) -> None:
    """Prices were judged as doubles, and written as whole numbers that the checker refuses or that 64 bits do
    not hold: these certificates were rejected."""
    drawn = random_tree_instance(9000 + seed, trees, 5 + trees // 40, depth)
    grown = tuple(replace(tree, value=1e5 * tree.value) for tree in drawn.classifier.trees)
    forest = replace(drawn.classifier, aggregate="sum", trees=grown)
    score = float(forest.score(drawn.model_rows(drawn.factual_row)))
    own = replace(drawn, classifier=forest, reference=None, accept=Acceptance(score, strict=True))
    result = solve(own, backend="bab", time_limit=60)
    [certificate] = certificates_for([own], [result], 60)
    write_instance(own, tmp_path / "i.json")
    (tmp_path / "c.json.gz").write_bytes(encode(certificate))
    assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60).claim == certificate["claim"]
