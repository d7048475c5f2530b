"""iCARMA on Give Me Some Credit: trained through the flow, as in the paper, and through the equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from milp_recourse.lab.icarma.checkpoint import read_recommender, write_recommender
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.task import Task
from milp_recourse.lab.icarma.train import train
from milp_recourse.lab.recipe.gmsc import refused
from milp_recourse.lab.recipe.gmsc_data import GmscData
from milp_recourse.lab.studies.gmsc.models import Learned

Through = Literal["flow", "equations"]
THROUGH: tuple[Through, ...] = ("flow", "equations")
"""The model that gives counterfactuals in training: the spline flow, as in the paper, or the equations."""

EPOCHS = 400
"""The number of epochs that the paper prints (appendix C.3.3)."""

PUBLISHED_EPOCHS: Mapping[Through, int] = dict.fromkeys(THROUGH, EPOCHS)

Profile = Literal["constant", "linear"]
PROFILES: tuple[Profile, ...] = ("constant", "linear")


def published(profile: Profile, **changes: Any) -> Settings:
    """The hyperparameters that the paper prints for this data (appendix C.3.3); the others are Loan's."""
    settings: dict[str, Any] = {
        "profile": profile,
        "mask_hidden": (8, 8),
        "action_hidden": (16, 16, 16, 16),
        "batch": 256,
        "epochs": EPOCHS,
        "learning_rate": 1e-3,
        "margin": 0.013,
        "temperature": 0.33,
        "cost": 1.1,
        "divergence": 1.1,
        "plausibility": 0.04,
        "feasibility": 0.09,
    }
    return Settings(**settings | changes)


def task_of(made: Learned, data: GmscData) -> Task:
    """The training task: refused rows of the train and the validation split, and the classifier."""
    spread = float(made.network.evaluate(data.train.rows)[:, 0].std())
    train_rows, held = (refused(made.network, part.rows) for part in (data.train, data.validation))
    return Task(made.people.template, train_rows, held, spread)


def recommenders(
    made: Learned, data: GmscData, folder: Path, epochs: Mapping[Through, int], advance: Callable[[], None]
) -> dict[tuple[Through, Profile], Recommender]:
    """Networks by model of counterfactuals and by profile, read from the folder or trained and written there.

    Parameters
    ----------
    epochs
        The number of epochs, for each of :data:`THROUGH` that is wanted.
    """
    models: dict[tuple[Through, Profile], Recommender] = {}
    for way, count in epochs.items():
        for profile in PROFILES:
            place = folder / f"{way}_{profile}"
            path = place / "recommender.npz"
            if not path.exists():
                flow = made.flow if way == "flow" else StructuralModel.of_rows(made.scm, data.train.rows)
                trainer = train(
                    task_of(made, data),
                    flow,
                    published(profile, epochs=count),
                    place,
                    on_epoch=lambda _: advance(),
                )
                best = trainer.history[trainer.best_epoch - 1]
                notes = {"validation": best, "epochs": trainer.epoch, "through": way}
                write_recommender(trainer.model, path, notes)
            models[way, profile] = read_recommender(path)[0]
    return models
