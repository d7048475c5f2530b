"""The checkpoints that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance

FOLDER = Path(__file__).parent / "checkpoints"

Kind = Literal["constant", "rank", "score"]
"""Whose preferences networks were trained on: constant weights, weights of every profile, scores."""

SHARP = "f0e34de80ba25834466349b5d071b9bab49c431f3483d1257386d2ba50eafe9a"
"""The digest of the classifier of ``instances/loan``."""


def shipped(kind: Kind, template: Instance | None = None) -> Path:
    """The checkpoint for constant weights, for ranks or for scores; where none was trained on scores
    (``loan-sharp``), that for ranks.

    Parameters
    ----------
    template
        Whom to serve: networks for ``loan-sharp`` where its classifier is that one's, else for
        ``loan-smooth``.
    """
    classifier = None if template is None else template.classifier
    sharp = isinstance(classifier, ReluNetwork) and classifier.content.hex() == SHARP
    name = "loan_sharp" if sharp else "loan_smooth"
    own = FOLDER / f"{name}_{kind}.npz"
    return own if own.exists() else FOLDER / f"{name}_rank.npz"
