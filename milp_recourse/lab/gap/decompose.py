"""``icarma decompose``: which part of the gap between networks and optimum is due to mask, direction, values.

Each problem is an applicant who can act on the 4, 3, 2 or 1 features that they rank highest, with weights 1
and plausibility demanded. The levels are those of :mod:`~milp_recourse.lab.gap.compared`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.judge import judge
from milp_recourse.lab.arrays import BoolArray, FloatArray
from milp_recourse.lab.gap.compared import MISSED, Compared, Level
from milp_recourse.lab.gap.paper_settings import SETTINGS
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.means import bootstrap, interval, mean, quantile
from milp_recourse.lab.run_table import write_table
from milp_recourse.problem.population import Population

PLAN = tuple((s, True) for s in SETTINGS if s.table == 1 and s.cell.actionable != "random")
"""Table 1's settings with a fixed number of features; True: plausibility is demanded."""
EXACT: tuple[Level, ...] = ("optimum", "mask", "direction")
LEVELS = (*EXACT, "networks")
QUARTERS = 4


def serves(one: Compared) -> dict[str, BoolArray]:
    """By level, who has a feasible action."""
    return {level: one.exact[level].served for level in EXACT} | {"networks": one.served}


def costs(one: Compared) -> dict[str, FloatArray]:
    """By level, costs; nan or meaningless for who has no feasible action."""
    return {level: one.exact[level].cost for level in EXACT} | {"networks": one.scored.cost}


def missed(one: Compared) -> dict[str, BoolArray]:
    """Who has a certified optimum but no feasible recommendation, by what is wrong with it."""
    valid, plausible = one.scored.sure, one.scored.plausible
    wrong = (valid & ~plausible, ~valid & plausible, ~valid & ~plausible)
    return {name: one.missed & how for name, how in zip(MISSED, wrong, strict=True)}


def row_of(one: Compared) -> dict[str, Any]:
    """The decomposition for one number of features.

    Costs are means over the applicants for whom the networks' recommendation is feasible (they have an action
    at every level); ``... low`` and ``... high`` are 95% bootstrap intervals over applicants. ``share of the
    excess`` is the increase of the mean cost from the level before, divided by that from optimum to networks.
    """
    who, optimum, count = one.served, one.optimum, int(one.setting.cell.actionable)
    row: dict[str, Any] = {"actionable": count, "problems": len(one.wishes)}
    row |= {"impossible": float(optimum.impossible.mean())}
    row |= {"limit": int((optimum.status == "limit").sum())}
    row |= {f"served, {name}": float(mine.mean()) for name, mine in serves(one).items()}
    row |= {name: float(mine.mean()) for name, mine in missed(one).items()}
    table = np.array([cost[who] for cost in costs(one).values()])
    row["both served"] = int(who.sum())
    samples = bootstrap(table.T, np.random.default_rng(count))
    for k, name in enumerate(LEVELS):
        low, high = interval(samples[:, k])
        row |= {f"cost, {name}": mean(table[k])}
        row |= {f"cost, {name} low": low, f"cost, {name} high": high}
    excess = row["cost, networks"] - row["cost, optimum"]
    for before, name in pairwise(LEVELS):
        row[f"share of the excess, {name}"] = (row[f"cost, {name}"] - row[f"cost, {before}"]) / excess
    row["median cost ratio, networks"] = quantile(table[3] / table[0], 0.5)
    return row | {"failed share": float((~who).mean())}


def seconds_of(one: Compared, people: Population, model: Recommender) -> dict[str, float]:
    """Processor seconds: to certify all applicants, or only those without a feasible recommendation; to run
    the networks; and to judge every recommendation exactly, which is measured here."""
    asked = Population(people.template, people.factuals, one.wishes.preferences(model.levers))
    clock = time.process_time()
    for k, action in enumerate(one.recommended.action[:, model.columns].tolist()):
        values = zip(model.levers, action, strict=True)
        judge(asked[k], {name: value for name, value in values if not np.isnan(value)})
    return {
        "seconds, certify all": float(one.optimum.seconds.sum()),
        "seconds, certify the failed": float(one.optimum.seconds[~one.served].sum()),
        "seconds, amortise": one.recommended.seconds,
        "seconds, check": time.process_time() - clock,
    }


def by_density(one: Compared, log_density: FloatArray) -> list[dict[str, Any]]:
    """:func:`row_of` for each quarter of the applicants, ordered by the log density of their factual values.

    Parameters
    ----------
    log_density
        Of the factuals under the true equations, in nats.
    """
    ends = np.quantile(log_density, np.linspace(0, 1, QUARTERS + 1))
    part = np.clip(np.searchsorted(ends, log_density, side="right") - 1, 0, QUARTERS - 1)
    return [
        {"quarter": k + 1, "log density from": float(ends[k]), "log density to": float(ends[k + 1])}
        | row_of(one.of(part == k))
        for k in range(QUARTERS)
        if (part == k).any()
    ]


def write(
    compared: Sequence[Compared], people: Population, model: Recommender, folder: Path
) -> list[dict[str, Any]]:
    """Write FOLDER/decomposition.csv and .svg (by number of features), by_density.csv (also by quarter of the
    applicants) and applicants.csv.gz (by problem); return the rows of the first."""
    from milp_recourse.lab.gap.gap_plots import plot_decomposition

    density = people.template.scm.log_density(compared[0].recommended.rows)
    rows = [row_of(one) | seconds_of(one, people, model) for one in compared]
    write_table(folder / "decomposition.csv", rows)
    write_table(folder / "by_density.csv", [row for one in compared for row in by_density(one, density)])
    write_table(folder / "applicants.csv.gz", [row for one in compared for row in _applicants(one)])
    plot_decomposition(rows, folder / "decomposition.svg")
    return rows


def _applicants(one: Compared) -> Iterator[dict[str, Any]]:
    """A row per problem: masks as 0s and 1s; costs of feasible actions, and of every recommendation."""
    found = {name: np.where(serves(one)[name], cost, np.nan) for name, cost in costs(one).items()}
    found["networks"] = one.scored.cost
    for k in range(len(one.wishes)):
        masks = ("".join("01"[int(b)] for b in mask[k]) for mask in (one.wishes.actionable, one.acted))
        row = {"actionable": one.setting.cell.actionable, "index": k}
        row |= dict(zip(("can", "acted"), masks, strict=True)) | {"status": one.optimum.status[k]}
        row |= {f"cost_{n}": None if np.isnan(values[k]) else values[k] for n, values in found.items()}
        row |= {"valid": int(one.scored.sure[k]), "plausible": int(one.scored.plausible[k])}
        yield row | {"seconds": f"{one.optimum.seconds[k]:.3g}"}
