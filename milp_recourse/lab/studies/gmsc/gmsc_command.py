"""``milp-recourse lab gmsc``."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milp_recourse.cli.exit_codes import FAILED, LIMIT

if TYPE_CHECKING:
    from milp_recourse.lab.studies.gmsc.gmsc_networks import Through


def gmsc(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="cs-training.csv, or a .zip that holds it")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go; rerunning resumes.")] = Path(
        "gmsc"
    ),
    seed: Annotated[int, typer.Option(help="seed of the split, the training and the preferences")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="so many, from --seed on: each in DIR/seed_K, their spread in DIR")
    ] = 1,
    people: Annotated[
        int, typer.Option(min=1, help="refused test rows in the setting with all levers")
    ] = 520,
    others: Annotated[int, typer.Option(min=1, help="refused test rows in every other setting")] = 200,
    time_limit: Annotated[float, typer.Option(min=0.1, help="seconds per problem")] = 60.0,
    certificates: Annotated[int, typer.Option(min=0, help="random answers to certify and verify")] = 100,
    epochs: Annotated[
        int, typer.Option(min=0, help="epochs of iCARMA's networks through the equations; 0: no networks")
    ] = 400,
    flow_epochs: Annotated[
        int, typer.Option(min=0, help="epochs of iCARMA's networks through the flow; 0: no networks")
    ] = 400,
) -> None:
    """Certify recourse on Give Me Some Credit under a learned causal model, and compare iCARMA with it.

    DIR/models has rows of the owner's file, DIR/results has none. With several seeds the forms of the causal
    model are not compared, and the spread is of the seeds that are done. Exits 4 if a recommendation
    contradicts a proof, or an answer drawn at random gets no certificate that is accepted; 3 if a limit was
    reached.
    """
    from milp_recourse.errors import BackendUnavailable
    from milp_recourse.reports.progress import progress_bar

    for name in ("torch", "zuko", "matplotlib"):
        if find_spec(name) is None:
            raise BackendUnavailable(f"gmsc needs {name}: pip install 'milp-recourse[torch,plots]'")
    counts: dict[Through, int] = {"flow": flow_epochs, "equations": epochs}
    start = time.monotonic()
    with progress_bar("models", 0, rate=True) as bar:

        def say(text: str) -> None:
            bar.say(f"{time.monotonic() - start:6.0f} s  {text}")

        say(f"everything goes to {out}; what is there already is not made again")
        from milp_recourse.lab.recipe.gmsc import CHOSEN
        from milp_recourse.lab.run_table import print_rows
        from milp_recourse.lab.studies.gmsc.run import Asked, run
        from milp_recourse.lab.studies.gmsc.seeds import write_spread

        asked = Asked(seed, people, others, time_limit, certificates, counts)
        every = [replace(asked, seed=k, forms=(CHOSEN,)) for k in range(seed, seed + seeds)]
        summaries, spread = [], []
        for one in every if seeds > 1 else [asked]:
            place = out / f"seed_{one.seed}" if seeds > 1 else out
            summaries.append(run(data, place, one, bar.expect, bar.advance, say))
            if seeds > 1 and "tables" in summaries[-1]:
                spread = write_spread(out)
    if spread:
        print_rows("over seeds", spread)
    elif "tables" in summaries[0]:
        columns = (
            *("setting", "method", "valid", "valid_flow", "plausible_flow", "cost", "hap"),
            *("served", "cost_ratio_median"),
        )
        title = "valid: under the learned equations; _flow: under the spline flow"
        print_rows(title, summaries[0]["tables"], columns)
        print_rows("proofs; processor seconds per applicant", summaries[0]["proofs"])
    checks = [summary["spot check"] for summary in summaries]
    verified, drawn = (sum(checked[key] for checked in checks) for key in ("verified", "drawn"))
    typer.echo(f"{verified} of {drawn} certificates verified; results and report.html in {out}")
    for line in (line for checked in checks for line in checked["complaints"]):
        typer.echo(line, err=True)
    if verified < drawn or any(summary.get("contradicted") for summary in summaries):
        raise typer.Exit(FAILED)
    if any(row["limit"] for summary in summaries for row in summary.get("proofs", ())):
        raise typer.Exit(LIMIT)
