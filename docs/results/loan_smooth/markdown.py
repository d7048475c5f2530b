"""The tables of this folder's page, printed from the files of ``reproduce``.

python docs/results/loan_smooth/markdown.py oracle table1
python docs/results/loan_smooth/markdown.py networks table1
python docs/results/loan_smooth/markdown.py runtime table1
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

HERE = Path(__file__).parent
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Table = Annotated[str, typer.Argument(help="table1, table2, table3, table5 or table6")]
Folder = Annotated[Path, typer.Option("--from", metavar="DIR", help="what reproduce wrote")]
Row = dict[str, str]


@app.command()
def oracle(table: Table, folder: Folder = HERE) -> None:
    """Published, grid, certified; a line per cell."""
    for name, methods in cells(table, folder):
        if "grid" not in methods:
            continue
        printed, grid, certified = methods.get("published", {}), methods["grid"], methods["certified"]
        parts = [name, number(printed, "validity")] if printed else [name]
        parts += [number(grid, "validity"), number(certified, "validity")]
        parts.append(f"{grid['missed']} ({percent(grid, 'missed share', 1)})")
        parts += [number(printed, "cost mean")] if printed else []
        parts += [f"{number(one, 'cost mean')} ± {number(one, 'cost sd')}" for one in (grid, certified)]
        parts.append(f"{percent(grid, 'excess of means')}, {percent(grid, 'excess median')}")
        parts += [grid["within"]] if printed else []
        if table in ("table2", "table3"):
            shown = (printed, grid, certified) if printed else (grid, certified)
            parts.append(", ".join(number(one, "hap") for one in shown))
            parts.append(", ".join(number(one, "hap large") for one in (grid, certified)))
        if table == "table6":
            parts.append(", ".join(number(one, "plausibility") for one in (printed, grid, certified)))
        line(parts)


@app.command()
def networks(table: Table, folder: Folder = HERE) -> None:
    """Published and trained networks; a line per cell and recipe."""
    for name, methods in cells(table, folder):
        for method, row in methods.items():
            if not method.startswith("iCARMA"):
                continue
            own = method != "iCARMA published"
            parts = [name, f"{method[7:]} ({row['seeds']})" if own else "published (best of 10)"]
            parts += [spread(row, f"{key} as printed") for key in ("validity", "plausibility")]
            parts.append(spread(row, "cost mean", "cost"))
            parts += [number(row, "hap")] if table in ("table2", "table3") else []
            parts += [spread(row, key) if own else "" for key in ("validity", "plausibility")]
            parts.append(f"{float(row['served']) / float(row['applicants']):.3f}" if own else "")
            line([*parts, row["within"]])


@app.command()
def runtime(table: Table, folder: Folder = HERE) -> None:
    """Milliseconds of processor time per applicant; a line per cell."""
    for name, methods in cells(table, folder):
        shown = [one for key, one in methods.items() if "published" not in key]
        line([name, *(f"{1e3 * float(one['seconds mean']):.3g}" for one in shown)])


def cells(table: str, folder: Path) -> Iterator[tuple[str, dict[str, Row]]]:
    """Every cell's name and its rows by method."""
    groups: dict[str, dict[str, Row]] = {}
    with (folder / f"{table}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            asked = "not asked" if row["plausibility asked"] == "no" else "asked"
            name = {
                "table1": row["actionable"],
                "table2": f"{row['actionable']}, {row['profile']}",
                "table3": f"{row['actionable']}, {row['profile']}",
                "table5": f"{row['distribution']}, {row['actionable']}",
                "table6": f"{row['distribution']}, {row['actionable']}, {asked}",
            }[table]
            groups.setdefault(name, {})[row["method"]] = row
    yield from groups.items()


def number(row: Row, key: str) -> str:
    """Three digits, or nothing."""
    return f"{float(row[key]):.3f}" if row.get(key) not in (None, "", "nan") else ""


def percent(row: Row, key: str, digits: int = 0) -> str:
    """A share."""
    return f"{100 * float(row[key]):.{digits}f}%"


def spread(row: Row, key: str, of: str | None = None) -> str:
    """Mean and, over several seeds, their standard deviation."""
    sd = number(row, f"{of or key} sd of seeds")
    return f"{number(row, key)} ± {sd}" if sd else number(row, key)


def line(parts: list[str]) -> None:
    """Of a Markdown table."""
    typer.echo(f"| {' | '.join(parts)} |")


if __name__ == "__main__":
    app()
