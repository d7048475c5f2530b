"""Why networks trained on ranked preferences are less plausible than the printed rows of table 2.

    python docs/results/loan_smooth/ranked.py --out DIR --networks plain_concave --networks plain_linear ...

All four features are actionable, weights follow a profile. Two measurements, both in DIR/ranked.csv:

- of trained networks: how many features they act on, and whom the certified problem could still serve if only
  those features could be acted on (``served within the mask``): what the mask alone costs;
- the same for networks trained anew, all alike but for what the paper does not publish, the limits and the
  exponent of the priors that the mask network is pulled to (equation 14), or for the weight of that pull.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.gap.table_one import summary
from milp_recourse.lab.icarma.checkpoint import read_recommender, write_recommender
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.runs import write_table
from milp_recourse.lab.icarma.sampling import Profile, Wishes
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.icarma.task import Task, loan_task
from milp_recourse.lab.icarma.train import Trainer
from milp_recourse.lab.studies.amortised import published_icarma, read_networks
from milp_recourse.lab.studies.paper_cells import Cell, Draws
from milp_recourse.problem.population import Population
from milp_recourse.reports.progress import progress_bar

PROFILES: tuple[Profile, ...] = ("concave", "linear", "convex")


EXCHANGED = {"concave": 4.0, "linear": 1.0, "convex": 0.25}
"""Weights grow with h = t^alpha. Priors that fall with t^(1/alpha) fall with h to this power, 1/alpha^2."""


@dataclass(frozen=True)
class Pull:
    """What masks are pulled to, and how strongly.

    Parameters
    ----------
    high, low
        Priors of the most and of the least preferred feature.
    exchanged
        Whether priors fall with the reciprocal exponent: concave and convex exchanged, for priors only.
    divergence
        Weight of the pull.
    """

    high: float = 0.5
    low: float = 0.1
    exchanged: bool = False
    divergence: float = 1.5


VARIANTS: dict[str, Pull] = {
    "priors 0.5 to 0.1 (ours)": Pull(),
    "priors 0.9 to 0.1": Pull(0.9, 0.1),
    "priors 0.9 to 0.3": Pull(0.9, 0.3),
    "priors 0.9 to 0.1, exponents exchanged": Pull(0.9, 0.1, exchanged=True),
    "divergence weighted 0.05": Pull(divergence=0.05),
}


@dataclass(frozen=True)
class Pulled(Wishes):
    """Wishes with priors of their own."""

    given: NDArray[np.float64] | None = None

    @property
    def priors(self) -> NDArray[np.float64]:
        """Of the mask network, shape (n, k)."""
        assert self.given is not None
        return self.given


class PulledTrainer(Trainer):
    """A run whose masks are pulled to other priors."""

    def __init__(self, pull: Pull, task: Task, flow: CausalFlow, settings: Settings) -> None:
        self.pull = pull
        super().__init__(task, flow, settings)

    def _wishes(self, size: int, rng: np.random.Generator) -> Wishes:
        drawn, pull = super()._wishes(size, rng), self.pull
        exponent = EXCHANGED[self.settings.profile] if pull.exchanged else 1.0
        priors = pull.high - (pull.high - pull.low) * drawn.height**exponent
        given = np.where(drawn.actionable, priors, 0.0)
        return Pulled(drawn.actionable, drawn.weights, drawn.least, given=given)


def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; rerunning resumes.")],
    networks: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="what icarma train wrote")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="of the networks trained here")] = 60,
    seed: Annotated[int, typer.Option(help="of the networks trained here")] = 1000,
) -> None:
    """Measure and write."""
    torch.set_num_threads(1)
    people = read_population(population_file("loan-smooth"))
    people = Population(replace(people.template, plausible=True), people.factuals, people.preferences)
    out.mkdir(parents=True, exist_ok=True)
    made: list[dict[str, Any]] = []
    for place in networks or ():
        given = read_networks(place)
        for profile in PROFILES:
            if given.answer(Cell("4", profile=profile)):  # type: ignore[arg-type]
                made.append({"trained": given.method, **_judged(people, profile, given.models, out)})
                write_table(out / "ranked.csv", made)
    with progress_bar("training", len(VARIANTS) * len(PROFILES) * epochs, rate=True) as bar:
        for name, pull in VARIANTS.items():
            for profile in PROFILES:
                settings = Settings.of_recipe(
                    "plain", "rank", profile=profile, seed=seed, epochs=epochs, divergence=pull.divergence
                )
                path = out / f"{list(VARIANTS).index(name)}_{profile}_{seed}_{epochs}.npz"
                if not path.exists():
                    write_recommender(trained(people, settings, pull, bar.advance), path, {})
                model = read_recommender(path)[0]
                made.append({"trained": name, **_judged(people, profile, [model], out)})
                write_table(out / "ranked.csv", made)
    for row in made:
        typer.echo({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})


def trained(people: Population, settings: Settings, pull: Pull, advance: Any) -> Recommender:
    """Networks of the best epoch."""
    flow = read_recommender(shipped("constant"))[0].flow
    assert isinstance(flow, CausalFlow)
    trainer = PulledTrainer(pull, loan_task(people.template), flow, settings)
    while trainer.epoch < settings.epochs:
        trainer.step()
        advance()
    trainer.model.load(trainer.best)
    return trainer.model


def _judged(people: Population, profile: Profile, models: Sequence[Recommender], out: Path) -> dict[str, Any]:
    """Means over the seeds, all four features actionable, weights of the profile."""
    cell = Cell("4", profile=profile)  # type: ignore[arg-type]
    wishes = Wishes.of_scores(Draws(0, people).scores(cell), profile)  # type: ignore[arg-type]
    alone = Wishes(wishes.actionable, wishes.actionable.astype(np.float64), wishes.least)
    rows = people.rows
    certified = Certified(people, models[0].levers, out / "exact", 60.0)
    found = []
    for model in models:
        action, _ = model.recommend(rows, wishes)
        uncut, _ = model.recommend(rows, wishes, within_bounds=False)
        acted = ~np.isnan(action[:, model.columns])
        certified.solve([alone, alone & acted])  # whether recourse exists does not depend on weights
        scored = score(people.template, model, rows, wishes, action)
        printed = summary(score(people.template, model, rows, wishes, uncut))
        found.append(
            {
                "valid, as printed": printed["valid_flow"],
                "plausible, as printed": printed["plausible_flow"],
                "cost": summary(scored)["cost"],
                "hap": float(scored.hard.mean()),
                "features acted on": float(acted.sum(axis=1).mean()),
                "served": float(scored.serves(plausible=True).mean()),
                "served within the mask": float(certified.of(alone & acted).served.mean()),
                "served by all four": float(certified.of(alone).served.mean()),
            }
        )
    row: dict[str, Any] = {"profile": profile, "seeds": len(models)}
    row |= {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    names = ("valid", "plausible", "cost", "hap")
    values = published_icarma(cell, 2)
    return row | {f"published {name}": value for name, value in zip(names, values, strict=True)}


if __name__ == "__main__":
    typer.run(main)
