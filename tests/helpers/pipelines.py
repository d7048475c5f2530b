"""Random fitted models over random tables, and what a reading decides on rows: for tests of every kind."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from milp_recourse.problem.enclosure import Dyadic
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.readers import Reading, model_columns, rounding_margin

LINEAR = ("logistic", "svc", "sgd", "ridge", "perceptron", "mlp", "deep mlp", "identity mlp")
SKLEARN_TREES = ("tree", "forest", "stumps", "extra", "boosting", "histogram")
OTHERS = ("xgboost", "lightgbm")
FINALS = (*LINEAR, *SKLEARN_TREES, *OTHERS)
NATIVE = ("histogram", "xgboost", "lightgbm")
"""Take labels as categories themselves."""
TAKES_GAPS = ("tree", "forest", "stumps", "extra", "histogram", "xgboost", "lightgbm")


def random_pipeline(
    seed: int, final: str | None = None, several: bool | None = None
) -> tuple[Any, pd.DataFrame, pd.Series, pd.DataFrame]:
    """A fitted model, the X and y it was fitted on, and people: rows with X's columns in another order.

    Parameters
    ----------
    seed
        Decides everything.
    final
        One of ``FINALS``; None: drawn.
    several
        Three classes; None: drawn, for linear models and networks.
    """
    rng = np.random.default_rng(seed)
    final = final or str(rng.choice(FINALS))
    bare = rng.random() < 0.25
    n = int(rng.integers(80, 260))
    native = bare and final in NATIVE and rng.random() < 0.5
    X = mixed_table(rng, n, labels=not bare or native, gaps=not bare or final in TAKES_GAPS)
    if native:
        X = X.astype({c: "category" for c in X.columns if c.startswith(("label", "code"))})
    drawn = final in LINEAR and rng.random() < 0.25
    model, y = fitted_on(rng, X, final, drawn if several is None else several, bare)
    people = _people(rng, X, model, final, bare)
    return model, X, y, people


def fitted_on(
    rng: np.random.Generator, X: pd.DataFrame, final: str, several: bool, bare: bool
) -> tuple[Any, pd.Series]:
    """A model fitted on a table, behind transformers of its columns unless ``bare``, and the classes drawn.

    Columns called ``label ...`` and ``code ...`` are labels, the others numbers.
    """
    y = drawn_classes(rng, X, several, whole=final == "xgboost")
    front = None if bare else random_front(rng, X, final)
    with warnings.catch_warnings(), threadpool_limits(1):  # small data: threads cost more than they bring
        warnings.simplefilter("ignore")
        return _fitted(rng, front, final, X, y), y


def predict(model: Any, X: pd.DataFrame, people: pd.DataFrame) -> np.ndarray:
    """What the model itself says of the people."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return np.asarray(model.predict(people[model_columns(model, X)]))


def encode(reading: Reading, people: pd.DataFrame) -> np.ndarray:
    """The classifier's input rows, shape (people, inputs); nan where a missing value has no stand-in."""
    parts = []
    for column in reading.columns:
        values = people[column.name]
        if column.labels is None:
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            if column.imputed is not None:
                numbers = np.where(np.isnan(numbers), column.imputed, numbers)
            parts.append(numbers[:, None])
            continue
        table = np.eye(len(column.labels)) if column.table is None else np.array(column.table)
        parts.append(table[[_at(column, value) for value in values]])
    return np.concatenate(parts, axis=1).astype(np.float64)


def _at(column: Any, value: object) -> int:
    if pd.isna(value) and column.imputed is not None:
        value = column.imputed
    for k, label in enumerate(column.labels):
        if (pd.isna(label) and pd.isna(value)) or (not pd.isna(value) and label == value):
            return k
    raise AssertionError(f"{column.name}: no label {value!r} among {column.labels}")


