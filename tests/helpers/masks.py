"""Recommendations that break an individual mask or the bounds, counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.recipe.loan_rows import sample_loan


def mask_check(model: Any, predictions: int, seed: int = 0) -> int:
    """How many of ``predictions`` recommendations violate the individual mask or the bounds.

    Half of the rows are sampled from Loan; the others are such rows moved to ten times their distance from
    the mean. Masks and weights are drawn as in training.
    """
    wishes = model.settings.sampler.draw(predictions, np.random.default_rng([seed, 5]))
    return outside_masks(model, _rows(predictions, seed), wishes)


def outside_masks(model: Any, rows: NDArray, wishes: Wishes) -> int:
    """The number of recommendations that act on a feature outside the mask, or set a value outside bounds."""
    action, _ = model.recommend(rows, wishes)
    low, high = model.bounds.cpu().numpy()
    values = action[:, model.columns]
    acted = ~np.isnan(action)
    broken = (acted[:, model.columns] & ~wishes.actionable).any(axis=1)
    broken |= np.delete(acted, model.columns, axis=1).any(axis=1)
    broken |= ((values < low) | (values > high)).any(axis=1)
    return int(broken.sum())


def _rows(size: int, seed: int) -> NDArray:
    rows = sample_loan(seed, (size, 1, 1)).train.rows
    middle = rows.mean(axis=0)
    far = np.arange(size) % 2 == 1
    rows[far, 1:] = middle[1:] + 10 * (rows[far, 1:] - middle[1:])
    return rows
