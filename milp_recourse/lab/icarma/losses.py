r"""The terms of iCARMA's loss, one function per equation; each returns one number per applicant.

The training loss is the weighted sum of their means over a batch. (The paper sums equations 15 and 16 over
the applicants, and does not say how the others are reduced. With means, no weight depends on the batch size.)

Shapes: n applicants, k globally actionable features. ``acted`` is the mask I_u as numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor


def action_cost(acted: Tensor, weights: Tensor, change: Tensor) -> Tensor:
    r"""Equation 10: :math:`\sum_i I_i w_i \delta_i^2`; equations 7 and 9 have the same weights for everybody.

    Parameters
    ----------
    acted, weights
        Shape (n, k).
    change
        delta, action less factual in units of the cost's scale, shape (n, k).
    """
    return (acted * weights * change.square()).sum(dim=-1)


def mask_divergence(logits: Tensor, priors: Tensor, actionable: Tensor) -> Tensor:
    r"""Equation 13: :math:`\sum_i D_{KL}(Bernoulli(\mu_i) \| Bernoulli(\pi_i))`; equation 8 at 1/2.

    The sum is over the individually actionable features; the others are never acted on, whatever mu is.

    Parameters
    ----------
    logits
        log mu / (1 - mu), shape (n, k).
    priors
        pi in (0, 1) where actionable, shape (n, k).
    actionable
        Which features each person can act on (the mask), shape (n, k), boolean.
    """
    pi = torch.where(actionable, priors, 0.5)
    log_mu, log_not = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    mu = logits.sigmoid()
    terms = mu * (log_mu - pi.log()) + (1 - mu) * (log_not - (1 - pi).log())
    return torch.where(actionable, terms, 0.0).sum(dim=-1)


def validity_hinge(decision: Tensor, margin: float) -> Tensor:
    r"""Equation 6's last term: :math:`\max(0, \beta - h(x^{CF}))`, shape (n,).

    Parameters
    ----------
    decision
        h, positive where accepted. :class:`~milp_recourse.lab.icarma.settings.Settings` states its unit
        (``hinge``), which the paper does not.
    margin
        beta.
    """
    return torch.relu(margin - decision)


def implausibility(log_density: Tensor, log_density_after: Tensor, margin: float = 0.0) -> Tensor:
    r"""Equation 15: :math:`\max(0, \log p(x) + m - \log p(x^{CF}))`, shape (n,); m is 0 in the paper."""
    return torch.relu(log_density + margin - log_density_after)


def distance(values: Tensor, optimal: Tensor, known: Tensor, scale: Tensor) -> Tensor:
    r"""Squared distance to a certified optimum: :math:`\sum_i ((x^{CF}_i - x^*_i) / s_i)^2`, shape (n,).

    It is between counterfactuals instead of actions, so that holding a feature that would not move anyway
    makes no difference.

    Parameters
    ----------
    values, optimal
        Counterfactual values of the k features, raw units, shape (n, k).
    known
        Whether there is an optimum, boolean, shape (n,); the distance is 0 without one.
    scale
        s of the cost, shape (k,).
    """
    apart = ((values - optimal) / scale).square().sum(dim=-1)
    return torch.where(known, apart, 0.0)


def infeasibility(values: Tensor, low: Tensor, high: Tensor, actionable: Tensor) -> Tensor:
    r"""Equation 16: how far the counterfactual is outside the reference interval, relative to its upper end.

    .. math:: \sum_i 1\{x_i > max_i\} \frac{x_i - max_i}{max_i} + 1\{x_i < min_i\} \frac{min_i - x_i}{max_i}

    The sum is over the features that the person can act on. Unlike the paper, this divides by |max_i|, or
    by 1 where that is 0, so that it is a penalty whatever the upper end is.

    Parameters
    ----------
    values
        Counterfactual values of the k features in raw units, shape (n, k).
    low, high
        min and max, the ends of the reference interval, shape (k,).
    """
    excess = (torch.relu(values - high) + torch.relu(low - values)) / torch.where(high == 0, 1.0, high.abs())
    return torch.where(actionable, excess, 0.0).sum(dim=-1)
