"""The tables of docs/results/icarma say what its gap.csv says."""

import csv
import re
from pathlib import Path
from statistics import fmean, stdev

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "icarma"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
with (FOLDER / "gap.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))


def table(heading: str) -> dict[tuple[str, str], list[str]]:
    """Cells behind the first two of the table whose header holds the heading."""
    start = PAGE.index(heading)
    lines = PAGE[start:].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(row[0], row[1]): row[2:] for row in cells}


def near(said: str, known: str, digits: int) -> bool:
    return said == f"{float(known):.{digits}f}"


def test_the_gap():
    """Every setting, with and without the demand for plausibility."""
    for demand, heading in (("1", "its cost | hap"), ("0", "its cost |\n")):
        said = table(heading)
        rows = [row for row in ROWS if row["plausible_demanded"] == demand]
        assert len(said) == len(rows) == {"1": 31, "0": 5}[demand]
        for row in rows:
            exists, served, missed, cost, more, polished = said[row["table"], row["setting"]][:6]
            assert near(exists, row["recourse_exists"], 3)
            assert near(served, row["served"], 3)
            assert near(missed, row["missed"], 3)
            assert near(cost.split()[0], row["cost_ratio_median"], 2)
            assert near(more, row["cost_difference_mean"], 4)
            assert near(polished, row["polished_served"], 3)


def test_beside_the_published_rows():
    """Table 1 is within 0.05 in validity and 0.1 in plausibility of what the paper reports."""
    said = table("valid: flow, true, deployed")
    for row in ROWS:
        if row["plausible_demanded"] == "1":
            valid, plausible, *_ = said[row["table"], row["setting"]]
            assert near(valid.split(", ")[1], row["icarma_valid"], 3)
            assert near(plausible.split(", ")[0], row["icarma_plausible_flow"], 3)
            if row["table"] == "1":
                assert abs(float(row["icarma_valid"]) - float(row["published_valid"])) < 0.05
                assert abs(float(row["icarma_plausible_flow"]) - float(row["published_plausible"])) < 0.1


def test_nothing_is_contradicted_and_the_reader_is_told_so():
    """No recommendation refutes a proof; no optimum is open."""
    assert "Nothing is contradicted" in " ".join(PAGE.split())
    assert all(row["contradicted"] == "0" and float(row["open"]) == 0 for row in ROWS)


def test_what_the_page_on_icarma_repeats():
    """docs/icarma.md: a share and a ratio on loan-sharp."""
    text = " ".join((FOLDER.parents[1] / "icarma.md").read_text(encoding="utf-8").split())
    pattern = r"serve ([\d.]+)% with four features and cost ([\d.]+) times the optimum at the median"
    share, ratio = re.search(pattern, text).groups()
    four = next(r for r in ROWS if (r["table"], r["setting"], r["plausible_demanded"]) == ("1", "4", "1"))
    assert float(share) == round(100 * float(four["served"]), 1)
    assert float(ratio) == round(float(four["cost_ratio_median"]), 1)


def test_what_the_readme_repeats():
    """README.md: shares and a ratio on loan-sharp, four features."""
    text = " ".join((FOLDER.parents[2] / "README.md").read_text(encoding="utf-8").split())
    pattern = r"serve ([\d.]+)% where ([\d.]+)% have plausible recourse, at ([\d.]+) times"
    four = next(r for r in ROWS if (r["table"], r["setting"], r["plausible_demanded"]) == ("1", "4", "1"))
    shares = [f"{100 * float(four[key]):.1f}" for key in ("served", "recourse_exists")]
    assert list(re.search(pattern, text).groups()) == [*shares, f"{float(four['cost_ratio_median']):.1f}"]


def test_ten_seeds():
    """The means and standard deviations over seeds are those of seeds.csv."""
    with (FOLDER / "seeds.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    keys = ("valid_flow", "valid_deployed", "plausible_flow", "plausible", "cost", "hap")
    for count in dict.fromkeys(row["actionable"] for row in rows):
        mine = [[float(row[key]) for row in rows if row["actionable"] == count] for key in keys]
        cells = " | ".join(f"{fmean(values):.3f} ± {stdev(values):.3f}" for values in mine)
        assert f"| {count} | {cells} |" in PAGE
