"""The command line. Each command calls one public function and prints what it returns.

Exit codes: 0 done (also "infeasible, proven", ``found``, ``not-found``); 1 the machine failed (a full
disk); 2 bad input, one line on stderr; 3 a limit was reached, or an applicant could not be read; 4 a
result contradicts a known answer, or verification failed; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from milp_recourse.errors import BackendUnavailable, BadInput, MachineFailed, RecourseError, Unsupported
from milp_recourse.instance import Instance, Population, Preferences
from milp_recourse.result import Result, Status
from milp_recourse.workers import Workers

DONE, MACHINE_FAILED, BAD_INPUT, LIMIT, FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130
LOAN_INSTANCES = 12

app = typer.Typer(
    help="Exact, proven algorithmic recourse: the least an applicant must change to be accepted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)

Backend = Annotated[str | None, typer.Option(help="see the command backends; networks default to bab")]
TimeLimit = Annotated[float | None, typer.Option(metavar="S", help="seconds per applicant")]
Index = Annotated[int | None, typer.Option(metavar="N", help="of a population: applicant N, from 0")]
Own = Annotated[Path | None, typer.Option(metavar="FILE", help="preferences, typed in a few lines")]
Problem = Annotated[Path, typer.Argument(help="an instance, .json or .json.gz; a population with --index")]


Chosen = TypeVar("Chosen", Instance, Population)


class ExportFormat(StrEnum):
    """Formats a problem can be exported to."""

    mps = "mps"
    lp = "lp"


class Parallel(StrEnum):
    """Who shares the work of a population."""

    processes = "processes"
    dask = "dask"


@app.command()
def certify(
    file: Annotated[
        Path | None, typer.Argument(help="an instance or a population; none: the shipped instances")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="where results go")] = Path("results"),
    backend: Backend = None,
    time_limit: TimeLimit = None,
    jobs: Annotated[int, typer.Option(help="processes")] = 1,
    parallel: Annotated[
        Parallel, typer.Option(help="processes here, or a Dask cluster")
    ] = Parallel.processes,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="of the Dask scheduler")] = None,
    limit: Annotated[
        int | None, typer.Option(help="at most so many applicants, or shipped Loan instances (default 12)")
    ] = None,
    certificates: Annotated[bool, typer.Option(help="write a proof that verify checks for each")] = True,
    report: Annotated[bool, typer.Option("--report", help="write DIR/report.html, to look at")] = False,
    index: Index = None,
    preferences: Own = None,
) -> None:
    """Solve an instance, a population or the shipped instances; results in DIR.

    A population's run that was stopped goes on where it was when the same command runs again. With
    --preferences the problem that was solved is written to DIR too: verify DIR DIR/population.json.
    """
    from milp_recourse.formats import read_any
    from milp_recourse.solve import check_options

    if limit is not None and limit < 1:
        raise BadInput("--limit", limit, "a whole number, 1 or more")
    check_options(time_limit, jobs)
    if (parallel is Parallel.dask) != (scheduler is not None):
        raise BadInput("--scheduler", scheduler or "nothing", "an address with --parallel dask, else nothing")
    if report and file is None:
        raise BadInput("--report", "no FILE", "an instance or a population: a page is about one problem")
    if file is None:
        files = _shipped({"--index": index, "--preferences": preferences}, limit)
        code = _certify_files(files, out, backend, time_limit, jobs, certificates)
    else:
        problem = read_any(file)
        if isinstance(problem, Population):
            _checked(index, problem, file)
            problem = _with_own(problem, preferences)
            run = _Run(out, backend, time_limit, certificates, limit, index, preferences is not None)
            code = _certify_population(problem, run, Workers(jobs, scheduler))
        else:
            if index is not None:
                raise BadInput("--index", index, f"nothing: {file} is an instance")
            problem = _with_own(problem, preferences)
            own = None if preferences is None else problem
            code = _certify_files([file], out, backend, time_limit, jobs, certificates, own)
        if report:
            from milp_recourse.reports.pages.folder import write_report

            typer.echo(f"written: {write_report(out, problem, file.name.split('.')[0])}")
    raise typer.Exit(code)


@app.command()
def solve(
    instance: Problem,
    backend: Backend = None,
    json: Annotated[Path | None, typer.Option(metavar="RESULT.json", help="write the result")] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="CERT.json", help="write the proof, which the command verify checks"),
    ] = None,
    preferences: Own = None,
    time_limit: TimeLimit = None,
    index: Index = None,
) -> None:
    """Solve one instance and print the answer.

    With --preferences and --certificate CERT.json the instance that was solved, these preferences in
    place, is written to CERT.instance.json: verify CERT.json CERT.instance.json.
    """
    from milp_recourse.formats import write_instance, write_result
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.words import describe
    from milp_recourse.solve import solve as run

    for option, target in (("--json", json), ("--certificate", certificate)):
        if target is not None and target.is_dir():
            raise BadInput(option, f"{target}, a directory", "the name of a file")
    problem = _one(instance, index)
    if preferences is not None:
        problem, index = _with_own(problem, preferences), None
    _warn_of_empty_masks([problem.preferences])
    with progress_bar(problem.name or instance.name, 1):
        result = run(problem, backend, time_limit, certificate is not None, index)
    if certificate is not None:
        result = _write_certificate(problem, result, certificate)
        if preferences is not None and result.certificate is not None:
            beside = certificate.with_name(certificate.name.removesuffix(".gz").removesuffix(".json"))
            beside = beside.with_name(f"{beside.name}.instance.json")
            write_instance(problem, beside)
            typer.echo(f"verify the certificate against {beside}, which holds these preferences")
    if json is not None:
        write_result(result, json)
    typer.echo(describe(problem, result))
    raise typer.Exit(LIMIT if result.status is Status.LIMIT else DONE)


@app.command()
def prove(
    instance: Problem,
    action: Annotated[
        Path, typer.Option(metavar="FILE", help="the action: {feature: value}, or a result with one")
    ],
    certificate: Annotated[
        Path | None, typer.Option(metavar="CERT.json", help="write the proof, which verify checks")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="RESULT.json", help="write the result")] = None,
    time_limit: TimeLimit = None,
    index: Index = None,
) -> None:
    """Check anybody's action and prove how far it is from the optimum."""
    from milp_recourse.formats import read_action, write_result
    from milp_recourse.prove import prove as run
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.words import describe_given, distance

    for option, target in (("--json", json), ("--certificate", certificate)):
        if target is not None and target.is_dir():
            raise BadInput(option, f"{target}, a directory", "the name of a file")
    problem = _one(instance, index)
    given = read_action(action, problem)
    with progress_bar(problem.name or instance.name, 1):
        proof = run(problem, given, time_limit, index)
    if proof.result is None:
        for fault in proof.faults:
            typer.echo(f"not feasible: {fault}")
        raise typer.Exit(FAILED)
    result = proof.result
    if certificate is not None:
        result = _write_certificate(problem, result, certificate)
    if json is not None:
        write_result(result, json)
    typer.echo(describe_given(problem, result))
    typer.echo(distance(result))
    raise typer.Exit(LIMIT if proof.stopped else DONE)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="a certificate, or a folder of them")],
    instance: Annotated[
        Path | None,
        typer.Argument(
            help="the instance, population, or folder of instances",
            show_default="population.json in the folder",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="most time for one certificate")] = 3600.0,
    jobs: Annotated[int | None, typer.Option(help="processes, for a folder; default: one per core")] = None,
    sample: Annotated[int | None, typer.Option(help="of a folder only so many, drawn at random")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="go on where this journal stopped")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="by the kernel alone, in plain fractions")] = False,
    parallel: Annotated[
        Parallel, typer.Option(help="a folder: processes here, or a Dask cluster")
    ] = Parallel.processes,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="of the Dask scheduler")] = None,
) -> None:
    """Check certificates; the same as python -m verify, which needs nothing of this package."""
    if (parallel is Parallel.dask) != (scheduler is not None):
        raise BadInput("--scheduler", scheduler or "nothing", "an address with --parallel dask, else nothing")
    try:
        checker = import_module("verify.__main__")
    except ModuleNotFoundError:
        raise Unsupported(
            "verify: the checker is not installed; run python -m verify in the repository"
        ) from None
    many = [] if jobs is None else [f"--jobs={jobs}"]
    many += [] if sample is None else [f"--sample={sample}"]
    many += [] if resume is None else [f"--resume={resume}"]
    many += ["--slow"] if slow else []
    # worker processes of a cluster open the same paths
    given = (certificate,) if instance is None else (certificate, instance)
    paths = [str(path if scheduler is None else path.resolve()) for path in given]
    mapped = None if scheduler is None else Workers(1, scheduler).map
    raise typer.Exit(checker.main([*paths, f"--seconds={seconds}", *many], mapped))


