"""Training of a ReLU network with torch, as a classifier or as a regression (a structural equation)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.icarma.networks import fit_in_batches, perceptron
from milp_recourse.problem.network import DType, ReluNetwork
from milp_recourse.readers.standardisation import standardised


@dataclass(frozen=True)
class ReluTraining:
    """Settings of the training by Adam.

    Parameters
    ----------
    hidden
        Number of ReLU units per hidden layer.
    decay
        Whether the learning rate falls to zero along a cosine.
    best
        Whether to keep the epoch with the least loss on the validation rows instead of the last one.
    """

    hidden: tuple[int, ...]
    epochs: int
    batch: int = 256
    learning_rate: float = 1e-3
    decay: bool = False
    best: bool = False


def fit_relu(
    train: tuple[FloatArray, FloatArray],
    validation: tuple[FloatArray, FloatArray],
    settings: ReluTraining,
    seed: int,
    loss: Literal["squared", "logistic"],
    row_weights: FloatArray | None = None,
    dtype: DType = "float64",
    on_epoch: Callable[[], None] = lambda: None,
) -> ReluNetwork:
    """A network of raw inputs and outputs: standardisation is folded into its first and last layer.

    Parameters
    ----------
    train, validation
        Rows (n, d) and targets (n,). Targets are numbers for loss ``squared``; for ``logistic`` they are 0 or
        1, and the output is a logit.
    row_weights
        Weights of the train rows in the mean loss, shape (n,); None for weights 1.
    dtype
        Precision of the returned network, whose weights are rounded to it.
    """
    mean, sd = train[0].mean(axis=0), train[0].std(axis=0)
    centre, unit = (train[1].mean(), train[1].std()) if loss == "squared" else (0.0, 1.0)
    sets = [
        (torch.as_tensor((x - mean) / sd), torch.as_tensor((y - centre) / unit, dtype=torch.float64))
        for x, y in (train, validation)
    ]
    weights = torch.ones(len(train[1])) if row_weights is None else torch.as_tensor(row_weights)
    criterion: Callable[..., torch.Tensor] = (
        torch.nn.functional.mse_loss
        if loss == "squared"
        else torch.nn.functional.binary_cross_entropy_with_logits
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = perceptron(train[0].shape[1], settings.hidden, 1)
    (rows, targets), (held_rows, held_targets) = sets

    def batch_loss(index: torch.Tensor) -> torch.Tensor:
        each = criterion(model(rows[index])[:, 0], targets[index], reduction="none")
        return (weights[index] * each).mean()

    fit_in_batches(
        model,
        batch_loss,
        len(rows),
        batch=settings.batch,
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=seed,
        decay=settings.decay,
        held=(lambda: criterion(model(held_rows)[:, 0], held_targets)) if settings.best else None,
        on_epoch=on_epoch,
    )
    layers = [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in model
        if isinstance(layer, torch.nn.Linear)
    ]
    weight, bias = layers[-1]
    layers[-1] = (weight * unit, bias * unit + centre)
    return standardised(ReluNetwork.from_layers(layers), mean, sd, dtype=dtype)
