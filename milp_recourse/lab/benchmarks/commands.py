"""``milp-recourse bench ...``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Measure against named peers, in one run.")


@app.callback()
def _group() -> None:
    """Measure against named peers, in one run."""


@app.command()
def speed(
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "bench"
    ),
    instances: Annotated[
        Path | None, typer.Option(help="Folder of instances; default: Loan, four actions, plausible.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Only the first N instances.")] = 20,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds per solve.")] = 60.0,
    solvers: Annotated[
        str, typer.Option("--solvers", "--backends", help="Comma-separated.")
    ] = "bab,bab-single,highs,gurobi,gurobi-our-bounds,scip",
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Applicants in bab's batch: the instances, filled up from the shipped Loan population. "
            "Default: what bab solves together anyway; with --instances, the instances alone.",
        ),
    ] = None,
) -> None:
    """``bab``, ``highs``, Gurobi's and SCIP's MIQCP on the same instances, in one run, one thread each.

    ``bab`` solves all instances in one batch, as part of a population; ``bab-single`` one at a time.
    """
    from rich.console import Console
    from rich.table import Table

    from milp_recourse.backends.bab import BabBackend
    from milp_recourse.errors import BadInput
    from milp_recourse.formats import read_instance, read_population
    from milp_recourse.instances_path import instance_files, instance_files_in, instances_path
    from milp_recourse.lab.benchmarks import speed as bench
    from milp_recourse.lab.benchmarks.peers import RUNNERS, TOGETHER, missing
    from milp_recourse.reports.progress import progress_bar

    console, errors = Console(), Console(stderr=True)
    if not console.is_terminal:
        console = Console(width=160)
    chosen = []
    for name in (s.strip() for s in solvers.split(",")):
        if name not in RUNNERS and name not in TOGETHER:
            raise BadInput("--solvers", name, "any of " + ", ".join((*TOGETHER, *RUNNERS)))
        hint = missing(name)
        if hint is None:
            chosen.append(name)
        else:
            errors.print(f"{name}: not installed ({hint}); left out")
    if instances is not None:
        paths = bench.with_networks(instance_files_in(instances))
    else:
        paths = bench.hard_loan(instance_files("loan"))
    paths = paths[:limit]
    if not paths:
        raise BadInput("--instances", str(instances), "a folder that holds instance files")
    size = batch or (BabBackend.batch if instances is None else len(paths))
    population = read_population(instances_path() / "loan" / "population.json")
    company = bench.filling([read_instance(path) for path in paths], population, size)
    with progress_bar("bench", len(paths) * len(chosen)) as bar:
        rows = bench.run(paths, chosen, time_limit, folder, bar.advance, company)
    summary = bench.summarise(rows)
    together = len(paths) + len(company)
    bench.write_summary(summary, folder, {"time_limit": time_limit, "batch": together})
    table = Table(
        title=f"{len(paths)} instances (bab: in a batch of {together}), one thread, {time_limit:g} s limit"
    )
    for column in summary[0]:
        table.add_column(
            column.replace("_", " "), justify="left" if column == "solver" else "right", overflow="fold"
        )
    for row in summary:
        table.add_row(*(_cell(v) for v in row.values()))
    console.print(table)
    if any(row["status"] == "too large" for row in rows):
        console.print("too large: more columns or rows than the solver's licence allows; counted as unsolved")
    try:
        console.print(f"{bench.plot(rows, folder, time_limit)}")
    except ImportError:
        errors.print("no plot: pip install matplotlib")


@app.command()
def settings(
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "bench-settings"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    seed: Annotated[int, typer.Option(help="Of the applicants' rankings.")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds per applicant.")] = 60.0,
    backend: Annotated[str, typer.Option(help="See the command backends.")] = "bab",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N applicants.")] = None,
) -> None:
    """All refused test applicants of Loan in the paper's five settings, with and without plausibility."""
    from milp_recourse.formats import read_population
    from milp_recourse.instances_path import instances_path
    from milp_recourse.lab.benchmarks import settings as bench
    from milp_recourse.reports.progress import progress_bar

    people = read_population(instances_path() / "loan" / "population.json")
    size = min(limit or len(people), len(people))
    if size < len(people):
        people = people[:size]
    total = 2 * len(bench.SETTINGS)
    options = {"seed": seed, "time_limit": time_limit, "backend": backend}
    done = len(bench.read_rows(folder / "settings.csv"))
    with progress_bar("settings", total * size, done * size, rate=True) as bar:
        rows = bench.run(people, folder, options, jobs, bar.advance)
    shown = [{k: v for k, v in row.items() if k not in bench.IDENTITY} for row in rows]
    print_rows(f"{size} applicants, {time_limit:g} s limit each, {jobs} processes", shown)
    _plotted(lambda: bench.plot(rows, folder))


