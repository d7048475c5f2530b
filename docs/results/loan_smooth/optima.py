"""What certified answers teach networks, with weights in the loop, and what refinement adds, on loan-smooth.

    python docs/results/loan_smooth/optima.py choose --out DIR    # weights, steps, on validation rows
    python docs/results/loan_smooth/optima.py rows --out DIR    # all test applicants

``choose`` writes DIR/optima_choice.csv, ``rows`` DIR/optima.csv, a line per variant, seed, way and setting of
the tables. Both go on where they stopped. One pair of networks serves all profiles of weights and all masks,
and learns through the true equations. ``milliseconds`` are of processor time, per person.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.icarma.checkpoint import write_recommender
from milp_recourse.lab.icarma.exact import Certified, Exact
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.refine import Start, refine
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.icarma.settings import REFINED, SEEDS, Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.task import Task, loan_task
from milp_recourse.lab.icarma.train import train
from milp_recourse.lab.icarma.training_optima import certify_optima
from milp_recourse.lab.run_table import write_table
from milp_recourse.problem.population import Population
from milp_recourse.reports.progress import progress_bar

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

ROWS: dict[str, dict[str, float]] = {
    "demands only": {"imitation": 0.0, "impossible": 1.0},
    "failures left out": {"imitation": 0.0},
    "optima and failures": {},
}
"""Changes of the recipe ``refined``."""
CHOOSING_SEED = 500
TESTED_SEEDS = SEEDS[3:]
"""Those before were looked at, on validation rows, while the steps were made."""
CANDIDATES: tuple[dict[str, float], ...] = (
    *({"imitation": 0.0, "impossible": share} for share in (1.0, 0.2, 0.0)),
    *({"imitation": weight} for weight in (3.0, 10.0, 30.0)),
)
ASKED = [one for one in SETTINGS if one.table == 2 and one.cell.profile in ("constant", "linear")]

Ways = dict[str, tuple[Callable[[Recommender, Tensor, Wishes], Sequence[Start]], int]]
"""By name, where steps begin, and how many there are."""

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; rerunning resumes.")]
Epochs = Annotated[int, typer.Option(min=1, help="of each run")]


def proposed(model: Recommender, rows: Tensor, wishes: Wishes) -> list[Start]:
    """The networks' values, within their mask, and with every actionable feature acted on."""
    preferences = (torch.as_tensor(a) for a in (wishes.actionable, wishes.height))
    return model.starts(rows, model.flow.abduct(rows), *preferences)


def within_mask(*given: Any) -> list[Start]:
    """The first of these."""
    return proposed(*given)[:1]


def factual(model: Recommender, rows: Tensor, wishes: Wishes) -> list[Start]:
    """The factual, with every actionable feature acted on."""
    return [Start(torch.as_tensor(wishes.actionable), rows[:, model.columns])]


def and_random(model: Recommender, rows: Tensor, wishes: Wishes) -> list[Start]:
    """The factual, and a point drawn around it with the features' standard deviations."""
    [start] = factual(model, rows, wishes)
    away = torch.as_tensor(np.random.default_rng(0).normal(size=start.values.shape))
    return [start, Start(start.acted, start.values + away * model.flow.sd[model.columns])]


def every_mask(model: Recommender, rows: Tensor, wishes: Wishes) -> list[Start]:
    """The factual, with each set of features acted on."""
    [start] = factual(model, rows, wishes)
    masks = (torch.tensor(mask) for mask in product((False, True), repeat=len(model.levers)) if any(mask))
    return [Start(start.acted & mask, start.values) for mask in masks]


STEPS: int = REFINED["steps"]
NETWORKS: Ways = {"networks": (within_mask, 0)}
TESTED = NETWORKS | {"steps within their mask": (within_mask, STEPS), "refined": (proposed, STEPS)}
CHOSEN_AMONG = NETWORKS | {f"{steps} steps": (proposed, steps) for steps in (5, 10, 20)}
UNTRAINED: Ways = {
    "factual": (factual, STEPS),
    "factual and a random point": (and_random, STEPS),
    "factual, every mask": (every_mask, STEPS),
}


