r"""Counterfactuals by gradient descent, without a causal model (Wachter et al. 2018, arXiv 1711.00399).

Minimises :math:`\lambda \max(0, m - h(x')) + \sum_i w_i ((x'_i - x_i) / s_i)^2` by Adam over the features
that the applicant can act on, with h the logit and m the threshold plus a margin. :math:`\lambda` is raised
until the network accepts x'. The values of x' are returned as the action; effects on other features are
ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.derived_networks import CurvedNetwork
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population

Array = NDArray[np.float64]
STEPS, RATE, PENALTIES = 300, 0.01, (0.1, 1.0, 10.0, 100.0)
MARGIN = 0.05
STILL = 1e-3  # features that change by less, in cost scales, are not acted on


def actions(frame: Any, population: Population) -> Any:
    """Everybody's actions, nan for features not acted on, without rows for applicants with no action."""
    import pandas as pd

    network = population.template.classifier
    if not isinstance(network, ReluNetwork) or isinstance(network, CurvedNetwork):
        raise Unsupported("gradient: the classifier is no ReLU network")
    names = [f.name for f in population.template.features]
    x = frame[names].to_numpy(dtype=np.float64)
    free = np.zeros(x.shape, dtype=bool)
    weight, scale = np.ones(x.shape), np.ones(x.shape)
    low, high = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
    for row, one in enumerate(population):
        for name, (least, largest) in one.levers.items():
            k = names.index(name)
            free[row, k], weight[row, k], scale[row, k] = True, one.weight(name), one.cost.lengths[name]
            low[row, k], high[row, k] = least, largest
    margin = max(population.margin_of(k) for k in range(len(population)))
    needed = population.template.accept.threshold + margin + MARGIN
    best = np.full(x.shape, np.nan)
    open_ = np.ones(len(x), dtype=bool)
    for penalty in PENALTIES:
        rows = np.flatnonzero(open_)
        if not len(rows):
            break
        moved = _descend(
            network, x[rows], free[rows], weight[rows], scale[rows], low[rows], high[rows], penalty, needed
        )
        good = network.evaluate(moved)[:, 0] >= needed - MARGIN
        best[rows[good]] = moved[good]
        open_[rows[good]] = False
    best[np.isnan(best) | (np.abs(best - x) < STILL * scale) | ~free] = np.nan
    served = ~np.isnan(best).all(axis=1)
    return pd.DataFrame(best, columns=names, index=frame.index)[served]


def _descend(
    network: ReluNetwork,
    x: Array,
    free: NDArray[np.bool_],
    weight: Array,
    scale: Array,
    low: Array,
    high: Array,
    penalty: float,
    needed: float,
) -> Array:
    step = np.zeros(x.shape)
    first, second = np.zeros(x.shape), np.zeros(x.shape)
    for t in range(1, STEPS + 1):
        point = np.clip(x + step * scale, np.where(free, low, x), np.where(free, high, x))
        logit, gradient = _logit_and_gradient(network, point)
        push = np.where(logit < needed, -penalty, 0.0)[:, None] * gradient * scale
        slope = np.where(free, push + 2 * weight * step, 0.0)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        step -= RATE * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-9)
    return np.clip(x + step * scale, np.where(free, low, x), np.where(free, high, x))


def _logit_and_gradient(network: ReluNetwork, x: Array) -> tuple[Array, Array]:
    z, masks = x, []
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        z = z @ weight.T + bias
        masks.append(z > 0)
        z = np.where(masks[-1], z, 0.0)
    logit = (z @ network.weights[-1].T + network.biases[-1])[:, 0]
    gradient = np.broadcast_to(network.weights[-1], (len(x), network.weights[-1].shape[1]))
    for weight, mask in zip(reversed(network.weights[:-1]), reversed(masks), strict=True):
        gradient = np.where(mask, gradient, 0.0) @ weight
    return logit, gradient
