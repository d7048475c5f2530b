"""A population with missing values and people who cannot be read, from a table to a checked folder."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from milp_recourse.cli import main
from verify.__main__ import main as verify

GAPS = Path(__file__).parents[1] / "certificates" / "instances" / "gaps.json"
PEOPLE = "income,debt,job\n,,none\n30,4,part\n,3,boss\n70,,full\n"


@pytest.fixture
def population(tmp_path: Path) -> Path:
    """Four people: two values missing, none, an unknown label, one who is accepted with a gap."""
    data = json.loads(GAPS.read_text())
    del data["factual"], data["reference"]
    data |= {"format": "milp-recourse/population-1", "factuals": {"csv": "people.csv"}}
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "population.json").write_text(json.dumps(data))
    return tmp_path / "population.json"


def test_those_who_can_be_read_are_certified(population: Path, tmp_path: Path, capsys) -> None:
    """An empty cell is what is still missing, the stranger's row says why, the checker agrees."""
    out = tmp_path / "out"
    assert main(["certify", str(population), "--out", str(out)]) == 3
    table = out / "results.csv"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [(row["status"], row["cost"]) for row in rows] == [
        ("optimal", "5.0"),
        ("optimal", "3.0"),
        ("bad-input", ""),
        ("optimal", "0.0"),
    ]
    assert rows[0]["action_income"] == rows[0]["counterfactual_income"] != ""
    assert rows[0]["counterfactual_debt"] == rows[3]["counterfactual_debt"] == ""
    assert "row 3.job: got boss; allowed: one of none, part, full" in rows[2]["message"]
    assert verify([str(out), str(population), "--jobs", "1"]) == 0
    line = table.read_text().splitlines()[-1]
    table.write_text(table.read_text().replace(line, line.replace(",70.0,,", ",70.0,3.0,")))
    capsys.readouterr()
    assert verify([str(out), str(population), "--jobs", "1"]) == 4
    assert "counterfactual_debt is not what the certificate proves" in capsys.readouterr().out


def test_a_person_who_was_not_read_is_asked_for_alone(population: Path, tmp_path: Path, capsys) -> None:
    """One line, as for an instance of its own."""
    assert main(["solve", str(population), "--index", "2"]) == 2
    assert "row 3.job: got boss" in capsys.readouterr().err
