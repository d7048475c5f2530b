"""``milp-recourse bench ...``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from milp_recourse.lab.known import parts
from milp_recourse.lab.run_table import print_rows, read_rows
from milp_recourse.reports.drawing import draw_if_possible
from milp_recourse.reports.progress import progress_bar

app = typer.Typer(no_args_is_help=True, help="Measure against named peers, in one run.")

Results = Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")]
Processes = Annotated[int, typer.Option(min=1, help="Processes.")]
Together = Annotated[int, typer.Option(min=1, help="Models worked on at once.")]
Backend = Annotated[str, typer.Option(help="See the command backends.")]
SecondsEach = Annotated[float, typer.Option(min=0.1, help="Seconds per solve, and per proof.")]
WallSeconds = Annotated[float, typer.Option(min=1, help="Wall seconds per problem and solver.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the published tables; none: credit and cancer only.")
]
SeedOfRows = Annotated[int, typer.Option(help="Of rows' order, models and applicants.")]


@app.callback()
def _group() -> None:
    """Measure against named peers, in one run."""


@app.command()
def speed(
    folder: Results = Path("bench"),
    instances: Annotated[
        Path | None, typer.Option(help="Folder of instances; default: Loan, four actions, plausible.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Only the first N instances.")] = 20,
    time_limit: SecondsEach = 60.0,
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
    from milp_recourse.backends.bab import BabBackend
    from milp_recourse.errors import BadInput
    from milp_recourse.formats import read_instance, read_population
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.instances_path import instance_files, instance_files_in, instances_path
    from milp_recourse.lab.benchmarks import speed as bench
    from milp_recourse.lab.benchmarks.peers import RUNNERS, TOGETHER, available

    chosen = available(solvers, (*TOGETHER, *RUNNERS))
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
    summary, together = bench.summarise(rows), len(paths) + len(company)
    said = {"time_limit": time_limit, "batch": together, "threads": 1, "solvers": summary}
    write_json(said, folder / "speed.json")
    print_rows(
        f"{len(paths)} instances (bab: in a batch of {together}), one thread, {time_limit:g} s limit", summary
    )
    if any(row["status"] == "too large" for row in rows):
        typer.echo("too large: more columns or rows than the solver's licence allows; counted as unsolved")
    draw_if_possible(lambda: bench.plot(rows, folder, time_limit))


@app.command()
def settings(
    folder: Results = Path("bench-settings"),
    jobs: Processes = 2,
    seed: Annotated[int, typer.Option(help="Of the applicants' rankings.")] = 0,
    time_limit: SecondsEach = 60.0,
    backend: Backend = "bab",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N applicants.")] = None,
) -> None:
    """All refused test applicants of Loan in the paper's five settings, with and without plausibility."""
    from milp_recourse.formats import read_population
    from milp_recourse.instances_path import instances_path
    from milp_recourse.lab.benchmarks import bench_settings as bench

    people = read_population(instances_path() / "loan" / "population.json")[:limit]
    size, total = len(people), 2 * len(bench.SETTINGS)
    options = {"seed": seed, "time_limit": time_limit, "backend": backend}
    done = len(read_rows(folder / "settings.csv"))
    with progress_bar("settings", total * size, done * size, rate=True) as bar:
        rows = bench.run(people, folder, options, jobs, bar.advance)
    columns = [name for name in rows[0] if name not in bench.IDENTITY]
    print_rows(f"{size} applicants, {time_limit:g} s limit each, {jobs} processes", rows, columns)
    draw_if_possible(lambda: bench.plot(rows, folder))


