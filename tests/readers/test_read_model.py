"""read_model decides as the deployed model itself, on rows of the raw DataFrame."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")  # an optional extra: without it there is nothing to read
pytest.importorskip("xgboost")  # an optional extra
pytest.importorskip("lightgbm")  # an optional extra

from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import read_model
from tests.helpers.pipelines import FINALS, at_thresholds, decide, encode, predict, random_pipeline, scores


@pytest.mark.parametrize("final", FINALS)
@pytest.mark.parametrize("seed", range(2))
def test_every_model_is_read_as_deployed(final: str, seed: int) -> None:
    """The reading decides as predict, for every class wanted, also on thresholds and one double beside."""
    model, X, y, people = random_pipeline(seed, final)
    classes = sorted(set(y.tolist()))
    wishes = [None, classes[0]] if len(classes) == 2 else [*classes, {"not": classes[1]}]
    wishes.append({"not": classes[-1]})
    for desired in wishes:
        reading = read_model(model, X, desired)
        rows = at_thresholds(reading, people, np.random.default_rng(seed))
        said = predict(model, X, rows)
        wanted = (
            said != desired["not"]
            if isinstance(desired, dict)
            else said == (reading.classes[1] if desired is None else desired)
        )
        encoded = encode(reading, rows)
        yes, sure = decide(reading, encoded)
        assert (yes == wanted)[sure].all()
        assert sure.mean() > 0.9
        if isinstance(reading.classifier, TreeEnsemble):
            assert (reading.classifier.scores(encoded) == scores(reading.classifier, encoded)).all()