def decide(reading: Reading, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row gets the desired class, and whether the reading is sure of it, rounding included."""
    if isinstance(reading.classifier, TreeEnsemble):
        said, threshold = scores(reading.classifier, rows), reading.accept.threshold
        tie = reading.classifier.aggregate == "mean" and 0.5 < threshold < 0.5 + 2.0**-30
        return said > reading.accept.above, ~(tie & (np.abs(said - 0.5) <= threshold - 0.5))
    margin = rounding_margin(reading, rows.min(axis=0), rows.max(axis=0))
    above = np.array([float(v - Fraction(reading.accept.threshold)) for v in _logits(reading, rows, margin)])
    return above >= 0.0, (above >= margin) | (above <= -margin - reading.near)


def _logits(reading: Reading, rows: np.ndarray, margin: float) -> list[Fraction]:
    """The rows' logits: exact near the threshold, where rounding could decide, else in doubles."""
    network, threshold = reading.classifier, reading.accept.threshold
    near = network.nearly(rows) if type(network) is ReluNetwork else [None] * len(rows)
    found = []
    for row, rounded in zip(rows, near, strict=True):
        far = rounded and abs(rounded[0].value - threshold) > 2.0 * (margin + reading.near + rounded[0].error)
        exact = None if far else network.enclose([Dyadic.of(v) for v in row])[0].lower
        found.append(Fraction(rounded[0].value) if exact is None else exact)
    return found


def scores(ensemble: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """The deployed scores, missing values by the trees' rules; one row and tree at a time."""
    with np.errstate(over="ignore"):
        rounded = rows.astype(ensemble.dtype).astype(np.float64)
    values = np.empty((len(rows), len(ensemble.trees)))
    for t, tree in enumerate(ensemble.trees):
        node = np.zeros(len(rows), dtype=np.int64)
        while (inner := tree.left[node] != -1).any():
            x = rounded[np.arange(len(rows)), np.where(inner, tree.feature[node], 0)]
            left = x <= tree.threshold[node]
            if tree.missing_left is not None:
                left = np.where(np.isnan(x), tree.missing_left[node], left)
            step = np.where(left, tree.left[node], tree.right[node])
            node = np.where(inner, step, node)
        values[:, t] = tree.value[node]
    return ensemble.total(values)


def at_thresholds(reading: Reading, people: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """People with numbers moved onto the thresholds of a tree ensemble, and one double beside."""
    if not isinstance(reading.classifier, TreeEnsemble):
        return people
    moved, start = people.copy(), 0
    for column in reading.columns:
        cuts = reading.classifier.cuts[start]
        cuts = cuts[np.abs(cuts) < 1e30]
        start += column.width
        if column.labels is not None or not len(cuts):
            continue
        picked = rng.choice(cuts, len(moved))
        old = moved[column.name].to_numpy(dtype=np.float64, na_value=np.nan)
        beside = [old, picked, np.nextafter(picked, np.inf), np.nextafter(picked, -np.inf)]
        moved[column.name] = np.choose(rng.integers(0, 4, len(moved)), beside)
    return moved


def mixed_table(rng: np.random.Generator, n: int, labels: bool, gaps: bool) -> pd.DataFrame:
    """Numbers of several scales, whole numbers, perhaps a truth value, labels of several types, and gaps."""
    columns: dict[str, Any] = {}
    for k in range(rng.integers(2, 5)):
        columns[f"number {k}"] = rng.normal(10.0 ** rng.integers(-2, 4), 10.0 ** rng.integers(-1, 3), n)
    for k in range(rng.integers(0, 3)):
        columns[f"whole {k}"] = rng.integers(0, 40, n)
    if rng.random() < 0.5:
        columns["flag"] = rng.random(n) < 0.5
    for k in range(rng.integers(1, 4) if labels else 0):
        kind = rng.choice(["text", "category", "code"])
        count = int(rng.integers(2, 6))
        drawn = np.minimum(rng.geometric(0.4, n) - 1, count - 1)
        drawn[:count] = np.arange(count)
        if kind == "code":
            columns[f"code {k}"] = np.array([3, 1, 7, 20, 5])[drawn]
        else:
            column = pd.Series(np.array(["b low", "a", "rent=own", "d", "é"], dtype=object)[drawn])
            columns[f"label {k}"] = column.astype("category") if kind == "category" else column
    X = pd.DataFrame(columns)
    if gaps:
        for name in X.columns:
            if name.startswith(("number", "label")) and rng.random() < 0.4:
                X.loc[rng.random(n) < 0.1, name] = np.nan
    return X[list(rng.permutation(X.columns))]


def drawn_classes(rng: np.random.Generator, X: pd.DataFrame, several: bool, whole: bool = False) -> pd.Series:
    """Two or three classes of a table's rows, by a random sum of the columns; ``whole``: by numbers."""
    signal = rng.normal(size=len(X)) * 0.7
    for name in X.columns:
        column = X[name]
        if name.startswith("label"):
            column = column.astype(object).map({"a": 2.0, "d": -1.0}).astype(float)
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        numbers = np.where(
            np.isnan(numbers), np.nanmean(numbers) if not np.isnan(numbers).all() else 0.0, numbers
        )
        signal = signal + rng.normal() * (numbers - numbers.mean()) / (numbers.std() + 1e-9)
    if several:
        names = np.array(["low", "middle", "top"])
        which = np.searchsorted(np.quantile(signal, [0.33, 0.66]), signal)
        return pd.Series(which if whole else names[which])
    second = signal > np.quantile(signal, rng.uniform(0.4, 0.7))
    if whole:
        return pd.Series(second.astype(int))
    kinds = [np.array([0, 1]), np.array(["good", "bad"]), np.array([False, True]), np.array([-1, 1])]
    return pd.Series(kinds[rng.integers(len(kinds))][second.astype(int)])


def random_front(rng: np.random.Generator, X: pd.DataFrame, final: str, dense: bool | None = None) -> Any:
    """Transformers that fit a table and a kind of model; ``dense``: that make no sparse matrix."""
    labels = [c for c in X.columns if c.startswith(("label", "code"))]
    numbers = [c for c in X.columns if c not in labels]
    if dense is None:
        dense = final in ("xgboost", "histogram") or (final in SKLEARN_TREES and bool(X.isna().any().any()))
    branches: list[Any] = []
    drop = None if rng.random() < 0.5 else rng.choice(["first", "if_binary"])
    for k, name in enumerate(labels):
        steps = _label_steps(rng, X[name], final, dense, drop)
        branches.append((f"labels {k}", make_pipeline(*steps) if len(steps) > 1 else steps[0], [name]))
    gaps = bool(X[numbers].isna().any().any())
    steps = []
    if gaps and (final not in TAKES_GAPS or rng.random() < 0.5):
        strategy = str(rng.choice(["mean", "median", "most_frequent", "constant"]))
        steps.append(SimpleImputer(strategy=strategy, fill_value=1.5 if strategy == "constant" else None))
    scalers = [
        StandardScaler(),
        MinMaxScaler(),
        RobustScaler(),
        MaxAbsScaler(),
        StandardScaler(with_mean=False),
    ]
    if final not in LINEAR:
        scalers.append(MinMaxScaler(clip=True))
    scale = rng.integers(3) if final not in LINEAR or gaps or final == "ridge" else 1 + rng.integers(2)
    steps += [scalers[k] for k in rng.integers(0, len(scalers), scale)]
    if gaps and len(steps) > 1 and isinstance(steps[0], SimpleImputer) and rng.random() < 0.3:
        last = steps[-1]
        if not getattr(last, "clip", False) and len(steps) == 2:
            steps = [last, steps[0]]  # the scaler first
    if rng.random() < 0.2:
        steps.append(FunctionTransformer())
    held = numbers
    if len(numbers) > 2 and rng.random() < 0.3 and not gaps and final not in ("mlp", "deep mlp"):
        held = numbers[1:]  # the first is dropped, or passes as it is
    picked = make_column_selector("number|whole|flag") if held == numbers and rng.random() < 0.3 else held
    inner = make_pipeline(*steps) if steps else "passthrough"
    branches.insert(int(rng.integers(len(branches) + 1)), ("numbers", inner, picked))
    table = ColumnTransformer(
        branches,
        remainder=str(rng.choice(["drop", "passthrough"])),
        sparse_threshold=0.0 if dense else float(rng.choice([0.0, 0.3, 1.0])),
        verbose_feature_names_out=bool(rng.random() < 0.5),
    )
    if not dense and final != "lightgbm" and rng.random() < 0.3:
        return make_pipeline(table, MaxAbsScaler())
    return table


def _label_steps(
    rng: np.random.Generator, column: pd.Series, final: str, dense: bool, drop: Any
) -> list[Any]:
    gap = bool(column.isna().any())
    steps: list[Any] = []
    if gap and rng.random() < 0.6:
        strategy = str(rng.choice(["most_frequent", "constant"]))
        steps.append(
            SimpleImputer(strategy=strategy, fill_value="missing" if strategy == "constant" else None)
        )
        gap = False
    choice = rng.integers(4)
    if choice == 0 and not (gap and final in ("boosting", *LINEAR)):
        unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1} if rng.random() < 0.5 else {}
        missing = np.nan if gap and final in ("histogram", "xgboost", "lightgbm") else -2
        steps.append(OrdinalEncoder(encoded_missing_value=missing, **unknown))
        if rng.random() < 0.5:
            steps.append(StandardScaler())
    elif choice == 1:
        extra = {"max_categories": 3} if rng.random() < 0.5 else {"min_frequency": 0.15}
        steps.append(OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=not dense, **extra))
    else:
        unknown = "ignore" if drop is None and rng.random() < 0.5 else "error"
        steps.append(OneHotEncoder(drop=drop, handle_unknown=unknown, sparse_output=not dense))
    return steps


def _fitted(rng: np.random.Generator, front: Any, final: str, X: pd.DataFrame, y: pd.Series) -> Any:
    seed = int(rng.integers(1000))
    if final in OTHERS:
        return _fitted_other(rng, front, final, X, y, seed)
    makers: dict[str, Any] = {
        "logistic": lambda: LogisticRegression(C=float(10.0 ** rng.integers(-2, 3))),
        "svc": lambda: LinearSVC(max_iter=200, fit_intercept=bool(rng.random() < 0.7)),
        "sgd": lambda: SGDClassifier(random_state=seed),
        "ridge": RidgeClassifier,
        "perceptron": lambda: Perceptron(random_state=seed),
        "mlp": lambda: MLPClassifier((6,), max_iter=30, random_state=seed),
        "deep mlp": lambda: MLPClassifier((5, 4), max_iter=30, random_state=seed),
        "identity mlp": lambda: MLPClassifier((4, 3), activation="identity", max_iter=20, random_state=seed),
        "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=seed),
        "forest": lambda: RandomForestClassifier(5, random_state=seed),
        "stumps": lambda: RandomForestClassifier(7, max_depth=2, random_state=seed),
        "extra": lambda: ExtraTreesClassifier(5, max_depth=4, random_state=seed),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=6, random_state=seed),
        "histogram": lambda: HistGradientBoostingClassifier(
            max_iter=8, min_samples_leaf=5, early_stopping=bool(rng.random() < 0.3), random_state=seed
        ),
    }
    estimator = makers[final]()
    model = estimator if front is None else Pipeline([("table", front), ("model", estimator)])
    if front is None and final in LINEAR and final != "ridge":
        model = make_pipeline(StandardScaler(), estimator)
    if final in ("logistic", "tree") and rng.random() < 0.3:
        name = "C" if final == "logistic" else "max_depth"
        prefix = "" if model is estimator else "model__" if front is not None else "logisticregression__"
        model = GridSearchCV(model, {prefix + name: [1, 3]}, cv=2, error_score="raise")
    return model.fit(X, y)


