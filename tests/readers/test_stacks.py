"""Some of the 51 stacks of :mod:`tests.readers.stacks`, with two people each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

for package in ("sklearn", "xgboost", "lightgbm", "catboost", "interpret", "imblearn", "polars", "pyarrow"):
    pytest.importorskip(package)  # optional extras

from tests.readers.stacks import FOLDER, STACKS, run

SOME = {
    **{"logistic on a polars frame, drop first": "read", "scorecard: weights of evidence": "read"},
    **{"a plain function": "asked", "logistic, PCA of the numbers": "read", "a search over XGBoost": "read"},
    **{"logistic, median and indicator": "read", "boosting, iterative imputer": "read"},
}


def test_there_are_51() -> None:
    assert len(STACKS) == 51 and SOME.keys() <= STACKS.keys()


@pytest.mark.parametrize("name", SOME)
def test_what_is_answered_of_a_stack_flips_predict(name: str) -> None:
    """The command answers twenty people of all."""
    if not Path(os.environ.get(FOLDER, "/nowhere"), "german.data").is_file():
        pytest.skip(f"{FOLDER} names no folder with the owners' files")
    row = run(name, 2)
    assert row["outcome"] == SOME[name]
    assert row["flipped"] == row["with_action"] == row["proven"] == row["people"] == 2
    assert row["certificates"] == 0 or row["verdict"].startswith("VERIFIED")
