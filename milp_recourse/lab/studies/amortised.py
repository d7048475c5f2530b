"""iCARMA's trained networks beside the paper's oracle: the same applicants with the same preferences.

A *cell* is one row of the paper's tables: everybody's preferences. The paper trains networks for each profile
and, in table 5, for each distribution of rankings. Networks get a row for a cell that demands plausibility if
they were trained on its kind of elicitation, on its profile or on all profiles, and on its distribution of
rankings or the uniform one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from milp_recourse.errors import BadInput
from milp_recourse.lab.gap.paper_settings import SETTINGS
from milp_recourse.lab.studies.kept_answers import Answer
from milp_recourse.lab.studies.paper_cells import SCENARIOS, Cell, Draws, Problem
from milp_recourse.lab.studies.tables import COLUMNS, head_of

if TYPE_CHECKING:
    from milp_recourse.lab.icarma.icarma_model import Recommender
    from milp_recourse.lab.icarma.sampling import Wishes
    from milp_recourse.lab.icarma.score import Recommended

PUBLISHED = "iCARMA published"
VALIDITY_WITHIN, PLAUSIBILITY_WITHIN = 0.03, 0.05
"""A row counts as ``within`` if validity and plausibility differ from the printed numbers by at most this."""

_SPREAD = ("validity", "plausibility", "validity as printed", "plausibility as printed")


@dataclass(frozen=True)
class Networks:
    """Networks of one recipe (a named set of settings), trained for one kind of preferences.

    Parameters
    ----------
    name
        The recipe's name in the tables.
    models
        One per seed.
    """

    name: str
    models: Sequence[Recommender]

    @property
    def method(self) -> str:
        """The name in the tables: the recipe's, with ``own orders`` if training drew rankings other than
        uniformly, and ``all profiles`` if it mixed the profiles."""
        settings = self.models[0].settings
        own = ", own orders" if settings.distribution != "uniform" else ""
        return f"iCARMA {self.name}{own}{', all profiles' if settings.profile == 'mixed' else ''}"

    def trained_for(self, cell: Cell) -> bool:
        """Whether the networks were trained for a cell's preferences (see the module)."""
        settings = self.models[0].settings
        if not cell.plausible or not settings.individual or settings.elicitation != cell.elicitation:
            return False
        orders = ("uniform",) if cell.distribution in SCENARIOS else ("uniform", cell.distribution)
        return settings.profile in ("mixed", cell.profile) and settings.distribution in orders


def read_networks(place: Path) -> Networks:
    """Read the networks of one checkpoint, or of every seed in a folder that ``icarma train`` wrote.

    They get the name of the file or folder (a ``recommender.npz`` that of its folder), without an ending that
    states what they were trained on: ``plain_linear`` becomes ``plain`` if the profile was linear.

    Raises
    ------
    BadInput
        ``place`` is neither.
    """
    from milp_recourse.lab.icarma.checkpoint import read_recommender

    if place.is_file():
        name = place.parent.name if place.stem == "recommender" else place.stem
        return _named(name, [read_recommender(place)[0]])
    found = {int(path.parent.name[5:]): path for path in place.glob("seed_*/recommender.npz")}
    if not found:
        raise BadInput("--networks", str(place), "a checkpoint, or a folder that icarma train wrote")
    return _named(place.name, [read_recommender(path)[0] for _, path in sorted(found.items())])


def _named(name: str, models: Sequence[Recommender]) -> Networks:
    settings = models[0].settings
    for trained_on in (settings.distribution, settings.profile, settings.elicitation):
        name = name.removesuffix(f"_{trained_on}")
    return Networks(name, models)


