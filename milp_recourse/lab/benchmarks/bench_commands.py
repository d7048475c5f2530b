"""``milp-recourse lab bench ...``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from milp_recourse.lab.known import parts
from milp_recourse.lab.run_table import print_rows, read_rows
from milp_recourse.reports.drawing import draw_if_possible
from milp_recourse.reports.progress import progress_bar

app = typer.Typer(no_args_is_help=True, help="Measure times, beside other solvers in the same run.")

Results = Annotated[Path, typer.Option("--out", help="Where results go; rerunning resumes.")]
Processes = Annotated[int, typer.Option(min=1, help="Processes.")]
Together = Annotated[int, typer.Option(min=1, help="Models worked on at once.")]
Backend = Annotated[str, typer.Option(help="See the command backends.")]
SecondsEach = Annotated[float, typer.Option(min=0.1, help="Seconds per solve, and per proof.")]
WallSeconds = Annotated[float, typer.Option(min=1, help="Wall seconds per problem and solver.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the published tables; none: those that need no file.")
]
SeedOfRows = Annotated[int, typer.Option(help="Seed of the rows' order, the models and the applicants.")]


@app.callback()
def _group() -> None:
    """Measure times, beside other solvers in the same run."""


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
            help="Size of bab's batch: the instances, and others of the shipped Loan population. "
            "Default: the size of bab's own batches; with --instances, the instances alone.",
        ),
    ] = None,
) -> None:
    """Compare bab, highs, Gurobi and SCIP on the same instances, in one run, one thread each.

    ``bab`` solves all instances in one batch, as part of a population; ``bab-single`` one at a time. Gurobi
    and SCIP get the whole problem as one MIQCP.
    """
    from milp_recourse.errors import BadInput
    from milp_recourse.formats import read_instance, read_population
    from milp_recourse.formats.instances_path import instance_files, instance_files_in, instances_path
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.lab.benchmarks import speed as bench
    from milp_recourse.lab.benchmarks.peers import available
    from milp_recourse.solvers.bab import BabBackend

    chosen = available(solvers)
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
    content = {"time_limit": time_limit, "batch": together, "threads": 1, "solvers": summary}
    write_json(content, folder / "speed.json")
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
    seed: Annotated[int, typer.Option(help="Seed of the applicants' rankings.")] = 0,
    time_limit: SecondsEach = 60.0,
    backend: Backend = "bab",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N applicants.")] = None,
) -> None:
    """Solve all refused test applicants of Loan in the paper's five settings, plausibility asked or not."""
    from milp_recourse.formats import read_population
    from milp_recourse.formats.instances_path import instances_path
    from milp_recourse.lab.benchmarks import bench_settings as bench

    people = read_population(instances_path() / "loan" / "population.json")[:limit]
    options = {"seed": seed, "time_limit": time_limit, "backend": backend}
    title = f"{len(people)} applicants, {time_limit:g} s limit each, {jobs} processes"
    run = partial(bench.run, people, folder, options, jobs)
    _measure(bench, folder / "settings.csv", 2 * len(bench.SETTINGS), len(people), title, run)


@app.command()
def growth(
    folder: Results = Path("bench-growth"),
    jobs: Processes = 2,
    seed: Annotated[int, typer.Option(help="Seed of the random problems.")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Processor seconds per applicant.")] = 20.0,
    backend: Backend = "bab",
    applicants: Annotated[
        int, typer.Option(min=1, help="Applicants per point (in the panel population: the value itself).")
    ] = 12,
    largest: Annotated[int | None, typer.Option(min=1, help="Leave out points above this value.")] = None,
) -> None:
    """Measure time against actions, width, depth and population size, on random problems and Loan."""
    from milp_recourse.formats import read_population
    from milp_recourse.formats.instances_path import instances_path
    from milp_recourse.lab.benchmarks import growth as bench

    loan = read_population(instances_path() / "loan" / "population.json")
    panels = {
        panel: tuple(v for v in values if largest is None or v <= largest)
        for panel, values in bench.PANELS.items()
    }
    options = {"applicants": applicants, "seed": seed, "time_limit": time_limit, "backend": backend}
    title = f"{applicants} applicants per point, {time_limit:g} s limit each"
    run = partial(bench.run, loan, folder, options, panels, jobs)
    _measure(bench, folder / "growth.csv", sum(map(len, panels.values())), 1, title, run)


def _measure(
    bench: Any,
    table: Path,
    rows: int,
    steps: int,
    title: str,
    run: Callable[[Callable[[str], None]], list[dict[str, Any]]],
) -> None:
    """Fill a benchmark's table under a progress bar, print the table, and draw it.

    Parameters
    ----------
    bench
        The module with ``IDENTITY``, the columns that are not printed, and ``plot``.
    rows, steps
        The number of rows that the table will have, and of progress steps for each of them.
    run
        Solves what the table does not hold yet and returns all rows; it is given what advances the bar.
    """
    done = len(read_rows(table))
    with progress_bar(table.stem, rows * steps, done * steps, rate=True) as bar:
        found = run(bar.advance)
    print_rows(title, found, [name for name in found[0] if name not in bench.IDENTITY])
    draw_if_possible(lambda: bench.plot(found, table.parent))


@app.command()
def certificates(
    folder: Results = Path("bench-certificates"),
    time_limit: SecondsEach = 60.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N of each folder.")] = None,
) -> None:
    """Measure time and size of certificates, on every shipped instance."""
    from milp_recourse.formats.instances_path import instance_files
    from milp_recourse.formats.strict_json import write_json
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
        str, typer.Option(help="Data sets or files, comma-separated; NAME:unit scales to [0, 1].")
    ] = "credit,cancer",
    models: Annotated[
        str, typer.Option(help="Kind-trees x depth, or kind-trees, comma-separated.")
    ] = "forest-100x6",
    costs: Annotated[str, typer.Option(help="l1, l2-squared; comma-separated.")] = "l1,l2-squared",
    per_model: Annotated[
        int, typer.Option(min=1, help="Problems per model; they take the sets and costs in turn.")
    ] = 4,
    solvers: Annotated[
        str, typer.Option(help="bab, highs, cpsat, leaf-milp, treecf, ocean-cp, ocean-mip; comma-separated.")
    ] = "bab,highs,cpsat,leaf-milp",
    time_limit: WallSeconds = 60.0,
    seed: SeedOfRows = 0,
    jobs: Together = 1,
    ocean_python: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="A Python 3.12 with oceanpy, for ocean-*.")
    ] = None,
) -> None:
    """Compare solvers on tree ensembles of deployed size, every column a lever."""
    from milp_recourse.lab.benchmarks import bench_trees as bench

    lists = parts(sets), parts(models), parts(costs), per_model, parts(solvers)
    _compare("trees", bench, bench.Plan(*lists, time_limit, seed, data, ocean_python), folder, jobs)


