"""Labels and identifiers that a spreadsheet would take for formulas are written as they are."""

from __future__ import annotations

import csv
import json

import pytest

from milp_recourse.cli import main
from verify.__main__ import main as verify

LABELS = ["=1+1", "+2", "-3", "@SUM(A1)", '=HYPERLINK("x","y")']
IDS = ["=cmd|' /C calc'!A0", "-5"]


@pytest.mark.parametrize("wanted", range(1, len(LABELS)))
def test_what_is_written_is_what_was_read(wanted, tmp_path):
    """Programs read ``results.csv`` back; a quote before the sign would be another label."""
    tree = {"feature": [wanted, -2, -2], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1]}
    population = {
        "format": "milp-recourse/population-1",
        "features": [{"name": "=a", "kind": "categorical", "actionable": True, "categories": LABELS}],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float64",
            "trees": [{**tree, "value": [0, 0, 1]}],
        },
        "factuals": [{"=a": LABELS[0]}] * 2,
        "ids": IDS,
        "preferences": {"actionable": ["=a"]},
        "cost": {"kind": "l1", "scale": {"=a": 1}},
    }
    file, out = tmp_path / "people.json", tmp_path / "out"
    file.write_text(json.dumps(population))
    assert main(["certify", str(file), "--out", str(out)]) == 0
    with (out / "results.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == IDS
    assert {row["action_=a"] for row in rows} == {LABELS[wanted]}
    assert verify([str(out), str(file), "--jobs=1"]) == 0
    assert main(["certify", str(file), "--out", str(out)]) == 0  # every row is known again
