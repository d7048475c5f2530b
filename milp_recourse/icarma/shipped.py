"""The checkpoints that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent / "checkpoints"

Kind = Literal["constant", "rank", "score"]
"""Whose preferences networks were trained on: constant weights, weights of every profile, scores."""


def shipped(kind: Kind) -> Path:
    """The checkpoint for constant weights, or that for ranks, which has to do for scores too."""
    return FOLDER / ("loan_constant.npz" if kind == "constant" else "loan_rank.npz")
