"""How much of what separates the paper's grid from the optimum is its step.

    python docs/results/loan_smooth/finer_grid.py --out DIR

The first applicants with their two best ranked features (seed 0), constant and linear weights: by grids of 25
bins, as in the paper, and finer ones, and certified. DIR/finer_grid.csv has, per profile and number of bins,
who is missed, how much more the others pay, and how many change their least preferred feature at all
(``hap``) and by more than 5% of its range.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.icarma.runs import write_table
from milp_recourse.lab.studies.grid_together import SharedGrid
from milp_recourse.lab.studies.kept_answers import Answer
from milp_recourse.lab.studies.paper_cells import Cell, Draws
from milp_recourse.lab.studies.tables import Served, served, table
from milp_recourse.questions.solve import solve_together
from milp_recourse.reports.progress import progress_bar
from milp_recourse.solvers.grid import BINS

FINER = (BINS, 49, 97, 193, 385)
"""Every grid but for the cut at the bounds has the one before it among its points."""


def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the table goes.")],
    limit: Annotated[int, typer.Option(min=1, help="the first N applicants")] = 400,
) -> None:
    """Measure and write."""
    people = demanding(limit)
    draws, made = Draws(0, people), []
    cells = (Cell("2"), Cell("2", profile="linear"))
    with progress_bar("grids", len(cells) * (len(FINER) + 1) * len(people), rate=True) as bar:
        for cell in cells:
            problems = draws.problems(cell)
            asked = [p.instance(people.template, people.factuals[p.applicant]) for p in problems]
            optima = {}
            for problem, result in zip(problems, solve_together(asked, time_limit=60.0), strict=True):
                optima[problem] = Answer.of(result)
                bar.advance()
            certified = served(draws, cell, problems, optima)
            for bins in FINER:
                found = {}
                for problem, one in zip(problems, asked, strict=True):
                    found[problem] = Answer.of(SharedGrid(one, bins).solve(one))
                    bar.advance()
                made.append(row(cell, str(bins), served(draws, cell, problems, found), certified))
            made.append(row(cell, "optimum", certified, certified))
            out.mkdir(parents=True, exist_ok=True)
            write_table(out / "finer_grid.csv", made)
    for one in made:
        typer.echo({k: round(v, 3) if isinstance(v, float) else v for k, v in one.items()})


def demanding(limit: int) -> Any:
    """The first applicants, plausibility demanded."""
    people = read_population(population_file("loan-smooth"))[:limit]
    return replace(people, template=replace(people.template, plausible=True))


def row(cell: Cell, bins: str, mine: Served, certified: Served) -> dict[str, Any]:
    """One grid against the optimum."""
    numbers = next(one for one in table("finer", cell, mine, certified) if one["method"] == "grid")
    kept = ("applicants", "validity", "missed share", "excess of means", "excess median", "hap", "hap large")
    return {"profile": cell.profile, "bins": bins, **{key: numbers[key] for key in kept}}


if __name__ == "__main__":
    typer.run(main)
