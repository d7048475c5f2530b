"""Evaluation of recommendations: under the flow, under the true equations, and by the deployed model."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.arrays import BoolArray, FloatArray
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.means import mean, sd
from milp_recourse.lab.measured import with_seconds
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population


@dataclass(frozen=True)
class Scored:
    """Recommendations evaluated in float64, one entry per applicant (``judge`` is exact).

    Attributes
    ----------
    cost, plain_cost
        Cost with the applicant's weights, and with weights 1, as the paper reports costs.
    valid_flow, valid, valid_deployed
        Whether the network accepts the flow's counterfactual, whether it accepts the true one, and whether
        the deployed network, in its own precision, accepts the true one.
    sure
        Whether the true counterfactual is accepted with the margin of the certified problem, and as deployed.
    plausible_flow, plausible
        Whether the counterfactual is at least as probable as the factual, under the flow and under the true
        model.
    actions
        Number of features acted on.
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
        """Whether the action is feasible for the certified problem, which may demand plausibility."""
        return self.sure & self.plausible if plausible else self.sure

    def summary(self) -> dict[str, float]:
        """Shares of all recommendations; mean and standard deviation of the cost of the valid, weights 1."""
        cost = self.plain_cost[self.valid]
        names = ("valid_flow", "valid", "valid_deployed", "plausible_flow", "plausible")
        shares = {name: float(getattr(self, name).mean()) for name in names}
        shares |= {"cost": mean(cost), "cost_sd": sd(cost), "hap": float(self.hard.mean())}
        return shares | {"actions": float(self.actions.mean())}

    def columns(self) -> dict[str, FloatArray]:
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
    """Evaluate actions of applicants of one model.

    Parameters
    ----------
    rows, action
        Factual rows and values of actions, shape (n, d); values are nan where not acted on.
    flow
        The flow for ``valid_flow`` and ``plausible_flow``; None for the networks' own.
    """
    learned_model = model.flow if flow is None else flow
    network, accept, scm = template.classifier, template.accept, template.scm
    assert isinstance(network, ReluNetwork)
    truth, learned = scm.counterfactual(rows, action), learned_model.counterfactual(rows, action)
    logit = network.evaluate(truth)[:, 0]
    deployed = np.array([network.deployed_logit(row) for row in truth]) >= accept.threshold
    columns = model.columns
    scale = np.array([template.cost.lengths[f] for f in model.levers])
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
    """Networks' recommendations for a population, evaluated.

    Attributes
    ----------
    rows
        The factuals, shape (n, d).
    action
        Values of the actions, shape (n, d), nan where not acted on.
    limited
        Whether bounds changed a value of the networks, shape (n,).
    seconds
        Processor time for all applicants.
    scored
        The evaluation.
    """

    rows: FloatArray
    action: FloatArray
    limited: BoolArray
    seconds: float
    scored: Scored


def recommended(model: Recommender, people: Population, wishes: Wishes) -> Recommended:
    """Compute the networks' recommendations, and evaluate them."""
    rows = people.rows
    (action, limited), seconds = with_seconds(lambda: model.recommend(rows, wishes))
    return Recommended(rows, action, limited, seconds, score(people.template, model, rows, wishes, action))
