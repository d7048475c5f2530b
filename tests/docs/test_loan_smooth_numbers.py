"""The tables of docs/results/loan_smooth say what its csv files say."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results" / "loan_smooth"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")


def rows(name: str) -> list[dict[str, str]]:
    """A results file."""
    with (FOLDER / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def line(start: str, *numbers: str) -> None:
    """One line of the page begins so and holds every number."""
    found = [one for one in PAGE.splitlines() if one.startswith(start)]
    assert any(all(number in one for number in numbers) for one in found), (start, numbers)


def cell(row: dict[str, str]) -> str:
    """How a line of a table begins."""
    asked = "not asked" if row["plausibility asked"] == "no" else "asked"
    return {
        "table1": f"| {row['actionable']} | ",
        "table2": f"| {row['actionable']}, {row['profile']} | ",
        "table3": f"| {row['actionable']}, {row['profile']} | ",
        "table5": f"| {row['distribution']}, {row['actionable']} | ",
        "table6": f"| {row['distribution']}, {row['actionable']}, {asked} | ",
    }[row["target"]]


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table5", "table6"])
def test_tables(name: str) -> None:
    """Validities, costs, hap, who is missed, which rows are near the printed ones; the networks' shares."""
    near = []
    for row in rows(f"{name}.csv"):
        start = cell(row)
        if row["method"] in ("grid", "certified"):
            keys = ("validity", "cost mean", "cost sd") + (
                ("hap", "hap large") if name in ("table2", "table3") else ()
            )
            keys += ("plausibility",) if name == "table6" else ()
            line(start, *(f"{float(row[key]):.3f}" for key in keys))
        if row["method"] == "grid":
            line(start, f"{row['missed']} ({100 * float(row['missed share']):.1f}%)")
            near.append(row["within"])
        if row["method"].startswith("iCARMA") and row["seeds"]:
            keys = ("validity as printed", "plausibility as printed", "cost mean", "validity", "plausibility")
            served = float(row["served"]) / float(row["applicants"])
            shown = [f"{float(row[key]):.3f}" for key in keys]
            line(f"{start}{row['method'][7:]} ({row['seeds']})", *shown, f"{served:.3f}", row["within"])
    assert near.count("no") == {"table1": 0, "table2": 0, "table3": 0, "table5": 2, "table6": 2}[name]


def test_figure_three() -> None:
    """Medians of log densities, shares that are plausible, how many."""
    for row in rows("figure3.csv"):
        shown = [row["served"], f"{float(row['plausible']):.3f}"]
        shown += [f"{float(row[key]):.2f}" for key in ("counterfactual median", "their factual median")]
        line(f"| {row['actionable']} | {row['method']} | ", *shown)


def test_learning_from_optima() -> None:
    """Means over the seeds of every row of the ablation."""
    found = rows("optima.csv")
    for name in dict.fromkeys(row["row"] for row in found):
        for count in "4321":
            mine = [row for row in found if (row["row"], row["actionable"]) == (name, count)]
            assert len(mine) >= 3
            keys = ("served", "cost of the served", "ratio of means", "median ratio")
            digits = {"served": 3, "cost of the served": 4, "ratio of means": 2, "median ratio": 2}
            means = [f"{sum(float(row[k]) for row in mine) / len(mine):.{digits[k]}f}" for k in keys]
            line(f"| {name} | {count} | ", *means)


def test_ranked_rows_and_what_masks_are_pulled_to() -> None:
    """Shares, cost, hap and the features acted on; the masks alone rule two printed rows out."""
    found = {(row["trained"], row["profile"]): row for row in rows("ranked.csv")}
    for (trained, profile), row in found.items():
        keys = (
            "valid, as printed",
            "plausible, as printed",
            "cost",
            "hap",
            "served",
            "served within the mask",
        )
        shown = [f"{float(row[key]):.3f}" for key in keys]
        line(f"| {trained} | {profile} | ", *shown, f"{float(row['features acted on']):.2f}")
    ours = [found["priors 0.5 to 0.1 (ours)", profile] for profile in ("concave", "linear", "convex")]
    below = [float(row["served within the mask"]) < float(row["published plausible"]) for row in ours]
    assert below == [True, True, False]


def test_the_two_cells_of_table_5() -> None:
    """Means and spread over draws, share of draws near the printed row, by world."""
    found = {(row["world"], row["row"]): row for row in rows("table5_cells.csv")}
    for world in dict.fromkeys(world for world, _ in found):
        shown = []
        for cell_of in ("causal, 2", "reverse-causal, 1"):
            row = found[world, cell_of]
            for key in ("validity", "cost mean"):
                shown.append(f"{float(row[key]):.3f} ± {float(row[f'{key} sd of draws']):.3f}")
            shown.append(f"{100 * float(row['within']):.0f}%")
        line(f"| {world} | ", *shown)
    lowest = min((one for one in found if one[1] == "causal, 2"), key=lambda k: float(found[k]["validity"]))
    assert lowest[0] == "shipped"


