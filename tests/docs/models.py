"""What is read of the libraries' models: ``python -m tests.docs.models`` writes the tables of docs/models.md.

Each model is fitted on a small table and read. A table says what it was read as, or the sentence with which
it is refused.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn import decomposition, ensemble, linear_model, neural_network, preprocessing, svm, tree
from sklearn.base import OutlierMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils import all_estimators

from milp_recourse.errors import RecourseError
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import read_model
from milp_recourse.readers.refusal import OR_ASK

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
ASK = "or *ask*"

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.integers(0, 6, (80, 3)), columns=["a", "b", "c"]).astype(float)
TOTAL = (X["a"] + 2 * X["b"] - X["c"] + RNG.normal(0, 1, 80)).to_numpy()
TWO, NUMBER = (np.median(TOTAL) < TOTAL).astype(int), TOTAL - TOTAL.min() + 1
THREE = np.digitize(TOTAL, np.quantile(TOTAL, [0.3, 0.6]))

Row = tuple[str, str]
"""The model as one would write it, and what becomes of it."""

LOGISTIC = linear_model.LogisticRegression
BOOSTING = partial(ensemble.GradientBoostingClassifier, random_state=0)
FOREST = partial(ensemble.RandomForestClassifier, random_state=0)
TREE = partial(tree.DecisionTreeClassifier, random_state=0)

ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "AdaBoostClassifier": [{}, {"estimator": LOGISTIC(), "n_estimators": 3}],
    "BaggingClassifier": [{}, {"estimator": svm.LinearSVC(), "n_estimators": 3}, {"estimator": LOGISTIC()}],
    "BaggingRegressor": [{}],
    "CalibratedClassifierCV": [
        {"estimator": svm.LinearSVC(), "ensemble": False},
        {"estimator": FOREST(5), "ensemble": False},
        {"estimator": LOGISTIC(), "method": "isotonic", "cv": 2},
        {"estimator": TREE(max_depth=3)},
        {"estimator": LOGISTIC()},
        {"estimator": FOREST(5)},
    ],
    "FixedThresholdClassifier": [{"estimator": LOGISTIC(), "threshold": 0.7}],
    "TunedThresholdClassifierCV": [{"estimator": LOGISTIC()}],
    "HistGradientBoostingRegressor": [{}, {"loss": "poisson"}],
    "MLPClassifier": [{}, {"activation": "tanh"}],
    "NuSVC": [{"kernel": "linear", "nu": 0.2}, {"nu": 0.2}],
    "NuSVR": [{"kernel": "linear"}, {}],
    "OneClassSVM": [{"kernel": "linear", "nu": 0.2}, {}],
    "OneVsRestClassifier": [{"estimator": svm.LinearSVC()}, {"estimator": FOREST(5)}],
    "SVC": [{"kernel": "linear"}, {}],
    "SVR": [{"kernel": "linear"}, {}],
    "SelfTrainingClassifier": [{"estimator": LOGISTIC()}],
    "StackingClassifier": [
        {"estimators": [("a", LOGISTIC()), ("b", svm.LinearSVC())], "stack_method": "decision_function"},
        {"estimators": [("a", FOREST(5)), ("b", TREE())]},
        {"estimators": [("a", LOGISTIC()), ("b", svm.LinearSVC())]},
    ],
    "StackingRegressor": [
        {"estimators": [("a", linear_model.Ridge()), ("b", svm.LinearSVR())]},
        {"estimators": [("a", linear_model.Ridge())], "final_estimator": tree.DecisionTreeRegressor()},
    ],
    "TransformedTargetRegressor": [{"func": np.log, "inverse_func": np.exp}],
    "VotingClassifier": [
        {"estimators": [("a", FOREST(5)), ("b", TREE())], "voting": "soft"},
        {"estimators": [("a", LOGISTIC()), ("b", svm.LinearSVC()), ("c", linear_model.Perceptron())]},
        {"estimators": [("a", TREE()), ("b", tree.ExtraTreeClassifier(random_state=0))]},
        {"estimators": [("a", FOREST(5)), ("b", BOOSTING())]},
        {"estimators": [("a", FOREST(5)), ("b", FOREST(4)), ("c", FOREST(3))]},
        {"estimators": [("a", LOGISTIC()), ("b", linear_model.LogisticRegression(C=9))], "voting": "soft"},
        {"estimators": [("a", FOREST(5)), ("b", LOGISTIC())], "voting": "soft"},
    ],
    "VotingRegressor": [{"estimators": [("a", linear_model.Ridge()), ("b", svm.LinearSVR())]}],
    "MultiOutputClassifier": [{"estimator": LOGISTIC()}],
    "MultiOutputRegressor": [{"estimator": linear_model.Ridge()}],
    "ClassifierChain": [{"estimator": LOGISTIC()}],
    "RegressorChain": [{"estimator": linear_model.Ridge()}],
    "OneVsOneClassifier": [{"estimator": LOGISTIC()}],
    "OutputCodeClassifier": [{"estimator": LOGISTIC()}],
    "RadiusNeighborsClassifier": [{"radius": 9.0}],
}
"""The arguments with which a model is tried; without any where none are named."""

SEVERAL = ("CCA", "PLSCanonical", "MultiOutput", "MultiTask", "ClassifierChain", "RegressorChain")

OTHERS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "XGBoost": [
        ("xgboost", "XGBClassifier", {}),
        ("xgboost", "XGBRFClassifier", {}),
        ("xgboost", "XGBRegressor", {}),
        ("xgboost", "XGBRegressor", {"objective": "reg:gamma"}),
        ("xgboost", "XGBRegressor", {"objective": "survival:cox"}),
        ("xgboost", "XGBRFRegressor", {}),
        ("xgboost", "XGBClassifier", {"booster": "dart"}),
        ("xgboost", "XGBClassifier", {"booster": "gblinear"}),
    ],
    "LightGBM": [
        ("lightgbm", "LGBMClassifier", {}),
        ("lightgbm", "LGBMRegressor", {}),
        (
            *("lightgbm", "LGBMClassifier"),
            {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        ),
        ("lightgbm", "LGBMRegressor", {"objective": "poisson"}),
        ("lightgbm", "LGBMClassifier", {"linear_tree": True}),
    ],
    "CatBoost": [
        ("catboost", "CatBoostClassifier", {}),
        ("catboost", "CatBoostClassifier", {"grow_policy": "Lossguide"}),
        ("catboost", "CatBoostRegressor", {}),
        ("catboost", "CatBoostRegressor", {"loss_function": "Poisson"}),
        ("catboost", "CatBoostRegressor", {"loss_function": "RMSEWithUncertainty"}),
    ],
    "interpret": [
        ("interpret.glassbox", "ExplainableBoostingClassifier", {"interactions": 1}),
        ("interpret.glassbox", "ExplainableBoostingRegressor", {"interactions": 1}),
        ("interpret.glassbox", "ExplainableBoostingRegressor", {"objective": "gamma_deviance"}),
        ("interpret.glassbox", "LogisticRegression", {}),
        ("interpret.glassbox", "ClassificationTree", {}),
    ],
    "imbalanced-learn": [
        ("imblearn.ensemble", "BalancedRandomForestClassifier", {}),
        ("imblearn.ensemble", "BalancedBaggingClassifier", {}),
        ("imblearn.ensemble", "RUSBoostClassifier", {}),
        ("imblearn.ensemble", "EasyEnsembleClassifier", {}),
    ],
}
LAYERS = (
    *("ReLU()", "LeakyReLU()", "Hardtanh()", "BatchNorm1d(4)", "Dropout()", "Identity()", "Flatten()"),
    *("Sigmoid()", "Tanh()", "GELU()", "LayerNorm(4)", "ELU()"),
)
OPERATORS = ("Relu", "LeakyRelu", "Sigmoid", "Identity", "Tanh", "Erf", "Elu", "Selu")

START, END = "<!-- models -->\n", "<!-- end of models -->"


def rows_of_sklearn() -> Iterator[Row]:
    """Every classifier, regression and detector of outliers of scikit-learn."""
    kinds = [("classifier", TWO), ("regressor", NUMBER)]
    found = {name: (kind, y) for word, y in kinds for name, kind in all_estimators(word)}
    found |= {name: (kind, None) for name, kind in all_estimators() if issubclass(kind, OutlierMixin)}
    for name, (kind, y) in found.items():
        for arguments in ARGUMENTS.get(name, [{}]):
            yield written(name, arguments), outcome(kind, arguments, y)


def rows_of_transformers() -> Iterator[Row]:
    """Transformers before a linear model, and before a tree."""
    from sklearn import decomposition, feature_selection, impute, kernel_approximation, random_projection
    from sklearn import preprocessing as p
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401

    some = [
        p.StandardScaler(),
        p.MinMaxScaler(),
        p.RobustScaler(),
        p.MaxAbsScaler(),
        p.MinMaxScaler(clip=True),
    ]
    some += [p.OneHotEncoder(), p.OrdinalEncoder(), p.TargetEncoder(), impute.SimpleImputer()]
    some += [impute.KNNImputer(), impute.IterativeImputer(), impute.SimpleImputer(add_indicator=True)]
    some += [feature_selection.SelectKBest(k=2), p.FunctionTransformer(np.log1p), p.PowerTransformer()]
    some += [p.QuantileTransformer(n_quantiles=9), p.Binarizer(threshold=2.5), p.KBinsDiscretizer(3)]
    some += [p.KBinsDiscretizer(3, encode="ordinal"), p.SplineTransformer(3)]
    some += [decomposition.PCA(2), decomposition.TruncatedSVD(2), p.PolynomialFeatures(2)]
    some += [random_projection.GaussianRandomProjection(2), p.Normalizer(), kernel_approximation.Nystroem()]
    for one in some:
        outcomes = []
        for last in (LOGISTIC(), TREE(max_depth=3)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = read(make_pipeline(one, last).fit(X, TWO), X, None)
            outcomes.append("refused" if "got " in said else said)
        yield repr(one), "; ".join(outcomes)


QUIET = {"LightGBM": {"verbose": -1}, "interpret": {"outer_bags": 2, "max_rounds": 20, "n_jobs": 1}}
"""What the fits of this page add to the arguments that it shows: they are to be short and silent."""


def rows_of(library: str) -> Iterator[Row]:
    """The models of another library."""
    for module, name, arguments in OTHERS[library]:
        kind = getattr(importlib.import_module(module), name)
        quiet = QUIET.get(library if name.startswith(("LGBM", "Expl")) else "", {})
        y = NUMBER if "Regressor" in name else TWO
        yield written(name, arguments), outcome(kind, arguments | quiet, y)


def rows_of_torch() -> Iterator[Row]:
    """Layers between two linear ones."""
    import torch

    torch.manual_seed(0)
    for layer in LAYERS:
        made = [torch.nn.Linear(3, 4), eval(f"torch.nn.{layer}", {"torch": torch}), torch.nn.Linear(4, 1)]
        if layer == "Sigmoid()":
            made = [torch.nn.Linear(3, 1), torch.nn.Sigmoid()]
        yield layer, read(torch.nn.Sequential(*made).eval(), X, None)


def rows_of_onnx() -> Iterator[Row]:
    """Operators between two matrix products."""
    from onnx import TensorProto, helper, numpy_helper

    first, last = np.ones((3, 4), dtype=np.float32), np.ones((4, 1), dtype=np.float32)
    for operator in OPERATORS:
        closes = operator == "Sigmoid"
        nodes = [helper.make_node("MatMul", ["x", "first"], ["h"])]
        nodes += [] if closes else [helper.make_node(operator, ["h"], ["a"])]
        nodes += [helper.make_node("MatMul", ["h" if closes else "a", "last"], ["z" if closes else "y"])]
        nodes += [helper.make_node(operator, ["z"], ["y"])] if closes else []
        values = [numpy_helper.from_array(v, n) for v, n in ((first, "first"), (last, "last"))]
        ends = (("x", ["n", 3]), ("y", ["n", 1]))
        entering, leaving = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in ends)
        graph = helper.make_graph(nodes, "network", entering, leaving, values)
        opset = [helper.make_opsetid("", 20)]
        yield operator, read(helper.make_model(graph, opset_imports=opset, ir_version=8), X, None)


def rows_of_exports() -> Iterator[Row]:
    """What skl2onnx makes of models behind StandardScaler, and of transformers before LogisticRegression."""
    from skl2onnx import to_onnx

    models = [LOGISTIC(), neural_network.MLPClassifier((4,), random_state=0), linear_model.LinearRegression()]
    models += [TREE(), FOREST(5), BOOSTING(n_estimators=5)]
    models += [ensemble.HistGradientBoostingRegressor(max_iter=5)]
    pairs = [(preprocessing.StandardScaler(), model, model) for model in models]
    pairs += [(one, LOGISTIC(), one) for one in (decomposition.PCA(2), preprocessing.Normalizer())]
    for before, model, shown in pairs:
        y = TWO if hasattr(model, "predict_proba") else NUMBER
        fitted = make_pipeline(before, model).fit(X.to_numpy(), y)
        graph = to_onnx(fitted, X.to_numpy(np.float32)[:1])
        yield f"{type(shown).__name__}()", read(graph, X, (3.0, None) if y is NUMBER else None)


def written(name: str, arguments: dict[str, Any]) -> str:
    """The call as one would write it."""
    return f"{name}({', '.join(f'{k}={_shown(v)}' for k, v in arguments.items() if k != 'verbose')})"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(one) for _, one in value) + "]"
    if callable(value):
        return f"np.{value.__name__}"
    return type(value).__name__ if hasattr(value, "fit") else repr(value)


def outcome(kind: type, arguments: dict[str, Any], y: Any) -> str:
    """What becomes of a model, fitted on a small table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind.__module__.split(".")[0] == "catboost":
            quiet = {"iterations": 5, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
            model = kind(**arguments, **quiet)
        else:
            model = kind(**arguments)
            known = model.get_params(deep=False) if hasattr(model, "get_params") else {}
            quick = {"random_state": 0, "n_jobs": 1, "n_estimators": 5}
            quick = {k: v for k, v in quick.items() if k in known and k not in arguments}
            if quick:
                model.set_params(**quick)
        table: Any = X
        if kind.__name__ == "IsotonicRegression":
            table = X[["a"]]
        if kind.__name__.startswith(SEVERAL):
            y = np.column_stack([y, y[::-1]])
        model.fit(table) if y is None else model.fit(table, y)
        desired = (3.0, None) if y is NUMBER or (y is not None and y.dtype == float) else None
        return read(model, table, desired)


def read(model: Any, table: pd.DataFrame, desired: Any) -> str:
    """What a fitted model is read as, or the sentence with which it is refused."""
    try:
        reading = read_model(model, table, desired)
    except RecourseError as error:
        said = str(error).replace(OR_ASK, ASK).replace("|", "\\|")
        return f"refused: {said}"
    read = "trees" if isinstance(reading.classifier, TreeEnsemble) else "network"
    return f"{read}, near ties refused" if reading.near else read


def sections() -> Iterator[tuple[str, Callable[[], Iterator[Row]]]]:
    """The headings of the page, and their rows."""
    yield "scikit-learn", rows_of_sklearn
    yield "scikit-learn: transformers, before LogisticRegression; before a tree", rows_of_transformers
    for library in OTHERS:
        yield library, lambda library=library: rows_of(library)  # type: ignore[misc]
    yield "torch: layers of a Sequential", rows_of_torch
    yield "ONNX: operators", rows_of_onnx
    yield "ONNX: exports of skl2onnx", rows_of_exports


def table_of(rows: Iterator[Row]) -> str:
    """A table of the page: a line for all of which the same is said."""
    groups: dict[str, list[str]] = {}
    for name, said in rows:
        own = name.split("(")[0]
        alike = (
            said.removeprefix("refused: model: ").replace(f"got {own}", "got it").replace(f" ({own}): ", ": ")
        )
        groups.setdefault(alike, []).append(name)
    lines = (f"| {', '.join(f'`{name}`' for name in names)} | {said} |\n" for said, names in groups.items())
    return "| model | read as |\n|---|---|\n" + "".join(lines)


def answers(text: str) -> dict[tuple[str, str], str]:
    """What tables say, by heading without version and model."""
    found, heading = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line.split()[1]
        if line.startswith("| `"):
            names, said = line.strip("| ").rsplit(" | ", 1)
            found |= {(heading, name): said for name in names.strip("`").split("`, `")}
    return found


def tables() -> dict[str, str]:
    """The tables by their headings, which have the version of scikit-learn."""
    versions = {"scikit-learn": f"scikit-learn {sklearn.__version__}"}
    return {versions.get(heading, heading): table_of(rows()) for heading, rows in sections()}


def page(old: str, made: dict[str, str]) -> str:
    """The page with the tables in the place of those in it."""
    before, rest = old.split(START)
    parts = [f"## {heading}\n\n{table}\n" for heading, table in made.items()]
    return before + START + "\n" + "\n".join(parts) + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
