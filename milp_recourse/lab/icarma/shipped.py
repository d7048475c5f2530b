"""The checkpoints that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork

FOLDER = Path(__file__).parent / "checkpoints"

Kind = Literal["constant", "rank", "score"]
"""The preferences on which networks were trained: constant weights, ranks, or scores."""

SHARP = "f0e34de80ba25834466349b5d071b9bab49c431f3483d1257386d2ba50eafe9a"
"""``ReluNetwork.digest``, in hex, of the classifier of ``loan-sharp``; not the SHA-256 of its file."""


def shipped(kind: Kind, template: Instance | None = None) -> Path:
    """The shipped checkpoint for constant weights, for ranks or for scores.

    There is none for scores for ``loan-sharp``; the one for ranks is returned in its place.

    The populations are those of :data:`milp_recourse.formats.instances_path.LOAN_POPULATIONS`.

    Parameters
    ----------
    template
        The problem: if its classifier is that of ``loan-sharp``, the checkpoint is for ``loan-sharp``, else
        for ``loan-smooth``.
    """
    classifier = None if template is None else template.classifier
    sharp = isinstance(classifier, ReluNetwork) and classifier.digest.hex() == SHARP
    name = "loan_sharp" if sharp else "loan_smooth"
    own = FOLDER / f"{name}_{kind}.npz"
    return own if own.exists() else FOLDER / f"{name}_rank.npz"
