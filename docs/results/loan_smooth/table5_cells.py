"""What the grid's rows of table 5 depend on, for one and two actionable features: is any row away from the
printed one for a reason that can be measured?

    python docs/results/loan_smooth/table5_cells.py --out DIR

The paper does not publish its rankings, its classifier or its applicants, measures plausibility with a
learned density, and its text cuts the grid differently. So the grid is asked about every applicant with every
single feature and every pair, in these worlds: the shipped classifier; the same with plausibility by the
shipped flow; the same with values not cut to the bounds; the nine other trained classifiers
(``instances/loan_smooth/attempts.csv``), each with its own applicants, bounds and scales. A row of table 5 is
a mean of these answers over rankings: it is looked up for so many draws of rankings.

Writes DIR/table5_cells.csv, a line per world and row: mean and standard deviation of validity and mean cost
over the draws, the printed numbers, and the share of draws within 0.05 and 20%; and DIR/table5_features.csv,
the grid's answers by feature. The first draw in the shipped world is checked against table5.csv.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.icarma.density import log_density
from milp_recourse.lab.icarma.runs import write_table
from milp_recourse.lab.recipe.loan_instances import lever_ranges
from milp_recourse.lab.recipe.loan_rows import sample_loan
from milp_recourse.lab.recipe.training import Training, deployed_logits, train_network
from milp_recourse.lab.studies.paper_cells import TABLES, Cell, Draws
from milp_recourse.lab.studies.published import published
from milp_recourse.lab.studies.tables import COST_WITHIN, VALIDITY_WITHIN
from milp_recourse.problem.instance import Instance, Population, Preferences
from milp_recourse.problem.loan import FEATURES
from milp_recourse.reports.progress import progress_bar
from milp_recourse.solvers.grid import BINS, HAIR, grid_values, log_density_gain, looks_accepted

Gain = Callable[[Instance, NDArray, NDArray[np.bool_]], NDArray]
MASKS = tuple(mask for count in (1, 2) for mask in combinations(LOAN_ACTIONABLE, count))
CELLS = tuple(Cell(count, distribution=d) for d in ("uniform", "causal", "reverse-causal") for count in "12")


def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the tables go.")],
    draws: Annotated[int, typer.Option(min=2, help="of rankings")] = 200,
    classifiers: Annotated[int, typer.Option(min=0, max=9, help="so many others")] = 9,
) -> None:
    """Measure and write."""
    shipped = read_population(population_file("loan-smooth"))
    made: list[dict[str, Any]] = []
    by_feature: list[dict[str, Any]] = []
    with progress_bar("grids", (3 + classifiers) * len(shipped), rate=True) as bar:
        for name, people, gain, cut in _worlds(shipped, classifiers):
            costs = np.array([_costs(people, k, gain, cut, bar.advance) for k in range(len(people))])
            rows = [_row(name, cell, people, costs, draws) for cell in CELLS]
            if name == "shipped":
                _check(rows)
            made += rows
            by_feature += [
                {
                    "world": name,
                    "features": "+".join(mask),
                    "validity": float(np.isfinite(costs[:, m]).mean()),
                    "cost mean": float(costs[np.isfinite(costs[:, m]), m].mean()),
                }
                for m, mask in enumerate(MASKS)
            ]
            out.mkdir(parents=True, exist_ok=True)
            write_table(out / "table5_cells.csv", made)
            write_table(out / "table5_features.csv", by_feature)
    for row in made:
        typer.echo({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})


def _worlds(shipped: Population, others: int) -> Iterator[tuple[str, Population, Gain, bool]]:
    yield "shipped", shipped, _true_gain, True
    yield "plausibility by the flow", shipped, _learned_gain, True
    yield "values not cut to the bounds", shipped, _true_gain, False
    for seed in range(1, 1 + others):
        yield f"classifier {seed}", _retrained(shipped, seed), _true_gain, True


def _retrained(shipped: Population, seed: int) -> Population:
    """Whom another network refuses, with what follows from it: bounds, scales, no margin."""
    data, template = sample_loan(0), shipped.template
    network = train_network(data.train, seed, Training.released())
    refused = data.test.rows[deployed_logits(network, data.test.rows) < 0]
    low, high, scale = lever_ranges(data.train.rows, network)
    features = tuple(
        replace(f, bounds=(low[f.name], high[f.name])) if f.actionable else f for f in template.features
    )
    factuals = [dict(zip(FEATURES, map(float, row), strict=True)) for row in refused]
    changed = replace(
        template,
        classifier=network,
        features=features,
        accept=replace(template.accept, margin=0.0),
        cost=replace(template.cost, scale=scale),
        factual=factuals[0],
    )
    return Population(changed, factuals, shipped.preferences[:1] * len(factuals))


def _true_gain(instance: Instance, rows: NDArray, acted: NDArray[np.bool_]) -> NDArray:
    return log_density_gain(instance.scm, instance.factual_row, rows, acted)


def _learned_gain(instance: Instance, rows: NDArray, _: NDArray[np.bool_]) -> NDArray:
    density = log_density(np.concatenate((instance.factual_row[None], rows)))
    return density[1:] - density[0]


def _costs(
    people: Population, k: int, gain: Gain, cut: bool, advance: Callable[[], None]
) -> NDArray[np.float64]:
    """The grid's cost of one applicant under every mask, infinite where it finds nothing."""
    one = replace(people.template, factual=people.factuals[k], preferences=Preferences(LOAN_ACTIONABLE))
    names = [f.name for f in one.features]
    actions, mask_of = [], []
    for m, mask in enumerate(MASKS):
        values = [np.r_[np.nan, _values(one, name, cut)] for name in mask]
        product = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(mask))
        action = np.full((len(product), len(names)), np.nan)
        action[:, [names.index(name) for name in mask]] = product
        actions.append(action)
        mask_of.append(np.full(len(product), m))
    action, which = np.concatenate(actions), np.concatenate(mask_of)
    rows, acted = one.scm.counterfactual(one.factual_row, action), ~np.isnan(action)
    kept = np.flatnonzero(gain(one, rows, acted) >= -HAIR)
    kept = kept[looks_accepted(one, rows[kept])]
    levers = [names.index(name) for name in LOAN_ACTIONABLE]
    scale = np.array([one.cost.scale[name] for name in LOAN_ACTIONABLE])
    moves = np.nan_to_num((action[kept][:, levers] - one.factual_row[levers]) / scale)
    least = np.full(len(MASKS), np.inf)
    np.minimum.at(least, which[kept], (moves**2).sum(axis=1))
    advance()
    return least


