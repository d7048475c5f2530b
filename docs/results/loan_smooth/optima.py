"""What certified answers teach networks, with weights in the loop: an ablation on loan-smooth.

    python docs/results/loan_smooth/optima.py choose --out DIR    # margins and weights, on validation rows
    python docs/results/loan_smooth/optima.py rows --out DIR      # all test applicants

``choose`` writes DIR/optima_choice.csv, ``rows`` DIR/optima.csv, a line per variant, seed and setting of the
tables. Both go on where they stopped. One pair of networks serves all profiles of weights and all masks, and
learns through the true equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.icarma.checkpoint import write_recommender
from milp_recourse.lab.icarma.exact import Certified, Exact
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.runs import write_table
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.icarma.settings import SEEDS, Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.task import Task, loan_task
from milp_recourse.lab.icarma.train import Trainer, train
from milp_recourse.lab.icarma.training_optima import certify_optima
from milp_recourse.problem.population import Population
from milp_recourse.reports.progress import progress_bar

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

ROWS: dict[str, dict[str, float]] = {
    "demands only": {"imitation": 0.0, "impossible": 1.0},
    "failures left out": {"imitation": 0.0},
    "optima and failures": {},
}
"""Changes of the recipe ``certified``."""
CHOOSING_SEED = 500
CANDIDATES: tuple[dict[str, float], ...] = (
    *({"imitation": 0.0, "impossible": share} for share in (1.0, 0.2, 0.0)),
    *({"imitation": weight} for weight in (3.0, 10.0, 30.0)),
)
ASKED = [one for one in SETTINGS if one.table == 2 and one.cell.profile in ("constant", "linear")]

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; rerunning resumes.")]
Epochs = Annotated[int, typer.Option(min=1, help="of each run")]


@app.command()
def choose(out: Out, epochs: Epochs = 20) -> None:
    """One seed that no row has: share of the refused validation rows served, beside what is possible."""
    task, people = _world()
    names = [f.name for f in people.template.features]
    factuals = [dict(zip(names, map(float, row), strict=True)) for row in task.validation]
    held = Population(people.template, factuals, (people.preferences[0],) * len(factuals))
    each = {", ".join(f"{k} {v:g}" for k, v in changes.items()): changes for changes in CANDIDATES}
    _compare(task, held, each, (CHOOSING_SEED,), 1, epochs, out, "optima_choice.csv")


@app.command()
def rows(
    out: Out, epochs: Epochs = 120, seeds: Annotated[int, typer.Option(min=1, help="of each variant")] = 3
) -> None:
    """All refused test applicants, against certified optima."""
    task, people = _world()
    _compare(task, people, ROWS, SEEDS[:seeds], 0, epochs, out, "optima.csv")


def _world() -> tuple[Task, Population]:
    torch.set_num_threads(1)
    people = read_population(population_file("loan-smooth"))
    people = Population(replace(people.template, plausible=True), people.factuals, people.preferences)
    return loan_task(people.template), people


def _compare(
    task: Task,
    people: Population,
    each: Mapping[str, dict[str, float]],
    seeds: Sequence[int],
    drawn: int,
    epochs: int,
    out: Path,
    name: str,
) -> None:
    """Train every variant with every seed, and judge it on people with preferences of the seed ``drawn``."""
    through = StructuralModel.of_rows(task.template.scm, task.train)
    certified = Certified(people, task.levers, out / "judged", 60.0)
    wishes = [draw(one, len(people), drawn) for one in ASKED]
    with progress_bar("optima of those judged", len(certified.missing(wishes)), rate=True) as bar:
        certified.solve(wishes, bar.advance)
    made: list[dict[str, Any]] = []
    with progress_bar("training", len(seeds) * len(each) * epochs, rate=True) as bar:
        for seed in seeds:
            for variant, changes in each.items():
                settings = Settings.of_recipe(
                    "certified", "rank", **changes | {"seed": seed, "epochs": epochs}
                )
                optima = certify_optima(task, settings, out / "train") if settings.learns else None
                place = out / f"{variant.replace(' ', '_')}-{epochs}" / f"seed_{seed}"
                trainer = train(
                    task, through, settings, place, on_epoch=lambda _: bar.advance(), optima=optima
                )
                write_recommender(
                    trainer.model, place / "recommender.npz", {"best_epoch": trainer.best_epoch}
                )
                for setting, wish in zip(ASKED, wishes, strict=True):
                    judged = _judged(trainer.model, people, wish, certified.of(wish))
                    made.append(
                        {"variant": variant, **_about(settings, trainer), "setting": setting.label, **judged}
                    )
                write_table(out / name, made)


def _about(settings: Settings, trainer: Trainer) -> dict[str, float]:
    keys = ("seed", "margin", "density_margin", "imitation", "impossible")
    return {key: getattr(settings, key) for key in keys} | {"epochs": trainer.epoch}


def _judged(model: Recommender, people: Population, wishes: Wishes, exact: Exact) -> dict[str, float]:
    action, _ = model.recommend(people.rows, wishes)
    scored = score(people.template, model, people.rows, wishes, action)
    served = scored.serves(plausible=True)
    if exact.contradicted_by(served, scored.cost).any():
        raise RuntimeError("a recommendation contradicts a proof")
    both = served & exact.served
    cost, optimal = scored.cost[both], exact.cost[both]
    return {
        "exists": float(exact.served.mean()),
        "served": float(served.mean()),
        "valid": float(scored.sure.mean()),
        "plausible": float(scored.plausible.mean()),
        "ratio of means": float(cost.mean() / optimal.mean()),
        "median ratio": float(np.median(cost / optimal)),
    }


if __name__ == "__main__":
    app()
