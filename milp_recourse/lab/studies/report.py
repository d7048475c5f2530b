"""The report of ``reproduce``: one HTML file with pictures inside, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import csv
import html
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from milp_recourse.reports.pages.html import Html, el, join

Row = Mapping[str, Any]


def _words(kind: str) -> dict[str, str]:
    """The texts of one kind in ``report_words.csv``, by name."""
    with Path(__file__).with_name("report_words.csv").open(newline="", encoding="utf-8") as file:
        return {row["name"]: row["words"] for row in csv.DictReader(file) if row["kind"] == kind}


TITLES = _words("title")
"""The titles of tables."""
CAPTIONS = _words("caption")
"""For each picture, what it shows, in which unit, and what its intervals are."""
PICTURES = {"table1": ("table1", "excess"), "figure4": ("figure4", "figure4_gaps"), "sensitivity": ()}
"""A target's pictures; a target that is not here has one of its own name."""

CONSTANT = ("target", "plausibility asked", "distribution", "profile", "applicants")
"""Columns that a table leaves out if all its rows have the same value there."""


def write_report(
    folder: Path, targets: Sequence[str], tables: Mapping[str, Sequence[Row]], summary: Mapping[str, Any]
) -> Path:
    """Write ``folder/report.html`` from the rows and pictures of a run.

    Parameters
    ----------
    tables
        Rows by target, and those of ``sensitivity``.
    summary
        The summary that :meth:`~milp_recourse.lab.studies.reproduce.Reproduction.run` writes.
    """
    order = (*targets, *(name for name in tables if name not in targets))
    shown = [picture for name in order for picture in PICTURES.get(name, (name,))]
    page = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    seconds = summary["processor seconds"]
    text = page.substitute(
        contents="$contents",
        pictures=join(_figure(folder, name, k) for k, name in enumerate(shown, 1)),
        applicants=summary["applicants"],
        population=html.escape(summary["population"]),
        seed=summary["seed"],
        problems=summary["problems"],
        answers=summary["answers in the cells"],
        found=_found(tables),
        limit=summary["limit"],
        refuted=len(summary["contradictions"]),
        spot_check=_spot_check(summary["spot check"]),
        learned="“plausibility learned” measures it with a flow fitted to data"
        if summary["learned density"]
        else "no learned flow enters",
        grid_seconds=f"{seconds['grid']:.0f}",
        certified_seconds=f"{seconds['certified']:.0f}",
        tables=join(
            part
            for name in order
            for part in (el("h2", TITLES[name], id=name), _table(tables[name], TITLES[name]))
        ),
    )
    headings = re.findall(r'<h2 id="(\w+)">(.*?)</h2>', text)
    contents = el("ol", [el("li", el("a", Html(name), href=f"#{key}")) for key, name in headings])
    path = folder / "report.html"
    path.write_text(text.replace("$contents", contents), encoding="utf-8")
    return path


def _found(tables: Mapping[str, Sequence[Row]]) -> str:
    items = []
    pairs = {
        name: list(zip(_of(tables[name], "grid"), _of(tables[name], "certified"), strict=True))
        for name in ("table1", "table2", "table3", "table5", "table6")
        if name in tables
    }
    items += [_sentence(grid, certified) for grid, certified in pairs.pop("table1", [])]
    items += [_ranges(TITLES[name], cells) for name, cells in pairs.items()]
    if "figure4" in tables:
        items += _fairness_sentences(tables["figure4"])
    compared = [r for rows in tables.values() for r in rows if r.get("within") and r["method"] == "grid"]
    if compared:
        near = sum(r["within"] == "yes" for r in compared)
        items.append(
            f"{near} of the grid's {len(compared)} rows land within 0.05 in validity and 20% in mean cost of the "
            "printed rows."
        )
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _sentence(grid: Row, certified: Row) -> str:
    number = {"1": "1 actionable feature", "random": "a random number of actionable features"}
    features = number.get(grid["actionable"], f"{grid['actionable']} actionable features")
    return (
        f"With {features} recourse exists for {certified['validity']:.3f} of the applicants; the grid "
        f"finds it for {grid['validity']:.3f} and leaves {grid['missed']} people without ({_percent(grid['missed share'])} of those "
        f"who have it). Where both find some, the grid's costs {_percent(grid['excess of means'])} more on average, "
        f"{_percent(grid['excess median'])} at the median."
    )


def _ranges(title: str, cells: Sequence[tuple[Row, Row]]) -> str:
    """A sentence about all cells of a table."""

    def range_of(column: str) -> str:
        values = [grid[column] for grid, _ in cells if not math.isnan(grid[column])]
        return f"{_percent(min(values))} to {_percent(max(values))}" if values else "an unknown share"

    return (
        f"{html.escape(title)}: the grid misses {range_of('missed share')} of those who have recourse and costs "
        f"{range_of('excess of means')} more than needed on average, over the {len(cells)} cells."
    )


def _fairness_sentences(rows: Sequence[Row]) -> list[str]:
    items = []
    for row in rows:
        if row["method"] == "certified" and row["group"] in ("female - male", "non-white - white"):
            items.append(
                f"{row['scenario']}, {row['group']}: share with recourse {row['validity']:+.3f}, mean cost {row['cost']:+.4f} (95% bootstrap {row['cost low']:+.4f} "
                f"to {row['cost high']:+.4f}; certified for these applicants {row['cost certified from']:+.6f} to "
                f"{row['cost certified to']:+.6f}), mean log density {row['log density']:+.3f} "
                f"({row['log density low']:+.3f} to {row['log density high']:+.3f})."
            )
    return items


def _spot_check(checked: Mapping[str, Any] | None) -> str:
    if checked is None:
        return "No certificates were asked for in this run."
    return (
        f"{checked['drawn']} answers drawn at random from the proven ones of {checked['of']} were certified anew: "
        f"{checked['verified']} certificates verified by the independent checker, {checked['agree']} agree with "
        f"the tables, {len(checked['complaints'])} complaints."
    )


def _of(rows: Sequence[Row], method: str) -> list[Row]:
    return [row for row in rows if row["method"] == method]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _figure(folder: Path, name: str, number: int) -> Html:
    """A picture as inline SVG, with its number and caption."""
    coded = base64.b64encode((folder / f"{name}.svg").read_bytes()).decode()
    caption = el("figcaption", f"Picture {number} ({name}). {CAPTIONS[name]}")
    return el(
        "figure", el("img", alt=name, src=f"data:image/svg+xml;base64,{coded}"), caption, id=f"picture-{name}"
    )


def _table(rows: Sequence[Row], caption: str) -> Html:
    columns = [
        c
        for c in rows[0]
        if any(row[c] is not None for row in rows)
        and not (c in CONSTANT and len({row[c] for row in rows if row[c] is not None}) == 1)
    ]
    head = el("tr", [el("th", column) for column in columns])
    body = [
        el("tr", [el("td", _cell(row[column])) for column in columns], class_=row.get("method", ""))
        for row in rows
    ]
    return el("table", el("caption", caption), head, body)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
