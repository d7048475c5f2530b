"""Answers as tables, files and pages, on a small model with gaps and labels."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from milp_recourse import Recourse
from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.tables.answers import Interrupted
from tests.helpers.frame_tables import applicants, fitted


@pytest.fixture(scope="module")
def gappy():
    """A pipeline with an imputer whose mean is a fraction of a whole-number column, and people with gaps."""
    table, accepted = applicants()
    table["age"] = table["age"].astype(float).mask(np.arange(len(table)) % 7 == 0)
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income", "owns"]),
        (OneHotEncoder(), ["purpose"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, accepted)
    people = table[model.predict(table) == 0].head(12).set_axis(list("abcdefghijkl"))
    return model, table, people


@pytest.fixture(scope="module")
def answers(gappy):
    """Their answers, certified, one of them unreadable."""
    model, table, people = gappy
    people = people.assign(purpose=people["purpose"].where(people.index != "c", "boat"))
    return Recourse(model, table, immutable=["owns"]).certify(people, certificates=True)


def test_everybody_has_a_row_and_the_model_agrees(gappy, answers) -> None:
    model, table, people = gappy
    imputed = Recourse(model, table).features["if missing"]
    assert imputed["age"].startswith("imputed as ") and imputed["purpose"] == "that person cannot be read"
    assert list(answers.table.index) == list(people.index)
    assert answers.table["status"].value_counts().to_dict() == {"optimal": 11, "bad-input": 1}
    assert answers.table["confirmed"].drop("c").all() and answers.table["confirmed"].isna()["c"]
    assert answers.table["message"]["a"] is None and answers.table["proof"]["c"] is None
    rows = answers.counterfactuals.drop("c")
    assert (model.predict(rows) == 1).all() and list(rows.columns) == list(table.columns)
    assert answers.counterfactuals.dtypes.to_dict() == table.dtypes.to_dict()


def test_a_gap_that_is_not_acted_on_stays_one(gappy, answers) -> None:
    """And no change is listed for it; ages that are set are whole."""
    _, _, people = gappy
    gaps = people.index[people["age"].isna()]
    assert len(gaps)
    set_ = answers.changes[answers.changes["feature"] == "age"]
    for name in gaps.difference(set_.index):
        assert np.isnan(answers.counterfactuals.loc[name, "age"])
    assert all(float(v).is_integer() for v in set_["after"])


def test_a_gap_in_a_column_of_0_and_1_is_a_value_between_them(gappy) -> None:
    """What the imputer puts in is no 0 or 1: files keep it, certificates verify, actions set 0 or 1."""
    model, table, people = gappy
    people = people.astype({"owns": float}).head(4).assign(owns=np.nan)
    answers = Recourse(model, table, kinds={"owns": "binary"}).certify(people, certificates=True)
    assert set(answers.table["status"]) == {"optimal"} and answers.table["confirmed"].all()
    assert answers.verify().startswith("VERIFIED"), answers.verify()
    assert 0 < answers.population()["factuals"][0]["owns"] < 1
    set_ = answers.changes[answers.changes["feature"] == "owns"]
    assert set(set_["after"]) <= {0.0, 1.0}


def test_changes_are_the_difference_of_the_tables(gappy, answers) -> None:
    _, _, people = gappy
    after = answers.counterfactuals
    for name, row in answers.changes.iterrows():
        assert after.loc[name, row["feature"]] == row["after"] and row["cause"] == "action"
    listed = set(zip(answers.changes.index, answers.changes["feature"], strict=True))
    for name in people.index.drop("c"):
        for column in people.columns:
            was, now = people.loc[name, column], after.loc[name, column]
            same = bool(was == now) or bool(pd.isna(was) and pd.isna(now))
            assert same is ((name, column) not in listed)


def test_saved_answers_are_verified_by_the_checker_alone(answers, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    answers.save(folder)
    assert json.loads((folder / "population.json").read_text()) == answers.population()
    rows = pd.read_csv(folder / "results.csv")
    assert rows["status"].tolist() == answers.table["status"].tolist()
    assert list(rows.columns[:2]) == ["index", "id"] and rows["id"].tolist() == list("abcdefghijkl")
    assert rows["confirmed"].dropna().astype(bool).all()
    said = subprocess.run(
        [sys.executable, "-m", "verify", str(folder)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0 and "VERIFIED 11 of 11" in said.stdout, said.stdout
    assert main(["verify", str(folder)]) == 0
    assert main(["report", str(folder), "--index", "3"]) == 0
    assert "<title>d · " in (folder / "person-3.html").read_text(encoding="utf-8")
    assert (
        main(["certify", str(folder / "population.json"), "--index", "0", "--out", str(tmp_path / "one")])
        == 0
    )


def test_answers_hand_their_certificates_to_the_checker(gappy, answers) -> None:
    """Verified as a whole; an answer that is changed afterwards is rejected; without proofs it is said."""
    said = answers.verify().splitlines()
    assert len(said) == 1 and said[0].startswith("VERIFIED 11 of 11 certificates")
    first = next(i for i, result in enumerate(answers.results) if result is not None and result.cost > 0)
    wrong = list(answers.results)
    raised = {"cost": 2 * wrong[first].cost, "lower_bound": 2 * wrong[first].cost}
    wrong[first] = replace(wrong[first], **raised)
    assert replace(answers, results=wrong).verify().splitlines()[-1].startswith("REJECTED")
    model, table, people = gappy
    with pytest.raises(BadInput, match="certificates=True"):
        Recourse(model, table).certify(people.head(1)).verify()


def test_pages_say_what_is_missing(answers, tmp_path: Path) -> None:
    answers.save_page(tmp_path / "all.html")
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "boat" in page
    assert "optimal" in answers.page("a") or "proven" in answers.page("a").lower()
    assert "<" in answers._repr_html_()
    with pytest.raises(BadInput, match="person: got 'z'"):
        answers.page("z")


def test_ctrl_c_keeps_who_is_finished(monkeypatch, tmp_path: Path) -> None:
    """The exception holds the answers; the others say that their turn never came, and certify goes on."""
    from milp_recourse.tables import recourse as door

    model, table = fitted()
    solved = door.solve_as_finished

    def stopped(*arguments):
        for k, found in enumerate(solved(*arguments)):
            if k == 2:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr(door, "solve_as_finished", stopped)
    with pytest.raises(Interrupted) as caught:
        Recourse(model, table).certify(table[model.predict(table) == 0].head(4))
    kept = caught.value.answers.table
    assert kept["status"].tolist() == ["optimal", "optimal", "limit", "limit"]
    assert "interrupted" in kept["message"].iloc[3]
    page = caught.value.answers.page()
    assert "2 of 2 people with an answer can be accepted (100%)." in page
    assert "in this population; 2 not reached" in page and ">not stated<" not in page
    assert "turn never came" in caught.value.answers.page(kept.index[3])
    monkeypatch.undo()
    folder = tmp_path / "out"
    caught.value.answers.save(folder)
    begun = (folder / "results.csv").read_text().splitlines()
    go_on = ["certify", str(folder / "population.json"), "--out", str(folder), "--no-certificates"]
    assert main(go_on) == 0
    rows = (folder / "results.csv").read_text().splitlines()
    assert rows[:3] == begun and len(rows) == 5 and rows[4].endswith(",")


def test_a_model_that_contradicts_is_believed() -> None:
    """Where predict refuses what was proven, or accepts the impossible, nothing is called proven."""
    model, table = fitted()
    people = table[model.predict(table) == 0].head(3)
    never = Recourse(model, table, predict=lambda rows: np.zeros(len(rows), dtype=int)).certify(people)
    assert never.table["status"].eq("limit").all() and not never.table["confirmed"].any()
    stuck = Recourse(model, table, bounds={"income": (452.08, 453)}, immutable=["age", "owns", "purpose"])
    assert stuck.certify(people).table["status"].eq("infeasible").all()
    always = Recourse(
        model,
        table,
        bounds={"income": (452.08, 453)},
        immutable=["age", "owns", "purpose"],
        predict=lambda rows: np.ones(len(rows), dtype=int),
    ).certify(people)
    assert always.table["status"].eq("limit").all() and always.table["lower_bound"].eq(0).all()


def test_company_order_and_columns_do_not_matter() -> None:
    model, table = fitted()
    recourse = Recourse(model, table)
    people = table[model.predict(table) == 0].head(5)
    mixed = people.assign(note="x")[["note", "purpose", "income", "owns", "age"]].iloc[::-1]
    one, two = recourse.certify(people), recourse.certify(mixed)
    pd.testing.assert_series_equal(one.table["cost"], two.table["cost"].iloc[::-1])
    alone = recourse.certify(people.iloc[0])
    assert alone.table["cost"].iloc[0] == one.table["cost"].iloc[0]
    assert list(alone.table.index) == [people.index[0]]


def test_preferences_per_person() -> None:
    model, table = fitted()
    recourse = Recourse(model, table)
    people = table[model.predict(table) == 0].head(3)
    wished = [None, {"actionable": ["age"], "ranges": {"age": (20, 69)}}, {"weights": {"income": 50.0}}]
    listed = recourse.certify(people, wished)
    second = (
        listed.changes.loc[[people.index[1]]]
        if people.index[1] in listed.changes.index
        else listed.changes[:0]
    )
    assert set(second["feature"]) <= {"age"}
    weights = pd.DataFrame(
        {"income": [1.0, np.nan, 50.0], "age": 1.0, "owns": 1.0, "purpose": 1.0}, people.index
    )
    framed = recourse.certify(people, weights.iloc[::-1])
    assert framed.table["cost"].iloc[2] == listed.table["cost"].iloc[2]
    assert "income" not in set(framed.changes.loc[framed.changes.index == people.index[1], "feature"])


def test_what_was_inferred_can_be_reviewed() -> None:
    model, table = fitted()
    recourse = Recourse(model, table, increase=["income"], immutable=["age"])
    review = recourse.features
    assert review["kind"].to_dict() == {
        "age": "integer", "income": "continuous", "owns": "binary", "purpose": "categorical",
    }  # fmt: skip
    assert review["lever"].to_dict()["age"] is np.False_ or not review.loc["age", "lever"]
    assert set(review["if missing"]) == {"that person cannot be read"}
    assert review.loc["purpose", "values"] == "car, house, school"
    said = json.loads(recourse.to_json())
    assert said["features"][1]["monotone"] == "increase" and said["desired"] == "1"
    assert "income" in str(recourse) and len(repr(recourse)) < 100


def test_scales_can_be_reviewed() -> None:
    """Two where increases and decreases have their own, and the person's own value."""
    model, table = fitted()
    scale = {"income": {"increase": 1.0, "decrease": 2.0}, "age": "factual"}
    recourse = Recourse(model, table, scale=scale)
    assert recourse.features.loc["income", "scale"] == "1 up, 2 down"
    assert recourse.features.loc["age", "scale"] == "factual"
    said = json.loads(recourse.to_json())["cost"]
    assert said["scale"]["income"] == {"increase": 1.0, "decrease": 2.0}
    assert said["scale"]["age"] == "factual"


