"""Every kind of model is read as it predicts, and answers survive predict and the trying of all rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra
pytest.importorskip("xgboost")  # an optional extra
pytest.importorskip("lightgbm")  # an optional extra
pytest.importorskip("catboost")  # an optional extra
pytest.importorskip("interpret")  # an optional extra
pytest.importorskip("imblearn")  # an optional extra

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import Reading, read_model
from milp_recourse.readers.classes import Target
from tests.helpers.model_kinds import CASES, KINDS, Fitted, fitted
from tests.helpers.pipelines import at_thresholds, decide, encode
from verify.__main__ import main as verify


def rows_like(X: pd.DataFrame, rng: np.random.Generator, count: int) -> pd.DataFrame:
    """Rows whose columns are drawn one by one, numbers moved a little."""
    rows = X.sample(count, replace=True, random_state=int(rng.integers(1 << 31))).reset_index(drop=True)
    for name in X.columns:
        column = rows[name].sample(frac=1.0, random_state=int(rng.integers(1 << 31))).reset_index(drop=True)
        if str(column.dtype) == "float64":
            column = column + rng.normal(0, 0.1, count) * X[name].std() * (rng.random(count) < 0.5)
        rows[name] = column
    return rows


def sure_of(reading: Reading, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the reading says, and of which rows it is sure: those beyond the rounding that it states."""
    if not isinstance(reading.classifier, TreeEnsemble):
        return decide(reading, rows)
    scores, accept = reading.classifier.scores(rows), reading.accept
    tied = (scores <= accept.above) & (scores >= accept.threshold - reading.near) & (reading.near > 0)
    return scores > accept.above, ~tied


@pytest.mark.parametrize(("name", "task"), CASES)
def test_it_is_read_as_it_predicts(name: str, task: Any) -> None:
    """On many rows, also on thresholds and one double beside; rounding leaves few rows open.

    Of three labels or intervals that can be wished for, kinds take different ones in turn. A probability that
    is asked for is the model's own: rows are accepted that are predicted as wished with at least this one; or
    it is refused. Kinds take labels and probabilities in turn, too.
    """
    one, rng, turn = fitted(name, task, 0), np.random.default_rng(0), CASES.index((name, task)) % 3
    wishes = one.wishes[:2]  # not the first of two is the second
    if task == "three":
        wishes = (one.wishes[turn % (len(one.wishes) - 1)], one.wishes[-1])
    elif task == "number":
        wishes = (one.wishes[turn], one.wishes[turn - 1])
    rows = None
    for wish in wishes:
        reading = read_model(one.model, one.X, wish)
        trees = isinstance(reading.classifier, TreeEnsemble)
        if rows is None:
            rows = rows_like(one.X, rng, 2000 if trees else 200)
            if KINDS[name].columns == "any":
                rows = at_thresholds(reading, rows, rng)
        yes, sure = sure_of(reading, encode(reading, rows))
        assert (yes == one.wanted(wish, rows))[sure].all()
        assert sure.mean() > 0.9
    assert rows is not None
    labels = [wish for wish in wishes if not isinstance(wish, dict)]
    asked = {"two": [(0.9, labels[turn % len(labels)])], "three": [((0.3, 0.6, 0.9)[turn], labels[0])]}
    for confidence, wish in asked.get(task, ()):  # of two, the predicted one has half at least
        try:
            reading = read_model(one.model, one.X, wish, confidence)
        except RecourseError as error:
            assert "confidence" in str(error) and "; allowed: " in str(error)
            continue
        some = rows.iloc[: 600 if isinstance(reading.classifier, TreeEnsemble) else 150]
        yes, sure = sure_of(reading, encode(reading, some))
        assert isinstance(reading.wish, Target)
        share = np.asarray(one.model.predict_proba(some), dtype=float)[:, reading.wish.index]
        assert (yes == (one.wanted(wish, some) & (share >= confidence)))[sure].all()
        assert sure.mean() > 0.9


def every_row(one: Fitted) -> pd.DataFrame:
    """All rows of whole numbers between the least and the largest of each column."""
    ends = [range(int(one.X[c].min()), int(one.X[c].max()) + 1) for c in one.X.columns]
    return pd.DataFrame(list(product(*ends)), columns=one.X.columns)


OPTIMA = [(name, kind.tasks[k % len(kind.tasks)]) for k, (name, kind) in enumerate(KINDS.items())]


@pytest.mark.parametrize(("name", "task"), OPTIMA)
def test_its_optimum_is_the_one_that_trying_all_rows_finds(
    name: str, task: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two refused people: predict accepts each action, certificates verify, nothing is cheaper.

    Kinds for two classes and three have one of them in turn. Rows that are equal to a threshold up to the
    stated rounding count as refused.
    """
    one = fitted(name, task, 3, whole=True)
    wish = max(reversed(one.wishes), key=lambda w: min(15, (~one.wanted(w, one.X)).sum()))
    people = one.X[~one.wanted(wish, one.X)].head(2)
    assert len(people) == 2
    recourse, tried = Recourse(one.model, one.X, desired=wish), every_row(one)
    answers = recourse.certify(people, certificates=True)
    table, (_, sure) = answers.table, sure_of(recourse.reading, encode(recourse.reading, tried))
    accepted = tried[one.wanted(wish, tried) & sure].to_numpy(dtype=float)
    widths = (one.X.max() - one.X.min()).to_numpy(dtype=float)
    for k, person in enumerate(people.to_numpy(dtype=float)):
        costs = (np.abs(accepted - person) / widths).sum(axis=1)
        assert table["status"].iloc[k] == ("optimal" if len(costs) else "infeasible")
        if len(costs):
            assert table["cost"].iloc[k] == pytest.approx(costs.min(), abs=1e-9)
    acted = (table["status"] == "optimal").to_numpy()
    assert one.wanted(wish, answers.counterfactuals)[acted].all()
    assert table["confirmed"][acted].all()
    answers.save(tmp_path / "answers")
    assert verify([str(tmp_path / "answers"), "--jobs=1"]) == 0
    assert f"VERIFIED {len(people)} of {len(people)} certificates" in capsys.readouterr().out
