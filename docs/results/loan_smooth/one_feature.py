"""Why `plain` is accepted more often than the paper's networks where one feature is actionable.

    python docs/results/loan_smooth/one_feature.py --networks plain --out DIR

DIR/one_feature.csv, a line per feature that everybody may act on alone: the share that this classifier can
be made to accept at all within the bounds (certified, plausible or not), the share that networks get accepted
with values cut to the bounds, and with values that are not; means over the seeds in the folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.runs import write_table
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.studies.amortised import read_networks
from milp_recourse.problem.instance import Population
from milp_recourse.reports.progress import progress_bar


def main(
    networks: Annotated[Path, typer.Option(metavar="DIR", help="what icarma train --seeds wrote")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go; rerunning resumes.")],
) -> None:
    """Measure and write."""
    people = read_population(population_file("loan-smooth"))
    people = Population(replace(people.template, plausible=False), people.factuals, people.preferences)
    models = read_networks(networks).models
    levers, first = models[0].levers, models[0]
    rows = people.rows
    certified = Certified(people, levers, out / "one_feature", 60.0)
    wishes = []
    for j in range(len(levers)):
        alone = np.zeros((len(rows), len(levers)), dtype=bool)
        alone[:, j] = True
        wishes.append(Wishes(alone, alone.astype(np.float64), alone))
    with progress_bar("one feature", len(certified.missing(wishes)), rate=True) as bar:
        certified.solve(wishes, bar.advance)
    made = []
    for name, wish in zip(levers, wishes, strict=True):
        column = first.flow.features.index(name)
        shares = []
        for model in models:
            cut, free = (model.recommend(rows, wish, within_bounds=b)[0] for b in (True, False))
            inside, outside = (score(people.template, model, rows, wish, a) for a in (cut, free))
            beyond = (cut != free)[:, column] & ~np.isnan(cut[:, column])
            shares.append((inside.valid_deployed.mean(), outside.valid_flow.mean(), beyond.mean()))
        mean = np.mean(shares, axis=0)
        made.append(
            {
                "only": name,
                "seeds": len(models),
                "possible within bounds": float(certified.of(wish).served.mean()),
                "networks, cut to bounds": float(mean[0]),
                "networks, not cut": float(mean[1]),
                "asked beyond bounds": float(mean[2]),
            }
        )
    write_table(out / "one_feature.csv", made)
    for row in made:
        typer.echo(row)


if __name__ == "__main__":
    typer.run(main)
