"""What a person gets wrong is answered in one line that names the argument and says what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError
from milp_recourse.problem.conditions import Acted, LabelIn, Not
from milp_recourse.problem.instance import Preferences
from tests.helpers.frame_tables import applicants, fitted, pipeline

MODEL, X = fitted()
REFUSED = X[MODEL.predict(X) == 0].head(3)


def make(**arguments: Any) -> Callable[[], object]:
    """Recourse with these arguments."""
    return lambda: Recourse(arguments.pop("model", MODEL), arguments.pop("X", X), **arguments)


def ask(people: Any = REFUSED, **arguments: Any) -> Callable[[], object]:
    """Certify these people."""
    return lambda: Recourse(MODEL, X).certify(people, **arguments)


def told(**arguments: Any) -> Callable[[], object]:
    """Answers of a model that no reader reads: it could be asked if the levers took finitely many values."""
    return lambda: make(**arguments)().certify(arguments.get("X", X).head(2))


def three_classes() -> Any:
    """A model of three classes."""
    return RandomForestClassifier(2).fit(X[["age", "income"]], np.arange(len(X)) % 3)


def numeric(model: Any) -> Any:
    """A model on the two numeric columns."""
    return model.fit(X[["age", "income"]], MODEL.predict(X))


TWO = X[["age", "income"]]
KERNEL = numeric(SVC())

MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "X is a list": (make(X=X.to_numpy().tolist()), "X: got list; allowed: the pandas DataFrame"),
    "X is an array": (make(X=X.to_numpy()), "X: got ndarray"),
    "X is empty": (make(X=X.head(0)), "X: got 0 rows"),
    "X has a column twice": (make(X=pd.concat([X, X[["age"]]], axis=1)), "two columns called 'age'"),
    "X lacks a column": (make(X=X.drop(columns="income")), "income"),
    "model is not fitted": (make(model=pipeline()), "fit"),
    "bare model is not fitted": (make(model=LogisticRegression(), X=TWO), "fit"),
    "model is a string": (make(model="model.pkl", X=TWO), "model.pkl"),
    "model is None": (make(model=None), "NoneType"),
    "model is a class": (make(model=LogisticRegression, X=TWO), "type"),
    "a regressor": (make(model=numeric(LinearRegression()), X=TWO), "LinearRegression"),
    "a clustering": (told(model=KMeans(2).fit(TWO), X=TWO), "KMeans"),
    "nearest neighbours": (told(model=numeric(KNeighborsClassifier()), X=TWO), "KNeighborsClassifier"),
    "a kernel machine": (told(model=numeric(SVC()), X=TWO), "SVC"),
    "PCA in the pipeline": (
        told(model=numeric(make_pipeline(PCA(1), RandomForestClassifier(2))), X=TWO),
        "PCA",
    ),
    "products of columns": (
        told(model=numeric(make_pipeline(PolynomialFeatures(), RandomForestClassifier(2))), X=TWO),
        "PolynomialFeatures",
    ),
    "three classes": (make(model=three_classes(), X=TWO), "one of the 3 classes 0, 1, 2, or {'not': one}"),
    "one class": (make(model=RandomForestClassifier(2).fit(TWO, np.ones(len(TWO))), X=TWO), "class"),
    "desired is no class": (make(desired="yes"), "a class of 0, 1, or {'not': one}"),
    "desired not no class": (make(desired={"not": 7}), "desired"),
    "desired with another key": (make(desired={"is": 1}), "desired"),
    "immutable is a string": (make(immutable="age"), "immutable: got 'age'; allowed: a list"),
    "immutable has a typo": (
        make(immutable=["agee"]),
        "immutable: got 'agee'; allowed: a column of X (did you mean 'age'?)",
    ),
    "increase has a typo": (make(increase=["incom"]), "did you mean 'income'?"),
    "increase and decrease": (make(increase=["age"], decrease=["age"]), "decrease: got 'age'"),
    "labels that increase": (make(increase=["purpose"]), "increase: got 'purpose'"),
    "unknown kind": (make(kinds={"age": "int"}), "kinds.age: got int; allowed: continuous, integer, binary"),
    "labels as numbers": (make(kinds={"purpose": "continuous"}), "kinds.purpose: got continuous"),
    "numbers as labels": (
        make(X=X.assign(age=X["age"].where(X["age"] > 30)), kinds={"age": "categorical"}),
        "kinds.age: got labels; allowed: a number: X misses some values",
    ),
    "fractions as integer": (make(kinds={"income": "integer"}), "kinds.income: got integer"),
    "wide numbers as binary": (make(kinds={"age": "binary"}), "kinds.age: got binary"),
    "kind of no column": (make(kinds={"ages": "integer"}), "did you mean 'age'?"),
    "categories without a label": (make(categories={"purpose": ["car", "house"]}), "without 'school'"),
    "categories with a label too much": (
        make(categories={"purpose": ["car", "house", "school", "boat"]}),
        "got 'boat'",
    ),
    "categories twice": (make(categories={"purpose": ["car", "car", "school"]}), "twice"),
    "categories of a number": (make(categories={"age": [20, 30]}), "categories.age"),
    "reversed bounds": (make(bounds={"age": (60, 20)}), "bounds.age: got (60, 20)"),
    "bounds of one number": (make(bounds={"age": 60}), "bounds.age: got 60"),
    "bounds with nan": (make(bounds={"age": (20, float("nan"))}), "bounds.age"),
    "bounds of text": (make(bounds={"age": ("20", "60")}), "bounds.age"),
    "bounds of labels": (make(bounds={"purpose": (0, 1)}), "bounds.purpose"),
    "bounds of a binary": (make(bounds={"owns": (0, 2)}), "bounds.owns"),
    "bounds is a list": (make(bounds=[("age", 20, 60)]), "bounds: got list"),
    "ranges reversed": (make(ranges={"age": (60, 20)}), "ranges.age"),
    "domain of labels": (make(domain={"purpose": (0, 1)}), "domain.purpose"),
    "unknown cost": (make(cost="l3"), "cost: got l3; allowed: l1, l2-squared"),
    "unknown part": (make(cost={"l3": 1}), "cost: got l3"),
    "negative part": (make(cost={"l1": -1}), "cost.l1: got -1"),
    "parts of nothing": (make(cost={"l1": 0}), "cost"),
    "unknown scale": (make(scale="iqd"), "scale: got iqd; allowed: spread, range, sd, mad, iqr"),
    "scale of 0": (make(scale={"age": 0}), "scale.age: got 0"),
    "scale of falls below 0": (
        make(scale={"age": {"increase": 1, "decrease": -1}}),
        "scale.age.decrease: got -1.0; allowed: a number above 0",
    ),
    "weight of 0": (make(weights={"age": 0}), "weights.age: got 0"),
    "weight of nan": (make(weights={"age": float("nan")}), "weights.age"),
    "weight of no column": (make(weights={"agee": 1}), "did you mean 'age'?"),
    "scm is a string": (make(scm="loan"), "scm: got str"),
    "scm of nothing": (make(scm={"name": "lone"}), "scm"),
    "plausibility": (make(plausibility="yes"), "plausibility: got 'yes'"),
    "plausibility without density": (
        make(plausibility="scm-density"),
        "a causal model with noise for every feature",
    ),
    "conditions of an unknown kind": (make(conditions=[{"at_most_action": 1}]), "conditions.0"),
    "conditions as text alone": (make(conditions="at most 2 actions"), "conditions: got"),
    "the second condition is wrong": (
        make(conditions=["at most 2 actions", {"feature": "agee", "of": "change", "at_most": 3}]),
        "conditions.1.feature: got agee",
    ),
    "the second condition lacks a field": (
        make(conditions=["at most 2 actions", {"feature": "age", "at_most": 3}]),
        "conditions.1.of: got nothing",
    ),
    "a built condition on no column": (make(conditions=[Not(Acted("agee"))]), "conditions.0"),
    "a built condition on no label": (make(conditions=[LabelIn("agee", "factual", (0,))]), "conditions.0"),
    "conditions nobody can parse": (make(conditions=["be nice"]), "conditions.0"),
    "negative margin": (make(margin=-1), "margin: got -1"),
    "margin is text": (make(margin="small"), "margin: got small"),
    "predict is no function": (make(predict=3), "predict: got int"),
    "people is a list": (ask([1, 2]), "people: got list"),
    "people lack a column": (ask(REFUSED.drop(columns="age")), "without 'age'"),
    "people have a column with a typo": (
        ask(REFUSED.rename(columns={"income": "incme"})),
        "a table without 'income'; allowed: rows with the columns of X (is 'incme' meant to be 'income'?)",
    ),
    "time limit of 0": (ask(time_limit=0), "time_limit: got 0"),
    "no jobs": (ask(jobs=0), "jobs: got 0"),
    "unknown back end": (ask(backend="guroby"), "guroby"),
    "a back end for trees": (ask(backend="cpsat"), "cpsat"),
    "preferences of another length": (ask(preferences=[{}]), "preferences: got 1 of them; allowed: 3"),
    "preferences is one mapping": (ask(preferences={"weights": {}}), "preferences: got dict"),
    "preferences with a typo": (ask(preferences=[{"weight": {}}] * 3), "preferences.0.weight"),
    "preferences of no column": (ask(preferences=[{"actionable": ["agee"]}] * 3), "agee"),
    "preferences of an immutable": (
        lambda: Recourse(MODEL, X, immutable=["age"]).certify(REFUSED, [{"actionable": ["age"]}] * 3),
        "not globally actionable",
    ),
    "preferences with reversed ranges": (ask(preferences=[{"ranges": {"age": (9, 1)}}] * 3), "ranges.age"),
    "preferences with a weight of 0": (ask(preferences=[{"weights": {"age": 0}}] * 3), "weights.age"),
    "preferences that are no list of columns": (
        ask(preferences=[{"actionable": 5}] * 3),
        "preferences.0.actionable: got 5; allowed: a list of columns of X",
    ),
    "preferences with a mask as a mapping": (
        ask(preferences=[{"actionable": {"age": False}}] * 3),
        "preferences.0.actionable: got a mapping",
    ),
    "preferences with a negative weight": (
        ask(preferences=[Preferences(("age",), {"age": -1.0})] * 3),
        "preferences.0.weights.age: got -1.0; allowed: a finite number above 0",
    ),
    "preferences of a column with a typo": (
        ask(preferences=[Preferences(("agee",))] * 3),
        "preferences.0.actionable: got 'agee'; allowed: a column of X (did you mean 'age'?)",
    ),
    "preferences with a range of labels": (
        ask(preferences=[{"ranges": {"purpose": (0, 1)}}] * 3),
        "preferences.0.ranges.purpose: got a range",
    ),
    "preferences with a range of one number": (
        ask(preferences=[{"ranges": {"age": 5}}] * 3),
        "preferences.0.ranges.age: got 5; allowed: (lowest, highest), two finite numbers",
    ),
    "a table of preferences with a typo": (
        ask(preferences=pd.DataFrame({"incme": 1.0}, REFUSED.index)),
        "preferences: got 'incme'; allowed: a column of X (did you mean 'income'?)",
    ),
    "a table of preferences of two kinds": (
        ask(preferences=pd.DataFrame({"weights": [{}] * 3, "income": 1.0}, REFUSED.index)),
        "preferences: got a column 'weights' beside others",
    ),
    "a table of preferences with a column twice": (
        ask(preferences=pd.DataFrame([[1.0, 2.0]] * 3, REFUSED.index, ["income", "income"])),
        "preferences: got two columns called 'income'",
    ),
    "predict that fails": (
        lambda: Recourse(MODEL, X, predict=lambda frame: 1 / 0).certify(REFUSED),
        "predict: got ZeroDivisionError",
    ),
    "predict of another shape": (
        lambda: Recourse(MODEL, X, predict=lambda frame: [1]).certify(REFUSED),
        "predict: got an answer of shape",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_line_says_what_is_allowed(mistake: str) -> None:
    act, expected = MISTAKES[mistake]
    with pytest.raises(RecourseError) as caught:
        act()
    line = str(caught.value)
    assert expected in line and "\n" not in line and len(line) < 450


ODD: list[Any] = [
    *(None, 1, -1, 10**400, np.int64(1), np.nan, True, "a", b"a", [], ["age"], [["age"]], [None], [{"x": 1}]),
    *({}, {"age": 1}, {"age": None}, {"age": 10**400}, {"age": (1, 0)}, {"age": (0, 10**400)}, {"not": [1]}),
    *({"age": np.array([0, 1])}, {"age": pd.Series([0, 1])}, {"purpose": (0, 1)}, {("age",): 1}, {None: 1}),
    *(
        {"kind": "near-data"},
        {"l1": np.nan},
        ["age <"],
        np.array(["age"]),
        pd.Series({"age": 1.0}),
        X.head(1),
    ),
    *(object(), iter(["age"]), pd.NA, pd.NaT, np.datetime64("2020-01-01")),
]

AT_THE_START = (
    *("desired", "immutable", "increase", "decrease", "kinds", "categories", "bounds", "ranges", "domain"),
    *("cost", "scale", "weights", "scm", "plausibility", "conditions", "margin", "predict", "model", "X"),
    *("steps", "values", "names", "units", "confidence"),
)

ASKED = {
    "certify": ("people", "preferences", "time_limit", "jobs", "certificates", "backend"),
    "margin_for": ("people",),
}

OF_ANSWERS = {
    "front": ("person", "time_limit"),
    "why": ("person", "time_limit"),
    "choices": ("person", "count", "differ", "apart", "scale", "time_limit", "together"),
    "robust": ("person", "missed", "threshold", "noise", "time_limit"),
    "page": ("person", "why", "time_limit"),
    "reasons": ("person", "most", "time_limit"),
    "reasons_table": ("most", "time_limit"),
    "letter": ("person", "template", "language"),
    "save": ("folder",),
}


def one_line_or_an_answer(act: Callable[[], object], told: str) -> None:
    """Nothing but an error of this package, in one line, may be raised."""
    try:
        act()
    except RecourseError as error:
        assert "\n" not in str(error) and "; allowed: " in str(error), told
    except Exception as error:
        raise AssertionError(told) from error


@pytest.mark.parametrize("asked", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", AT_THE_START)
def test_whatever_an_argument_is_there_is_an_answer_or_one_line(name: str, asked: bool) -> None:
    """Of a model that is read or of one that is asked: every argument takes every value in one of them."""
    known = {"model": KERNEL, "X": TWO} if asked else {"model": MODEL, "X": X}
    for value in ODD[(AT_THE_START.index(name) + asked) % 2 :: 2]:
        given = known | {name: value}
        one_line_or_an_answer(lambda given=given: Recourse(**given).to_json(), f"{name}={value!r}")


@pytest.mark.parametrize("method", [*ASKED, *OF_ANSWERS])
def test_whatever_a_method_is_given_there_is_an_answer_or_one_line(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recourse = Recourse(MODEL, X)
    answers = recourse.certify(REFUSED.head(1))
    asked: Any = recourse if method in ASKED else answers
    first = {"people": REFUSED.head(1), "person": REFUSED.index[0]}
    for name in {**ASKED, **OF_ANSWERS}[method]:
        [start] = [{k: v} for k, v in first.items() if k in {**ASKED, **OF_ANSWERS}[method]] or [{}]
        for value in ODD:
            given = start | {name: value}
            one_line_or_an_answer(lambda given=given: getattr(asked, method)(**given), f"{name}={value!r}")


def test_answers_of_nobody_are_empty_tables() -> None:
    """They can be shown; there is no page about nobody."""
    answers = Recourse(MODEL, X).certify(X.head(0))
    assert len(answers.table) == len(answers.changes) == len(answers.counterfactuals) == 0
    assert "0 people" in str(answers) and "<table" in answers._repr_html_()
    with pytest.raises(RecourseError, match="people: got nobody; allowed: at least one person"):
        answers.page()


def test_an_unknown_keyword_names_its_neighbour() -> None:
    with pytest.raises(TypeError, match="immutible"):
        Recourse(MODEL, X, immutible=["age"])  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("age", np.nan, "age: got nothing"),
        ("age", 35.5, "age: got 35.5; allowed: a whole number"),
        ("age", "35", "age: got '35'; allowed: a number"),
        ("income", np.inf, "income: got inf; allowed: a finite number"),
        ("owns", 2, "owns: got 2.0; allowed: 0 or 1"),
        ("purpose", "boat", "purpose: got 'boat'; allowed: one of car, house, school"),
        ("purpose", None, "purpose: got nothing"),
    ],
)
def test_a_person_who_cannot_be_read_holds_up_nobody(column: str, value: object, expected: str) -> None:
    people = REFUSED.astype({column: object}).copy()
    people.loc[people.index[1], column] = value
    table = Recourse(MODEL, X).certify(people).table
    assert table["status"].tolist()[1] == "bad-input" and table["status"].ne("bad-input").sum() == 2
    assert expected in table["message"].iloc[1]


def test_applicants_are_as_described() -> None:
    table, accepted = applicants()
    assert table.dtypes.astype(str).to_dict()["age"] == "int64" and set(accepted) == {0, 1}


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "complex128"])
def test_numbers_that_are_not_read_in_their_own_precision_are_refused(dtype: str) -> None:
    """The model computes in the column's own precision; the margin is for single and double precision."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = LogisticRegression().fit(table, table["a"] + table["b"] > 0)
    Recourse(model, table)
    with pytest.raises(
        RecourseError, match=r"column 'a': got numbers of (float16|float128|longdouble|complex128)"
    ):
        Recourse(model, table.astype({"a": dtype})).certify(table.head(1))
