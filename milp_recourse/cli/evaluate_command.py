"""``milp-recourse evaluate METHOD``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from milp_recourse.errors import BadInput

if TYPE_CHECKING:
    from milp_recourse.evaluation import Evaluation


def evaluate(
    method: Annotated[str, typer.Argument(help="a CSV of actions, or module:function over a DataFrame")],
    population: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the applicants; none: the shipped Loan population")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where results go; optima are kept there.")] = Path(
        "evaluation"
    ),
    optima_folder: Annotated[
        Path | None, typer.Option("--optima", metavar="DIR", help="where optima are kept; DIR/optima")
    ] = None,
    counterfactuals: Annotated[
        bool, typer.Option("--counterfactuals", help="rows are values after the action, not the action")
    ] = False,
    plausibility: Annotated[
        bool, typer.Option(help="demand plausibility if the population does, or never")
    ] = True,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N applicants.")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds per optimum")] = None,
    certificates: Annotated[
        bool, typer.Option(help="write a proof of each optimum that verify checks")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Compare any method's recourse with the certified optima.

    DIR gets evaluation.csv (one row per applicant), evaluation.json (summary), evaluation.png, and the
    optima, which later runs with the same --optima use.
    """
    from milp_recourse.evaluation import ask, certified_optima, read_actions
    from milp_recourse.evaluation import evaluate as judge_all
    from milp_recourse.evaluation.methods import from_counterfactuals, load
    from milp_recourse.evaluation.plots import plot
    from milp_recourse.formats import read_population
    from milp_recourse.formats.instances_path import instances_path
    from milp_recourse.reports.drawing import draw_if_possible
    from milp_recourse.reports.progress import progress_bar

    people = read_population(population or instances_path() / "loan" / "population.json")[:limit]
    if not plausibility:
        people = replace(people, template=replace(people.template, plausible=False))
    start = time.process_time()
    actions = read_actions(Path(method), people) if method.endswith(".csv") else ask(load(method), people)
    seconds = time.process_time() - start
    if counterfactuals:
        actions = from_counterfactuals(actions, people)
    with progress_bar("optima", len(people), rate=True) as bar:
        try:
            optima = certified_optima(
                people,
                optima_folder or folder / "optima",
                time_limit,
                certificates=certificates,
                jobs=jobs,
                advance=lambda: bar.advance("optima"),
            )
        except BadInput as error:
            if optima_folder is None or error.field != "--out":
                raise
            raise BadInput("--optima", error.got, error.allowed) from None
    found = judge_all(people, actions, optima)
    _write(found, {"method": method, "processor seconds of the method": seconds}, folder)
    draw_if_possible(lambda: plot(found, method, folder / "evaluation.png"))
    typer.echo(f"results in {folder}")


def _write(found: Evaluation, about: dict[str, Any], folder: Path) -> None:
    """Write evaluation.csv and evaluation.json, and print the summary."""
    from milp_recourse.formats.strict_json import write_json, write_whole
    from milp_recourse.reports.result_rows import csv_line

    summary, rows = about | found.summary(), found.rows()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(summary, folder / "evaluation.json")
    lines = [csv_line(rows[0]), *(csv_line(row.values()) for row in rows)]
    write_whole("".join(lines).encode(), folder / "evaluation.csv")
    for key, value in summary.items():
        typer.echo(f"{key}: {_cell(value)}")


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}%: {_cell(v)}" for key, v in value.items())
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)