@app.command()
def certificate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="what certify wrote")],
    index: Annotated[int, typer.Argument(help="the person, from 0")],
    out: Annotated[Path, typer.Option(metavar="CERT", help="where it goes: .json, or .json.gz")],
) -> None:
    """Take one person's certificate out of a folder of results, whether it has a file of its own or not."""
    from gzip import decompress

    from milp_recourse.formats.strict_json import write_whole
    from milp_recourse.reports.certificate_files import extract

    found = extract(folder, index)
    write_whole(found if out.suffix == ".gz" else decompress(found), out)


class By(StrEnum):
    """What tells alternatives apart."""

    leaf = "leaf"
    features = "features"


@app.command()
def alternatives(
    instance: Problem,
    count: Annotated[int, typer.Option(help="at most so many")] = 15,
    by: Annotated[By, typer.Option(help="one per accepting leaf, or per set of features acted on")] = By.leaf,
    apart: Annotated[int, typer.Option(help="features any two differ by in what they act on")] = 0,
    backend: Backend = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE.json", help="write the list")] = None,
    time_limit: TimeLimit = None,
    index: Index = None,
) -> None:
    """The cheapest distinct recourses of one applicant, cheapest first."""
    from milp_recourse.alternatives import alternatives as find
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.words import describe_action

    if json is not None and json.is_dir():
        raise BadInput("--json", f"{json}, a directory", "the name of a file")
    problem = _one(instance, index)
    found = find(problem, count, by.value, backend, time_limit, apart)
    if json is not None:
        write_json([a.to_dict() for a in found], json, indent=1)
    for rank, way in enumerate(found, 1):
        typer.echo(f"{rank:3}  {way.cost:<12.6g} {describe_action(problem, way.action)}")
    if not found:
        typer.echo("no recourse: nothing within the applicant's limits is accepted")