def test_finer_grids() -> None:
    """Who is missed and the excess, by bins; both fall with every halving of the step."""
    for row in rows("finer_grid.csv"):
        excess = f"{100 * float(row['excess of means']):.0f}%, {100 * float(row['excess median']):.0f}%"
        shown = f"{100 * float(row['missed share']):.1f}%", excess, f"{float(row['hap']):.3f}"
        line(f"| {row['profile']} | {row['bins']} | ", *shown, f"{float(row['hap large']):.3f}")
    for profile in ("constant", "linear"):
        mine = [row for row in rows("finer_grid.csv") if row["profile"] == profile]
        for key in ("missed share", "excess of means"):
            values = [float(row[key]) for row in mine]
            assert values == sorted(values, reverse=True)


def test_the_gap_by_density_and_on_the_sharp_classifier() -> None:
    """Who is served and missed, by quarter of the applicants and on loan-sharp."""
    for name, start in (
        ("by_density", "| {actionable} | {quarter}: "),
        ("decomposition_sharp", "| {actionable} | "),
    ):
        for row in rows(f"{name}.csv"):
            missed = ", ".join(
                f"{float(row[f'missed, {how}']):.3f}" for how in ("only implausible", "only invalid", "both")
            )
            shown = (f"{float(row[f'served, {level}']):.3f}" for level in ("optimum", "mask", "networks"))
            line(start.format(**row), *shown, missed, f"{float(row['median cost ratio, networks']):.2f}")


def test_one_feature() -> None:
    """Shares by the one feature."""
    for row in rows("one_feature.csv"):
        keys = (
            "possible within bounds",
            "networks, cut to bounds",
            "networks, not cut",
            "asked beyond bounds",
        )
        line(f"| {row['only']} | ", *(f"{float(row[key]):.3f}" for key in keys))


def test_decomposition() -> None:
    """Who is served at which level, at which cost, and seconds."""
    for row in rows("decomposition.csv"):
        start = f"| {row['actionable']} | "
        for level in ("optimum", "mask", "direction", "networks"):
            line(start, f"{float(row[f'served, {level}']):.3f}", f"{float(row[f'cost, {level}']):.4f}")
        line(start, f"{float(row['seconds, certify all']):.2f} s", f"{float(row['failed share']):.3f}")


def test_fairness() -> None:
    """Means and shares of significant draws, of gender and race."""
    for row in rows("fairness.csv"):
        if row["gap"].startswith("non-white female"):
            continue
        digits = 4 if row["measure"] == "mean cost" else 3
        numbers = (f"{float(row[key]):+.{digits}f}" for key in ("mean", "low", "high"))
        share = f"{100 * float(row['share significant']):.0f}%"
        line(f"| {row['scenario']} | {row['gap']} | {row['measure']} |", *numbers, share)


def test_the_first_numbers_of_the_page_on_icarma() -> None:
    """docs/icarma.md repeats shares of the shipped networks and of ``plain``, and two ratios."""
    text = " ".join((FOLDER.parents[1] / "icarma.md").read_text(encoding="utf-8").split())
    number = r"([\d.]+)"
    pattern = (
        f"serve {number}% where {number}% can be served with four actionable features, and {number}% where "
    )
    pattern += f"{number}% can with one"
    table = {(row["actionable"], row["method"]): row for row in rows("table1.csv")}
    expected = []
    for count in "41":
        best, certified = table[count, "iCARMA best"], table[count, "certified"]
        expected += [float(best["served"]) / float(best["applicants"]), float(certified["validity"])]
    assert [float(x) for x in re.search(pattern, text).groups()] == [round(100 * x, 1) for x in expected]
    four, *_, one = rows("decomposition.csv")
    found = re.search(f"serve {number}% and {number}%; where both serve", text).groups()
    assert [float(x) for x in found] == [
        round(100 * float(row["served, networks"]), 1) for row in (four, one)
    ]
    found = re.search(f"pays {number} times the optimum with four and {number} times with one", text).groups()
    assert [float(x) for x in found] == [
        round(float(r["median cost ratio, networks"]), 1) for r in (four, one)
    ]
    assert all(float(row["share of the excess, networks"]) >= 0.99 for row in rows("decomposition.csv"))
    shares = []
    for row in (four, one):
        missed = float(row["served, optimum"]) - float(row["served, networks"])
        shares.append(round(100 * float(row["missed, only implausible"]) / missed))
    found = re.search(f"and {number}% of those they miss with four, {number}% with one", text).groups()
    assert [float(x) for x in found] == shares