def amortised_rows(target: str, cell: Cell, draws: Draws, each: Sequence[Networks]) -> list[dict[str, Any]]:
    """The row that the paper prints for iCARMA, and one per recipe that was trained for the cell.

    Columns, each the mean over the seeds:

    - ``validity``: the share of all applicants whose outcome, by the true equations, the deployed model
      accepts;
    - ``plausibility``: the share of all applicants whose outcome is plausible by the true equations (for an
      oracle it is the share of those with an action); ``plausibility learned`` is by the networks' own flow;
    - ``... as printed``: measured as in the paper, on the flow's counterfactual of recommendations that are
      not clipped to the bounds (in the paper bounds are a penalty in training);
    - ``cost mean``, ``cost sd``: over the valid recommendations, with weights 1;
    - ``hap``: the share of recommendations that change the least preferred feature;
    - ``served``: how many recommendations are feasible for the certified problem;
    - ``... sd of seeds``: the sample standard deviation over the seeds, nan for one seed.
    """
    each = [networks for networks in each if networks.trained_for(cell)]
    if not each:
        return []
    head = head_of(target, cell, "penalty")
    rows: list[dict[str, Any]] = []
    printed = published_icarma(cell, int(target[-1]) if target.startswith("table") else 1)
    if printed:
        validity, plausibility, cost, *hap = printed
        shown = {"validity": validity, "plausibility": plausibility, "cost mean": cost}
        shown |= {"hap": hap[0]} if hap else {}
        shown |= {f"{key} as printed": shown[key] for key in ("validity", "plausibility")}
        rows.append(head | {"method": PUBLISHED} | shown)
    for networks in each:
        seeds = pd.DataFrame([_of_one(model, cell, draws) for model in networks.models])
        row: dict[str, Any] = head | {"method": networks.method, "seeds": len(seeds)}
        row["applicants"] = draws.size
        row |= {str(key): value for key, value in seeds.mean(skipna=False).items()}
        row |= {f"{key} sd of seeds": seeds[key].std(skipna=False) for key in _SPREAD}
        row["cost sd of seeds"] = seeds["cost mean"].std(skipna=False)
        if printed:
            row["validity - published"] = row["validity as printed"] - validity
            row["plausibility - published"] = row["plausibility as printed"] - plausibility
            row["cost / published"] = row["cost mean"] / cost
            near = abs(row["validity - published"]) <= VALIDITY_WITHIN
            near &= abs(row["plausibility - published"]) <= PLAUSIBILITY_WITHIN
            row["within"] = "yes" if near else "no"
        rows.append(row)
    return [{column: row.get(column) for column in COLUMNS} for row in rows]


def published_icarma(cell: Cell, table: int = 1) -> tuple[float, ...]:
    """The numbers that a table prints for iCARMA: validity, plausibility, mean cost, perhaps hap; else ()."""
    return next((tuple(one.icarma) for one in SETTINGS if (one.table, one.cell) == (table, cell)), ())


def recommendations(
    networks: Networks, cell: Cell, problems: Sequence[Problem], draws: Draws
) -> Mapping[Problem, Answer]:
    """The recommendations of the first seed's networks as answers, for the paper's figures.

    A recommendation counts as found if the deployed model accepts its outcome, plausible or not.
    """
    model = networks.models[0]
    _, found = _asked(model, cell, draws)
    scored, action, seconds = found.scored, found.action, found.seconds
    answers = {}
    for k, problem in enumerate(problems):
        if not scored.valid_deployed[k]:
            answers[problem] = Answer("not-found", None, None, None, seconds / draws.size)
            continue
        values = zip(model.levers, action[k, model.columns].tolist(), strict=True)
        acted = {name: value for name, value in values if not np.isnan(value)}
        answers[problem] = Answer("found", float(scored.cost[k]), None, acted, seconds / draws.size)
    return answers


def _asked(model: Recommender, cell: Cell, draws: Draws) -> tuple[Wishes, Recommended]:
    """The applicants' preferences in a cell, and the networks' recommendations."""
    from milp_recourse.lab.icarma.sampling import Wishes
    from milp_recourse.lab.icarma.score import recommended

    wishes = Wishes.of_scores(draws.scores(cell), cell.profile)
    return wishes, recommended(model, draws.population, wishes)


def _of_one(model: Recommender, cell: Cell, draws: Draws) -> dict[str, float]:
    from milp_recourse.lab.icarma.score import score

    wishes, found = _asked(model, cell, draws)
    short = found.scored.summary()
    uncut, _ = model.recommend(found.rows, wishes, within_bounds=False)
    as_printed = score(draws.population.template, model, found.rows, wishes, uncut).summary()
    return {
        "served": float(found.scored.serves(plausible=True).sum()),
        "validity": short["valid_deployed"],
        "plausibility": short["plausible"],
        "plausibility learned": short["plausible_flow"],
        "validity as printed": as_printed["valid_flow"],
        "plausibility as printed": as_printed["plausible_flow"],
        "cost mean": short["cost"],
        "cost sd": short["cost_sd"],
        "hap": short["hap"],
        "seconds mean": found.seconds / draws.size,
    }