@app.command()
def why(
    instance: Problem,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the answer")] = None,
    backend: Backend = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for everything")] = None,
    index: Index = None,
    jobs: Annotated[int, typer.Option(help="processes, for a population")] = 1,
) -> None:
    """Why not: what stands in the way, what each restriction costs, what little widening would do."""
    from milp_recourse.formats import read_any
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.why_words import headline, why_table
    from milp_recourse.why import why as ask

    if json is not None and json.is_dir():
        raise BadInput("--json", f"{json}, a directory", "the name of a file")
    everybody = read_any(instance) if index is None else None
    if isinstance(everybody, Population):
        raise typer.Exit(_why_everybody(everybody, json, backend, time_limit, jobs))
    problem = _one(instance, index)
    with progress_bar(problem.name or instance.name, 1):
        found = ask(problem, backend, time_limit)
    if json is not None:
        write_json(found.to_dict(), json)
    console = _console()
    console.print(headline(found), markup=False, soft_wrap=True)
    if found.minimal or found.prices:
        console.print(why_table(found), markup=False)
    raise typer.Exit(DONE if found.complete else LIMIT)


@app.command()
def front(
    instance: Problem,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the front")] = None,
    backend: Backend = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for all points")] = None,
    index: Index = None,
) -> None:
    """Fewer actions or less cost: the cheapest action for every number of features acted on."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.front import front as ask
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.words import describe_action

    if json is not None and json.is_dir():
        raise BadInput("--json", f"{json}, a directory", "the name of a file")
    problem = _one(instance, index)
    with progress_bar(problem.name or instance.name, 1):
        found = ask(problem, backend, time_limit)
    if json is not None:
        write_json(found.to_dict(), json)
    console = _console()
    for point in found.points:
        result = point.result
        proven = f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}"
        changes = describe_action(problem, result.action or {})
        console.print(f"{point.actions} actions: {proven}; {changes}", markup=False, soft_wrap=True)
    if not found.points:
        console.print("no recourse" + ("" if found.complete else " found"), markup=False)
    elif found.fewest:
        console.print(f"with fewer than {found.fewest} actions there is no recourse, proven", markup=False)
    raise typer.Exit(DONE if found.complete else LIMIT)


@app.command()
def backends() -> None:
    """Which back ends are usable here, and why not."""
    from milp_recourse.backends import listed

    table = Table("back end", "usable", "why not", box=None, pad_edge=False)
    for name, reason in listed().items():
        table.add_row(name, "yes" if reason is None else "no", reason or "")
    _console().print(table, markup=False)


@app.command()
def export(
    instance: Problem,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the file to write")],
    format: Annotated[ExportFormat | None, typer.Option(help="by the name of FILE if not given")] = None,
    index: Index = None,
) -> None:
    """Write the problem as a mathematical program that other solvers read."""
    try:
        exporter = import_module("milp_recourse.export")
    except ModuleNotFoundError:
        raise Unsupported("export: this version cannot export programs") from None
    suffix = out.suffix.removeprefix(".")
    known = [member.value for member in ExportFormat]
    if suffix not in known or (format is not None and format.value != suffix):
        wanted = f".{format.value}" if format is not None else " or ".join(f".{name}" for name in known)
        raise BadInput("--out", str(out), f"a file name ending in {wanted}")
    exporter.export(_one(instance, index), out)
    typer.echo(f"written: {out}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    try:
        code = command.main(args=given or ["--help"], prog_name="milp-recourse", standalone_mode=False)
        sys.stdout.flush()
    except MachineFailed as error:
        return _fail(str(error), MACHINE_FAILED)
    except RecourseError as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever read our output has gone: nothing is left to say
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return MACHINE_FAILED
    except (OSError, MemoryError) as error:
        return _fail(f"the machine failed: {error or type(error).__name__}", MACHINE_FAILED)
    except _Interrupted as error:
        return _fail(str(error), INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        return _fail(f"{usage()} (see milp-recourse --help)")
    if code == INTERRUPTED:  # Typer turned Ctrl-C into an exit code and said nothing
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else DONE


class _Interrupted(Exception):
    """Ctrl-C, and what was kept."""


def _certify_files(
    files: Sequence[Path],
    out: Path,
    backend: str | None,
    time_limit: float | None,
    jobs: int,
    certificates: bool,
    own: Instance | None = None,
) -> int:
    from milp_recourse.formats import write_instance
    from milp_recourse.reports.instances import solve_files, write_rows
    from milp_recourse.reports.population_folder import make_folder, refuse_foreign
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.summary import in_words
    from milp_recourse.reports.table import Row, print_table

    if backend is not None:
        from milp_recourse.backends import backend as find_backend

        find_backend(backend)
    refuse_foreign(out)
    rows: list[Row] = []
    try:
        with progress_bar("instances", len(files)) as bar:
            for row in solve_files(files if own is None else [own], backend, time_limit, jobs, certificates):
                rows.append(row)
                bar.advance()
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    refused = [remark for _, _, result, remark in rows if result is None]
    if refused and len(files) == 1:
        raise Unsupported(refused[0])
    make_folder(out)
    if own is not None or len(files) == 1:
        _warn_of_empty_masks(problem.preferences for _, problem, _, _ in rows)
    summary = write_rows(rows, out)
    if own is not None:
        write_instance(own, out / "instance.json")
    console = _console()
    print_table(rows, console)
    verdicts = Counter(remark for _, _, result, remark in rows if result is not None and remark)
    contradicted = verdicts["contradicts"]
    known = f"; {verdicts['agrees']} agree with their known answer, {contradicted} contradict it"
    known += f", {verdicts['claims nothing']} claim nothing" if verdicts["claims nothing"] else ""
    if rows:
        console.print(in_words(summary) + (known if verdicts else ""), markup=False)
    console.print(f"results in {out}", markup=False, soft_wrap=True)
    if interrupted:
        raise _Interrupted(f"interrupted; {len(rows)} of {len(files)} instances kept in {out}")
    return FAILED if contradicted else _code(result for _, _, result, _ in rows)


@dataclass(frozen=True)
class _Run:
    """What ``certify`` was asked for about a population; ``write``: the population as it was solved too."""

    out: Path
    backend: str | None
    time_limit: float | None
    certificates: bool
    limit: int | None
    index: int | None
    write: bool


def _certify_population(population: Population, run: _Run, workers: Workers) -> int:
    from milp_recourse.formats import write_population
    from milp_recourse.reports.population_folder import PopulationFolder
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.summary import in_words
    from milp_recourse.reports.table import BAD_INPUT as UNREAD
    from milp_recourse.solve import check_backend, check_options, choose_backend, solve, solve_as_finished

    out, index = run.out, run.index
    everybody = range(min(run.limit or len(population), len(population)))
    wanted: Sequence[int] = everybody if index is None else [index]
    chosen = choose_backend(population.template, run.backend)
    check_backend(population.template, chosen)
    _warn_of_empty_masks(population.preferences[k] for k in wanted)
    asked = {"backend": chosen.name, "time_limit": run.time_limit, "certificates": run.certificates}
    folder = PopulationFolder(out, population, asked | ({} if index is None else {"index": index}))
    if run.write:
        write_population(population, out / "population.json")
    console = _console()
    if folder.damaged:
        lines = ", ".join(map(str, folder.damaged[:10])) + (", ..." if len(folder.damaged) > 10 else "")
        typer.echo(f"results.csv: not rows of this run, and dropped: lines {lines}", err=True)
    if folder.done:
        console.print(f"going on after {len(folder.done)} applicants", markup=False)
    total, options = len(wanted), check_options(run.time_limit, workers.jobs, run.certificates)
    try:
        left = folder.left(wanted)
        with progress_bar("applicants", total, total - len(left)) as bar:
            solved = solve_as_finished(population, chosen.name, options, left, workers)
            if index is not None:  # alone, not with the others of a batch
                some = (population[k] for k in left)
                name, limit = chosen.name, run.time_limit
                solved = ((index, solve(one, name, limit, run.certificates, index)) for one in some)
            for k, result in solved:
                folder.add(k, result)
                bar.advance()
    except KeyboardInterrupt:
        folder.summarise()
        kept = f"{len(folder.done)} of {total} applicants kept in {out}"
        raise _Interrupted(f"interrupted; {kept}; the same command goes on") from None
    summary = folder.summarise()
    console.print(in_words(summary), markup=False)
    console.print(f"results in {out}", markup=False, soft_wrap=True)
    return LIMIT if {"limit", UNREAD} & summary["counts"].keys() else DONE


def _shipped(given: Mapping[str, object], limit: int | None) -> list[Path]:
    """The shipped instances, smoke and Loan; what is only for a file must not be given."""
    from milp_recourse.instances_path import instance_files

    for option, value in given.items():
        if value is not None:
            raise BadInput(option, value, "nothing, without a file")
    return [*instance_files("smoke"), *instance_files("loan", limit or LOAN_INSTANCES)]


def _why_everybody(
    population: Population, json: Path | None, backend: str | None, time_limit: float | None, jobs: int
) -> int:
    """Print, and write, what stands in how many people's way; the exit code."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.why_words import population_headline, population_table
    from milp_recourse.why import why_population

    found = why_population(population, backend, time_limit, jobs)
    if json is not None:
        write_json(found.to_dict(), json)
    console = _console()
    console.print(population_headline(found), markup=False, soft_wrap=True)
    if found.table():
        console.print(population_table(found), markup=False)
    return DONE if found.complete and not population.unreadable else LIMIT