@app.command()
def growth(
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "bench-growth"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    seed: Annotated[int, typer.Option(help="Of the random problems.")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Processor seconds per applicant.")] = 20.0,
    backend: Annotated[str, typer.Option(help="See the command backends.")] = "bab",
    applicants: Annotated[int, typer.Option(min=1, help="Per point.")] = 12,
    largest: Annotated[int | None, typer.Option(min=1, help="Leave out points above this value.")] = None,
) -> None:
    """Time against actions, width, depth and population size, on seeded random problems and Loan."""
    from milp_recourse.formats import read_population
    from milp_recourse.instances_path import instances_path
    from milp_recourse.lab.benchmarks import growth as bench
    from milp_recourse.reports.progress import progress_bar

    loan = read_population(instances_path() / "loan" / "population.json")
    panels = {
        panel: tuple(v for v in values if largest is None or v <= largest)
        for panel, values in bench.PANELS.items()
    }
    options = {"applicants": applicants, "seed": seed, "time_limit": time_limit, "backend": backend}
    done = len(bench.read_rows(folder / "growth.csv"))
    with progress_bar("growth", sum(map(len, panels.values())), done, rate=True) as bar:
        rows = bench.run(loan, folder, options, panels, jobs, bar.advance)
    shown = [{k: v for k, v in row.items() if k not in bench.IDENTITY} for row in rows]
    print_rows(f"{applicants} applicants per point, {time_limit:g} s limit each", shown)
    _plotted(lambda: bench.plot(rows, folder))


@app.command()
def certificates(
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "bench-certificates"
    ),
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds per solve and per proof.")] = 60.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N of each folder.")] = None,
    solvers: Annotated[str, typer.Option(help="Comma-separated: whose actions to prove.")] = (
        "highs,gurobi,scip"
    ),
    actions: Annotated[int, typer.Option(min=0, help="Instances whose actions others propose.")] = 20,
) -> None:
    """What certificates cost to make, keep and check; and other solvers' actions, checked and proven.

    The first part takes every shipped instance, the second Loan with four actions and plausibility.
    """
    from milp_recourse.errors import BadInput
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.instances_path import instance_files
    from milp_recourse.lab.benchmarks import certificates as bench
    from milp_recourse.lab.benchmarks import foreign
    from milp_recourse.lab.benchmarks.peers import RUNNERS, missing
    from milp_recourse.lab.benchmarks.speed import hard_loan
    from milp_recourse.reports.progress import progress_bar

    chosen = []
    for name in (s.strip() for s in solvers.split(",")):
        if name not in RUNNERS:
            raise BadInput("--solvers", name, "any of " + ", ".join(RUNNERS))
        hint = missing(name)
        if hint is None:
            chosen.append(name)
        else:
            typer.echo(f"{name}: not installed ({hint}); left out", err=True)
    paths = [path for name in ("smoke", "loan", "credit_trees") for path in instance_files(name, limit)]
    with progress_bar("certificates", len(paths)) as bar:
        rows = bench.run(paths, time_limit, folder, bar.advance)
    summary = bench.summarise(rows)
    others = hard_loan(instance_files("loan"))[:actions] if actions and chosen else []
    with progress_bar("others' actions", len(others) * len(chosen)) as bar:
        answers = foreign.run(others, chosen, time_limit, folder, bar.advance) if others else []
    summary["others"] = foreign.summarise(answers)
    write_json(summary, folder / "certificates.json")
    shown = {key: value for key, value in summary.items() if not isinstance(value, dict | list)}
    typer.echo("; ".join(f"{value} {key}" for key, value in shown.items()))
    for key in ("claims", "without", "rejected"):
        typer.echo(f"{key}: " + (", ".join(f"{k} {v}" for k, v in summary[key].items()) or "none"))
    spread = [name for name, value in summary.items() if isinstance(value, dict) and "median" in value]
    print_rows("per certificate", [{"": name} | summary[name] for name in spread])
    print_rows("processor seconds", [{"": way} | summary[way] for way in ("in batches", "one at a time")])
    if answers:
        print_rows(f"others' actions, {len(others)} instances", summary["others"])
    _plotted(lambda: bench.plot(rows, folder))


