"""The measured tables of docs/results/interviews/README.md, from the CSV files beside it."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "interviews"

Row = dict[str, str]

SHOWN = ("5", "80")
"""Numbers of choices in the table of weights."""


def read(name: str) -> list[Row]:
    """A results file."""
    with (FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines(head: str, body: Iterable[Iterable[object]]) -> str:
    """Markdown with a head of names separated by ``|``."""
    names = [name.strip() for name in head.split("|")]
    shown = [names, ["---"] * len(names), *([str(cell) for cell in line] for line in body)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in shown) + "\n"


def percent(share: str, digits: int = 1) -> str:
    """A share as a percentage."""
    return f"{100 * float(share):.{digits}f}%"


def regret() -> str:
    """Median regret by method, after the numbers of questions that are asked for; who is asked about levers
    one by one, after as many as that takes."""
    table = read("regret_summary.csv")
    problems = [name for name in dict.fromkeys(row["problem"] for row in table) if "network" in name]
    at = {name: ("12", "25") if "10 levers" in name else ("5", "10") for name in problems}
    body = []
    for method in dict.fromkeys(row["method"] for row in table):
        cells = []
        for name in problems:
            own = _medians(table, name, method)
            once = [f"{percent(median)} after {asked}" for asked, median in own.items()]
            cells.append(", ".join(once if len(own) < 2 else [percent(own[n]) for n in at[name]]))
        body.append([method, *cells])
    head = [f"{name}: {' and '.join(at[name])}" for name in problems]
    return lines(" | ".join(["asked", *head]), body)


def _medians(table: Iterable[Row], problem: str, method: str) -> Row:
    """The medians by the number of questions."""
    own = (row for row in table if (row["problem"], row["method"]) == (problem, method))
    return {row["questions"]: row["median"] for row in own}


def soundness() -> str:
    """Who is inside, and which proofs verify."""
    names = ("kind", "people", "with recourse", "inside", "proofs", "verified")
    body = [[row[name] for name in names] for row in read("soundness_summary.csv")]
    return lines("people | number | with a recourse | inside | proofs tried | verified", body)


def weights() -> str:
    """Errors of the fits."""
    names = ("fit", "feature_level", "equal", "in_90%_interval")
    body = [
        [r["noise"], r["choices"], *(percent(r[name]) for name in names)]
        for r in read("weights.csv")
        if r["choices"] in SHOWN and r["noise"] != "0.2"
    ]
    head = "noise | choices | recourses compared | features compared | equal | in the 90% interval"
    return lines(head, body)


def choices() -> str:
    """Rules and how many choices they predict, for people with limits and some noise."""
    body = [
        [
            r["study"], r["rule"], r["people"], percent(r["share"]),
            f"{percent(r['low'])} to {percent(r['high'])}", percent(r["published"]) if r["published"] else "",
        ]
        for r in read("choices.csv")
        if r["limits"] == "True" and r["noise"] == "0.2"
    ]  # fmt: skip
    return lines("study | rule | people | predicted | 95% interval | published", body)


def hare() -> str:
    """GTP and GTD of table 1's methods and of exact candidates, ours and the published: means over bases."""
    table = [r for r in read("hare_summary.csv") if r["scale"] == "far" and r["budget"] in ("0", "30")]
    body = []
    for cell in dict.fromkeys((r["data"], r["model"]) for r in table):
        shown = []
        for name in ("gtp", "gtd"):
            for key, methods in ((name, HARE), (f"{name}_published", HARE[:3])):
                means = [_over_bases(table, cell, method, key) for method in methods]
                shown.append(", ".join(f"{mean:.2f}" for mean in means))
        people = max(int(r["people"]) for r in table if (r["data"], r["model"]) == cell)
        body.append([*cell, people, *shown])
    return lines("data | model | people | GTP | published | GTD | published", body)


HARE = (
    ("base", "0"),
    ("hare", "1"),
    ("multi-hare", "5"),
    ("multi-hare, winner kept", "5"),
    ("exact-hare", "5"),
)
"""Methods and rounds, as the columns of the table name them."""


def _over_bases(table: list[Row], cell: tuple[str, str], method: tuple[str, str], key: str) -> float:
    found = [r for r in table if (r["data"], r["model"]) == cell and (r["method"], r["rounds"]) == method]
    known = [float(r[key]) for r in found if r[key] not in ("", "nan")]
    return sum(known) / len(known)


def hare_causes() -> str:
    """What share of the base's GTD the methods take away, change by change."""
    found = {(r["data"], r["change"]): r for r in read("hare_causes_summary.csv")}
    data, changes = (list(dict.fromkeys(key[k] for key in found)) for k in (0, 1))
    body = []
    for change in changes:
        own = [found.get((one, change), {}) for one in data]
        gains = [[r.get(f"gtd_gain_{name}") for name in ("hare", "multi", "kept")] for r in own]
        body.append([change, *(", ".join(percent(gain, 0) for gain in those if gain) for those in gains)])
    return lines("change | " + " | ".join(data), body)
