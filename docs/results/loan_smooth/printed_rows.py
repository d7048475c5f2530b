"""Each row that the paper prints for its networks, with settings chosen for it on validation rows alone.

    python docs/results/loan_smooth/printed_rows.py --out DIR [--beside FOLDER] [--seeds N]

The settings that are chosen among were fixed beforehand: every complete trial of the two searches, trained
as long as there (20 epochs, all profiles), and the published settings with half, once and twice the weight of
plausibility (100 epochs, constant weights alone). One network of each, with a seed that no row has, is
measured on *validation* rows, and the nearest to what is printed is chosen, row by row
(DIR/printed_validation.csv). Only then are the chosen settings trained with the first N of the paper's ten
seeds, and test rows measured, once: DIR/printed_rows.csv has the means, in how many seeds a row is near, and
what is certified of the same people. ``acceptable`` is the share for whom an action is accepted; ``least``,
the share whose cheapest accepted action is plausible; ``most``, the share for whom an accepted action is
plausible. Rerunning goes on; needs the extra ``search``.
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
from milp_recourse.lab.gap.settings_search import (
    PREFERENCES,
    SEED,
    distance,
    measured,
    optuna_names,
    suggested,
)
from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.settings import SEEDS, Settings
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.icarma.task import loan_task
from milp_recourse.lab.icarma.train import Trainer
from milp_recourse.lab.recipe.files import kept
from milp_recourse.lab.run_table import read_rows, write_table
from milp_recourse.problem.population import Population
from milp_recourse.reports.progress import progress_bar

TRIAL_EPOCHS, PUBLISHED_EPOCHS, PLAUSIBILITY = 20, 100, (0.5, 1.0, 2.0)

Row = dict[str, Any]
Numbers = dict[str, dict[str, float]]
"""By a row's key, the networks' numbers."""


def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; rerunning resumes.")],
    beside: Annotated[Path, typer.Option(help="the folder with the searches' tables")] = Path(
        __file__
    ).parent,
    seeds: Annotated[int, typer.Option(min=1, max=10, help="of the settings chosen")] = 3,
) -> None:
    """Train, choose, certify, and write the tables."""
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    people, among = read_population(population_file("loan-smooth")), pool(beside)

    def numbers(name: str, seed: int) -> Numbers:
        return kept(out / f"{name}, seed {seed}.json", lambda: trained(among[name], seed, people))

    with progress_bar("validation", len(among), rate=True) as bar:
        held = {}
        for name in among:
            held[name] = numbers(name, SEED)
            bar.advance(name)
    chosen = {one.key: nearest(one, held) for one in SETTINGS}
    write_table(
        out / "printed_validation.csv",
        [
            {"row": key, "settings": name} | {k: each[key][k] for k in ("validity", "plausibility")}
            for name, each in held.items()
            for key in each
        ],
    )
    certified = possible(people, out)
    wanted = sorted(set(chosen.values()))
    with progress_bar("test", seeds * len(wanted), rate=True) as bar:
        for k, name in ((k, name) for k in range(seeds) for name in wanted):
            numbers(name, SEEDS[k])
            bar.advance(name)
    made = []
    for one in SETTINGS:
        name = chosen[one.key]
        found = [numbers(name, seed)[one.key] for seed in SEEDS[:seeds]]
        row: Row = {"table": one.table, "setting": one.label, "settings": name, "seeds": seeds}
        for key in ("validity", "plausibility"):
            row |= {f"printed {key}": getattr(one.icarma, key), f"validation {key}": held[name][one.key][key]}
            row |= {key: float(np.mean([each[key] for each in found]))}
        row |= {"near": distance(one, row) <= 1, "near seeds": sum(distance(one, n) <= 1 for n in found)}
        made.append(row | certified[one.key])
    write_table(out / "printed_rows.csv", made)
    typer.echo(f"{sum(row['near'] for row in made)} of {len(made)} rows are near by the mean of the seeds")


def pool(beside: Path) -> dict[str, Settings]:
    """The settings that are chosen among, by name."""
    found = {}
    for elicitation in ("rank", "score"):
        for row in read_rows(beside / f"search_{elicitation}.csv"):
            if row["state"] == "complete":
                words = ("prior_shape", "conditioning", "width")
                known = {k: row[k] if k in words else float(row[k]) for k in optuna_names()}
                changes = suggested(optuna.trial.FixedTrial(known))  # type: ignore[arg-type]
                settings = Settings.of_recipe("plain", elicitation, epochs=TRIAL_EPOCHS, **changes)  # type: ignore[arg-type]
                found[f"{elicitation} trial {row['trial']}"] = settings
    usual = Settings.of_recipe("plain", "rank", profile="constant", epochs=PUBLISHED_EPOCHS)
    for share in PLAUSIBILITY:
        found[f"published, plausibility {share:g}"] = replace(usual, plausibility=share * usual.plausibility)
    return found


def nearest(one: Setting, held: dict[str, Numbers]) -> str:
    """The settings nearest to a printed row on validation rows."""
    return min(
        (name for name in held if one.key in held[name]), key=lambda n: distance(one, held[n][one.key])
    )


def trained(settings: Settings, seed: int, people: Population) -> Numbers:
    """The numbers of one seed's networks: on validation rows if it is that of choices, else on test rows."""
    flow = read_recommender(shipped("constant", people.template))[0].flow
    trainer = Trainer(loan_task(people.template), flow, replace(settings, seed=seed))
    while trainer.epoch < settings.epochs:
        trainer.step()
    trainer.model.load(trainer.best)
    asked = (trainer.validation, PREFERENCES) if seed == SEED else (trainer.applicants(people.rows), 0)
    return {
        one.key: measured(trainer, asked[0], one, asked[1])
        for one in SETTINGS
        if one.cell.elicitation == settings.elicitation and settings.profile in ("mixed", one.cell.profile)
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
