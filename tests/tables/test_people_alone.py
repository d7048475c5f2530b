"""Nobody's answer depends on who else is asked: margins, back ends and errors are each person's own."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse
from milp_recourse.cli.app import main
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import population_from_dict
from milp_recourse.readers import read_model, rounding_margin, rounding_margins
from milp_recourse.tables.answers import Answers

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(0, 1, 300), "b": RNG.normal(0, 1, 300)})
MODEL = LogisticRegression(C=100).fit(X, X["a"] + X["b"] > 1)
FOUR = X[~MODEL.predict(X)].head(4)


def with_b(*values: float) -> pd.DataFrame:
    """The four people, and others whose column b, which nobody can change, has these values."""
    more = pd.DataFrame({"a": 0.0, "b": values}, index=[f"b={v:g}" for v in values])
    return pd.concat([FOUR, more])


def recourse(**more: Any) -> Recourse:
    return Recourse(MODEL, X, bounds={"a": (-3, 1.2)}, immutable=["b"], **more)


SAID = ["status", "cost", "lower_bound", "gap", "proof", "message", "margin", "confirmed"]


def said(answers: Answers, count: int = 4) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is said of the first people, but for the seconds."""
    return answers.table[SAID].head(count), answers.counterfactuals.head(count)


@pytest.mark.parametrize("value", [1e6, 1e15, -1e17, 1e200, 1e308, np.inf, np.nan])
def test_one_large_number_touches_nobody_else(value: float) -> None:
    """One margin for all would make actions dearer, then impossible, and at last raise an error."""
    alone, beside = recourse().certify(FOUR), recourse().certify(with_b(value), certificates=True)
    for mine, theirs in zip(said(alone), said(beside), strict=True):
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True, check_index_type=False)
    proven = int(beside.table["status"].isin(["optimal", "infeasible"]).sum())
    assert beside.verify().startswith(f"VERIFIED {proven} of {proven} certificates")


def test_a_margin_is_what_one_persons_numbers_need() -> None:
    """It grows with these numbers; where it has no bound, the person is told so, and nobody else."""
    answers = recourse().certify(with_b(1e15, 1e308))
    margins = recourse().margin_for(with_b(1e15, 1e308))
    assert (margins[:4] < 1e-12).all() and 1 < margins.iloc[4] < 100 and margins.iloc[5] == np.inf
    np.testing.assert_array_equal(answers.table["margin"], [*margins[:5], np.nan])
    assert answers.table["status"].iloc[5] == "bad-input"
    assert answers.table["message"].iloc[5] == (
        "b: got values up to 1e+308; allowed: numbers for which the model's rounding has a bound (is the "
        "unit right?), or a margin"
    )
    assert "each person's own margin, 1.6e-13 to 39.8" in answers.summary()
    assert recourse(margin=1.0).certify(with_b(1e308)).table["margin"].tolist() == [1.0] * 5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_margins_together_are_those_of_one_by_one() -> None:
    """To the last bit, with labels, layers and any number of people."""
    rng = np.random.default_rng(3)
    table = X.assign(c=rng.choice(["u", "v"], 300), d=rng.normal(0, 1e6, 300))
    wide = pd.get_dummies(table, dtype=float)
    net = make_pipeline(StandardScaler(), MLPClassifier((9, 7, 5), max_iter=20, random_state=0))
    reading = read_model(net.fit(wide, rng.integers(0, 3, 300)), wide, desired=2)
    low = rng.normal(0, 1, (50, 5)) * 10.0 ** rng.integers(-3, 9, (50, 1))
    high = low + abs(low)
    together = rounding_margins(reading, low, high)
    assert len(set(together)) == 50
    assert together.tolist() == [rounding_margin(reading, *ends) for ends in zip(low, high, strict=True)]


def test_files_hold_each_persons_margin(tmp_path: Path) -> None:
    """What is saved is solved and checked as it was; a person without a margin stays unread."""
    answers = recourse().certify(with_b(1e15, 1e308), certificates=True)
    document = answers.population()
    assert document["accept"]["margin"] == 0.0 and document["margins"][5] is None
    assert document["margins"][:5] == answers.table["margin"].tolist()[:5]
    population = population_from_dict(document)
    assert population[4].accept.margin == answers.table["margin"].iloc[4]
    assert population[3:].margin_of(1) == population.margin_of(4)
    answers.save(tmp_path / "saved")
    assert main(["verify", str(tmp_path / "saved"), "--jobs=1"]) == 0
    again = ["certify", str(tmp_path / "saved/population.json"), "--out", str(tmp_path / "again")]
    assert main(again) == 3  # somebody could not be read
    rows = [pd.read_csv(tmp_path / name / "results.csv") for name in ("saved", "again")]
    same = ["status", "cost", "lower_bound", "proof", "action_a"]  # but for the gap: files have no rows of X
    pd.testing.assert_frame_equal(rows[0][same], rows[1][same], rtol=2e-6)
    assert main(["verify", str(tmp_path / "again"), str(tmp_path / "saved/population.json"), "--jobs=1"]) == 0


