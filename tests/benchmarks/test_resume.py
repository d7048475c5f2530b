"""A table that grows: what an interruption cut off is dropped, another run's table is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse.benchmarks.resume import grown, read_rows
from milp_recourse.errors import BadInput


def test_a_cut_line_is_dropped_and_written_again(tmp_path: Path) -> None:
    """Whatever part of the last row is there, only the whole rows before it count."""
    table = tmp_path / "made" / "t.csv"
    rows = [{"name": f"{k}, quoted", "value": str(k), "seed": "0"} for k in range(3)]
    with grown(table, ["name", "value", "seed"], {"seed": 0}) as (before, write):
        assert before == []
        for row in rows:
            write(row)
    whole = table.read_text()
    start = whole.rindex("\n", 0, -1) + 1
    for end in range(start, len(whole)):
        table.write_text(whole[:end])
        with grown(table, ["name", "value", "seed"], {"seed": 0}) as (before, write):
            assert before == rows[:2]
            write(rows[2])
        assert table.read_text() == whole
    assert read_rows(table) == rows


def test_another_run_is_refused(tmp_path: Path) -> None:
    """Another seed, or other columns; the table stays as it is."""
    table = tmp_path / "t.csv"
    with grown(table, ["seed"], {"seed": 0}) as (_, write):
        write({"seed": 0})
    whole = table.read_text()
    for columns, seed in ((["seed"], 1), (["seed", "more"], 0)):
        with pytest.raises(BadInput, match="another run"), grown(table, columns, {"seed": seed}):
            pass
    assert table.read_text() == whole
