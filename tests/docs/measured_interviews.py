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
    """Median regret after some numbers of questions, where ten people or more were asked."""
    table = [row for row in read("regret_summary.csv") if int(row["people"]) >= 10]
    at = {"loan": (0, 5, 10), "credi": (0, 5, 10), "rando": (0, 12, 25)}
    body = []
    for problem, method in dict.fromkeys((r["problem"], r["method"]) for r in table):
        own = {int(r["questions"]): r for r in table if (r["problem"], r["method"]) == (problem, method)}
        if method in ("group", "rank", "likert"):
            [(asked, row)] = own.items()
            cells = ["", "", f"{percent(row['median'])} after {asked}"]
        else:
            row = own[0]
            cells = [percent(own[n]["median"]) for n in at[problem[:5].strip()]]
        body.append([problem, method, row["people"], *cells])
    return lines("problem | method | people | no question | 5 (of 10 levers: 12) | 10 (25)", body)


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
        if r["choices"] in SHOWN
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
    """GTP and GTD of base, HARE, Multi-HARE and exact candidates, ours and the published."""
    table = read("hare_summary.csv")
    body = []
    for cell in dict.fromkeys((r["data"], r["model"], r["base"], r["people"]) for r in table):
        own = [r for r in table if (r["data"], r["model"], r["base"], r["people"]) == cell]
        shown = []
        for name in ("gtp", "gtd"):
            shown.append(", ".join(f"{float(r[name]):.2f}" for r in own))
            shown.append(", ".join(f"{float(r[f'{name}_published']):.2f}" for r in own[:3]))
        body.append([*cell, *shown])
    return lines("data | model | base | people | GTP | published | GTD | published", body)
