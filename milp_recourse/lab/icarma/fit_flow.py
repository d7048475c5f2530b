"""Train the causal flow on rows of the observed features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.networks import fit_in_batches
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.problem.loan import loan
from milp_recourse.problem.scm import StructuralCausalModel

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
    train: NDArray[np.float64],
    validation: NDArray[np.float64],
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