def _one(file: Path, index: int | None) -> Instance:
    """The instance in a file, or the applicant of a population that ``--index`` says."""
    from milp_recourse.formats import read_any

    problem = read_any(file)
    if isinstance(problem, Population):
        if index is None:
            allowed = f"--index with a number from 0 to {len(problem) - 1}: {file} is a population"
            raise BadInput("--index", "nothing", allowed)
        _checked(index, problem, file)
        return problem[index]
    if index is not None:
        raise BadInput("--index", index, f"nothing: {file} is an instance")
    return problem


def _checked(index: int | None, population: Population, file: Path) -> None:
    """Raise BadInput where ``--index`` is no applicant, or one who could not be read."""
    if index is None:
        return
    if not 0 <= index < len(population):
        raise BadInput(
            "--index", index, f"a number from 0 to {len(population) - 1}, the applicants of {file}"
        )
    if index in population.unreadable:
        raise population.unreadable[index]


def _with_own(problem: Chosen, file: Path | None) -> Chosen:
    """The problem with the preferences of a text file, if there is one, for everybody."""
    if file is None:
        return problem
    from milp_recourse.formats import preferences_from_text
    from milp_recourse.formats.applicant_json import check_scale

    template = problem.template if isinstance(problem, Population) else problem
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("--preferences", str(file), f"a text file ({error})") from None
    try:
        own = preferences_from_text(text, template)
        check_scale(template.cost, own)
    except BadInput as error:
        raise error.in_file(file.name) from None
    if isinstance(problem, Population):
        return replace(
            problem, template=replace(template, preferences=own), preferences=(own,) * len(problem)
        )
    return replace(problem, preferences=own, reference=None)


