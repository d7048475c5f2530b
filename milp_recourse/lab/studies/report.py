"""One HTML file, pictures inline, nothing from elsewhere: what was asked, what was found, how certain."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

TITLES = {
    "table1": "Table 1: hard constraints",
    "table2": "Table 2: ranked preferences, four cost profiles",
    "table3": "Table 3: scored preferences, four cost profiles",
    "table5": "Table 5: preferences biased along or against the causal order",
    "table6": "Table 6: without the plausibility constraint",
    "figure3": "Figure 3: log densities of factuals and counterfactuals",
    "figure4": "Figure 4: gender and a stylised race attribute, four assignments of preferences",
    "sensitivity": "Weights the paper does not publish (grid only)",
}
PICTURES = {
    "table1": ("table1", "excess"),
    "figure4": ("figure4", "figure4_gaps"),
    "sensitivity": (),
}
"""A target's pictures, where it is not one of its own name."""

_BARS = (
    "Bars: the share of applicants with recourse and the mean cost (the paper's unit: mean over the four features of "
    "squared change in standard deviations over range in standard deviations), printed, by the grid and certified. "
    "Whiskers on networks: standard deviation over seeds."
)
CAPTIONS = {
    "table1": f"Hard constraints, by number of actionable features. {_BARS}",
    "excess": "How much dearer the grid's action is than the certified optimum: share of the applicants whom both serve, "
    "by ratio of the two costs (logarithmic axis), a line per number of actionable features.",
    "table2": f"Ranked preferences under four cost profiles. {_BARS} hap: the least preferred feature is changed.",
    "table3": f"Scored preferences under four cost profiles; the paper prints no oracle here. {_BARS} hap: a least preferred feature "
    "is changed.",
    "table5": f"Preferences biased along the causal order and against it. {_BARS}",
    "table6": f"One and two actionable features, plausibility demanded and not. {_BARS}",
    "figure3": "Log density of counterfactuals under the true equations, in nats: distributions of those whom a method "
    "serves (networks: accepted, plausible or not), medians as black lines; dotted: the median of all factuals.",
    "figure4": "Mean cost and mean log density by group under four assignments of preferences, for one draw of race, profiles and "
    "rankings; intervals hold 95% of bootstrap samples of the applicants.",
    "figure4_gaps": "The same as differences between groups, with intervals of 95%; 0 is no difference.",
}
"""What a picture shows, in which unit, and what its intervals are."""
CONSTANT = ("target", "plausibility asked", "distribution", "profile", "applicants")
"""Columns left out of a table in the report where all its rows agree."""

STYLE = """body{font:15px/1.5 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:12px;margin:1em 0;display:block;overflow-x:auto}
td,th{border-bottom:1px solid #ddd;padding:3px 7px;text-align:right;white-space:nowrap}
th{vertical-align:bottom;white-space:normal}td:first-child,th:first-child{text-align:left}
caption,figcaption{text-align:left;color:#555;font-size:13px}figure{margin:1.5em 0}
tr.published{color:#777}tr.certified{background:#eef4fb}img{max-width:100%}code{background:#f3f3f3}"""


def write_report(
    folder: Path, targets: Sequence[str], tables: Mapping[str, Sequence[Row]], summary: Mapping[str, Any]
) -> Path:
    """Write ``folder/report.html`` from the rows and pictures of a run.

    Parameters
    ----------
    tables
        Rows by target; ``sensitivity`` beside them.
    summary
        What :meth:`~milp_recourse.lab.studies.reproduce.Reproduction.run` found besides.
    """
    order = (*targets, *(name for name in tables if name not in targets))
    shown = [picture for name in order for picture in PICTURES.get(name, (name,))]
    sections = [
        ("pictures", "In pictures", "".join(_figure(folder, name, k) for k, name in enumerate(shown, 1))),
        ("asked", "What was asked", _asked(summary)),
        ("found", "What was found", _found(tables)),
        ("certain", "How certain", _certain(summary)),
        *((name, TITLES[name], _table(tables[name], TITLES[name])) for name in order),
        ("columns", "Columns", _legend()),
    ]
    contents = "".join(f"<li><a href='#{key}'>{html.escape(name)}</a></li>" for key, name, _ in sections)
    parts = [f"<h2>Contents</h2><ol>{contents}</ol>"]
    parts += [f"<h2 id='{key}'>{html.escape(name)}</h2>{text}" for key, name, text in sections]
    title = "The paper's oracle, certified"
    text = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>{''.join(parts)}</body></html>\n"
    )
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


