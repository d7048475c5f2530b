"""A region's file does not stand in for a person's certificate."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from milp_recourse import read_population
from milp_recourse.cli.app import main
from milp_recourse.questions.regions import region
from verify.__main__ import main as verify

PEOPLE = {
    "format": "milp-recourse/population-1",
    "features": [
        {"name": name, "kind": "continuous", "actionable": True, "bounds": [0, 10]} for name in ("x", "y")
    ],
    "scm": {"name": "independent"},
    "classifier": {
        "kind": "relu-network",
        "dtype": "float64",
        "layers": [{"weight": [[1.0, 1.0]], "bias": [-3.0]}],
    },
    "factuals": [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 0.5}],
    "preferences": {"actionable": ["x", "y"]},
    "cost": {"kind": "l1", "scale": {"x": 1, "y": 2}},
    "plausibility": None,
}


def test_a_row_is_not_certified_by_a_region(tmp_path: Path) -> None:
    """The row was edited, too: verify compares rows with certificates only."""
    people, out = tmp_path / "people.json", tmp_path / "out"
    people.write_text(json.dumps(PEOPLE))
    assert main(["certify", str(people), "--certificates", "--out", str(out)]) == 0
    found = region(read_population(people)[0], index=0)
    assert found.proven and found.evidence is not None
    (out / "certificates" / "0.json.gz").write_bytes(found.evidence)
    with (out / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0].update(cost="1.0", lower_bound="1.0", gap="0.0")
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (out / "results.json").unlink()
    assert verify([str(out), str(people)]) == 4
