"""Totals that pages state are the sums of the shipped tables."""

import csv
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said(page: str, pattern: str) -> list[int]:
    """The whole numbers a page states in a sentence, wherever its lines break."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = re.search(pattern, text)
    assert found, f"{page}: {pattern}"
    return [int(number) for number in found.groups()]


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_what_the_grid_misses(page):
    """Instances, those with recourse, those where the grid finds some, those it misses."""
    table = json.loads((ROOT / "instances" / "grid_comparison.json").read_text(encoding="utf-8"))
    loan = [row for row in table["groups"] if row["folder"] == "loan"]
    every, exists, found = (
        sum(row[key] for row in loan) for key in ("instances", "recourse_exists", "grid_found")
    )
    pattern = (
        r"(\d+) Loan instances recourse exists for (\d+); "
        r"the grid finds some for (\d+) and misses (\d+)"
    )
    assert said(page, pattern) == [every, exists, found, exists - found]


def test_random_problems():
    """Cases and their statuses."""
    counts = json.loads((ROOT / "docs" / "results" / "properties" / "highs_2000.json").read_text())["counts"]
    numbers = said(
        "docs/benchmarks.md",
        r"(\d+) random problems \(.*?\): (\d+) optimal, (\d+) infeasible, (\d+) limits; (\d+) actions",
    )
    assert numbers == [counts[k] for k in ("solved", "optimal", "infeasible", "limit", "actions")]


STUDY = ROOT / "docs" / "results" / "reproduce"


def oracle_rows(name):
    """A shipped table's rows by method, cell by cell."""
    with (STUDY / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        dict(zip(("published", "grid", "certified"), rows[k : k + 3], strict=True))
        for k in range(0, len(rows), 3)
    ]


@pytest.mark.parametrize("name", ["table1", "table2", "table5", "table6"])
def test_the_page_shows_the_tables_of_the_run(name):
    """Validity, missed applicants and mean costs of every cell, to the digits shown."""
    text = (STUDY / "README.md").read_text(encoding="utf-8")
    for cell in oracle_rows(name):
        validity = " | ".join(f"{float(row['validity']):.3f}" for row in cell.values())
        costs = " | ".join(f"{float(r['cost mean']):.3f} ± {float(r['cost sd']):.3f}" for r in cell.values())
        share = f"{100 * float(cell['grid']['missed share']):.1f}"
        assert f"| {validity} | {cell['grid']['missed']} ({share}%) | {costs} |" in text


def test_what_the_page_on_the_oracle_counts():
    """Problems, answers, certificates, and rows near the printed ones."""
    page = "docs/results/reproduce/README.md"
    summary = json.loads((STUDY / "summary.json").read_text(encoding="utf-8"))
    assert summary["contradictions"] == [] and summary["limit"] == 0
    assert said(page, r"(\d+) distinct problems are behind (\d+) answers") == [
        summary["problems"],
        summary["answers in the cells"],
    ]
    checked = summary["spot check"]
    assert said(page, r"accepts all (\d+) certificates") == [checked["verified"]] == [checked["drawn"]]
    assert said(page, r"(\d+) s of processor time for the grid and (\d+) s for the optima") == [
        round(summary["processor seconds"][method]) for method in ("grid", "certified")
    ]
    cells = [cell for name in ("table1", "table2", "table5", "table6") for cell in oracle_rows(name)]
    near = sum(cell["grid"]["within"] == "yes" for cell in cells)
    assert said(page, r"(\d+) of the (\d+) rows are within") == [near, len(cells)]
    assert said(page, r"The other (\d+) are of two kinds") == [len(cells) - near]


def test_outside_methods():
    """The page's counts are those of the shipped summaries."""
    folder = ROOT / "docs" / "results" / "evaluate"
    text = (folder / "README.md").read_text(encoding="utf-8")
    for path in sorted(folder.glob("*/evaluation.json")):
        summary = json.loads(path.read_text(encoding="utf-8"))
        method, _, asked = path.parent.name.partition("-")
        shares = "share of given: accepted by the deployed model"
        cells = [
            method,
            "asked" if asked == "plausibility" else "not asked",
            f"{summary['given']}",
            f"{summary[shares + ', causes left out']:.3f}",
            f"{summary[shares + ' on the true causal model']:.3f}",
            f"{summary['feasible']}",
            f"{summary['missed: recourse exists, none feasible given']}"
            f" of {summary['with recourse (proven)']}",
            f"{100 * summary['excess over the optimum, median over feasible']:.0f}%",
        ]
        assert "| " + " | ".join(cells) + " |" in text


