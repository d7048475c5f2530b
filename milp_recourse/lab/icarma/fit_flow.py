"""Train the causal flow on rows of the observed features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.networks import fit_in_batches
from milp_recourse.problem.loan import loan

FLOW_SIZES = (20000, 2500, 2500)
"""Rows of the released flow split: train, validation, test."""

FLOW_STREAM = 7
"""Part of the seed of the flow's rows, so that they differ from those of the classifier's split."""


@dataclass(frozen=True)
class FlowTraining:
    """Settings of Adam: rate and layers are the paper's; it does not publish batch size and epochs."""

    hidden: tuple[int, ...] = (64, 64)
    batch: int = 256
    epochs: int = 60
    learning_rate: float = 1e-3


def loan_flow_rows(seed: int, sizes: tuple[int, int, int] = FLOW_SIZES) -> list[NDArray[np.float64]]:
    """Train, validation and test rows of Loan, drawn independently of the classifier's split."""
    rng = np.random.default_rng([seed, FLOW_STREAM])
    return [loan().sample(size, rng) for size in sizes]


def fit_flow(
    flow: CausalFlow,
    train: NDArray,
    validation: NDArray,
    seed: int,
    settings: FlowTraining,
    on_epoch: Callable[[], None] = lambda: None,
) -> CausalFlow:
    """Maximise the likelihood of the train rows, and keep the epoch that is best on the validation rows.

    The learning rate falls to zero along a cosine, which the paper does not mention.

    Parameters
    ----------
    flow
        The flow, which is changed in place and returned.
    train, validation
        Rows in raw units, shape (n, d).
    on_epoch
        Called after every epoch.
    """
    flow.standardise_by(train)
    rows, held = (
        torch.as_tensor(a, dtype=torch.float64, device=flow.mean.device) for a in (train, validation)
    )
    fit_in_batches(
        flow,
        lambda index: -flow.log_density(rows[index.to(rows.device)]).mean(),
        len(rows),
        batch=settings.batch,
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=seed,
        held=lambda: -flow.log_density(held).mean(),
        on_epoch=on_epoch,
    )
    return flow
