"""Every returned action flips the deployed model of its library."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pytest

from milp_recourse import Recourse
from tests.engine.forests.flips import run
from tests.engine.forests.frame_flips import COSTS, families, table
from tests.engine.forests.frame_flips import run as run_frames
from verify.__main__ import main

pytest.importorskip("sklearn")


def test_every_action_flips_the_deployed_model(tmp_path: Path) -> None:
    """None fails, floats as returned or through JSON; optima on edges of cells are among them."""
    tally = run(10, tmp_path)
    assert len(tally) >= 5
    for name, seen in tally.items():
        assert seen["actions"] >= 6 and seen["on a cut"] >= 3, (name, seen)
        assert seen["failed"] == seen["failed after JSON"] == 0, (name, seen)


@pytest.mark.long
def test_every_answer_flips_the_model_with_gaps_and_categories() -> None:
    """Through DataFrames: none fails, and some actions fill a gap or change a label."""
    tally = run_frames(8)
    for name, seen in tally.items():
        assert seen["actions"] >= 5 and seen["failed"] == seen["open"] == 0, (name, seen)
    assert sum(seen["set a gap"] for seen in tally.values()) >= 2
    assert sum(seen["set a label"] for seen in tally.values()) >= 2


def test_certificates_of_gaps_and_categories_verify(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Missing values and categories of each library: every answer has a certificate that verifies."""
    proven = gone = 0
    for k, (name, model, gaps, categories) in enumerate(families()):
        if not gaps:
            continue
        X, y = table(1500, 0, gaps, categories)
        model.fit(X, y)
        others, _ = table(600, 1, gaps, categories)
        refused = others[model.predict(others) == 0]
        with_gaps = refused.isna().any(axis=1)
        people = pd.concat([refused[with_gaps].head(5), refused[~with_gaps].head(2)]).reset_index(drop=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recourse = Recourse(model, X, cost=COSTS[k % 3])
            answers = recourse.certify(people, time_limit=60.0, certificates=True)
        answers.save(tmp_path / str(k))
        code = main([str(tmp_path / str(k)), "--jobs", "1"])
        said = capsys.readouterr().out
        count = len(people)
        assert code == 0 and said.startswith(f"VERIFIED {count} of {count} certificates"), (name, said)
        assert (answers.table["proof"] == "rigorous").all(), name
        proven += len(people)
        gone += int(people.isna().any(axis=1).sum())
    assert proven >= 40 and gone >= 25
