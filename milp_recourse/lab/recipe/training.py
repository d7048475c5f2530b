"""Trains the Loan classifier: a 32 x 32 ReLU network on raw features, rounded to float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import RecourseError
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.recipe.loan_rows import Split
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.readers.standardisation import standardised


@dataclass(frozen=True)
class Training:
    """How the network is trained; the defaults are those in the iCARMA paper's text (appendix C.2.2).

    Parameters
    ----------
    hidden
        ReLU units per hidden layer.
    batch, epochs, learning_rate
        Settings of the optimiser. Training is never stopped early, and there is no weight decay.
    solver
        ``adam`` with decay rates (0.9, 0.999), or ``sgd`` without momentum.
    library
        The library that trains. Initial weights differ: ``sklearn`` draws them by Glorot and Bengio,
        ``torch`` uniformly within 1 / sqrt(inputs).
    """

    hidden: tuple[int, ...] = (32, 32)
    batch: int = 256
    epochs: int = 500
    learning_rate: float = 1e-3
    solver: Literal["adam", "sgd"] = "adam"
    library: Literal["sklearn", "torch"] = "sklearn"

    @staticmethod
    def released() -> Training:
        """The settings of the code that the CARMA authors released: the same numbers, but SGD in torch."""
        return Training(solver="sgd", library="torch")


def train_network(
    train: Split, seed: int, settings: Training, on_epoch: Callable[[], None] = lambda: None
) -> ReluNetwork:
    """Train on standardised features; return a network that takes raw features.

    The returned float32 network *is* the model: folding in the standardisation and rounding change it a
    little, and every later number (accuracy, refusals, bounds, references) is that of the returned network.

    Parameters
    ----------
    on_epoch
        Called after every epoch, for progress bars.

    Raises
    ------
    RecourseError
        The library is not installed.

    Notes
    -----
    Features are standardised by mean and standard deviation (divisor n) of the train split.
    """
    mean, sd = train.rows.mean(axis=0), train.rows.std(axis=0)
    fit = _by_sklearn if settings.library == "sklearn" else _by_torch
    layers = fit((train.rows - mean) / sd, train.labels, seed, settings, on_epoch)
    return standardised(ReluNetwork.from_layers(layers), mean, sd, dtype="float32")


Layers = list[tuple[FloatArray, FloatArray]]
"""Weight (out, in) and bias of each layer."""


def _by_sklearn(
    rows: FloatArray, labels: NDArray[np.int64], seed: int, settings: Training, on_epoch: Callable[[], None]
) -> Layers:
    try:
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise RecourseError("training needs scikit-learn: pip install 'milp-recourse[sklearn]'") from error

    model = MLPClassifier(
        hidden_layer_sizes=settings.hidden,
        activation="relu",
        solver=settings.solver,
        momentum=0.0,
        alpha=0.0,
        batch_size=min(settings.batch, len(rows)),
        learning_rate_init=settings.learning_rate,
        random_state=np.random.RandomState(seed),  # one generator, so that every epoch has another order
    )
    for _ in range(settings.epochs):
        model.partial_fit(rows, labels, classes=[0, 1])
        on_epoch()
    return [(w.T, b) for w, b in zip(model.coefs_, model.intercepts_, strict=True)]


def _by_torch(
    rows: FloatArray, labels: NDArray[np.int64], seed: int, settings: Training, on_epoch: Callable[[], None]
) -> Layers:
    try:
        import torch
    except ImportError as error:
        raise RecourseError("this training needs torch: pip install 'milp-recourse[torch]'") from error

    x, y = (torch.as_tensor(a, dtype=torch.float32) for a in (rows, labels))
    sizes = [x.shape[1], *settings.hidden, 1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
    model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))[:-1]
    solvers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimiser = solvers[settings.solver](model.parameters(), lr=settings.learning_rate)
    shuffling = torch.Generator().manual_seed(seed)
    for _ in range(settings.epochs):
        for batch in torch.randperm(len(x), generator=shuffling).split(settings.batch):
            logits = model(x[batch])[:, 0]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        on_epoch()
    return [(part.weight.detach().numpy(), part.bias.detach().numpy()) for part in layers]


def deployed_logits(network: ReluNetwork, rows: FloatArray) -> FloatArray:
    """The deployed network's logits of raw rows, shape (n, inputs) -> (n,), computed row by row."""
    return np.array([network.deployed_logit(row) for row in rows])
