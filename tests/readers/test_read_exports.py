"""ONNX graphs that skl2onnx exports decide as onnxruntime runs them, or are refused in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("onnxruntime")  # an optional extra
pytest.importorskip("skl2onnx")

import onnxruntime
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import read_model
from tests.helpers.pipelines import decide, encode

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": RNG.gamma(2, 1500, N).round(2),
        "debt": RNG.uniform(0, 1, N),
        "town": RNG.choice(list("abcd"), N),
        "rooms": RNG.integers(0, 4, N),
    }
)
SCORE = X.income / 3000 - 2 * X.debt + (X.town == "a") + RNG.normal(size=N) * 0.5
TWO, NUMBER = (SCORE > 0.3).astype(int), SCORE.to_numpy()
THREE = np.where(SCORE > 0.3, "good", np.where(X.debt > 0.7, "bad", "mid"))
NUMBERS = ["income", "debt"]

SCALED = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
    (OneHotEncoder(handle_unknown="ignore"), ["town", "rooms"]),
    ("passthrough", ["age"]),
)
CODED = make_column_transformer(
    (MinMaxScaler(clip=True), NUMBERS), (OrdinalEncoder(), ["town"]), ("passthrough", ["age", "rooms"])
)
MODELS = {
    "logistic": (SCALED, LogisticRegression(max_iter=1000), TWO, 1),
    "clipped": (CODED, LogisticRegression(max_iter=3000), TWO, 0),
    "perceptron": (SCALED, MLPClassifier((4,), max_iter=60, random_state=0), THREE, "good"),
    "linear": (SCALED, LinearRegression(), NUMBER, (0.5, None)),
    "tree": (CODED, DecisionTreeClassifier(max_depth=4), TWO, 1),
    "forest": (CODED, RandomForestClassifier(6, max_depth=4, random_state=0), THREE, {"not": "bad"}),
    "boosting": (SCALED, GradientBoostingClassifier(n_estimators=10), TWO, 0),
    "sums": (CODED, GradientBoostingRegressor(n_estimators=10), NUMBER, (0.2, 1.0)),
}


def exported(model, table=X, numbers=FloatTensorType):
    """The graph of a fitted pipeline, with an input for each column."""
    kinds = {"i": Int64TensorType, "f": numbers}
    types = [(c, kinds.get(table[c].dtype.kind, StringTensorType)([None, 1])) for c in table.columns]
    return to_onnx(model, initial_types=types)


def said_by_runtime(graph, rows):
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    fed = {}
    for one in session.get_inputs():
        kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64}
        with np.errstate(over="ignore"):
            fed[one.name] = rows[[one.name]].to_numpy().astype(kind.get(one.type, object))
    return session.run([session.get_outputs()[0].name], fed)[0].ravel()


def wanted(said, desired):
    if isinstance(desired, tuple):
        low, high = (
            np.inf * sign if end is None else end for end, sign in zip(desired, (-1, 1), strict=True)
        )
        return (said >= low) & (said <= high)
    return said != desired["not"] if isinstance(desired, dict) else said == desired


def with_borders(reading):
    """Rows of X, and rows with a number at a threshold of the trees, or one double or float32 beside it."""
    if not isinstance(reading.classifier, TreeEnsemble):
        return X
    rows, at = [X], 0
    for column in reading.columns:
        if column.labels is None and column.name in NUMBERS:
            cuts = reading.classifier.cuts[at][:40]
            below, above = (np.nextafter(cuts, end) for end in (-np.inf, np.inf))
            for numbers in (cuts, below, above, cuts.astype(np.float32).astype(np.float64)):
                more = X.sample(len(cuts), random_state=1, replace=True)
                rows.append(more.assign(**{column.name: numbers}))
        at += column.width
    return pd.concat(rows, ignore_index=True)


@pytest.mark.filterwarnings("ignore")  # the perceptron's short fit does not converge
@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline_decides_as_the_runtime(name):
    """Also beside thresholds; what is certified costs what it costs with the pipeline, up to float32."""
    before, model, y, desired = MODELS[name]
    fitted = make_pipeline(before, model).fit(X, y)
    graph = exported(fitted)
    reading = read_model(graph, X, desired)
    rows = with_borders(reading)
    yes, sure = decide(reading, encode(reading, rows))
    met = wanted(said_by_runtime(graph, rows), desired)
    assert not (yes & ~met & sure).any()
    assert reading.near or not (met & ~yes & sure).any()
    people = X[~wanted(fitted.predict(X), desired)].head(5)
    own, other = (Recourse(one, X, desired=desired, immutable=["age"]) for one in (graph, fitted))
    answers, known = own.certify(people).table, other.certify(people).table
    assert answers.status.eq("optimal").all() and answers.confirmed.all()
    assert answers.cost.to_numpy(float) == pytest.approx(known.cost.to_numpy(float), abs=1e-3)


def test_missing_values_and_doubles():
    """An imputer of the graph, trees that take a missing value as it comes, and thresholds in doubles."""
    gaps = X.assign(income=X.income.where(X.index % 7 > 0))
    for table, fitted, kind in (
        (gaps, make_pipeline(SCALED, MODELS["boosting"][1]).fit(gaps, TWO), FloatTensorType),
        (gaps[NUMBERS], RandomForestClassifier(3, random_state=0).fit(gaps[NUMBERS], TWO), FloatTensorType),
        (X[NUMBERS], RandomForestClassifier(3, random_state=0).fit(X[NUMBERS], TWO), DoubleTensorType),
    ):
        if table.shape[1] > 2:
            graph = exported(fitted, table, kind)
        else:
            graph = to_onnx(fitted, initial_types=[("x", kind([None, 2]))], options={"zipmap": False})
        answers = Recourse(graph, table).certify(table[fitted.predict(table) == 0].head(8))
        assert answers.table.status.eq("optimal").all() and answers.table.confirmed.all()


def one_node(**changed):
    """A tree of one node on one column, as a graph."""
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.1, 0.0, 0.0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0],
        class_nodeids=[1, 2],
        class_weights=[1.0, -1.0],
        classlabels_strings=["no", "yes"],
        **TREE | changed,
    )
    ends = [("label", TensorProto.STRING, ["n"]), ("scores", TensorProto.FLOAT, ["n", 2])]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1])],
        [helper.make_tensor_value_info(*end) for end in ends],
    )
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


TREE = {"nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "class_ids": [0, 0]}


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"])
@pytest.mark.parametrize("tracks", [0, 1])
def test_every_mode_of_a_node(mode, tracks):
    """At the threshold, beside it, and for a missing value."""
    made = one_node(nodes_modes=[mode, "LEAF", "LEAF"], nodes_missing_value_tracks_true=[tracks, 0, 0])
    at = float(np.float32(0.1))
    halves = [at + 2.0**-29 * k for k in range(-40, 41)]
    table = pd.DataFrame({"x": [*halves, 0.0, 1.0, np.nan, -1e300, 1e300]})
    reading = read_model(made, table)
    said = said_by_runtime(made, table) == "yes"
    assert 0 < said.sum() < len(said)
    assert (reading.classifier.scores(table.to_numpy()) > reading.accept.above).tolist() == said.tolist()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nodes_modes": ["BRANCH_EQ", "LEAF", "LEAF"]}, "got a node of mode BRANCH_EQ; allowed: BRANCH_LEQ"),
        ({"nodes_truenodeids": [0, 0, 0]}, "got nodes that are no tree below the first"),
        ({"nodes_truenodeids": [7, 0, 0]}, "got attributes that do not fit"),
        ({"class_ids": [0, 1]}, "got two classes with weights or base values of their own"),
    ],
)
def test_trees_that_are_refused(changed, said):
    with pytest.raises(Unsupported, match=said) as caught:
        read_model(one_node(**changed), pd.DataFrame({"x": [0.0, 1.0]}))
    assert "\n" not in str(caught.value)


def test_what_is_refused_can_be_asked():
    """The runtime is asked where levers have finitely many values; without, the message says so."""
    few = X[["rooms", "debt"]].astype(float)
    fitted = make_pipeline(Normalizer(), LogisticRegression()).fit(few, (few.debt > 0.4).astype(int))
    graph = to_onnx(fitted, initial_types=[("x", FloatTensorType([None, 2]))])
    with pytest.raises(Unsupported, match=r"\(Normalizer\): got Normalizer; allowed: .*steps= for debt"):
        Recourse(graph, few).certify(few.head(1))
    asked = Recourse(graph, few, steps={"debt": 0.1})
    answers = asked.certify(few[fitted.predict(few) == 0].head(2))
    assert set(answers.table.status) <= {"optimal", "infeasible"} and set(answers.table.proof) == {"asked"}


def test_tables_that_do_not_fit_are_one_line():
    before, model, y, _ = MODELS["logistic"]
    graph = exported(make_pipeline(before, model).fit(X, y))
    with pytest.raises(
        Unsupported, match=r"graph: got inputs age, .* one for each column of X, by name, or 4"
    ):
        read_model(graph, X.drop(columns="town"))
    with pytest.raises(BadInput, match=r"column 'rooms': got 3.5; allowed: whole numbers"):
        read_model(graph, X.assign(rooms=X.rooms + 0.5))
    with pytest.raises(BadInput, match=r"column 'town': got 3; allowed: texts"):
        read_model(graph, X.assign(town=3))