def test_certificates_of_the_shipped_instances():
    """README: how many verify, their median size and check, and what producing them takes."""
    summary = json.loads((ROOT / "docs/results/certificates/shipped.json").read_text(encoding="utf-8"))
    assert summary["verified"] == summary["certificates"] == summary["instances"]
    size, check = summary["bytes"]["median"] / 1000, summary["check_seconds"]["median"]
    said_by = (
        rf"All {summary['instances']} results on the shipped instances verify; the median certificate has "
        rf"{size:.1f} kB, is checked in {check:.1f} s, "
        rf"and producing a certificate takes {summary['in batches']['overhead']:.1f} \(many together\) to "
        rf"{summary['one at a time']['overhead']:.1f} times"
    )
    said("README.md", said_by)


def test_what_the_grid_overcharges():
    """README: the least and the largest median ratio among Loan's groups."""
    table = json.loads((ROOT / "instances" / "grid_comparison.json").read_text(encoding="utf-8"))
    ratios = [row["median_cost_ratio"] for row in table["groups"] if row["folder"] == "loan"]
    said("README.md", rf"has a median of {min(ratios):.1f} to {max(ratios):.1f}, ")


def test_speed():
    """README: the medians of one applicant alone and of Gurobi; the table of the page of results."""
    folder = ROOT / "docs" / "results" / "speed"
    rows = {row["solver"]: row for row in json.loads((folder / "speed.json").read_text())["solvers"]}
    alone, gurobi, bounded = (
        rows[name]["median_s"] for name in ("bab-single", "gurobi", "gurobi-our-bounds")
    )
    said("README.md", rf"median {1000 * alone:.0f} ms for `bab` one at a time, {gurobi:.0f} s for Gurobi")
    page = "docs/results/speed/README.md"
    most = rows["bab-single"]["max_s"]
    said(page, rf"alone takes {1000 * alone:.1f} ms at the median and {1000 * most:.1f} ms at most")
    times, given = said(page, r"is (\d+) times that, given our bounds (\d+) times")
    assert (times, given) == (round(gurobi / alone, -1), round(bounded / alone))
    table = (ROOT / page).read_text(encoding="utf-8")
    for name, row in rows.items():
        seconds = " | ".join(f"{row[key]:.3g}" for key in ("median_s", "p90_s", "max_s"))
        nodes = float(f"{row['median_nodes']:.3g}")
        counts = " | ".join(
            str(row[key]) for key in ("unsolved", "wrong", "off_by_the_gap", "not_exactly_feasible")
        )
        assert f"| {name} | {seconds} | {nodes:g} | {counts} |" in table


def test_conditions_compared():
    """docs/conditions.md: problems per classifier, none wrong; how many answers have a certificate."""
    folder, page = ROOT / "docs" / "results" / "conditions", "docs/conditions.md"
    tables = {
        name: json.loads((folder / f"{name}.json").read_text())["kinds"]
        for name in ("networks", "trees", "certificates")
    }
    assert not any(row["wrong"] for table in tables.values() for row in table.values())
    asked = [
        sum(row["draws"] - row.get("nothing to act on", 0) for row in tables[name].values())
        for name in ("networks", "trees")
    ]
    assert said(page, r"compared on (\d+) random problems with networks and (\d+) with trees") == asked
    certified = list(tables["certificates"].values())
    assert said(page, r"Of (\d+) further answers on networks (\d+) have a certificate") == [
        sum(row["draws"] for row in certified),
        sum(row["VERIFIED"] for row in certified),
    ]


def test_why_not_for_a_population():
    """docs/why.md: the shipped Loan population's people, seconds and restrictions."""
    known = json.loads((ROOT / "docs/results/why/loan_population.json").read_text(encoding="utf-8"))
    without = known["statuses"]["infeasible"]
    page, people = "docs/why.md", known["people"]
    said(page, rf"population of {people} people this takes {known['processor seconds']} s of processor time")
    said(page, rf"# {without} of {people} people have no recourse, proven; {known['beyond_help']} of them")
    (row,) = known["table"]
    said(page, rf"# {row['id']} the outcome is as plausible as today {row['people']} {row['alone']} ")