def _warn_of_empty_masks(preferences: Iterable[Preferences]) -> None:
    """One line where somebody's preferences name nothing to act on: likely not what was meant."""
    empty = everyone = 0
    for one in preferences:
        everyone += 1
        empty += not one.actionable
    if empty:
        whose = "the applicant's" if everyone == 1 else f"{empty} of {everyone} applicants'"
        typer.echo(f"warning: {whose} preferences.actionable is empty: nothing can be acted on", err=True)


def _write_certificate(problem: Instance, result: Result, path: Path) -> Result:
    """The result with the path, its certificate written; with the reason in its note where there is none."""
    from gzip import decompress

    from milp_recourse.certificates import reason_for_none
    from milp_recourse.formats.strict_json import write_whole

    if result.evidence is None:
        typer.echo(f"no certificate: {reason_for_none(problem, result)}", err=True)
        return result
    write_whole(result.evidence if path.suffix == ".gz" else decompress(result.evidence), path)
    return replace(result, certificate=str(path))


def _code(results: Iterable[Result | None]) -> int:
    return LIMIT if any(r is not None and r.status is Status.LIMIT for r in results) else DONE


def _fail(line: str, code: int = BAD_INPUT) -> int:
    """One line on stderr, whatever characters it holds."""
    text = f"milp-recourse: {' '.join(line.split())}\n"
    sys.stderr.write(text.encode("utf-8", "backslashreplace").decode())
    return code


