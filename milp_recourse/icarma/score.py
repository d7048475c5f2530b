"""What a recommendation is worth: under the flow, under the true equations, as deployed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.network import ReluNetwork
from milp_recourse.icarma.flow import CausalFlow
from milp_recourse.icarma.model import Recommender
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.instance import Instance, Population

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Recommendations judged, one entry per applicant, in float64 (``judge`` does it exactly).

    Attributes
    ----------
    cost, plain_cost
        With the applicant's weights; with weights 1, as the paper reports costs.
    valid_flow, valid, valid_deployed
        Accepted: the flow's counterfactual, the true one, the true one by the deployed model in its
        own precision.
    sure
        The true one by the margin that the certified problem asks for, and as deployed.
    plausible_flow, plausible
        At least as probable as the factual, under the flow and under the true model.
    actions
        How many features are acted on.
    hard
        Whether a least preferred feature is changed.
    """

    cost: FloatArray
    plain_cost: FloatArray
    valid_flow: BoolArray
    valid: BoolArray
    valid_deployed: BoolArray
    sure: BoolArray
    plausible_flow: BoolArray
    plausible: BoolArray
    actions: NDArray[np.int64]
    hard: BoolArray

    def serves(self, plausible: bool) -> BoolArray:
        """Whether the certified problem would admit the action."""
        return self.sure & self.plausible if plausible else self.sure

    def columns(self) -> dict[str, NDArray]:
        """Every attribute by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def score(
    template: Instance,
    model: Recommender,
    rows: FloatArray,
    wishes: Wishes,
    action: FloatArray,
    flow: CausalFlow | None = None,
) -> Scored:
    """Judge actions, shape (n, d), nan where not acted on, of a population of one model.

    Parameters
    ----------
    flow
        What ``valid_flow`` and ``plausible_flow`` are measured with; None: what the networks look through.
    """
    learned_model = model.flow if flow is None else flow
    network, accept, scm = template.classifier, template.accept, template.scm
    assert isinstance(network, ReluNetwork)
    truth, learned = scm.counterfactual(rows, action), learned_model.counterfactual(rows, action)
    logit = network.evaluate(truth)[:, 0]
    deployed = np.array([network.deployed_logit(row) for row in truth]) >= accept.threshold
    columns = model.columns
    scale = np.array([template.cost.scale[f] for f in model.levers])
    acted = ~np.isnan(action[:, columns])
    moves = np.where(acted, action[:, columns] - rows[:, columns], 0.0)
    squares = np.square(moves / scale)
    return Scored(
        cost=(wishes.weights * squares).sum(axis=1),
        plain_cost=squares.sum(axis=1),
        valid_flow=network.evaluate(learned)[:, 0] >= accept.threshold,
        valid=logit >= accept.threshold,
        valid_deployed=deployed,
        sure=(logit >= accept.threshold + accept.margin) & deployed,
        plausible_flow=learned_model.log_densities(learned) >= learned_model.log_densities(rows),
        plausible=scm.log_density(truth) >= scm.log_density(rows),
        actions=acted.sum(axis=1),
        hard=hard_actions(rows[:, columns], action[:, columns], wishes),
    )


def hard_actions(factual: FloatArray, action: FloatArray, wishes: Wishes) -> BoolArray:
    """Whether an action changes a least preferred feature; levers only, nan where not acted on."""
    changed = ~np.isnan(action) & (action != factual)
    return (changed & wishes.least).any(axis=1)


@dataclass(frozen=True)
class Recommended:
    """What networks say to a population.

    Attributes
    ----------
    rows
        The factuals, shape (n, d).
    action
        Values, nan where not acted on, shape (n, d).
    limited
        Whether bounds cut the recommendation.
    seconds
        Processor time for all applicants.
    scored
        The recommendations, judged.
    """

    rows: FloatArray
    action: FloatArray
    limited: BoolArray
    seconds: float
    scored: Scored


def recommended(model: Recommender, people: Population, wishes: Wishes) -> Recommended:
    """Ask networks, and judge what they say."""
    rows = rows_of_population(people.factuals, model.flow.features)
    start = time.process_time()
    action, limited = model.recommend(rows, wishes)
    seconds = time.process_time() - start
    return Recommended(rows, action, limited, seconds, score(people.template, model, rows, wishes, action))


def outside_masks(model: Recommender, rows: FloatArray, wishes: Wishes) -> int:
    """How many recommendations act on something the applicant cannot, or outside the bounds."""
    action, _ = model.recommend(rows, wishes)
    low, high = model.bounds.cpu().numpy()
    asked = action[:, model.columns]
    acted = ~np.isnan(action)
    broken = (acted[:, model.columns] & ~wishes.actionable).any(axis=1)
    broken |= np.delete(acted, model.columns, axis=1).any(axis=1)
    broken |= ((asked < low) | (asked > high)).any(axis=1)
    return int(broken.sum())


def rows_of_population(factuals: Sequence[object], features: Sequence[str]) -> FloatArray:
    """Factuals as rows, shape (n, d)."""
    return np.array([[one[f] for f in features] for one in factuals])  # type: ignore[index]