def _values(one: Instance, name: str, cut: bool) -> NDArray[np.float64]:
    if cut:
        return grid_values(one, name)
    (low, high), x = one.feature(name).action_bounds, one.factual[name]
    return np.unique(np.linspace(x - 2 * (x - low), x + 2 * (high - x), BINS))


def _row(world: str, cell: Cell, people: Population, costs: NDArray, draws: int) -> dict[str, Any]:
    found = []
    for seed in range(draws):
        scores = Draws(seed, people).scores(cell)
        asked = [
            MASKS.index(tuple(f for f, can in zip(LOAN_ACTIONABLE, one, strict=True) if can))
            for one in scores.actionable
        ]
        mine = costs[np.arange(len(costs)), asked]
        served = np.isfinite(mine)
        found.append((float(served.mean()), float(mine[served].mean())))
    validity, cost = np.array(found).T
    printed = published("table5" if cell in TABLES["table5"] else "table1", cell)
    assert printed is not None
    near = np.abs(validity - printed.validity) <= VALIDITY_WITHIN
    near &= np.abs(cost / printed.cost_mean - 1) <= COST_WITHIN
    return {
        "world": world,
        "row": f"{cell.distribution}, {cell.actionable}",
        "applicants": len(people),
        "draws": draws,
        "validity, first draw": validity[0],
        "validity": float(validity.mean()),
        "validity sd of draws": float(validity.std(ddof=1)),
        "cost mean, first draw": cost[0],
        "cost mean": float(cost.mean()),
        "cost mean sd of draws": float(cost.std(ddof=1)),
        "published validity": printed.validity,
        "published cost": printed.cost_mean,
        "within": float(near.mean()),
    }


def _check(rows: list[dict[str, Any]]) -> None:
    """The first draw is what ``reproduce table5`` found by the package's grid."""
    with (Path(__file__).parent / "table5.csv").open(encoding="utf-8") as file:
        known = {
            f"{row['distribution']}, {row['actionable']}": row
            for row in csv.DictReader(file)
            if row["method"] == "grid"
        }
    for row in rows:
        if row["row"] in known:
            for mine, its in (("validity, first draw", "validity"), ("cost mean, first draw", "cost mean")):
                if abs(row[mine] - float(known[row["row"]][its])) > 1e-5:
                    raise RuntimeError(
                        f"{row['row']}: {its} {row[mine]}, in table5.csv {known[row['row']][its]}"
                    )


if __name__ == "__main__":
    typer.run(main)