@app.command()
def growth(
    folder: Results = Path("bench-growth"),
    jobs: Processes = 2,
    seed: Annotated[int, typer.Option(help="Of the random problems.")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Processor seconds per applicant.")] = 20.0,
    backend: Backend = "bab",
    applicants: Annotated[int, typer.Option(min=1, help="Per point.")] = 12,
    largest: Annotated[int | None, typer.Option(min=1, help="Leave out points above this value.")] = None,
) -> None:
    """Time against actions, width, depth and population size, on seeded random problems and Loan."""
    from milp_recourse.formats import read_population
    from milp_recourse.instances_path import instances_path
    from milp_recourse.lab.benchmarks import growth as bench

    loan = read_population(instances_path() / "loan" / "population.json")
    panels = {
        panel: tuple(v for v in values if largest is None or v <= largest)
        for panel, values in bench.PANELS.items()
    }
    options = {"applicants": applicants, "seed": seed, "time_limit": time_limit, "backend": backend}
    done = len(read_rows(folder / "growth.csv"))
    with progress_bar("growth", sum(map(len, panels.values())), done, rate=True) as bar:
        rows = bench.run(loan, folder, options, panels, jobs, bar.advance)
    columns = [name for name in rows[0] if name not in bench.IDENTITY]
    print_rows(f"{applicants} applicants per point, {time_limit:g} s limit each", rows, columns)
    draw_if_possible(lambda: bench.plot(rows, folder))


@app.command()
def certificates(
    folder: Results = Path("bench-certificates"),
    time_limit: SecondsEach = 60.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N of each folder.")] = None,
) -> None:
    """What certificates cost to make, keep and check, on every shipped instance."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.instances_path import instance_files
    from milp_recourse.lab.benchmarks import certificates as bench

    paths = [path for name in ("smoke", "loan", "credit_trees") for path in instance_files(name, limit)]
    with progress_bar("certificates", len(paths)) as bar:
        rows = bench.run(paths, time_limit, folder, bar.advance)
    summary = bench.summarise(rows)
    write_json(summary, folder / "certificates.json")
    shown = {key: value for key, value in summary.items() if not isinstance(value, dict | list)}
    typer.echo("; ".join(f"{value} {key}" for key, value in shown.items()))
    for key in ("claims", "without", "rejected"):
        typer.echo(f"{key}: " + (", ".join(f"{k} {v}" for k, v in summary[key].items()) or "none"))
    spread = [name for name, value in summary.items() if isinstance(value, dict) and "median" in value]
    print_rows("per certificate", [{"": name} | summary[name] for name in spread])
    print_rows("processor seconds", [{"": way} | summary[way] for way in ("in batches", "one at a time")])
    draw_if_possible(lambda: bench.plot(rows, folder))


@app.command()
def trees(
    folder: Results = Path("bench-trees"),
    data: Data = None,
    sets: Annotated[
        str, typer.Option(help="Data sets, comma-separated; with :unit behind a name, columns in [0, 1].")
    ] = "credit,cancer",
    models: Annotated[str, typer.Option(help="Kind-trees x depth, comma-separated.")] = "forest-100x6",
    costs: Annotated[str, typer.Option(help="l1, l2-squared; comma-separated.")] = "l1,l2-squared",
    per_model: Annotated[int, typer.Option(min=1, help="Problems per model, sets and costs in turn.")] = 4,
    solvers: Annotated[
        str, typer.Option(help="bab, highs, cpsat, leaf-milp, ocean-cp, ocean-mip; comma-separated.")
    ] = "bab,highs,cpsat,leaf-milp",
    time_limit: WallSeconds = 60.0,
    seed: SeedOfRows = 0,
    jobs: Together = 1,
    ocean_python: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="A Python 3.12 with oceanpy, for ocean-*.")
    ] = None,
) -> None:
    """Ensembles of deployed size, every column a lever: first actions, gaps, proofs and certificates."""
    from milp_recourse.lab.benchmarks import bench_trees as bench

    lists = parts(sets), parts(models), parts(costs), per_model, parts(solvers)
    plan = bench.Plan(*lists, time_limit, seed, data, ocean_python)
    with progress_bar("trees", len(plan.problems()) * len(plan.solvers)) as bar:
        rows = bench.run(plan, folder, jobs, bar.advance)
    _report(rows, folder, time_limit, "trees")


@app.command()
def real(
    folder: Results = Path("bench-real"),
    data: Data = None,
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
    time_limit: WallSeconds = 60.0,
    seed: SeedOfRows = 0,
    jobs: Together = 1,
) -> None:
    """Networks on published tables, every column a lever: first actions, gaps, proofs and certificates."""
    from milp_recourse.lab.benchmarks import bench_real as bench

    lists = parts(sets), parts(networks), parts(costs), applicants, parts(solvers)
    plan = bench.Plan(*lists, time_limit, seed, data)
    with progress_bar("real", len(plan)) as bar:
        rows = bench.run(plan, folder, jobs, bar.advance)
    _report(rows, folder, time_limit, "real")


def _report(rows: Sequence[Mapping[str, Any]], folder: Path, time_limit: float, name: str) -> None:
    """Write the report of :mod:`.tree_report`; print its table, what was refused and what was false."""
    from milp_recourse.lab.benchmarks.tree_report import write

    said = write(rows, folder, time_limit, name)
    title = f"one thread, processor seconds; not proven within {time_limit:g} s of wall time: those spent"
    print_rows(title, said["summary"], list(dict.fromkeys(name for line in said["summary"] for name in line)))
    if said["against"]:
        print_rows("bab against each peer: ratios of processor seconds", said["against"])
    for line in (*said["refused"], *said["false_claims"]):
        typer.echo(line)