def print_rows(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """A table on stdout; wide enough where that is no terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    table = Table(title=title)
    for k, column in enumerate(rows[0]):
        table.add_column(column.replace("_", " "), justify="left" if k == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(v) for v in row.values()))
    console.print(table)


def print_report(said: Mapping[str, Any], time_limit: float) -> None:
    """The table of :mod:`.tree_report`, then what was refused and what was false."""
    title = f"one thread, processor seconds; not proven within {time_limit:g} s of wall time: those spent"
    columns = dict.fromkeys(name for line in said["summary"] for name in line)
    print_rows(title, [{name: line.get(name) for name in columns} for line in said["summary"]])
    if said["against"]:
        print_rows("bab against each peer: ratios of processor seconds", said["against"])
    for line in (*said["refused"], *said["false_claims"]):
        typer.echo(line)


def _plotted(plot: Callable[[], Path]) -> None:
    """Plot and say where, or what to install."""
    try:
        typer.echo(f"{plot()}")
    except ImportError:
        typer.echo("no plot: pip install matplotlib", err=True)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return "" if value is None else str(value)


@app.command()
def trees(
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "bench-trees"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder with the published tables; none: credit and cancer only.")
    ] = None,
    sets: Annotated[
        str, typer.Option(help="Data sets, comma-separated; with :unit behind a name, columns in [0, 1].")
    ] = "credit,cancer",
    models: Annotated[str, typer.Option(help="Kind-trees x depth, comma-separated.")] = "forest-100x6",
    costs: Annotated[str, typer.Option(help="l1, l2-squared; comma-separated.")] = "l1,l2-squared",
    per_model: Annotated[int, typer.Option(min=1, help="Problems per model, sets and costs in turn.")] = 4,
    solvers: Annotated[
        str, typer.Option(help="bab, highs, cpsat, leaf-milp, ocean-cp, ocean-mip; comma-separated.")
    ] = "bab,highs,cpsat,leaf-milp",
    time_limit: Annotated[float, typer.Option(min=1, help="Wall seconds per problem and solver.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of rows' order, models and applicants.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Models worked on at once.")] = 1,
    ocean_python: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="A Python 3.12 with oceanpy, for ocean-*.")
    ] = None,
) -> None:
    """Ensembles of deployed size, every column a lever: first actions, gaps, proofs and certificates."""
    from milp_recourse.lab.benchmarks import tree_report as report
    from milp_recourse.lab.benchmarks import trees as bench
    from milp_recourse.reports.progress import progress_bar

    lists = [[one.strip() for one in text.split(",")] for text in (sets, models, costs, solvers)]
    plan = bench.Plan(lists[0], lists[1], lists[2], per_model, lists[3], time_limit, seed, data, ocean_python)
    with progress_bar("trees", len(plan.problems()) * len(plan.solvers)) as bar:
        rows = bench.run(plan, folder, jobs, bar.advance)
    print_report(report.write(rows, folder, time_limit), time_limit)


@app.command()
def real(
    folder: Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")] = Path(
        "bench-real"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder with the published tables; none: credit and cancer only.")
    ] = None,
    sets: Annotated[
        str, typer.Option(help="Data sets, comma-separated; gmsc:graph is gmsc with causes.")
    ] = "credit,cancer",
    networks: Annotated[
        str, typer.Option(help="Units of the hidden layers, comma-separated.")
    ] = "16x16,32x32",
    costs: Annotated[str, typer.Option(help="l1, l2-squared, linf, l0; comma-separated.")] = "l1,l2-squared",
    applicants: Annotated[int, typer.Option(min=1, help="Per network.")] = 2,
    solvers: Annotated[
        str, typer.Option(help="bab, highs, gurobi, highs-milp, scip; comma-separated.")
    ] = "bab,gurobi,highs-milp,scip",
    time_limit: Annotated[float, typer.Option(min=1, help="Wall seconds per problem and solver.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of rows' order, training and applicants.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Networks worked on at once.")] = 1,
) -> None:
    """Networks on published tables, every column a lever: first actions, gaps, proofs and certificates."""
    from milp_recourse.lab.benchmarks import real as bench
    from milp_recourse.lab.benchmarks import tree_report as report
    from milp_recourse.reports.progress import progress_bar

    lists = [[one.strip() for one in text.split(",")] for text in (sets, networks, costs, solvers)]
    plan = bench.Plan(lists[0], lists[1], lists[2], applicants, lists[3], time_limit, seed, data)
    with progress_bar("real", len(plan)) as bar:
        rows = bench.run(plan, folder, jobs, bar.advance)
    print_report(report.write(rows, folder, time_limit, "real"), time_limit)
