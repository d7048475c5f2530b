"""``bench ensembles``: rows that agree, resumed where they end, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse.benchmarks import ensemble_runs as bench
from milp_recourse.errors import BadInput

pytest.importorskip("sklearn")


def test_solvers_agree_and_rows_are_not_solved_twice(tmp_path: Path) -> None:
    """All solvers prove the same, actions flip the library, and a second run adds the new solver only."""
    asked = (["credit"], ["boosting-8x2", "forest-6x3"], ["l1", "l2-squared"], 2)
    rows = bench.run(None, *asked, ["bab", "highs"], 20.0, tmp_path)
    assert len(rows) == 16 and {r["status"] for r in rows} == {"optimal"}
    assert {r["flips"] for r in rows} == {"True"}
    assert all((r["proof"] == "rigorous") == (r["solver"] == "bab") for r in rows)
    assert all(r["certified_seconds"] and r["first_cost"] for r in rows if r["solver"] == "bab")
    solved: list[str] = []
    again = bench.run(None, *asked, ["bab", "highs", "leaf-milp"], 20.0, tmp_path, solved.append)
    assert again[:16] == rows and len(again) == 24 and len(solved) == 24
    assert bench.disagreements(again) == []
    wrong = [again[0] | {"cost": "9.0"}, *again[1:]]
    assert len(bench.disagreements(wrong)) == 1
    summary = bench.write(again, tmp_path, 20.0)
    assert {line["solver"]: line["proven"] for line in summary if line["model"] == "boosting-8x2"} == {
        "bab": 4,
        "highs": 4,
        "leaf-milp": 4,
    }
    assert (tmp_path / "ensembles.json").exists()


@pytest.mark.parametrize(
    ("models", "solvers", "field"),
    [
        (["forest"], ["bab"], "--models"),
        (["oak-3x3"], ["bab"], "--models"),
        (["forest-3x3"], ["x"], "--solvers"),
    ],
)
def test_unknown_names_are_bad_input(
    models: list[str], solvers: list[str], field: str, tmp_path: Path
) -> None:
    """One line that names the option."""
    with pytest.raises(BadInput, match=field):
        bench.run(None, ["credit"], models, ["l1"], 1, solvers, 20.0, tmp_path)


def test_tables_that_are_not_there_are_bad_input(tmp_path: Path) -> None:
    """The folder is named."""
    with pytest.raises(BadInput, match=r"german\.data"):
        bench.run(tmp_path, ["german"], ["forest-3x3"], ["l1"], 1, ["bab"], 20.0, tmp_path / "out")