def _asked(summary: Mapping[str, Any]) -> str:
    return (
        "<p>The iCARMA paper (arXiv 2604.08030) measures with a grid of 25 bins per feature "
        "how an applicant's own constraints degrade recourse: its validity, cost and plausibility. A grid sees only "
        "its own points. Some of that loss is therefore the grid's. Here every cell of the paper's oracle rows is "
        "computed twice, for the same applicants with the same preferences: by the grid, and by branch and bound "
        "with a proven lower bound. Where the two differ, the difference belongs to the grid.</p>"
        f"<p>{summary['applicants']} refused test applicants of the Loan model ({html.escape(summary['population'])}), "
        f"seed {summary['seed']}; "
        f"{summary['problems']} distinct problems behind {summary['answers in the cells']} answers. The paper's "
        "classifier is not published with the paper. That of loan-smooth has its shape and is trained as the code that "
        "the CARMA authors released does it; that of loan-sharp as the paper's text says.</p>"
    )


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
    return (
        f"With {grid['actionable']} actionable features recourse exists for {certified['validity']:.3f} of the applicants; the grid "
        f"finds it for {grid['validity']:.3f} and leaves {grid['missed']} people without ({_percent(grid['missed share'])} of those "
        f"who have it). Where both find some, the grid's costs {_percent(grid['excess of means'])} more on average, "
        f"{_percent(grid['excess median'])} at the median."
    )


def _ranges(title: str, cells: Sequence[tuple[Row, Row]]) -> str:
    """One sentence for all cells of a table."""

    def range_of(column: str) -> str:
        values = [grid[column] for grid, _ in cells if not math.isnan(grid[column])]
        return f"{_percent(min(values))} to {_percent(max(values))}" if values else "nothing to compare"

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


def _certain(summary: Mapping[str, Any]) -> str:
    checked = summary["spot check"]
    spot = "No certificates were asked for in this run."
    if checked is not None:
        spot = (
            f"{checked['drawn']} answers drawn at random from the {checked['of']} were certified anew: "
            f"{checked['verified']} certificates verified by the independent checker, {checked['agree']} agree with "
            f"the tables, {len(checked['complaints'])} complaints."
        )
    refuted = len(summary["contradictions"])
    seconds = summary["processor seconds"]
    return (
        "<p>Every certified answer is an optimum or an infeasibility proven with outward rounding "
        f"to a gap of 1e-6 cost (and the cost of 1e-12 of every interval); {summary['limit']} of {summary['problems']} reached the time limit. "
        f"Cases in which a grid point refutes a certified answer: {refuted}. {spot} Group means are over a sample: "
        "their bootstrap intervals say how much another sample could differ, which no certificate removes. "
        "Plausibility is demanded and measured with the true model's density"
        + (
            "; “plausibility learned” measures it with a flow fitted to data. "
            if summary["learned density"]
            else "; no learned flow enters. "
        )
        + f"Processor seconds: grid {seconds['grid']:.0f}, certified {seconds['certified']:.0f}.</p>"
    )


def _legend() -> str:
    return (
        "<p>validity: over all applicants. plausibility, cost, hap, holds: over the method's own served "
        "applicants; “both”: over those whom grid and certified serve. Cost: unweighted, the mean over the four features "
        "of (change in sd)² / (range in sd), as the released oracle has it; “optimised”: with the weights of the cell. "
        "hap: the least preferred actionable feature is changed at all; hap large: by more than 5% of its range (the grid's bins are 8% apart). holds: a feature is held at its factual value, which "
        "costs nothing and stops what would flow into it; a grid hardly ever contains that. missed: the grid gives "
        "nothing though recourse exists; its share is of those for whom it exists. excess: grid / certified − 1 of the "
        "optimised cost over both, of the two means and at the median applicant. seconds: processor seconds per problem; the grid evaluates an applicant's points once "
        "for all cells. within: validity within 0.05 and mean cost within 20% of the printed row.</p>"
    )


def _of(rows: Sequence[Row], method: str) -> list[Row]:
    return [row for row in rows if row["method"] == method]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _figure(folder: Path, name: str, number: int) -> str:
    """A picture as vectors, with its number and what it shows."""
    coded = base64.b64encode((folder / f"{name}.svg").read_bytes()).decode()
    return (
        f"<figure id='picture-{name}'><img alt='{html.escape(name)}' src='data:image/svg+xml;base64,{coded}'>"
        f"<figcaption>Picture {number} ({html.escape(name)}). {html.escape(CAPTIONS[name])}</figcaption></figure>"
    )


def _table(rows: Sequence[Row], caption: str) -> str:
    columns = [
        c
        for c in rows[0]
        if any(row[c] is not None for row in rows)
        and not (c in CONSTANT and len({row[c] for row in rows if row[c] is not None}) == 1)
    ]
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    body = "".join(
        f"<tr class='{row.get('method', '')}'>"
        + "".join(f"<td>{html.escape(_cell(row[c]))}</td>" for c in columns)
        + "</tr>"
        for row in rows
    )
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
