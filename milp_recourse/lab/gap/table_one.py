"""The paper's table 1 for trained networks, and checks of their masks and of the causal flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.icarma.fit_flow import loan_flow_rows
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.score import Scored, outside_masks, recommended
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.means import mean, sd
from milp_recourse.lab.recipe.loan_rows import sample_loan
from milp_recourse.problem.population import Population
from milp_recourse.problem.scm import StructuralCausalModel

CHUNK = 20_000


def table_one(model: Recommender, people: Population, seed: int = 0) -> list[dict[str, Any]]:
    """A row per setting of table 1: the networks' numbers, and those that the paper prints."""
    rows = []
    for setting in SETTINGS:
        if setting.table != 1:
            continue
        found = recommended(model, people, draw(setting, len(people), seed))
        row: dict[str, Any] = {"actionable": setting.label, **summary(found.scored)}
        row |= {"limited": found.limited.mean(), "seconds": found.seconds}
        paper = " / ".join(f"{number:g}" for number in setting.icarma)
        rows.append(row | {"published": paper})
    return rows


def summary(scored: Scored) -> dict[str, float]:
    """Shares of all recommendations; mean and standard deviation of the cost of the valid, with weights 1."""
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
    """How many of ``predictions`` recommendations violate the individual mask or the bounds.

    Half of the rows are sampled from Loan; the others are such rows moved to ten times their distance from
    the mean. Masks and weights are drawn as in training.
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
    """How far the flow's counterfactuals are from the true model's, after actions on one lever or on several.

    On each of :data:`FLOW_ROWS` new rows an action sets a lever to x_i + N(0, sd_i). For "several" it acts on
    each lever with probability 1/2. ``rms`` is the root mean square difference of a feature that follows, in
    its standard deviations; ``rms at the ends`` is the same over the tenth of the rows with the true model's
    most extreme outcomes.
    """
    rows = loan_flow_rows(seed, (1, 1, FLOW_ROWS))[2]
    sd, rng = rows.std(axis=0), np.random.default_rng(seed)
    levers = [flow.features.index(name) for name in LOAN_ACTIONABLE]
    found = []
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
            found.append(one | {"largest": float(np.abs(wrong[:, j]).max())})
    return found


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _rows(size: int, seed: int) -> NDArray[np.float64]:
    rows = sample_loan(seed, (size, 1, 1)).train.rows
    middle = rows.mean(axis=0)
    far = np.arange(size) % 2 == 1
    rows[far, 1:] = middle[1:] + 10 * (rows[far, 1:] - middle[1:])
    return rows
