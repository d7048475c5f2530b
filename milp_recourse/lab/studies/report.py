"""Reports of studies: one HTML file with pictures inside, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader
from markupsafe import Markup

from milp_recourse.lab.run_table import read_rows
from milp_recourse.reports.pages.shell import templates

Row = Mapping[str, Any]


def _words(kind: str) -> dict[str, str]:
    """The texts of one kind in ``report_words.csv``, by name."""
    rows = read_rows(Path(__file__).with_name("report_words.csv"))
    return {row["name"]: row["words"] for row in rows if row["kind"] == kind}


TITLES = _words("title")
"""The titles of tables."""
CAPTIONS = _words("caption")
"""For each picture, what it shows, in which unit, and what its intervals are."""
PICTURES = {"table1": ("table1", "excess"), "figure4": ("figure4", "figure4_gaps"), "sensitivity": ()}
"""A target's pictures; a target that is not here has one of its own name."""

COMPARED = ("table1", "table2", "table3", "table5", "table6")
"""The tables with rows of the grid and of the certified optima."""

FEATURES = {"1": "1 actionable feature", "random": "a random number of actionable features"}

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
    rows = [row for some in tables.values() for row in some]
    return write_page(
        folder / "report.html", "reproduce", {name: tables[name] for name in order},
        [picture for name in order for picture in PICTURES.get(name, (name,))], "report",
        pairs={name: _pairs(tables[name]) for name in COMPARED if name in tables},
        compared=[row["within"] for row in rows if row.get("within") and row["method"] == "grid"],
        summary=summary, features=FEATURES, ends=_ends, percentage=_percent,
    )  # fmt: skip


def write_page(
    path: Path,
    study: str,
    tables: Mapping[str, Sequence[Row]],
    pictures: Sequence[str],
    template: str = "study",
    **more: Any,
) -> Path:
    """Write the page of a study, with the words that ``report_words.csv`` has for it.

    Parameters
    ----------
    tables
        Rows by table.
    pictures
        Names of SVG files in the page's folder.
    template
        The file, without ``.html.j2``, that gets these and ``more``.
    """
    shape = templates(FileSystemLoader(Path(__file__).parent)).get_template(f"{template}.html.j2")
    text = shape.render(
        contents=Markup("$contents"), study=study, tables=tables, pictures=pictures,
        coded=lambda name: base64.b64encode((path.parent / f"{name}.svg").read_bytes()).decode(),
        titles=TITLES, captions=CAPTIONS, columns_of=_columns, cell=_cell, **more,
    )  # fmt: skip
    headings = re.findall(r'<h2 id="(\w+)">(.*?)</h2>', text)
    contents = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name in headings)
    path.write_text(text.replace("$contents", f"<ol>{contents}</ol>"), encoding="utf-8")
    return path


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """The rows of the grid and of the certified optima, cell by cell."""
    grid, certified = ([row for row in rows if row["method"] == name] for name in ("grid", "certified"))
    return list(zip(grid, certified, strict=True))


def _ends(cells: Sequence[tuple[Row, Row]], column: str) -> str:
    """The least and the largest share in a column of the grid's rows."""
    values = [grid[column] for grid, _ in cells if not math.isnan(grid[column])]
    return f"{_percent(min(values))} to {_percent(max(values))}" if values else "an unknown share"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _columns(rows: Sequence[Row]) -> list[str]:
    """The columns that are shown: those with values, but for a constant one of :data:`CONSTANT`."""
    values = {c: [row[c] for row in rows if row.get(c) not in (None, "")] for row in rows for c in row}
    return [c for c, some in values.items() if some and not (c in CONSTANT and len(set(some)) == 1)]


def _cell(value: Any) -> str:
    """A number with four digits; rows of files have text."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)
