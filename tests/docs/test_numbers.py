"""Totals that pages state are the sums of the shipped tables."""

import csv
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def stated(page: str, pattern: str) -> tuple[str, ...]:
    """The numbers a page states in a sentence, wherever its lines break."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = re.search(pattern, text)
    assert found, f"{page}: {pattern}"
    return found.groups()


def said(page: str, pattern: str) -> list[int]:
    """The numbers of :func:`stated`, which are whole."""
    return [int(number) for number in stated(page, pattern)]


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
    found = json.loads((ROOT / "docs" / "results" / "properties" / "highs_2000.json").read_text())
    counts = found["counts"] | {"cases": found["cases"]}
    numbers = said(
        "docs/benchmarks.md",
        r"(\d+) random problems \(.*?\), (\d+) of them refused .*?: "
        r"(\d+) optimal, (\d+) infeasible, (\d+) limits; (\d+) actions",
    )
    keys = ("cases", "unsupported", "optimal", "infeasible", "limit", "actions")
    assert numbers == [counts[key] for key in keys]


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


def test_what_the_grid_overcharges():
    """README: the least and the largest median ratio among Loan's groups."""
    table = json.loads((ROOT / "instances" / "grid_comparison.json").read_text(encoding="utf-8"))
    ratios = [row["median_cost_ratio"] for row in table["groups"] if row["folder"] == "loan"]
    said("README.md", rf"has a median of {min(ratios):.1f} to {max(ratios):.1f}, ")


def test_speed_in_the_readme():
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
    """Problems per classifier, none wrong; how many answers have a certificate."""
    folder, page = ROOT / "docs" / "results" / "conditions", "docs/results/conditions/README.md"
    tables = {
        name: json.loads((folder / f"{name}.json").read_text())["kinds"]
        for name in ("networks", "trees", "certificates")
    }
    assert not any(row["wrong"] for table in tables.values() for row in table.values())
    asked = [
        sum(row["draws"] - row.get("nothing to act on", 0) for row in tables[name].values())
        for name in ("networks", "trees")
    ]
    for one in (page, "docs/conditions.md"):
        assert said(one, r"compared on (\d+) random problems with networks and (\d+) with trees") == asked
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


def floats(page: str, pattern: str) -> list[float]:
    """As :func:`said`, for any numbers."""
    return [float(number) for number in stated(page, pattern)]


