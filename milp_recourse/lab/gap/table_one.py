"""The paper's table 1 for trained networks, and a check that masks hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.elicitation import LOAN_ACTIONABLE
from milp_recourse.domain.loan_rows import sample_loan
from milp_recourse.domain.scm import StructuralCausalModel
from milp_recourse.icarma.fit_flow import loan_flow_rows
from milp_recourse.icarma.flow import CausalFlow
from milp_recourse.icarma.model import Recommender
from milp_recourse.icarma.score import Scored, outside_masks, recommended
from milp_recourse.icarma.structural import StructuralModel
from milp_recourse.instance import Population
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.means import mean, sd

CHUNK = 20_000


def table_one(model: Recommender, people: Population, seed: int = 0) -> list[dict[str, Any]]:
    """One row per setting of table 1 with the published numbers beside ours."""
    made = []
    for setting in SETTINGS:
        if setting.table != 1:
            continue
        said = recommended(model, people, draw(setting, len(people), seed))
        row: dict[str, Any] = {"actionable": setting.label, **summary(said.scored)}
        row |= {"limited": said.limited.mean(), "seconds": said.seconds}
        paper = " / ".join(f"{number:g}" for number in setting.icarma)
        made.append(row | {"published": paper})
    return made


def summary(scored: Scored) -> dict[str, float]:
    """Shares, and the mean cost with weights 1 of the recommendations that the true model accepts."""
    cost = scored.plain_cost[scored.valid]
    return {
        "valid_flow": float(scored.valid_flow.mean()),
        "valid": float(scored.valid.mean()),
        "valid_deployed": float(scored.valid_deployed.mean()),
        "plausible_flow": float(scored.plausible_flow.mean()),
        "plausible": float(scored.plausible.mean()),
        "cost": mean(cost),
        "cost_sd": sd(cost),
        "hap": float(scored.hard.mean()),
        "actions": float(scored.actions.mean()),
    }


def mask_check(model: Recommender, predictions: int, seed: int = 0) -> int:
    """How many of so many predictions leave the individual mask or the bounds.

    Half of the rows are Loan's, half are the same stretched to ten times their distance from the
    mean; masks and weights are drawn as in training.
    """
    rng = np.random.default_rng([seed, 5])
    broken = 0
    for start in range(0, predictions, CHUNK):
        size = min(CHUNK, predictions - start)
        broken += outside_masks(model, _rows(size, start + seed), model.settings.sampler.draw(size, rng))
    return broken


FLOW_ROWS = 4000


def flow_check(
    flow: CausalFlow | StructuralModel, scm: StructuralCausalModel, seed: int = 11
) -> list[dict[str, Any]]:
    """How far the flow's counterfactuals are from the true model's, for do() of one feature and of several.

    Each of :data:`FLOW_ROWS` new rows gets the action x_i + N(0, sd_i); the last rows act on every lever with
    probability 1/2. ``rms`` is the root mean square difference of a follower in its standard deviations;
    ``rms at the ends`` the same over the tenth of the rows with the most extreme outcome of the true model.
    """
    rows = loan_flow_rows(seed, (1, 1, FLOW_ROWS))[2]
    sd, rng = rows.std(axis=0), np.random.default_rng(seed)
    levers = [flow.features.index(name) for name in LOAN_ACTIONABLE]
    made = []
    for acted in [*([i] for i in levers), levers]:
        chosen = np.zeros(rows.shape, dtype=bool)
        chosen[:, acted] = rng.random((len(rows), len(acted))) < (1.0 if len(acted) == 1 else 0.5)
        action = np.where(chosen, rows + rng.normal(size=rows.shape) * sd, np.nan)
        truth = scm.counterfactual(rows, action)
        wrong = np.where(chosen, 0.0, flow.counterfactual(rows, action) - truth) / sd
        far = np.abs(truth - rows.mean(axis=0)) / sd
        for j in levers:
            if not (wrong[:, j] != 0).any():
                continue
            ends = far[:, j] >= np.quantile(far[:, j], 0.9)
            name = flow.features[acted[0]] if len(acted) == 1 else "several"
            one: dict[str, Any] = {"acted on": name, "follower": flow.features[j]}
            one |= {"rms": _rms(wrong[:, j]), "rms at the ends": _rms(wrong[ends, j])}
            made.append(one | {"largest": float(np.abs(wrong[:, j]).max())})
    return made


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _rows(size: int, seed: int) -> NDArray[np.float64]:
    rows = sample_loan(seed, (size, 1, 1)).train.rows
    middle = rows.mean(axis=0)
    far = np.arange(size) % 2 == 1
    rows[far, 1:] = middle[1:] + 10 * (rows[far, 1:] - middle[1:])
    return rows
