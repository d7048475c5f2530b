"""``milp-recourse lab reproduce``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from milp_recourse.cli.exit_codes import FAILED, LIMIT
from milp_recourse.lab.run_table import print_rows

if TYPE_CHECKING:
    from milp_recourse.lab.studies.amortised import Networks
    from milp_recourse.lab.studies.reproduce import Asked
    from milp_recourse.lab.studies.tables import Density
    from milp_recourse.problem.population import Population


def reproduce(
    target: Annotated[str, typer.Argument(help="table1, table2, 3, 5, 6, figure2, 3, 4, all or fairness")],
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "reproduce"
    ),
    seed: Annotated[int, typer.Option(help="Seed of all random preferences.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N applicants.")] = None,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds per problem.")] = 60.0,
    certificates: Annotated[int, typer.Option(min=0, help="Random answers to certify and verify.")] = 200,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    population: Annotated[
        str, typer.Option(metavar="NAME", help="loan-smooth, -sharp, -printed, or a .json of Loan applicants")
    ] = "loan-smooth",
    networks: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="checkpoint, or folder of icarma train: gets rows where it was trained for; repeatable",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=2, help="Draws of race, profiles and rankings (target fairness).")
    ] = 200,
    density: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="learned log density; without it: the shipped flow (torch)"
        ),
    ] = None,
) -> None:
    """Compute the iCARMA paper's tables and figures again, with certified optima beside its grid search.

    Exits 4 if a grid point refutes a certified answer, or an answer drawn at random gets no certificate that
    is accepted; 3 if a limit was reached.
    """
    from milp_recourse.formats import read_population
    from milp_recourse.formats.instances_path import population_file
    from milp_recourse.lab.studies.amortised import read_networks
    from milp_recourse.lab.studies.reproduce import Asked, Reproduction
    from milp_recourse.reports.progress import progress_bar

    _check(target)
    if target == "figure2":
        from milp_recourse.lab.studies.figures import profiles

        profiles(folder / "figure2.png")
        typer.echo(f"figure2.png in {folder}")
        return
    people = read_population(population_file(population))[:limit]
    trained = tuple(read_networks(place) for place in networks or ())
    if target == "fairness":
        return _fairness(people, folder, trained, draws, Asked(seed, time_limit, 0, jobs))
    with progress_bar("reproduce", 0, rate=True) as bar:
        asked = Asked(seed, time_limit, certificates, jobs, _density(density), trained, population)
        summary = Reproduction(people, folder, asked, bar.advance, bar.expect_more).run(target)
    _print(summary)
    typer.echo(f"tables, pictures and report.html in {folder}")
    checked = summary["spot check"]
    for line in [*summary["contradictions"], *(checked["complaints"] if checked else ())]:
        typer.echo(line, err=True)
    if summary["contradictions"] or (checked and checked["verified"] < checked["drawn"]):
        raise typer.Exit(FAILED)
    raise typer.Exit(LIMIT if summary["limit"] else 0)


def _check(target: str) -> None:
    """Refuse an unknown target, or a missing matplotlib, before anything is computed or written."""
    from milp_recourse.errors import BackendUnavailable
    from milp_recourse.lab.known import known
    from milp_recourse.lab.studies.reproduce import TARGETS

    known("target", target, (*TARGETS, "figure2", "fairness"))
    if find_spec("matplotlib") is None:
        raise BackendUnavailable("reproduce: draws with matplotlib; pip install 'milp-recourse[plots]'")


FLOW = "milp_recourse.lab.icarma.density:log_density"


def _density(name: str | None) -> Density | None:
    """The density with this name; without a name that of the shipped flow, or None if torch is missing."""
    from milp_recourse.errors import BadInput
    from milp_recourse.evaluation.methods import load

    try:
        return load(name or FLOW)
    except BadInput:
        if name is not None:
            raise
        typer.echo("no flow density: it needs pip install 'milp-recourse[torch]'", err=True)
        return None


def _fairness(
    people: Population, folder: Path, trained: tuple[Networks, ...], draws: int, asked: Asked
) -> None:
    from milp_recourse.lab.studies.fairness_draws import SUMMARY, run
    from milp_recourse.reports.progress import progress_bar

    seed, limit, jobs = asked.seed, asked.time_limit, asked.jobs
    with progress_bar("fairness", 0, rate=True) as bar:
        rows = run(people, folder, trained, draws, seed, limit, jobs, bar.expect_more, bar.advance)
    print_rows("gaps over draws", rows, SUMMARY)
    typer.echo(f"fairness.html, tables and fairness.svg in {folder}")


SHOWN = (
    "actionable", "distribution", "profile", "plausibility asked", "method", "validity", "plausibility",
    "cost mean", "cost sd", "cost mean both", "hap", "hap large", "missed", "excess of means",
    "plausibility learned", "validity as printed", "plausibility as printed", "seeds", "seconds mean",
    "within",
)  # fmt: skip
FAIRNESS = ("scenario", "method", "group", "cost", "cost low", "cost high", "log density", "validity")


def _print(summary: dict[str, Any]) -> None:
    for name, rows in summary["rows"].items():
        columns = [c for c in SHOWN if c in rows[0]] if "within" in rows[0] else list(rows[0])
        columns = list(FAIRNESS) if name == "figure4" else columns
        shown = rows if name != "figure4" else [r for r in rows if " - " in r["group"]]  # the rest: its file
        print_rows(name, shown, columns)
    checked = summary["spot check"]
    typer.echo(
        f"{summary['problems']} problems, {len(summary['contradictions'])} contradictions, "
        f"{summary['limit']} at the limit"
        + (f"; {checked['verified']} of {checked['drawn']} certificates verified" if checked else "")
    )