def _console() -> Console:
    """stdout; wide enough for the table where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=180)


def _mount(module: str, name: str, title: str) -> None:
    """Add the sub-commands of an optional module; say why, where it cannot be loaded."""
    if find_spec(module.rpartition(".")[0]) is None or find_spec(module) is None:
        return
    try:
        app.add_typer(import_module(module).app, name=name, help=title)
    except ImportError as error:
        reason = str(error)

        @app.command(name, help=f"{title} (not usable here: {reason})")
        def unusable() -> None:
            raise BackendUnavailable(f"{name}: {reason}")


_mount("milp_recourse.recipe.commands", "recipe", "Make the shipped instances again.")
_mount("milp_recourse.benchmarks.commands", "bench", "Time back ends against each other.")


def _mount_command(module: str, name: str) -> None:
    """Add a single command of an optional module."""
    if find_spec(module.rpartition(".")[0]) is not None and find_spec(module) is not None:
        app.command(name)(getattr(import_module(module), name))


_mount_command("milp_recourse.reports.commands", "report")
_mount_command("milp_recourse.evaluation.commands", "evaluate")
_mount_command("milp_recourse.studies.commands", "reproduce")
_mount("milp_recourse.icarma.commands", "icarma", "Recourse from trained networks: train, predict, evaluate.")
_mount_command("milp_recourse.icarma.commands", "gap")
