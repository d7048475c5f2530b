"""``milp-recourse backends``."""

from __future__ import annotations

from rich.table import Table

from milp_recourse.cli.shared import console_of_stdout


def backends() -> None:
    """Which back ends are usable here, and why not."""
    from milp_recourse.solvers import listed

    table = Table("back end", "usable", "why not", box=None, pad_edge=False)
    for name, reason in listed().items():
        table.add_row(name, "yes" if reason is None else "no", reason or "")
    console_of_stdout().print(table, markup=False)
