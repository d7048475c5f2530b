"""Trained networks in the cells of the oracle's tables: the same applicants with the same preferences.

Only for cells with constant weights: the paper trains networks for each profile, these are for that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.studies.cells import Cell, Draws
from milp_recourse.studies.tables import COLUMNS, factual_rows

if TYPE_CHECKING:
    from milp_recourse.icarma.model import Recommender

PUBLISHED = "iCARMA published"
VALIDITY_WITHIN, PLAUSIBILITY_WITHIN = 0.03, 0.05
"""How near the networks' rows are expected to the printed ones."""

_SPREAD = {
    "validity": "validity sd of seeds",
    "plausibility": "plausibility sd of seeds",
    "validity as printed": "validity as printed sd of seeds",
    "plausibility as printed": "plausibility as printed sd of seeds",
    "cost mean": "cost sd of seeds",
}


@dataclass(frozen=True)
class Networks:
    """One recipe's networks.

    Parameters
    ----------
    name
        Of the recipe, as the tables show it.
    models
        One per seed.
    """

    name: str
    models: Sequence[Recommender]


def read_networks(place: Path) -> Networks:
    """Of a checkpoint, or of every seed in a folder that ``icarma train`` wrote, named after either;
    a ``recommender.npz`` after its folder.

    Raises
    ------
    BadInput
        Neither.
    """
    from milp_recourse.icarma.checkpoint import read_recommender

    if place.is_file():
        name = place.parent.name if place.stem == "recommender" else place.stem
        return Networks(name, [read_recommender(place)[0]])
    found = {int(path.parent.name[5:]): path for path in place.glob("seed_*/recommender.npz")}
    if not found:
        raise BadInput("--networks", str(place), "a checkpoint, or a folder that icarma train wrote")
    return Networks(place.name, [read_recommender(path)[0] for _, path in sorted(found.items())])


def amortised_rows(target: str, cell: Cell, draws: Draws, each: Sequence[Networks]) -> list[dict[str, Any]]:
    """The printed row of iCARMA and one row per recipe; none where the cell's weights differ.

    ``validity`` is by the true equations and the deployed model, over all applicants. ``plausibility`` is
    over all applicants too (an oracle serves only plausible ones); ``plausibility learned`` measures it with
    the networks' own flow. ``... as printed`` is what the paper reports: by the flow's counterfactual, of
    values that no bound has cut (bounds are a penalty in training there). Costs are over the valid, with
    weights 1. ``served`` counts actions that the certified problem admits. Everything is the mean over the
    seeds; ``... sd of seeds`` is their sample sd, nan for one.
    """
    if cell.profile != "constant" or not cell.plausible or not each:
        return []
    head = {
        "target": target,
        "actionable": cell.actionable,
        "distribution": cell.distribution,
        "profile": cell.profile,
        "plausibility asked": "penalty",
    }
    rows: list[dict[str, Any]] = []
    printed = published_icarma(cell)
    if printed:
        validity, plausibility, cost, *_ = printed
        shown = {"validity": validity, "plausibility": plausibility, "cost mean": cost}
        shown |= {f"{key} as printed": shown[key] for key in ("validity", "plausibility")}
        rows.append(head | {"method": PUBLISHED} | shown)
    for networks in each:
        seeds = [_of_one(model, cell, draws) for model in networks.models]
        row: dict[str, Any] = head | {"method": f"iCARMA {networks.name}", "seeds": len(seeds)}
        row["applicants"] = draws.size
        for key in seeds[0]:
            row[key] = float(np.mean([one[key] for one in seeds]))
        for key, name in _SPREAD.items():
            row[name] = float(np.std([one[key] for one in seeds], ddof=1)) if len(seeds) > 1 else float("nan")
        if printed:
            row["validity - published"] = row["validity as printed"] - validity
            row["plausibility - published"] = row["plausibility as printed"] - plausibility
            row["cost / published"] = row["cost mean"] / cost
            near = abs(row["validity - published"]) <= VALIDITY_WITHIN
            near &= abs(row["plausibility - published"]) <= PLAUSIBILITY_WITHIN
            row["within"] = "yes" if near else "no"
        rows.append(row)
    return [{column: row.get(column) for column in COLUMNS} for row in rows]


def published_icarma(cell: Cell) -> tuple[float, ...]:
    """Validity, plausibility and mean cost that the paper prints for iCARMA in a cell; () if it does not."""
    from milp_recourse.icarma.tables import SETTINGS

    for setting in SETTINGS:
        same = setting.table in (1, 5) and setting.distribution == cell.distribution
        if same and (str(setting.actionable) if setting.actionable else "random") == cell.actionable:
            return setting.icarma
    return ()


def _of_one(model: Recommender, cell: Cell, draws: Draws) -> dict[str, float]:
    from milp_recourse.icarma.evaluate import summary
    from milp_recourse.icarma.sampling import Wishes
    from milp_recourse.icarma.score import recommend_timed, score

    rows = factual_rows(draws.population)
    wishes = Wishes.of_scores(draws.scores(cell), cell.profile)
    action, _, seconds = recommend_timed(model, rows, wishes)
    scored = score(draws.population.template, model, rows, wishes, action)
    short = summary(scored)
    uncut, _ = model.recommend(rows, wishes, within_bounds=False)
    as_printed = summary(score(draws.population.template, model, rows, wishes, uncut))
    return {
        "served": float(scored.serves(plausible=True).sum()),
        "validity": short["valid_deployed"],
        "plausibility": short["plausible"],
        "plausibility learned": short["plausible_flow"],
        "validity as printed": as_printed["valid_flow"],
        "plausibility as printed": as_printed["plausible_flow"],
        "cost mean": short["cost"],
        "cost sd": short["cost_sd"],
        "hap": short["hap"],
        "seconds mean": seconds / len(rows),
    }