@app.command()
def choose(out: Out, epochs: Epochs = 20) -> None:
    """One seed that no row has: share of the refused validation rows served, beside what is possible."""
    task, people = _world()
    names = [f.name for f in people.template.features]
    factuals = [dict(zip(names, map(float, row), strict=True)) for row in task.validation]
    held = Population(people.template, factuals, (people.preferences[0],) * len(factuals))
    each = {", ".join(f"{k} {v:g}" for k, v in changes.items()): changes for changes in CANDIDATES}
    made = _trained(task, held, each, CHOSEN_AMONG, (CHOOSING_SEED,), 1, epochs, out)
    write_table(out / "optima_choice.csv", made)


@app.command()
def rows(
    out: Out, epochs: Epochs = 60, seeds: Annotated[int, typer.Option(min=1, max=7, help="a variant")] = 3
) -> None:
    """All refused test applicants, against certified optima."""
    task, people = _world()
    write_table(
        out / "optima.csv", _trained(task, people, ROWS, TESTED, TESTED_SEEDS[:seeds], 0, epochs, out)
    )


def _world() -> tuple[Task, Population]:
    torch.set_num_threads(1)
    people = read_population(population_file("loan-smooth"))
    people = Population(replace(people.template, plausible=True), people.factuals, people.preferences)
    return loan_task(people.template), people


def _trained(
    task: Task,
    people: Population,
    each: Mapping[str, dict[str, float]],
    ways: Ways,
    seeds: Sequence[int],
    drawn: int,
    epochs: int,
    out: Path,
) -> list[dict[str, Any]]:
    """Train every variant with every seed, and judge it on people with preferences of the seed ``drawn``."""
    through = StructuralModel.of_rows(task.template.scm, task.train)
    certified = Certified(people, task.levers, out / "judged", 60.0)
    wishes = [draw(one, len(people), drawn) for one in ASKED]
    with progress_bar("optima of those judged", len(certified.missing(wishes)), rate=True) as bar:
        certified.solve(wishes, bar.advance)
    made: list[dict[str, Any]] = []

    def judge(model: Recommender, ways: Ways, about: dict[str, Any]) -> None:
        for (setting, wish), (way, (starts, steps)) in product(zip(ASKED, wishes, strict=True), ways.items()):
            clock = time.process_time()
            action = _refined(model, people.rows, wish, starts, steps)
            spent = (time.process_time() - clock) * 1e3 / len(people)
            judged = _judged(model, people, wish, certified.of(wish), action)
            made.append(about | {"way": way, "setting": setting.label, **judged, "milliseconds": spent})

    with progress_bar("training", len(seeds) * len(each) * epochs, rate=True) as bar:
        for seed, (variant, changes) in product(seeds, each.items()):
            settings = Settings.of_recipe("refined", "rank", **changes | {"seed": seed, "epochs": epochs})
            optima = certify_optima(task, settings, out / "train") if settings.learns else None
            place = out / f"{variant.replace(' ', '_')}-{epochs}" / f"seed_{seed}"
            trainer = train(task, through, settings, place, on_epoch=lambda _: bar.advance(), optima=optima)
            write_recommender(trainer.model, place / "recommender.npz", {"best_epoch": trainer.best_epoch})
            judge(trainer.model, ways, {"variant": variant, "seed": seed, "epochs": epochs})
    judge(trainer.model, UNTRAINED, {"variant": "no networks", "seed": None, "epochs": None})
    return made


def _refined(model: Recommender, table: NDArray, wishes: Wishes, starts: Any, steps: int) -> NDArray:
    rows, weights = torch.as_tensor(table), torch.as_tensor(wishes.weights)
    with torch.no_grad():
        begun = starts(model, rows, wishes)
    assert model.demands is not None
    best = refine(model.flow, model.columns, model.demands, rows, weights, tuple(model.bounds), begun, steps)
    action = np.full(table.shape, np.nan)
    action[:, model.columns] = torch.where(best.acted, best.values, torch.nan).numpy()
    return action


def _judged(
    model: Recommender, people: Population, wishes: Wishes, exact: Exact, action: NDArray
) -> dict[str, float]:
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
        "ratio of a tenth": float(np.quantile(cost / optimal, 0.9)),
        "milliseconds to certify": float(exact.seconds.mean() * 1e3),
    }


if __name__ == "__main__":
    app()