@app.command()
def real(
    folder: Results = Path("bench-real"),
    data: Data = None,
    sets: Annotated[
        str, typer.Option(help="Data sets or files, comma-separated; gmsc:graph, loan:graph have causes.")
    ] = "credit,cancer",
    networks: Annotated[
        str, typer.Option(help="Units of the hidden layers, comma-separated.")
    ] = "16x16,32x32",
    costs: Annotated[str, typer.Option(help="l1, l2-squared, linf, l0; comma-separated.")] = "l1,l2-squared",
    applicants: Annotated[int, typer.Option(min=1, help="Applicants per network.")] = 2,
    solvers: Annotated[
        str, typer.Option(help="bab, bab:2 (two threads), highs, gurobi, highs-milp, scip; comma-separated.")
    ] = "bab,gurobi,highs-milp,scip",
    time_limit: WallSeconds = 60.0,
    seed: SeedOfRows = 0,
    jobs: Together = 1,
    people: Annotated[str, typer.Option(help="near or far from acceptance; comma-separated.")] = "near",
    certificates: Annotated[
        bool, typer.Option("--certificates/--no-certificates", help="Certify and check bab's proofs.")
    ] = True,
) -> None:
    """Compare solvers on networks fitted to published tables, every column a lever."""
    from milp_recourse.lab.benchmarks import bench_real as bench

    lists = parts(sets), parts(networks), parts(costs), applicants, parts(solvers)
    _compare(
        "real", bench, bench.Plan(*lists, time_limit, seed, data, parts(people), certificates), folder, jobs
    )


@app.command()
def peers(
    folder: Results = Path("bench-peers"),
    data: Data = None,
    python: Annotated[
        list[str] | None,
        typer.Option(metavar="TOOL=PYTHON", help="treecf, ocean, dice, alibi or reachml, and its Python."),
    ] = None,
    people: Annotated[int, typer.Option(min=1, help="People who have recourse.")] = 10,
    without: Annotated[int, typer.Option(min=0, help="People who have none.")] = 3,
    time_limit: WallSeconds = 120.0,
    seed: SeedOfRows = 0,
) -> None:
    """Compare what the tools for recourse say of the same refused people of German credit.

    A tool whose Python is not named is left out.
    """
    from milp_recourse.lab.benchmarks import bench_peers as bench

    plan = bench.Plan(bench.pythons(python or []), people, without, time_limit, seed, data)
    with progress_bar("peers", len(plan)) as bar:
        rows = bench.run(plan, folder, bar.advance)
    report = bench.write(rows, folder, plan)
    print_rows(f"{people} people with recourse, {without} without, {time_limit:g} s limit", report["tools"])
    for claim in report["wrong"]:
        typer.echo(f"wrong: {claim}")
    for tool in report["left_out"]:
        typer.echo(f"{tool}: no --python {tool}=PYTHON; left out")
    draw_if_possible(lambda: bench.plot(rows, folder))


def _compare(name: str, bench: Any, plan: Any, folder: Path, jobs: int) -> None:
    """Run a plan of the module ``bench``, write its report, print the tables, refusals and false claims."""
    from milp_recourse.lab.benchmarks.tree_report import write

    with progress_bar(name, len(plan)) as bar:
        rows = bench.run(plan, folder, jobs, bar.advance)
    report = write(rows, folder, plan.time_limit, name)
    summary, limit = report["summary"], f"{plan.time_limit:g} s of wall time"
    threads = "one thread, bab:2 two" if "bab:2" in plan.solvers else "one thread"
    title = f"{threads}, processor seconds; not proven within {limit}: those spent"
    print_rows(title, summary, list(dict.fromkeys(column for line in summary for column in line)))
    if report["against"]:
        print_rows("bab against each peer: ratios of processor seconds", report["against"])
    for line in (*report["refused"], *report["false_claims"]):
        typer.echo(line)