def test_a_changed_margin_is_rejected(tmp_path: Path) -> None:
    """The margin is part of what a certificate is about."""
    answers = recourse().certify(with_b(1e15), certificates=True)
    answers.save(tmp_path / "saved")
    file = tmp_path / "saved/population.json"
    document = json.loads(file.read_text())
    document["margins"][0] *= 2
    file.write_text(json.dumps(document))
    assert main(["verify", str(tmp_path / "saved"), "--jobs=1"]) == 4


WRONG = {
    "too few": ({"margins": [0.1]}, "margins: got a list of 1; allowed: 5, one per applicant"),
    "negative": ({"margins": [0.1, -1, 0, 0, 0]}, "margins.1: got -1; allowed: a number at least 0"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_margins_in_a_file(fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, by the reader and by the checker."""
    change, message = WRONG[fault]
    answers = recourse().certify(with_b(1e15), certificates=True)
    with pytest.raises(BadInput) as caught:
        population_from_dict(answers.population() | change)
    assert str(caught.value) == message
    answers.save(tmp_path / "saved")
    (tmp_path / "wrong.json").write_text(json.dumps(answers.population() | change))
    assert main(["verify", str(tmp_path / "saved"), str(tmp_path / "wrong.json"), "--jobs=1"]) == 4
    assert "margins" in capsys.readouterr().out


def trees() -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """A forest, its table, and three people: one with a gap, one whose number is no float32."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.integers(0, 9, (200, 3)).astype(float), columns=["a", "b", "c"])
    table.iloc[::9, 2] = np.nan
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, table["a"] + table["b"] > 9)
    people = pd.DataFrame({"a": [1.0, 1, 1], "b": [5.0, 5, 1e300], "c": [3.0, np.nan, 3]})
    return model, table, people


@pytest.mark.parametrize("backend", [None, "cpsat"])
def test_who_cannot_be_solved_is_told_so_alone(backend: str | None) -> None:
    """A gap beside a condition on two columns, which cpsat does not take, and a number that the model's own
    predict refuses: each is that person's own."""
    model, table, people = trees()
    recourse = Recourse(model, table, conditions=["a - b <= 8"], immutable=["b"])
    answers = recourse.certify(people, backend=backend)
    assert answers.table["status"].tolist() == ["optimal", "limit" if backend else "optimal", "limit"]
    assert answers.table["message"].iloc[2].startswith("predict: got ")
    if backend:
        message = "backend cpsat: missing values beside conditions"
        assert answers.table["message"].iloc[1].startswith(message)
        with pytest.raises(Unsupported, match=message):
            recourse.certify(people.iloc[[1]], backend=backend)
    for k in (0, 2):
        own = recourse.certify(people.iloc[[k]], backend=backend)
        pd.testing.assert_frame_equal(own.table[SAID], answers.table[SAID].iloc[[k]], check_exact=True)


def test_a_default_back_end_is_each_persons_own() -> None:
    """The engine does not tell so many sets of features apart: that person alone goes to HiGHS."""
    names = [f"x{k}" for k in range(20)]
    table = pd.DataFrame(np.random.default_rng(2).normal(0, 1, (100, 20)), columns=names)
    model = LogisticRegression().fit(table, table["x0"] > 0)
    chain = {later: {"equation": {"product": [0.1, before]}} for before, later in pairwise(names)}
    recourse = Recourse(model, table, scm={"name": "explicit", "mechanisms": chain})
    people = table[~model.predict(table)].head(3)
    masks = [{"actionable": names}, {"actionable": names[:3]}, {"actionable": names[:2]}]
    answers = recourse.certify(people, masks, time_limit=0.5)
    assert [one.backend for one in answers.results if one is not None] == ["highs", "bab", "bab"]
    turned = recourse.certify(people.iloc[::-1], masks[::-1], time_limit=0.5)
    assert turned.table[SAID].iloc[0].equals(answers.table[SAID].iloc[2])


def test_where_the_margin_forbids_the_message_names_it() -> None:
    """With the margin no action exists, with a smaller one there is one; elsewhere nothing is said of it."""
    low = pd.DataFrame({"a": [0.0, 0.0], "b": [0.4, -9.0]})
    given = recourse(margin=60.0).certify(low).table
    assert given["status"].tolist() == ["infeasible"] * 2
    assert "It is the margin of 60 that forbids it" in given["message"].iloc[0]
    assert "margin" not in given["message"].iloc[1]
    assert recourse().certify(low).table["status"].tolist() == ["optimal", "infeasible"]
