"""Every returned action flips the deployed model of its library."""

from __future__ import annotations

from pathlib import Path

import pytest
from flips import run

pytest.importorskip("sklearn")


def test_every_action_flips_the_deployed_model(tmp_path: Path) -> None:
    """None fails, floats as returned or through JSON; optima on edges of cells are among them."""
    tally = run(16, tmp_path)
    assert len(tally) >= 5
    for name, seen in tally.items():
        assert seen["actions"] >= 10 and seen["on a cut"] >= 5, (name, seen)
        assert seen["failed"] == seen["failed after JSON"] == 0, (name, seen)
