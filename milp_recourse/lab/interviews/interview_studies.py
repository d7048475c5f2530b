"""``milp-recourse lab interviews ...``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.lab.run_table import Row, print_rows, write_table
from milp_recourse.reports.drawing import draw_if_possible
from milp_recourse.reports.progress import progress_bar

app = typer.Typer(no_args_is_help=True)

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where results go; rerunning resumes.")]


def _report(
    table: Sequence[Row],
    place: Path,
    title: str,
    columns: Sequence[str] | None = None,
    draw: Callable[[Path], Path] | None = None,
) -> None:
    """Write a table to a CSV file, print it, and draw its picture.

    Parameters
    ----------
    columns
        What is printed; None: all columns.
    draw
        Draws to a path; the picture is named as the table, without ``_summary``.
    """
    write_table(place, table)
    print_rows(title, table, columns)
    if draw is not None:
        draw_if_possible(lambda: draw(place.with_name(place.stem.removesuffix("_summary") + ".png")))


@app.command()
def regret(
    out: Out = Path("interviews"),
    people: Annotated[int, typer.Option(min=1, help="people per problem")] = 200,
) -> None:
    """Regret of the recommended recourse by questions asked: every strategy, ranks, groups and ratings."""
    from milp_recourse.lab.interviews.regret_by_questions import PROBLEMS, draw, run, summary

    with progress_bar("people", people * len(PROBLEMS)) as bar:
        rows = run(out, people, bar.advance)
    title = "regret, as a share of the least cost"
    _report(summary(rows), out / "regret_summary.csv", title, draw=partial(draw, rows))


@app.command()
def soundness(
    out: Out = Path("interviews"),
    people: Annotated[int, typer.Option(min=1, help="random people")] = 2000,
    each: Annotated[int, typer.Option(min=1, help="verify the proof of each so many-th person")] = 20,
) -> None:
    """Is the true regret of random people always inside the proven one? Exits 4 if it is not."""
    from milp_recourse.cli.exit_codes import FAILED
    from milp_recourse.lab.interviews.regret_soundness import run, summary

    with progress_bar("people", people) as bar:
        table = summary(run(out, people, each, bar.advance))
    _report(table, out / "soundness_summary.csv", "true regret inside the proven one")
    if any(row["inside"] < row["with recourse"] or row["verified"] < row["proofs"] for row in table):
        raise typer.Exit(FAILED)


@app.command()
def weights(
    out: Out = Path("interviews"),
    people: Annotated[int, typer.Option(min=1, help="people per noise and number of choices")] = 200,
) -> None:
    """How far weights from choices are from the known ones: fits of recourses, and of features."""
    from milp_recourse.lab.interviews.known_weights import draw, run

    table = run(people)
    columns = ("noise", "choices", "fit", "feature_level", "equal", "in_90%_interval")
    title = "share of weight in the wrong place"
    _report(table, out / "weights.csv", title, columns, partial(draw, table))


@app.command()
def choices(
    out: Out = Path("interviews"),
    pilots: Annotated[int, typer.Option(min=1, help="people of the pilot")] = 20,
    people: Annotated[int, typer.Option(min=1, help="people of the second study")] = 41,
) -> None:
    """Which rule predicts choices: AWP's pilot and second study with simulated people on synthetic loans."""
    from milp_recourse.lab.interviews.choice_predictors import draw, run

    table = run(pilots, people)
    columns = ("study", "limits", "noise", "rule", "people", "share", "low", "high", "published")
    title = f"tree's accuracy {table[0]['tree_accuracy']:.4f}"
    _report(table, out / "choices.csv", title, columns, partial(draw, table))


@app.command()
def hare(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="the folder of adult.zip, compas.zip, ...")],
    out: Out = Path("interviews"),
    people: Annotated[int, typer.Option(min=1, help="refused people per data set, model and seed")] = 150,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of split and training")] = 5,
) -> None:
    """HARE, Multi-HARE and exact candidates on Adult, COMPAS and GMSC, beside the published means and orders.

    Exits 4 if base > HARE > Multi-HARE is printed and does not hold here with the winner kept."""
    from milp_recourse.cli.exit_codes import FAILED
    from milp_recourse.cli.shared import console_of_stdout
    from milp_recourse.lab.interviews.hare_bases import BASES
    from milp_recourse.lab.interviews.hare_tables import DATA, KEPT, KEYS, MULTI, draw, orders, run, summary

    with progress_bar("cells", (2 * len(BASES) + 2 + 3) * seeds * len(DATA)) as bar:
        table = summary(run(data, out, people, seeds, bar.advance))
    columns = "seeds", "people", "gtp", "gtp_sd", "gtp_published", "gtd", "gtd_sd", "gtd_published"
    title = "after the tables of HARE"
    _report(table, out / "hare_summary.csv", title, (*KEYS, *columns), partial(draw, table))
    failed = list[str]()
    for multi in (MULTI, KEPT):
        holds, failed = orders(table, multi)
        said = f"base > HARE > {multi}: holds in {len(holds)} of {len(holds) + len(failed)} printed orders"
        console_of_stdout().print(said + "".join(f"\n  not in {one}" for one in failed), markup=False)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
def hare_causes(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="the folder of adult.zip, compas.zip, ...")],
    out: Out = Path("interviews"),
    people: Annotated[int, typer.Option(min=1, help="refused people per data set and seed")] = 150,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of split and training")] = 3,
) -> None:
    """Which choices make HARE's gains what they are, changed one at a time."""
    from milp_recourse.lab.interviews.hare_causes import ASKED, CHANGES, run, summary
    from milp_recourse.lab.interviews.hare_tables import DATA

    with progress_bar("cells", seeds * len(DATA) * len((*CHANGES, ASKED))) as bar:
        table = summary(run(data, out, people, seeds, bar.advance))
    title = "HARE's gains by choices that the paper leaves open"
    _report(table, out / "hare_causes_summary.csv", title)
