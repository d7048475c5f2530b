"""``milp-recourse lab interviews ...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where results go; rerunning resumes.")]


@app.command()
def regret(
    out: Out = Path("interviews"),
    people: Annotated[int, typer.Option(min=1, help="people per problem")] = 20,
) -> None:
    """Regret of the recommended recourse by questions asked: every strategy, ranks, groups and ratings."""
    from milp_recourse.lab.interviews.regret_by_questions import PROBLEMS, draw, methods_for, run, summary
    from milp_recourse.lab.run_table import print_rows
    from milp_recourse.reports.drawing import draw_if_possible
    from milp_recourse.reports.number_table import write_table
    from milp_recourse.reports.progress import progress_bar

    with progress_bar("interviews", people * sum(len(methods_for(name)) for name in PROBLEMS)) as bar:
        rows = run(out, people, bar.advance)
    table = summary(rows)
    write_table(table, out / "regret_summary.csv")
    print_rows("regret, as a share of the least cost", table, tuple(table[0]))
    draw_if_possible(lambda: draw(rows, out / "regret.png"))
