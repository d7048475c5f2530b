"""The checkpoints that come with the package."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "checkpoints"


def shipped(elicitation: str) -> Path:
    """Networks trained on Loan with rankings or scores; rankings' where there are none for scores."""
    path = FOLDER / f"loan_{elicitation}.npz"
    return path if path.exists() else FOLDER / "loan_rank.npz"
