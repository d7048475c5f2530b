"""Random models behind random transformers: the model's own word and sampling contradict nothing proven."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")  # an optional extra
pytest.importorskip("xgboost")  # an optional extra
pytest.importorskip("lightgbm")  # an optional extra
pytest.importorskip("catboost")  # an optional extra
pytest.importorskip("interpret")  # an optional extra
pytest.importorskip("imblearn")  # an optional extra

from tests.readers.random_stacks import check


@pytest.mark.parametrize("seed", range(8))
def test_what_is_proven_of_random_stacks_holds(seed: int) -> None:
    """The command ``python -m tests.readers.random_stacks`` runs many more."""
    assert check(seed).total() > 0
