"""Every returned action flips the deployed model of its library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forests.flips import run
from tests.forests.frame_flips import run as run_frames

pytest.importorskip("sklearn")


def test_every_action_flips_the_deployed_model(tmp_path: Path) -> None:
    """None fails, floats as returned or through JSON; optima on edges of cells are among them."""
    tally = run(16, tmp_path)
    assert len(tally) >= 5
    for name, seen in tally.items():
        assert seen["actions"] >= 10 and seen["on a cut"] >= 5, (name, seen)
        assert seen["failed"] == seen["failed after JSON"] == 0, (name, seen)


def test_every_answer_flips_the_model_with_gaps_and_categories() -> None:
    """Through DataFrames: none fails, and some actions fill a gap or change a label."""
    tally = run_frames(12)
    for name, seen in tally.items():
        assert seen["actions"] >= 8 and seen["failed"] == seen["open"] == 0, (name, seen)
    assert sum(seen["set a gap"] for seen in tally.values()) >= 2
    assert sum(seen["set a label"] for seen in tally.values()) >= 2