def table(name: str) -> list[dict[str, str]]:
    """The rows of a shipped results file."""
    with (ROOT / "docs" / "results" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_random_problems_of_the_engine():
    """Cases and their statuses, on the first runs' seeds and on deeper networks."""
    page, folder = "docs/benchmarks.md", ROOT / "docs" / "results" / "properties"
    number = r"(\d+) optimal, (\d+) infeasible, (\d+) limits"
    for name, pattern in (
        ("bab_2000", rf"The engine on the same 2000: {number} of 10 s, (\d+) refused"),
        ("bab_deep", rf"bab_deep.json\)\): {number}, (\d+) refused"),
    ):
        found = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        counts = found["counts"]
        keys = ("optimal", "infeasible", "limit", "unsupported")
        assert said(page, pattern) == [counts[key] for key in keys]
        assert found["disagreements"] == []


def test_every_setting():
    """The table of all settings, and what the page of measurements says of them."""
    rows, page = table("settings/settings.csv"), "docs/benchmarks.md"
    text = (ROOT / "docs" / "results" / "settings" / "README.md").read_text(encoding="utf-8")
    for row in rows:
        seconds = [f"seconds_{name}" for name in ("mean", "median", "p99", "p999", "max")]
        cells = [
            row["actionable"],
            "yes" if row["plausible"] == "True" else "no",
            *(row[status] for status in ("optimal", "infeasible", "limit")),
            f"{float(row['validity']):.3f}",
            f"{float(row['cost_mean']):.4f} ({float(row['cost_sd']):.4f})",
            *(f"{float(row[key]):.3g}" for key in (*seconds, "wall_seconds")),
        ]
        assert "| " + " | ".join(cells) + " |" in text
    problems = sum(int(row["applicants"]) for row in rows)
    wall = round(sum(float(row["wall_seconds"]) for row in rows))
    assert said(page, r"(\d+) problems, all proven, in (\d+) s in one process") == [problems, wall]
    processor = round(sum(float(row["cpu_mean"]) * int(row["applicants"]) for row in rows))
    pattern = r"The run took (\d+) s of wall time, (\d+) s of processor time"
    assert said("docs/results/settings/README.md", pattern) == [wall, processor]
    share = {(row["actionable"], row["plausible"]): 100 * float(row["validity"]) for row in rows}
    pattern = (
        r"plausibility ([\d.]+)% have recourse, with one ([\d.]+)%; "
        r"without plausibility ([\d.]+)% and ([\d.]+)%"
    )
    wanted = [share[one, asked] for asked in ("True", "False") for one in ("4", "1")]
    assert floats(page, pattern) == [round(value, 1) for value in wanted]


def test_growth():
    """Medians and the longest time, in seconds, to the digits that the page shows."""
    rows = {(row["panel"], int(row["value"])): row for row in table("growth/growth.csv")}
    assert all(row["solved_share"] == "1" for row in rows.values())

    def medians(*keys: tuple[str, int]) -> list[float]:
        return [float(rows[key]["cpu_median"]) for key in keys]

    def rounded(values: list[float]) -> list[float]:
        return [float(f"{value:.1g}") for value in (min(values), max(values))]

    pattern = (
        r"(\d+) to (\d+) ms for four actions, ([\d.]+) to ([\d.]+) s for five to eight independent ones, "
        r"([\d.]+) to ([\d.]+) s for as many on a causal chain; ([\d.]+) s for five hidden layers, "
        r"([\d.]+) s for two of 128 units. With seven actions or more one of six may take up to (\d+) s"
    )
    found = floats("docs/benchmarks.md", pattern)
    four = medians(("actions", 4), ("actions-chain", 4))
    assert found[:2] == [round(1000 * value) for value in (min(four), max(four))]
    many = range(5, 9)
    assert found[2:4] == rounded(medians(*(("actions", k) for k in many)))
    assert found[4:6] == rounded(medians(*(("actions-chain", k) for k in many)))
    assert found[6:8] == [round(value, 2) for value in medians(("depth", 5), ("width", 128))]
    longest = max(float(row["cpu_max"]) for key, row in rows.items() if key[0].startswith("actions"))
    assert longest <= found[8] <= longest + 1


def test_speed():
    """The table of solvers: seconds, what is unsolved or wrong, and points that are not exactly feasible."""
    names = {
        "bab": "`bab`, in a population",
        "bab-single": "`bab`, one at a time",
        "highs": "`highs`",
        "gurobi": "Gurobi, plain MIQCP",
        "gurobi-our-bounds": "Gurobi on our final boxes (finding them not timed)",
        "scip": "SCIP, plain MIQCP",
    }
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    summary = json.loads((ROOT / "docs" / "results" / "speed" / "speed.json").read_text(encoding="utf-8"))
    median = {}
    for row in summary["solvers"]:
        start = f"| {names[row['solver']]} |"
        assert start in text
        cells = [float(cell) for cell in text.partition(start)[2].partition("\n")[0].strip(" |").split("|")]
        keys = ("median_s", "p90_s", "max_s", "unsolved", "wrong", "not_exactly_feasible")
        assert cells == [float(f"{row[key]:.3g}") for key in keys]
        median[row["solver"]] = row["median_s"]
    ratios = said(
        "docs/benchmarks.md", r"median is (\d+) times that of `bab`.*?and (\d+) times given our bounds"
    )
    wanted = [median[name] / median["bab-single"] for name in ("gurobi", "gurobi-our-bounds")]
    assert ratios == [round(wanted[0], -1), round(wanted[1])]


def test_certificates():
    """How many there are, what they cost to make and to check, and their size."""
    folder = ROOT / "docs" / "results" / "certificates"
    summary = json.loads((folder / "certificates.json").read_text(encoding="utf-8"))
    check, size = summary["check_seconds"], summary["bytes"]
    ratios = [round(summary[how]["overhead"], 1) for how in ("in batches", "one at a time")]
    numbers = [check["median"], check["max"], size["median"] / 1000]
    wanted = [summary["verified"], *ratios, *(float(f"{number:.2g}") for number in numbers)]
    pattern = (
        r"All (\d+) results on the shipped instances are certified and verified. Producing takes ([\d.]+) "
        r"times as long as solving in batches and ([\d.]+) times one at a time; a check takes ([\d.]+) s at "
        r"the median and ([\d.]+) s at most; a file has ([\d.]+) kB"
    )
    assert floats("docs/benchmarks.md", pattern) == wanted
    pattern = (
        r"All (\d+) results on the shipped instances verify; the median certificate has ([\d.]+) kB, is "
        r"checked in ([\d.]+) s, and producing a certificate takes ([\d.]+) times as long "
        r"as solving in batches"
    )
    median = float(f"{check['median']:.1g}")
    assert floats("README.md", pattern) == [wanted[0], wanted[-1], median, ratios[0]]
    text = (folder / "README.md").read_text(encoding="utf-8")
    for key, name in (
        ("cuts", "cuts of an action (`a`)"),
        ("strict_cuts", "strict cuts (`s`, trees)"),
        ("signs", "signs of a neuron (`n`)"),
        ("interval_leaves", "leaves closed by intervals (`e`)"),
        ("dual_leaves", "leaves closed by duality (`d`)"),
    ):
        nodes = summary[key]
        mean = f"{nodes['mean']:.0f}" if nodes["mean"] >= 10 else f"{nodes['mean']:.1f}"
        others = " | ".join(f"{nodes[k]:.0f}" for k in ("median", "p99", "max"))
        assert f"| {name} | {mean} | {others} |" in text
