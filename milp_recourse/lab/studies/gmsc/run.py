"""The study ``gmsc`` in one folder: finished parts are read from it, the others are computed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.lab.means import quantiles
from milp_recourse.lab.measured import with_seconds
from milp_recourse.lab.recipe.files import kept
from milp_recourse.lab.recipe.gmsc import CHOSEN, FORMS
from milp_recourse.lab.recipe.gmsc_data import GmscData, read_gmsc
from milp_recourse.lab.run_table import Key, filled, read_rows, write_table
from milp_recourse.lab.studies.gmsc import gmsc_plots
from milp_recourse.lab.studies.gmsc.certified import SETTINGS, answer_file, problems, solve_missing
from milp_recourse.lab.studies.gmsc.fidelity import fidelity
from milp_recourse.lab.studies.gmsc.gmsc_networks import PROFILES, PUBLISHED_EPOCHS, Through, recommenders
from milp_recourse.lab.studies.gmsc.gmsc_tables import (
    MethodsCompared,
    compare,
    out_of_range,
    proof_row,
    table_rows,
)
from milp_recourse.lab.studies.gmsc.models import Learned, learned, steps
from milp_recourse.lab.studies.kept_answers import AnswerFile
from milp_recourse.lab.studies.paper_cells import Problem
from milp_recourse.lab.studies.report import write_page
from milp_recourse.lab.studies.spot_check import spot_check
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import solve

SIZED = 30
"""The most applicants on whom the sizes of the equations are compared."""

PICTURES = ("proofs", "figure_8", "densities", "interventions", "figure_7", "sizes")
"""Of the page, in this order; several only where models are compared."""


@dataclass(frozen=True)
class Asked:
    """Options of the study.

    Parameters
    ----------
    people, others
        How many refused test rows are used: in the paper's first setting, with all levers; in the others.
    certificates
        How many answers, drawn at random, are certified again and checked by ``verify``.
    epochs
        Epochs of training, for networks through the flow and through the equations; 0: none are trained.
    forms
        The causal models that are fitted; with several of them, they are compared.
    """

    seed: int = 0
    people: int = 520
    others: int = 200
    time_limit: float = 60.0
    certificates: int = 100
    epochs: Mapping[Through, int] = field(default_factory=lambda: PUBLISHED_EPOCHS)
    forms: Sequence[str] = tuple(FORMS)


def run(
    path: Path,
    out: Path,
    options: Asked,
    expect: Callable[[int], None] = lambda _: None,
    advance: Callable[[str], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the study: models go to OUT/models, with rows of the owner's file; results to OUT/results, without.

    Whatever the folder has is read and not made again, so that a run that was killed goes on.

    Parameters
    ----------
    expect, advance
        Called with the number of steps, and after each with the name of what it belongs to.
    say
        Called with a sentence before each part.

    Returns
    -------
    dict
        The proofs by setting, the outcome of the spot check, and how many actions contradict a proof.

    Raises
    ------
    BadInput
        The folder is of another seed or another file.
    """
    say(f"reads {path}")
    data = read_gmsc(path, options.seed)
    mine = {"seed": options.seed, "train": hashlib.sha256(data.train.rows.tobytes()).hexdigest()}
    if kept(out / "models" / "of.json", lambda: mine) != mine:
        raise BadInput("--out", f"{out}, of another seed or file", "a new folder, or the same seed and file")
    epochs_by_training: dict[Through, int] = {way: count for way, count in options.epochs.items() if count}
    training = len(PROFILES) * sum(epochs_by_training.values())
    sizing = SIZED * len(options.forms) if len(options.forms) > 1 else 0
    before = steps(options.forms) + sizing + training
    expect(before)
    fitted = learned(data, out / "models", options.seed, options.forms, lambda: advance("models"), say)
    results = out / "results"
    results.mkdir(parents=True, exist_ok=True)
    write_json(fitted.report, results / "fit.json")
    write_json(asdict(options), results / "asked.json")
    if sizing:
        say("compares the models with each other and with held-out rows")
        _fidelity(fitted, data, results, options.seed)
        say(f"solves at most {SIZED} people in each of the {len(options.forms)} models")
        _sizes(fitted, results, options.time_limit, lambda: advance("sizes"))
    people = fitted.people[: options.people]
    counts = [len(people), *(min(options.others, len(people)) for _ in SETTINGS[1:])]
    sized = list(zip(SETTINGS, counts, strict=True))
    wanted_problems = [
        problem for setting, size in sized for problem in problems(setting, size, options.seed)
    ]
    table = answer_file(results)
    todo = len(table.missing(wanted_problems, options.time_limit))
    expect(before + todo + options.certificates)
    say(f"certifies: {todo} of {len(set(wanted_problems))} problems are not solved yet")
    solve_missing(table, people, wanted_problems, options.time_limit, lambda: advance("certified"))
    say(f"checks {options.certificates} answers drawn at random")
    checked = _checked(people, table, wanted_problems, out, options, lambda: advance("certificates"))
    summary: dict[str, Any] = {"spot check": checked}
    if epochs_by_training:
        say(f"trains networks: {len(PROFILES)} profiles, epochs {epochs_by_training}")
        networks = recommenders(
            fitted, data, out / "networks", epochs_by_training, lambda: advance("networks")
        )
        compared = [
            compare(people[:n], fitted.flow, networks, s, table.known, options.seed) for s, n in sized
        ]
        summary |= _compared(compared, fitted, people, data, results)
    return summary


