"""``gap``: networks' recommendations against certified optima, in the settings of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.gap.compared import Compared
from milp_recourse.lab.gap.paper_settings import SETTINGS, Setting
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.score import hard_actions
from milp_recourse.lab.means import mean, quantiles
from milp_recourse.lab.run_table import write_table
from milp_recourse.problem.population import Population

ALSO_WITHOUT_PLAUSIBILITY = 1
"""The number of the paper's table whose settings are compared both with and without plausibility demanded."""


def plan(tables: Sequence[int]) -> list[tuple[Setting, bool]]:
    """The comparisons for these tables of the paper: (setting, whether plausibility is demanded)."""
    chosen = [s for s in SETTINGS if s.table in tables]
    return [(s, True) for s in chosen] + [(s, False) for s in chosen if s.table == ALSO_WITHOUT_PLAUSIBILITY]


def row_of(one: Compared, levers_factual: NDArray[np.float64], scale: NDArray[np.float64]) -> dict[str, Any]:
    """The row of one comparison in gap.csv; ``polished`` is the optimum within the networks' mask."""
    exact, within, scored = one.optimum, one.exact["mask"], one.scored
    extra = scored.cost[one.both] - exact.cost[one.both]
    moves = np.nan_to_num((exact.action - levers_factual) / scale)
    paper, oracle = one.setting.icarma, one.setting.oracle
    return {
        "table": one.setting.table,
        "setting": one.setting.label,
        "plausible_demanded": one.plausible,
        "applicants": len(one.wishes),
        "recourse_exists": exact.served.mean(),
        "impossible": exact.impossible.mean(),
        "open": (exact.status == "limit").mean(),
        "served": one.served.mean(),
        "missed": one.missed.mean(),
        **{f"icarma_{k}": v for k, v in scored.summary().items()},
        "icarma_limited": one.recommended.limited.mean(),
        "polished_served": within.served.mean(),
        **quantiles("polished_ratio", one.mask_ratio, median=0.5, p90=0.9),
        "exact_cost": mean(np.square(moves).sum(axis=1)[exact.served]),
        "exact_hap": mean(hard_actions(levers_factual, exact.action, one.wishes)[exact.served]),
        "both": int(one.both.sum()),
        **quantiles("cost_ratio", one.ratio, median=0.5, p10=0.1, p90=0.9),
        "cost_difference_mean": mean(extra),
        **quantiles("cost_difference", extra, median=0.5),
        "contradicted": int(one.contradicted.sum()),
        "exact_seconds": exact.seconds.sum(),
        "icarma_seconds": one.recommended.seconds,
        "published_valid": paper.validity,
        "published_plausible": paper.plausibility,
        "published_cost": paper.cost_mean,
        "published_hap": float("nan") if paper.hap is None else paper.hap,
        "published_oracle_valid": oracle.validity if oracle else float("nan"),
    }


def _applicants(one: Compared) -> Iterator[dict[str, Any]]:
    """One row per applicant."""
    columns: Mapping[str, NDArray[Any]] = {
        "actionable": one.wishes.actionable.sum(axis=1),
        "status": one.optimum.status,
        "optimal_cost": one.optimum.cost,
        **one.scored.columns(),
        "served": one.served,
        "missed": one.missed,
    }
    head = {"table": one.setting.table, "setting": one.setting.label, "plausible_demanded": one.plausible}
    for k in range(len(one.wishes)):
        yield head | {"index": k} | {name: values[k] for name, values in columns.items()}


def write(
    compared: Sequence[Compared], people: Population, model: Recommender, folder: Path
) -> list[dict[str, Any]]:
    """Write FOLDER/gap.csv (a row per comparison) and applicants.csv; return the rows of the first."""
    factual = people.rows[:, model.columns]
    scale = np.array([people.template.cost.lengths[f] for f in model.levers])
    rows = [row_of(one, factual, scale) for one in compared]
    write_table(folder / "gap.csv", [_plain(row) for row in rows])
    write_table(folder / "applicants.csv", [_plain(row) for one in compared for row in _applicants(one)])
    return rows


SHOWN = {
    "table": "table",
    "setting": "setting",
    "plausible_demanded": "plausible asked",
    "recourse_exists": "recourse exists",
    "served": "served",
    "missed": "missed",
    "icarma_valid": "valid",
    "icarma_plausible": "plausible",
    "icarma_hap": "hap",
    "exact_hap": "exact hap",
    "cost_ratio_median": "cost ratio",
    "polished_served": "polished",
    "polished_ratio_median": "its ratio",
    "cost_difference_mean": "cost +",
    "exact_seconds": "exact s",
    "icarma_seconds": "icarma s",
}
"""The columns that fit a terminal, and their short names."""


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with 1 and 0 in place of True and False."""
    return {k: int(v) if isinstance(v, (bool, np.bool_)) else v for k, v in row.items()}
