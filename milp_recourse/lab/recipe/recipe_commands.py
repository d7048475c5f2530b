"""``milp-recourse lab recipe ...``: make the shipped instances again, and check them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import FAILED, LIMIT
from milp_recourse.errors import BadInput
from milp_recourse.reports.progress import progress_bar

app = typer.Typer(help="Make the shipped instances again, and check them.", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", help="Folder the files are written to.")]
Folder = Annotated[Path, typer.Argument(help="The instances folder.", exists=True, file_okay=False)]


@app.command()
def loan(
    out: Out,
    seed: Annotated[int, typer.Option(help="Seed of sampling and training.")] = 0,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="instances/loan_smooth: as the released code trains (SGD)")
    ] = False,
    printed: Annotated[
        bool, typer.Option("--printed", help="instances/loan_printed: the equations as the paper prints them")
    ] = False,
) -> None:
    """Sample the Loan model, train the 32 x 32 network, write classifier, instances and report."""
    from milp_recourse.lab.recipe.loan_instances import LoanSettings, write_loan

    if smooth and printed:
        raise BadInput("--smooth", "also --printed", "one of the two: each makes instances of its own")
    settings = LoanSettings.smooth() if smooth else LoanSettings()
    if printed:
        settings = LoanSettings.as_printed()
    with progress_bar("training", settings.attempts * settings.training.epochs) as bar:
        report = write_loan(out, seed, settings, on_epoch=bar.advance)
    margin = report["margin"]
    covers = "covers" if margin["covers_rigorous"] else "does not cover"
    typer.echo(
        f"test accuracy {report['accuracy']['test']:.4f}, refused {report['refused_test_rows']} of "
        f"{report['rows']['test']}, margin {margin['chosen']} ({covers} the proven float32 bound "
        f"{margin['rigorous_float32_bound']:.4g}; observed {margin['largest_observed_error']:.2g})"
    )
    if printed:
        _expected(out, 100, "highs", 120.0)


def _expected(out: Path, people: int, confirm: str, time_limit: float) -> None:
    """Write expected.csv for the first people, and exit 4 if the two back ends contradict each other."""
    from milp_recourse.lab.recipe.references import write_expected

    with progress_bar("solving", people) as bar:
        complaints = write_expected(out, confirm, time_limit, bar.advance, people)
    _complain(complaints, FAILED)


def _complain(complaints: Sequence[str], code: int) -> None:
    """Print complaints on stderr, and end with the code if there are any."""
    for line in complaints:
        typer.echo(line, err=True)
    if complaints:
        raise typer.Exit(code)


@app.command()
def credit(out: Out, seed: Annotated[int, typer.Option(help="Seed of sampling and training.")] = 0) -> None:
    """Sample credit profiles, train a decision tree, write applicants and their 15 nearest recourses."""
    from milp_recourse.lab.recipe.credit import write_credit

    report = write_credit(out, seed)
    typer.echo(
        f"test accuracy {report['test_accuracy']:.4f} with {report['leaves']} leaves; 15 recourses for "
        f"{report['with_15_or_more']} applicants, none for {report['without_recourse']}"
    )


@app.command()
def real(
    name: Annotated[str, typer.Argument(help="adult, compas, german or gmsc.")],
    out: Out,
    data: Annotated[Path, typer.Option(envvar="MILP_RECOURSE_DATA", help="Folder with the owners' files.")],
    applicants: Annotated[int, typer.Option(min=1, help="Most refused rows to write.")] = 20,
    trees: Annotated[int, typer.Option(min=1, help="Trees in the forest.")] = 20,
    depth: Annotated[int, typer.Option(min=1, help="Depth of each tree.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of splitting and training.")] = 0,
) -> None:
    """Train a forest on a published data set and write refused applicants, rows of the owner's file.

    The owner's file itself is only read.
    """
    from milp_recourse.lab.recipe.real import write_real

    report = write_real(name, data, out, applicants, trees, depth, seed)
    typer.echo(
        f"{report['rows']} rows, {report['columns']} columns, test accuracy {report['test_accuracy']:.4f}; "
        f"{report['applicants']} of {report['refused_test_rows']} refused test rows written to {out}"
    )


@app.command()
def gmsc(
    models: Annotated[
        Path, typer.Argument(help="The folder models that `milp-recourse lab gmsc` wrote.", exists=True)
    ],
    out: Out,
    applicants: Annotated[
        int,
        typer.Option(
            min=2, help="Most people to write, half of them with recourse; an odd number is rounded down."
        ),
    ] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    confirm: Annotated[str, typer.Option(help="The back end that must agree with bab.")] = "highs",
    time_limit: Annotated[float, typer.Option(help="Seconds per person and back end.")] = 120.0,
) -> None:
    """Write refused people drawn from the causal model learned from Give Me Some Credit; none is in the data.

    Exits 4 if the two back ends contradict each other.
    """
    from milp_recourse.lab.recipe.gmsc import write_synthetic

    report = write_synthetic(models, out, applicants, seed)
    typer.echo(f"{report['people']} people of {report['drawn']} draws written to {out}")
    _expected(out, report["people"], confirm, time_limit)


@app.command()
def references(
    folder: Folder,
    *,
    backend: Annotated[str, typer.Option(help="Back end that finds the answers.")] = "highs",
    confirm: Annotated[str, typer.Option(help="Back end that must agree.")] = "pyomo:scip_direct",
    time_limit: Annotated[float | None, typer.Option(help="Seconds per file and back end.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Solve again what is already confirmed.")] = False,
) -> None:
    """Find and confirm missing reference answers, compare with the grid, refresh index.csv.

    Exits 3 when the two back ends give a file no reference that they agree on, unless it has one by hand and
    one of them does not support it. Exits 4 when the grid's action is cheaper than a reference.
    """
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.lab.recipe.index import read_index, refreshed, write_index
    from milp_recourse.lab.recipe.references import compare_with_grid, fill_references
    from milp_recourse.solvers import backend as find_backend

    for name in (backend, confirm):
        find_backend(name)  # an unknown or missing one is refused before the first file
    with progress_bar("solving", 0) as bar:
        complaints = fill_references(
            folder,
            backend,
            confirm,
            time_limit=time_limit,
            jobs=jobs,
            force=force,
            on_start=bar.expect,
            on_file=bar.advance,
        )
    with progress_bar("grid", 0) as bar:
        comparison = compare_with_grid(folder, on_start=bar.expect, on_file=bar.advance)
    write_json(comparison, folder / "grid_comparison.json")
    write_index(folder, refreshed(folder, read_index(folder)))
    violations = comparison["violations"]
    _complain(complaints + violations, FAILED if violations else LIMIT)
    typer.echo("every reference is confirmed or by hand, and none is above the grid's cost")


@app.command()
def checksums(
    folder: Folder,
    check: Annotated[bool, typer.Option("--check", help="Only compare; change nothing.")] = False,
) -> None:
    """Refresh index.csv, or with --check verify every file against it (exit 4 on a difference)."""
    from milp_recourse.lab.recipe.index import checksum_faults, read_index, refreshed, write_index

    if not check:
        write_index(folder, refreshed(folder, read_index(folder)))
        return
    _complain(checksum_faults(folder), FAILED)
    typer.echo(f"{len(read_index(folder))} files as listed")
