"""``milp-recourse certify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, FAILED, LIMIT, Interrupted, limit_or_done
from milp_recourse.cli.shared import (
    Backend,
    Index,
    Own,
    Parallel,
    Scheduler,
    Threads,
    TimeLimit,
    check_index,
    check_scheduler,
    console_of_stdout,
    warn_of_empty_masks,
    with_own_preferences,
)
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.workers import Workers

LOAN_INSTANCES = 12


def certify(
    file: Annotated[
        Path | None, typer.Argument(help="an instance or a population; none: the shipped instances")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="where results go")] = Path("results"),
    backend: Backend = None,
    time_limit: TimeLimit = None,
    jobs: Annotated[int, typer.Option(help="processes")] = 1,
    parallel: Parallel = "processes",
    scheduler: Scheduler = None,
    limit: Annotated[
        int | None, typer.Option(help="most applicants, or shipped Loan instances (default 12), to solve")
    ] = None,
    certificates: Annotated[bool, typer.Option(help="write a proof that verify checks for each")] = True,
    report: Annotated[bool, typer.Option("--report", help="write DIR/report.html, to look at")] = False,
    index: Index = None,
    preferences: Own = None,
    threads: Threads = 1,
) -> None:
    """Solve an instance, a population or the shipped instances, and write results to DIR.

    If a population's run was stopped, the same command resumes it. The command verify DIR FILE checks the
    certificates. With --preferences the problem that was solved is written to DIR too, and verify DIR finds
    it there.
    """
    from milp_recourse.formats import read_any
    from milp_recourse.questions.solve import check_options

    if limit is not None and limit < 1:
        raise BadInput("--limit", limit, "a whole number, 1 or more")
    check_options(time_limit, jobs, threads=threads)
    check_scheduler(parallel, scheduler)
    if report and file is None:
        raise BadInput("--report", "no FILE", "an instance or a population: a page is about one problem")
    workers = Workers(jobs, scheduler)
    run = _Run(
        out, backend, time_limit, certificates, workers, limit, index, preferences is not None, threads
    )
    if file is None:
        code = _certify_files(_shipped({"--index": index, "--preferences": preferences}, limit), run)
    else:
        problem = read_any(file)
        check_index(index, problem, file)
        if isinstance(problem, Population):
            problem = with_own_preferences(problem, preferences)
            code = _certify_population(problem, run)
        else:
            problem = with_own_preferences(problem, preferences)
            code = _certify_files([file], run, problem if run.write else None)
        if report:
            from milp_recourse.reports.pages.folder import write_report

            typer.echo(f"written: {write_report(out, problem, file.name.split('.')[0])}")
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Run:
    """The options of ``certify``; ``write`` is whether to write the problem that was solved, too."""

    out: Path
    backend: str | None
    time_limit: float | None
    certificates: bool
    workers: Workers
    limit: int | None
    index: int | None
    write: bool
    threads: int


def _certify_files(files: Sequence[Path], run: _Run, instead: Instance | None = None) -> int:
    """Solve instances from files and return the exit code.

    Parameters
    ----------
    instead
        The instance to solve in place of that in the only file, because it has other preferences.
    """
    from milp_recourse.formats import read_instance, write_instance
    from milp_recourse.reports.instances import refuse_others, solve_files, write_rows
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.result_rows import Row, print_table
    from milp_recourse.reports.summary import in_words

    if run.backend is not None:
        from milp_recourse.solvers import backend as find_backend

        find_backend(run.backend)
    out = run.out
    rows: list[Row] = []
    problems = files if instead is None else [instead]
    refuse_others(out, (one if isinstance(one, Instance) else read_instance(one) for one in problems))
    try:
        with progress_bar("instances", len(files)) as bar:
            options = run.backend, run.time_limit, run.workers.jobs, run.certificates, run.threads
            for row in solve_files(problems, *options):
                rows.append(row)
                bar.advance()
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    refused = [remark for _, _, result, remark in rows if result is None]
    if refused and len(files) == 1:
        raise Unsupported(refused[0])
    if len(files) == 1:
        warn_of_empty_masks(problem.preferences for _, problem, _, _ in rows)
    try:
        summary = write_rows(rows, out)
    except BadInput:
        if not interrupted:
            raise
        raise Interrupted(f"interrupted; an earlier run's answers stay in {out}") from None
    if instead is not None:
        write_instance(instead, out / "instance.json")
    print_table(rows, console_of_stdout())
    verdicts = Counter(remark for _, _, result, remark in rows if result is not None and remark)
    contradicted = verdicts["contradicts"]
    known = f"; {verdicts['agrees']} agree with their known answer, {contradicted} contradict it"
    known += f", {verdicts['claims nothing']} claim nothing" if verdicts["claims nothing"] else ""
    if rows:
        typer.echo(in_words(summary) + (known if verdicts else ""))
    typer.echo(f"results in {out}")
    if interrupted:
        raise Interrupted(f"interrupted; {len(rows)} of {len(files)} instances kept in {out}")
    return FAILED if contradicted else limit_or_done(result for _, _, result, _ in rows)


def _certify_population(population: Population, run: _Run) -> int:
    from milp_recourse.formats import write_population
    from milp_recourse.questions.solve import backend_for, check_options, solve, solve_as_finished
    from milp_recourse.reports.population_folder import PopulationFolder
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.summary import in_words
    from milp_recourse.reports.view import BAD_INPUT as UNREAD

    out, index = run.out, run.index
    everybody = range(min(run.limit or len(population), len(population)))
    wanted: Sequence[int] = everybody if index is None else [index]
    chosen = backend_for(population, run.backend)
    warn_of_empty_masks(population.preferences[k] for k in wanted)
    claim = {"backend": chosen.name, "time_limit": run.time_limit, "certificates": run.certificates}
    folder = PopulationFolder(out, population, claim | ({} if index is None else {"index": index}))
    if run.write:
        write_population(population, out / "population.json")
    if folder.damaged:
        lines = ", ".join(map(str, folder.damaged[:10])) + (", ..." if len(folder.damaged) > 10 else "")
        typer.echo(f"results.csv: not rows of this run, and dropped: lines {lines}", err=True)
    if folder.lost:
        lost = ", ".join(map(str, folder.lost[:10])) + (", ..." if len(folder.lost) > 10 else "")
        typer.echo(f"certificates are missing, and made again: of applicants {lost}", err=True)
    if folder.done:
        typer.echo(f"going on after {len(folder.done)} applicants")
    total = len(wanted)
    options = check_options(run.time_limit, run.workers.jobs, run.certificates, threads=run.threads)
    options = replace(options, others=run.backend is None, explain=True)
    try:
        left = folder.left(wanted)
        with progress_bar("applicants", total, total - len(left)) as bar:
            solved = solve_as_finished(population, chosen.name, options, left, run.workers)
            if index is not None:  # without the other applicants of a batch
                own = chosen.name, run.time_limit, run.certificates, index
                some = (solve(population[k], *own, threads=run.threads) for k in left)
                solved = zip(left, some, strict=True)
            for k, result in solved:
                folder.add(k, result)
                bar.advance()
    except KeyboardInterrupt:
        folder.summarise()
        kept = f"{len(folder.done)} of {total} applicants kept in {out}"
        raise Interrupted(f"interrupted; {kept}; the same command goes on") from None
    summary = folder.summarise()
    typer.echo(in_words(summary))
    typer.echo(f"results in {out}")
    return LIMIT if {"limit", UNREAD} & summary["counts"].keys() else DONE


def _shipped(given: Mapping[str, object], limit: int | None) -> list[Path]:
    """The shipped instances, smoke and Loan.

    Raises
    ------
    BadInput
        An option of ``given`` is set, which needs a file.
    """
    from milp_recourse.formats.instances_path import instance_files

    for option, value in given.items():
        if value is not None:
            raise BadInput(option, value, "nothing, without a file")
    return [*instance_files("smoke"), *instance_files("loan", limit or LOAN_INSTANCES)]