def _fitted_other(
    rng: np.random.Generator, front: Any, final: str, X: pd.DataFrame, y: pd.Series, seed: int
) -> Any:
    stop = bool(rng.random() < 0.5)
    if final == "xgboost":
        from xgboost import XGBClassifier

        extra: dict[str, Any] = {"early_stopping_rounds": 2} if stop else {}
        if front is None:
            extra |= {"enable_categorical": True, "max_cat_to_onehot": int(rng.integers(1, 6))}
        estimator = XGBClassifier(
            n_estimators=12, max_depth=3, n_jobs=1, learning_rate=0.9, random_state=seed, **extra
        )
        options: dict[str, Any] = {"verbose": False}
    else:
        from lightgbm import LGBMClassifier, early_stopping

        estimator = LGBMClassifier(
            min_data_per_group=3,
            cat_smooth=1.0,
            n_estimators=12,
            min_child_samples=4,
            learning_rate=0.9,
            n_jobs=1,
            verbose=-1,
            random_state=seed,
        )
        options = {"callbacks": [early_stopping(2, verbose=False)]} if stop else {}
    Z = X if front is None else front.fit_transform(X)
    half = len(X) // 2
    rest, kept = np.arange(half), np.arange(half, len(X))
    take = (lambda rows: Z.iloc[rows]) if front is None else (lambda rows: Z[rows])
    if stop:
        options["eval_set"] = [(take(rest), y.iloc[rest])]
        estimator.fit(take(kept), y.iloc[kept], **options)
    else:
        estimator.fit(Z, y, **{k: v for k, v in options.items() if k == "verbose"})
    return estimator if front is None else Pipeline([("table", front), ("model", estimator)])


def _people(rng: np.random.Generator, X: pd.DataFrame, model: Any, final: str, bare: bool) -> pd.DataFrame:
    people = X.iloc[rng.integers(0, len(X), 60)].reset_index(drop=True)
    for name in X.columns:
        mixed = X[name].iloc[rng.integers(0, len(X), 60)].reset_index(drop=True)
        if name.startswith("number"):
            mixed = mixed + rng.normal(size=60) * float(X[name].std())
        people[name] = mixed.where(pd.Series(rng.random(60) < 0.5), people[name]).astype(mixed.dtype)
        gap = bool(X[name].isna().any())
        if name.startswith("number") and not gap and bare and final in TAKES_GAPS:
            people.loc[rng.random(60) < 0.1, name] = np.nan
    return people[list(rng.permutation(X.columns))]