def test_many_labels_are_shown_in_part() -> None:
    """The review stays readable; the JSON has them all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": [f"town {k % 40:02}" for k in range(200)], "n": rng.normal(size=200)})
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(X, (X["n"] > 0).astype(int))
    recourse = Recourse(model, X)
    assert recourse.features.loc["town", "values"].endswith("town 05 and 34 more")
    assert len(json.loads(recourse.to_json())["features"][0]["categories"]) == 40


def test_a_free_action_is_not_acceptance_without_one() -> None:
    """Beyond the table's largest value a percentile does not change, so moving there costs nothing."""
    table = pd.DataFrame({"a": np.arange(11.0)})
    model = LogisticRegression().fit(table, table["a"] > 5)
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-12.0])
    recourse = Recourse(model, table, cost="percentile", bounds={"a": (0.0, 20.0)})
    found = recourse.certify(pd.DataFrame({"a": [10.0, 11.0, 15.0]}))
    assert found.table["cost"].tolist() == [0.0, 0.0, 0.0] and found.results[0].action
    assert "1 of them are accepted without any action" in found.summary()


def test_tables_in_parquet_come_back_as_the_page_writes_them(gappy, answers, tmp_path) -> None:
    """Cells of several types: numbers and labels, and dicts, also the empty one of who is accepted."""
    pytest.importorskip("pyarrow", reason="Parquet")
    page = (Path(__file__).parents[2] / "docs" / "dataframes.md").read_text(encoding="utf-8")
    [line] = [one.strip() for one in page.splitlines() if "to_parquet(" in one]
    model, table, _ = gappy
    accepted = Recourse(model, table).certify(answers.counterfactuals.loc[["a"]])
    asked = answers.choices("d"), accepted.choices("a"), answers.reasons("d"), answers.regions("d")
    for one in (answers.table, answers.changes, answers.directions, *asked):
        exec(line, {"table": one, "FILE": tmp_path / "table", "json": json, "np": np})
        back = pd.read_parquet(tmp_path / "table")
        assert list(back) == list(one) and list(back.index) == list(one.index)
        for name in one:
            cells = map(json.loads, back[name]) if one[name].dtype == object else back[name]
            assert list(map(_plain, cells)) == list(map(_plain, one[name])), name


def _plain(cell: object) -> str:
    """The cell as Python writes it, numbers as Python's own and tuples as lists."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    return repr(list(cell) if isinstance(cell, tuple) else cell)
