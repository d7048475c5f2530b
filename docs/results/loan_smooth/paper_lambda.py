"""Does the growing lambda of the recipe ``paper`` cost the plausibility that its rows lack?

    python docs/results/loan_smooth/paper_lambda.py --out DIR

``paper`` as it is (damped dual ascent) and with nothing else changed but lambda, which stays at 10: the same
seed and epochs, all refused test applicants, table 1. DIR/paper_lambda.csv.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.runs import write_table
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.icarma.task import loan_task
from milp_recourse.lab.icarma.train import train
from milp_recourse.lab.studies.amortised import Networks, amortised_rows
from milp_recourse.lab.studies.paper_cells import TABLES, Draws
from milp_recourse.reports.progress import progress_bar

KEPT = ("actionable", "validity as printed", "plausibility as printed", "cost mean", "served")


def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; rerunning resumes.")],
    epochs: Annotated[int, typer.Option(min=1, help="of the recipe's 450")] = 150,
) -> None:
    """Train, judge, write."""
    torch.set_num_threads(1)
    people = read_population(population_file("loan-smooth"))
    task, flow = loan_task(people.template), read_recommender(shipped("constant"))[0].flow
    made: list[dict[str, Any]] = []
    with progress_bar("training", 2 * epochs, rate=True) as bar:
        for name, dual in (("dual ascent", True), ("constant, 10", False)):
            settings = Settings.of_recipe(
                "paper", "rank", profile="constant", epochs=epochs, dual=dual, validity=10.0
            )
            place = out / ("dual" if dual else "constant")
            trainer = train(task, flow, settings, place, on_epoch=lambda _: bar.advance())
            for cell in TABLES["table1"]:
                networks = [Networks(name, [trainer.model])]
                row = amortised_rows("table1", cell, Draws(0, people), networks)[-1]
                last = {"lambda": name, "lambda at the end": trainer.multiplier, "epochs": epochs}
                made.append(last | {key: row[key] for key in KEPT})
            write_table(out / "paper_lambda.csv", made)
    for one in made:
        typer.echo({k: round(v, 3) if isinstance(v, float) else v for k, v in one.items()})


if __name__ == "__main__":
    typer.run(main)
