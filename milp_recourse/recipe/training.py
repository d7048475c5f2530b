"""The Loan classifier: a ReLU network of 32 x 32, trained, folded and rounded to float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.network import ReluNetwork
from milp_recourse.errors import RecourseError
from milp_recourse.readers.fold import standardised
from milp_recourse.recipe.data import Split


@dataclass(frozen=True)
class Training:
    """Training settings of the iCARMA paper (Adam; the released code used SGD).

    Parameters
    ----------
    hidden
        ReLU units per hidden layer.
    batch, epochs, learning_rate
        Adam's, with scikit-learn's default moments (0.9, 0.999).
    solver
        ``sgd`` is plain, without momentum, as the released code's.
    """

    hidden: tuple[int, ...] = (32, 32)
    batch: int = 256
    epochs: int = 500
    learning_rate: float = 1e-3
    solver: str = "adam"


def train_network(
    train: Split,
    seed: int,
    settings: Training | None = None,
    on_epoch: Callable[[], None] = lambda: None,
) -> ReluNetwork:
    """Train on standardised features and return the network that takes raw features.

    The returned float32 network *is* the model: whatever folding and rounding changed, every
    later number (accuracy, refusals, bounds, references) is taken from it.

    Parameters
    ----------
    on_epoch
        Called after every epoch, for progress bars.

    Raises
    ------
    RecourseError
        scikit-learn is not installed.

    Notes
    -----
    Features are standardised by mean and standard deviation (divisor n) of the train split.
    No weight decay, no early stopping.
    """
    try:
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise RecourseError("training needs scikit-learn: pip install 'milp-recourse[sklearn]'") from error

    settings = settings or Training()
    mean, sd = train.rows.mean(axis=0), train.rows.std(axis=0)
    rows = (train.rows - mean) / sd
    model = MLPClassifier(
        hidden_layer_sizes=settings.hidden,
        activation="relu",
        solver=settings.solver,
        momentum=0.0,
        alpha=0.0,
        batch_size=min(settings.batch, len(train.rows)),
        learning_rate_init=settings.learning_rate,
        random_state=np.random.RandomState(seed),  # one generator, so every epoch shuffles anew
    )
    for _ in range(settings.epochs):
        model.partial_fit(rows, train.labels, classes=[0, 1])
        on_epoch()
    layers = [(w.T, b) for w, b in zip(model.coefs_, model.intercepts_, strict=True)]
    return standardised(ReluNetwork.from_layers(layers), mean, sd, dtype="float32")


def deployed_logits(network: ReluNetwork, rows: NDArray) -> NDArray[np.float64]:
    """Logits of raw rows, shape (n, inputs) -> (n,), each computed alone, as when deployed."""
    return np.array([network.deployed_logit(row) for row in rows])
