"""Why the searched networks miss printed rows: what is possible, and what other networks reach.

    python docs/results/loan_smooth/printed_rows.py --out DIR [--beside FOLDER]

For each row that the paper prints for its networks DIR/printed_rows.csv has the printed numbers, those of the
search's ten seeds, and what is certified of the same people: ``acceptable``, the share for whom an action is
accepted; ``least``, the share whose cheapest accepted action is plausible; ``most``, the share for whom an
accepted action is plausible. ``other`` is the nearest of other networks on the same test rows: those trained
for constant weights alone (of tables 1 and 5), and :data:`RUNS`. The choice among them looks at test rows: it
shows what settings and training can reach, not what a choice by validation would. Rerunning goes on; needs
the extra ``search``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import optuna
import torch
import typer

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.gap.paper_settings import SETTINGS, Setting, draw
from milp_recourse.lab.gap.settings_search import SEED, distance, measured, optuna_names, suggested
from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.icarma.task import loan_task
from milp_recourse.lab.icarma.train import Trainer
from milp_recourse.lab.recipe.files import kept
from milp_recourse.lab.run_table import read_rows, write_table
from milp_recourse.problem.population import Population
from milp_recourse.reports.progress import progress_bar

RUNS: dict[str, tuple[Any, int | None, int, dict[str, Any]]] = {
    **{f"rank trial {k}": ("rank", k, 20, {}) for k in (3, 6, 23)},
    **{f"score trial {k}": ("score", k, 20, {}) for k in (3, 13, 24)},
    "rank trial 6, longer": ("rank", 6, 60, {}),
    "rank trial 6, concave alone": ("rank", 6, 60, {"profile": "concave"}),
    "rank trial 3, longer": ("rank", 3, 60, {}),
    "rank trial 3, linear alone": ("rank", 3, 60, {"profile": "linear"}),
    "rank trial 3, linear alone, plausibility 0.07": (
        "rank",
        3,
        60,
        {"profile": "linear", "plausibility": 0.07},
    ),
    "score trial 13, longer": ("score", 13, 60, {}),
    "constant alone, plausibility 0.5": ("rank", None, 60, {"profile": "constant", "plausibility": 0.5}),
    "causal constant, plausibility 0.35": (
        "rank",
        None,
        120,
        {"profile": "constant", "distribution": "causal", "plausibility": 0.35},
    ),
}
"""Elicitation, trial of the search with the settings (None: the published ones), epochs, changes. Trials are
those nearest to a printed row on validation rows, where neither the ten seeds nor ``plain`` is near."""

Row = dict[str, Any]


def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; rerunning resumes.")],
    beside: Annotated[Path, typer.Option(help="the folder with the search's and the study's tables")] = Path(
        __file__
    ).parent,
) -> None:
    """Certify, train, and write the table."""
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    people = read_population(population_file("loan-smooth"))
    reached = {s.key: plain(s, beside) for s in SETTINGS}
    with progress_bar("epochs", sum(epochs for *_, epochs, _ in RUNS.values()), rate=True) as bar:
        for name in RUNS:
            for key, numbers in kept(
                out / f"{name}.json", lambda name=name: trained(name, people, beside, bar)
            ).items():
                reached[key][name] = numbers
    certified, made = possible(people, out), []
    for setting in SETTINGS:
        searched = ours(setting, beside)
        best = min(reached[setting.key], key=lambda one: distance(setting, reached[setting.key][one]))
        numbers, printed = reached[setting.key][best], setting.icarma
        row: Row = {"table": setting.table, "setting": setting.label}
        for key in ("validity", "plausibility"):
            row |= {f"printed {key}": getattr(printed, key), f"searched {key}": searched[key]}
        row |= {"searched near": distance(setting, searched) <= 1, **certified[setting.key], "other": best}
        row |= {f"other {key}": numbers[key] for key in ("validity", "plausibility")}
        made.append(row | {"other near": distance(setting, numbers) <= 1})
    write_table(out / "printed_rows.csv", made)
    near = sum(row["searched near"] or row["other near"] for row in made)
    typer.echo(f"{near} of {len(made)} rows are near in some run")


def plain(setting: Setting, beside: Path) -> dict[str, dict[str, float]]:
    """The numbers of the study's networks, measured as in the paper, by name."""
    cell = setting.cell
    return {
        row["method"].removeprefix("iCARMA "): {
            key: float(row[f"{key} as printed"]) for key in ("validity", "plausibility")
        }
        for row in read_rows(beside / f"table{setting.table}.csv")
        if (row["actionable"], row["distribution"], row["profile"])
        == (cell.actionable, cell.distribution, cell.profile)
        and row["method"].startswith("iCARMA ")
        and row["method"] != "iCARMA published"
    }


