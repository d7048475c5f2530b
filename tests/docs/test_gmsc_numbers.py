"""The page about Give Me Some Credit says what its tables say."""

import csv
import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "gmsc"
PAGE = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_is_proven():
    """Counts and the median time of the setting with every lever, at least 500 people under 100 ms."""
    first = rows("proofs")[0]
    proven, people = int(first["optimal"]) + int(first["infeasible"]), int(first["applicants"])
    said = re.search(r"With all levers (\d+) of (\d+) people are proven, at a median of (\d+) ms", PAGE)
    assert said
    milliseconds = 1000 * float(first["seconds_median"])
    assert [int(n) for n in said.groups()] == [proven, people, round(milliseconds)]
    assert proven >= 500
    assert milliseconds < 100


def test_rows_of_certified_give_the_counts():
    """proofs.csv is made of certified.csv: statuses of the problems with every lever and weights 1."""
    last = {}
    for row in rows("certified"):
        if row["mask"].count("+") == 3 and row["weights"] == "1.0+1.0+1.0+1.0":
            last[row["applicant"]] = row["status"]
    first = rows("proofs")[0]
    for status in ("optimal", "infeasible", "limit"):
        assert sum(one == status for one in last.values()) == int(first[status])


def test_certificates_and_contradictions():
    """What the checker accepted, and what had no certificate in time; no recommendation beats a proof."""
    checked = json.loads((FOLDER / "spot_check.json").read_text(encoding="utf-8"))
    drawn, verified = checked["drawn"], checked["verified"]
    assert f"Of {drawn} random answers, {verified} got a certificate" in PAGE
    assert checked["agree"] == drawn
    assert len(checked["complaints"]) == drawn - verified
    assert all(line.endswith("no certificate") for line in checked["complaints"])
    assert all(row["contradicted"] == "0" for row in rows("proofs"))


def test_the_rows_of_the_tables():
    """Validity and cost of each method in each setting, as the page prints them."""
    for row in rows("tables"):
        start = f"| {row['table']}: {row['setting']} | {row['method']} |"
        assert start in PAGE
        cells = [cell.strip() for cell in PAGE[PAGE.index(start) :].split("|")[1:10]]
        for place, name in ((2, "valid"), (3, "valid_flow"), (5, "plausible_flow")):
            assert cells[place] == (f"{float(row[name]):.3f}" if row[name] else "")
        if row["cost"]:
            assert cells[6].startswith(f"{float(row['cost']):.3f}")


def test_nothing_of_the_data_is_shipped():
    """No table has a column of the owner's, by either name."""
    owners = {"age", "income", "MonthlyIncome", "utilization", "debt_ratio", "late_90", "SeriousDlqin2yrs"}
    for path in FOLDER.glob("*.csv"):
        assert not owners & set(rows(path.stem)[0])