def _fidelity(fitted: Learned, data: GmscData, results: Path, seed: int) -> None:
    if (results / "interventions.csv").exists():
        return
    found = fidelity(data, fitted.scms, CHOSEN, fitted.flow, seed)
    gmsc_plots.densities(found, results / "densities.svg")
    gmsc_plots.interventions(found, results / "interventions.svg")
    gmsc_plots.marginals(found, results / "figure_7.svg")
    for name in ("densities", "interventions"):
        write_table(results / f"{name}.csv", getattr(found, name))


def _sizes(fitted: Learned, results: Path, time_limit: float, advance: Callable[[], None]) -> None:
    """Measure proofs in each causal model, on the same applicants."""
    first = fitted.people[:SIZED]

    def solved(units: str, done: set[Key]) -> Iterator[dict[str, Any] | None]:
        for k in range(len(first)):
            if (units, str(k)) in done:
                yield None
                continue
            own = replace(first[k], scm=fitted.scms[units])
            result, seconds = with_seconds(partial(solve, own, "bab", time_limit))
            row = {"units": units, "applicant": k, "status": result.status.value, "cost": result.cost}
            yield row | {"seconds": f"{seconds:.4g}"}
            advance()

    table = results / "sizes.csv"
    if len(read_rows(table)) < len(fitted.scms) * len(first):  # compiling is not measured
        solve(first[0], "bab", time_limit)
    rows = filled(table, None, {}, 2, {units: units for units in fitted.scms}, solved)
    seconds = pd.DataFrame(rows).astype({"seconds": float}).groupby("units")["seconds"]
    summary = []
    for row in fitted.report["test_log_density_by_units"]:
        numbers = quantiles("seconds", seconds.get_group(row["units"]), p10=0.1, median=0.5, p90=0.9)
        summary.append({"units": row["units"], "log_density": row["all"], **numbers})
    gmsc_plots.sizes(summary, results / "sizes.svg")


def _checked(
    people: Population,
    table: AnswerFile,
    wanted_problems: Sequence[Problem],
    out: Path,
    options: Asked,
    advance: Callable[[], None],
) -> dict[str, Any]:
    """The spot check of random answers by ``verify``, read from its file if it was made before."""
    path = out / "results" / "spot_check.json"
    if not options.certificates:
        return {"drawn": 0, "verified": 0, "complaints": []}
    if not path.exists():
        known = {p: table.known[p] for p in dict.fromkeys(wanted_problems)}
        found = spot_check(
            people, known, out / "spot", options.certificates, options.seed, options.time_limit, 1, advance
        )
        write_json(found, path)
    content: dict[str, Any] = read_json(path)
    return content


def _compared(
    compared: Sequence[MethodsCompared], fitted: Learned, people: Population, data: GmscData, results: Path
) -> dict[str, Any]:
    rows = [row for one in compared for row in table_rows(one)]
    write_table(results / "tables.csv", rows)
    proofs = [proof_row(one) for one in compared]
    write_table(results / "proofs.csv", proofs)
    low, high = data.train.rows.min(axis=0), data.train.rows.max(axis=0)
    write_table(results / "out_of_range.csv", out_of_range(compared[0], people, low, high))
    write_table(results / "applicants.csv", [row for one in compared for row in _applicants(one)])
    gmsc_plots.proofs(compared, results / "proofs.svg")
    labels = {"4": "all", "random": "hard random", "linear": "soft", "hard (3), linear": "hard (3) + soft"}
    by_label = {labels[c.setting.label]: c for c in compared if c.setting.label in labels}
    factual = people.rows
    density = {}
    for label, one in by_label.items():
        rows_here = factual[: len(one.status)]
        for method, side in one.sides.items():
            kept = side.served if method == "certified" else np.ones(len(rows_here), dtype=bool)
            after = fitted.flow.counterfactual(rows_here[kept], side.action[kept])
            density[label, method] = fitted.flow.log_densities(after)
    gmsc_plots.log_densities(by_label, density, fitted.flow.log_densities(factual), results / "figure_8.svg")
    outside = read_rows(results / "out_of_range.csv")
    pictures = [name for name in PICTURES if (results / f"{name}.svg").exists()]
    shown = {"proofs": proofs, "tables": rows, "out_of_range": outside}
    write_page(results / "report.html", "gmsc", shown, pictures)
    return {"tables": rows, "proofs": proofs, "contradicted": sum(row["contradicted"] for row in proofs)}


def _applicants(one: MethodsCompared) -> list[dict[str, Any]]:
    """A row per applicant and method, with judgements and costs but no values of the owner's file."""
    rows = []
    for method, side in one.sides.items():
        s = side.scored
        names = ("valid", "valid_flow", "plausible", "plausible_flow", "actions", "hard")
        judged = {name: getattr(s, name) for name in names}
        for k in range(len(one.status)):
            rows.append(
                {
                    "setting": one.setting.key,
                    "method": method,
                    "applicant": k,
                    "actionable": int(one.wishes.actionable[k].sum()),
                    "certified_status": one.status[k],
                    "served": int(side.served[k]),
                    "cost": float(s.cost[k]) if side.served[k] else None,
                    **{name: int(column[k]) for name, column in judged.items()},
                }
            )
    return rows