def ours(setting: Setting, beside: Path) -> dict[str, float]:
    """The means of the search's ten seeds."""
    for row in read_rows(beside / f"search_{setting.cell.elicitation}_rows.csv"):
        if (int(row["table"]), row["setting"]) == (setting.table, setting.label):
            return {key: float(row[key]) for key in ("validity", "plausibility")}
    raise LookupError(setting.key)


def trained(name: str, people: Population, beside: Path, bar: Any) -> dict[str, dict[str, float]]:
    """A run's numbers on test rows, by row."""
    elicitation, trial, epochs, changes = RUNS[name]
    found: dict[str, Any] = {}
    if trial is not None:
        [row] = [r for r in read_rows(beside / f"search_{elicitation}.csv") if r["trial"] == str(trial)]
        words = ("prior_shape", "conditioning", "width")
        found = {k: row[k] if k in words else float(row[k]) for k in optuna_names()}
        found = suggested(optuna.trial.FixedTrial(found))  # type: ignore[arg-type]
    settings = Settings.of_recipe("plain", elicitation, seed=SEED, epochs=epochs, **found | changes)
    flow = read_recommender(shipped("constant", people.template))[0].flow
    trainer = Trainer(loan_task(people.template), flow, settings)
    while trainer.epoch < epochs:
        trainer.step()
        bar.advance(name)
    trainer.model.load(trainer.best)
    test = trainer.applicants(people.rows)
    return {
        one.key: measured(trainer, test, one, 0)
        for one in SETTINGS
        if one.cell.elicitation == elicitation and settings.profile in ("mixed", one.cell.profile)
    }


def possible(people: Population, out: Path) -> dict[str, Row]:
    """What is certified of a row's people, with and without plausibility."""
    wishes = {one.key: draw(one, len(people), 0) for one in SETTINGS}
    levers = tuple(f.name for f in people.template.features if f.actionable)
    columns = [people.template.scm.features.index(f) for f in levers]
    scm, rows, exact = people.template.scm, people.rows, {}
    for demanded in (True, False):
        of = Population(replace(people.template, plausible=demanded), people.factuals, people.preferences)
        exact[demanded] = Certified(of, levers, out / "certified", 60.0)
        with progress_bar("certified", len(exact[demanded].missing([*wishes.values()])), rate=True) as bar:
            exact[demanded].solve([*wishes.values()], bar.advance)
    found = {}
    for key, wish in wishes.items():
        cheapest, best = exact[False].of(wish), exact[True].of(wish)
        action = np.full(rows.shape, np.nan)
        action[:, columns] = cheapest.action
        plausible = scm.log_density(scm.counterfactual(rows, action)) >= scm.log_density(rows)
        found[key] = {
            "acceptable": float(cheapest.served.mean()),
            "least": float((cheapest.served & plausible).mean()),
            "most": float(best.served.mean()),
            "open": int((~(best.served | best.impossible) | ~(cheapest.served | cheapest.impossible)).sum()),
        }
    return found


if __name__ == "__main__":
    typer.run(main)
