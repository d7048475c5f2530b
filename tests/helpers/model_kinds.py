"""Every kind of model that is read, small enough to fit in a moment, and random tables to fit them on."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn import calibration, discriminant_analysis, ensemble, linear_model, naive_bayes, svm, tree
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.feature_selection import RFE
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, QuantileTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

Task = Literal["two", "three", "number", "outlier"]


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    make
        Makes one that is not fitted, from a seed.
    tasks
        What it can be fitted for.
    labels
        Whether it takes columns of labels itself.
    gaps
        Whether it takes missing values itself.
    columns
        ``any``, or what its columns have to be: ``counts``, 0 or more; ``codes``, whole and few.
    """

    make: Callable[[int], Any]
    tasks: tuple[Task, ...] = ("two", "three")
    labels: bool = False
    gaps: bool = False
    columns: Literal["any", "counts", "codes"] = "any"


def _tree(depth: int | None = 3) -> Any:
    return tree.DecisionTreeClassifier(max_depth=depth, random_state=0)


def _calibrated(inner: Any, **options: Any) -> Any:
    return calibration.CalibratedClassifierCV(inner, **options)


def _vote(*members: Any, **options: Any) -> Any:
    return ensemble.VotingClassifier([(f"m{k}", one) for k, one in enumerate(members)], **options)


def _stack(*members: Any, **options: Any) -> Any:
    return ensemble.StackingClassifier([(f"m{k}", one) for k, one in enumerate(members)], cv=2, **options)


def _boosting(seed: int = 0) -> Any:
    return ensemble.GradientBoostingClassifier(n_estimators=5, random_state=seed)


def _forest(seed: int = 0, depth: int | None = None) -> Any:
    return ensemble.RandomForestClassifier(5, max_depth=depth, random_state=seed)


def _of(module: str, name: str, **options: Any) -> Callable[[int], Any]:
    return lambda seed: getattr(importlib.import_module(module), name)(random_state=seed, **options)


TWO: tuple[Task, ...] = ("two",)
NUMBER: tuple[Task, ...] = ("number",)
OUTLIER: tuple[Task, ...] = ("outlier",)

_AVERAGED = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "n_estimators": 6}
"""Options of LightGBM that boost nothing and average trees."""

LINEAR: dict[str, Kind] = {
    "logistic": Kind(lambda s: linear_model.LogisticRegression()),
    "ridge": Kind(lambda s: linear_model.RidgeClassifier()),
    "sgd": Kind(lambda s: linear_model.SGDClassifier(random_state=s)),
    "perceptron": Kind(lambda s: linear_model.Perceptron(random_state=s)),
    "lda": Kind(lambda s: discriminant_analysis.LinearDiscriminantAnalysis()),
    "lda lsqr": Kind(
        lambda s: discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2)
    ),
    "linear svc": Kind(lambda s: svm.LinearSVC(random_state=s)),
    "svc": Kind(lambda s: svm.SVC(kernel="linear", max_iter=100_000)),
    "nu svc": Kind(lambda s: svm.NuSVC(kernel="linear", nu=0.2, max_iter=100_000)),
    "mlp": Kind(lambda s: MLPClassifier((5,), max_iter=60, random_state=s)),
    "mlp of tanh": Kind(
        lambda s: MLPClassifier((4, 3), activation="tanh", max_iter=60, random_state=s), ("three",)
    ),
    "mlp of sigmoids": Kind(
        lambda s: MLPClassifier((4,), activation="logistic", solver="lbfgs", random_state=s), TWO
    ),
    "gaussian": Kind(lambda s: naive_bayes.GaussianNB(), TWO),
    "quadratic": Kind(
        lambda s: discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), ("three",)
    ),
    "multinomial": Kind(lambda s: naive_bayes.MultinomialNB(), columns="counts"),
    "complement": Kind(lambda s: naive_bayes.ComplementNB(), columns="counts"),
    "self-training": Kind(lambda s: SelfTrainingClassifier(linear_model.LogisticRegression())),
    "rfe": Kind(lambda s: RFE(linear_model.LogisticRegression(), n_features_to_select=2)),
    "modified huber": Kind(
        lambda s: FixedThresholdClassifier(
            linear_model.SGDClassifier("modified_huber", random_state=s), threshold=0.4
        ),
        TWO,
    ),
    "vote of linear": Kind(
        lambda s: _vote(linear_model.LogisticRegression(), svm.LinearSVC(), linear_model.RidgeClassifier())
    ),
    "bag of svc": Kind(lambda s: ensemble.BaggingClassifier(svm.LinearSVC(), n_estimators=3, random_state=s)),
    "adaboost of logistic": Kind(
        lambda s: ensemble.AdaBoostClassifier(linear_model.LogisticRegression(), n_estimators=3), TWO
    ),
    "sigmoid of svc": Kind(lambda s: _calibrated(svm.LinearSVC(), ensemble=False, cv=3), TWO),
    "isotonic of logistic": Kind(
        lambda s: _calibrated(linear_model.LogisticRegression(), method="isotonic", ensemble=False, cv=3)
    ),
    "isotonic folds of svc": Kind(lambda s: _calibrated(svm.LinearSVC(), method="isotonic", cv=2), TWO),
    "temperature of logistic": Kind(
        lambda s: _calibrated(linear_model.LogisticRegression(), method="temperature", ensemble=False, cv=3)
    ),
    "sigmoid of mlp": Kind(
        lambda s: _calibrated(MLPClassifier((4,), max_iter=60, random_state=s), ensemble=False, cv=2), TWO
    ),
    "soft vote of logistic": Kind(
        lambda s: _vote(
            linear_model.LogisticRegression(),
            linear_model.LogisticRegression(C=0.02),
            MLPClassifier((4,), max_iter=60, random_state=s),
            voting="soft",
            weights=[2, 1, 1],
        ),
        TWO,
    ),
    "bag of logistic": Kind(
        lambda s: ensemble.BaggingClassifier(
            linear_model.LogisticRegression(), n_estimators=5, random_state=s
        ),
        TWO,
    ),
    "sigmoid folds of svc": Kind(lambda s: _calibrated(svm.LinearSVC(), cv=3), TWO),
    "threshold of sigmoid folds": Kind(
        lambda s: FixedThresholdClassifier(_calibrated(svm.LinearSVC(), cv=2), threshold=0.7), TWO
    ),
    "stack of probabilities": Kind(
        lambda s: _stack(linear_model.LogisticRegression(), linear_model.LogisticRegression(C=0.02)), TWO
    ),
    "stack of decisions": Kind(
        lambda s: _stack(linear_model.LogisticRegression(), svm.LinearSVC(), stack_method="decision_function")
    ),
    "stack with its columns": Kind(
        lambda s: _stack(
            linear_model.RidgeClassifier(),
            stack_method="decision_function",
            passthrough=True,
            final_estimator=MLPClassifier((3,), max_iter=60, random_state=s),
        )
    ),
}

TREES: dict[str, Kind] = {
    "tree": Kind(lambda s: _tree(), gaps=True),
    "forest": Kind(lambda s: _forest(s, 4), gaps=True),
    "boosting": Kind(_boosting),
    "histogram": Kind(
        lambda s: ensemble.HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5, random_state=s),
        gaps=True,
    ),
    "xgboost": Kind(_of("xgboost", "XGBClassifier", n_estimators=6, max_depth=3, n_jobs=1), gaps=True),
    "xgboost dart": Kind(
        _of("xgboost", "XGBClassifier", n_estimators=6, max_depth=3, n_jobs=1, booster="dart", rate_drop=0.5),
        gaps=True,
    ),
    "lightgbm": Kind(
        _of("lightgbm", "LGBMClassifier", n_estimators=6, min_child_samples=5, n_jobs=1, verbose=-1),
        gaps=True,
    ),
    "lightgbm rf": Kind(
        _of("lightgbm", "LGBMClassifier", min_child_samples=5, n_jobs=1, verbose=-1, **_AVERAGED),
        TWO,
        gaps=True,
    ),
    "catboost": Kind(
        _of(
            "catboost",
            "CatBoostClassifier",
            iterations=8,
            depth=3,
            verbose=0,
            thread_count=1,
            allow_writing_files=False,
        ),
        labels=True,
        gaps=True,
    ),
    "ebm": Kind(
        _of(
            "interpret.glassbox",
            "ExplainableBoostingClassifier",
            max_rounds=20,
            outer_bags=2,
            interactions=2,
            n_jobs=1,
        ),
        TWO,
        labels=True,
        gaps=True,
    ),
    "bernoulli": Kind(lambda s: naive_bayes.BernoulliNB(binarize=0.5)),
    "categories": Kind(lambda s: naive_bayes.CategoricalNB(min_categories=9), columns="codes"),
    "bag of trees": Kind(lambda s: ensemble.BaggingClassifier(n_estimators=5, random_state=s)),
    "bag of some columns": Kind(
        lambda s: ensemble.BaggingClassifier(_tree(), n_estimators=5, max_features=0.7, random_state=s)
    ),
    "bag of pipelines": Kind(
        lambda s: ensemble.BaggingClassifier(
            make_pipeline(StandardScaler(), _tree()), n_estimators=3, random_state=s
        )
    ),
    "adaboost": Kind(lambda s: ensemble.AdaBoostClassifier(n_estimators=8, random_state=s)),
    "adaboost of trees": Kind(
        lambda s: ensemble.AdaBoostClassifier(_tree(2), n_estimators=5, random_state=s)
    ),
    "soft vote of trees": Kind(
        lambda s: _vote(
            _forest(s, 3), _tree(), ensemble.ExtraTreesClassifier(3, random_state=s), voting="soft"
        )
    ),
    "weighted soft vote": Kind(lambda s: _vote(_forest(s), _tree(None), voting="soft", weights=[2, 1])),
    "vote of trees": Kind(lambda s: _vote(_tree(2), _tree(4), _tree(3))),
    "vote of two ensembles": Kind(lambda s: _vote(_forest(s), _boosting(s)), TWO),
    "sigmoid of forest": Kind(lambda s: _calibrated(_forest(s), ensemble=False, cv=2), TWO),
    "isotonic of boosting": Kind(
        lambda s: _calibrated(_boosting(s), method="isotonic", ensemble=False, cv=2), TWO
    ),
    "sigmoid folds of trees": Kind(lambda s: _calibrated(_tree(), cv=3)),
    "isotonic folds of trees": Kind(lambda s: _calibrated(_tree(), method="isotonic", cv=3)),
    "temperature of forest": Kind(
        lambda s: _calibrated(_forest(s), method="temperature", ensemble=False, cv=2)
    ),
    "sigmoid of adaboost": Kind(
        lambda s: _calibrated(ensemble.AdaBoostClassifier(n_estimators=5), ensemble=False, cv=2), TWO
    ),
    "stack of trees": Kind(lambda s: _stack(_forest(s, 3), _tree())),
    "threshold of bag": Kind(
        lambda s: FixedThresholdClassifier(
            ensemble.BaggingClassifier(_tree(), n_estimators=5, random_state=s), threshold=0.4
        ),
        TWO,
    ),
    "balanced forest": Kind(_of("imblearn.ensemble", "BalancedRandomForestClassifier", n_estimators=5)),
    "balanced bag": Kind(_of("imblearn.ensemble", "BalancedBaggingClassifier", n_estimators=4)),
    "rusboost": Kind(_of("imblearn.ensemble", "RUSBoostClassifier", n_estimators=6)),
}

NUMBERS: dict[str, Kind] = {
    "linear regression": Kind(lambda s: linear_model.LinearRegression(), NUMBER),
    "lasso": Kind(lambda s: linear_model.Lasso(alpha=0.01), NUMBER),
    "huber": Kind(lambda s: linear_model.HuberRegressor(), NUMBER),
    "bayesian ridge": Kind(lambda s: linear_model.BayesianRidge(), NUMBER),
    "sgd regression": Kind(lambda s: linear_model.SGDRegressor(random_state=s), NUMBER),
    "ransac": Kind(lambda s: linear_model.RANSACRegressor(random_state=s), NUMBER),
    "pls": Kind(lambda s: PLSRegression(2), NUMBER),
    "gamma regression": Kind(lambda s: linear_model.GammaRegressor(), NUMBER),
    "poisson regression": Kind(lambda s: linear_model.PoissonRegressor(), NUMBER),
    "svr": Kind(lambda s: svm.SVR(kernel="linear", max_iter=100_000), NUMBER),
    "linear svr": Kind(lambda s: svm.LinearSVR(random_state=s), NUMBER),
    "mlp regression": Kind(
        lambda s: MLPRegressor(hidden_layer_sizes=(5,), max_iter=100, random_state=s), NUMBER
    ),
    "tree regression": Kind(
        lambda s: tree.DecisionTreeRegressor(max_depth=4, random_state=s), NUMBER, gaps=True
    ),
    "forest regression": Kind(
        lambda s: ensemble.RandomForestRegressor(5, max_depth=4, random_state=s), NUMBER, gaps=True
    ),
    "boosting regression": Kind(
        lambda s: ensemble.GradientBoostingRegressor(n_estimators=6, random_state=s), NUMBER
    ),
    "histogram regression": Kind(
        lambda s: ensemble.HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=5, random_state=s),
        NUMBER,
        gaps=True,
    ),
    "histogram poisson": Kind(
        lambda s: ensemble.HistGradientBoostingRegressor(
            loss="poisson", max_iter=6, min_samples_leaf=5, random_state=s
        ),
        NUMBER,
        gaps=True,
    ),
    "xgboost regression": Kind(
        _of("xgboost", "XGBRegressor", n_estimators=5, max_depth=3, n_jobs=1), NUMBER, gaps=True
    ),
    "xgboost gamma": Kind(
        _of("xgboost", "XGBRegressor", n_estimators=5, max_depth=3, objective="reg:gamma", n_jobs=1),
        NUMBER,
        gaps=True,
    ),
    "lightgbm regression": Kind(
        _of("lightgbm", "LGBMRegressor", n_estimators=6, min_child_samples=5, n_jobs=1, verbose=-1),
        NUMBER,
        gaps=True,
    ),
    "lightgbm rf regression": Kind(
        _of("lightgbm", "LGBMRegressor", min_child_samples=5, n_jobs=1, verbose=-1, **_AVERAGED),
        NUMBER,
        gaps=True,
    ),
    "lightgbm poisson": Kind(
        _of(
            "lightgbm",
            "LGBMRegressor",
            objective="poisson",
            n_estimators=6,
            min_child_samples=5,
            n_jobs=1,
            verbose=-1,
        ),
        NUMBER,
        gaps=True,
    ),
    "catboost regression": Kind(
        _of(
            "catboost",
            "CatBoostRegressor",
            iterations=8,
            depth=3,
            verbose=0,
            thread_count=1,
            allow_writing_files=False,
        ),
        NUMBER,
        labels=True,
        gaps=True,
    ),
    "ebm regression": Kind(
        _of(
            "interpret.glassbox",
            "ExplainableBoostingRegressor",
            max_rounds=20,
            outer_bags=2,
            interactions=1,
            n_jobs=1,
        ),
        NUMBER,
        labels=True,
        gaps=True,
    ),
    "bag of regressions": Kind(lambda s: ensemble.BaggingRegressor(n_estimators=4, random_state=s), NUMBER),
    "vote of regressions": Kind(
        lambda s: ensemble.VotingRegressor(
            [("a", linear_model.LinearRegression()), ("b", linear_model.Ridge())], weights=[1, 2]
        ),
        NUMBER,
    ),
    "stack of regressions": Kind(
        lambda s: ensemble.StackingRegressor(
            [("a", tree.DecisionTreeRegressor(max_depth=3)), ("b", ensemble.ExtraTreesRegressor(3))], cv=2
        ),
        NUMBER,
    ),
    "logarithm of linear": Kind(
        lambda s: TransformedTargetRegressor(
            linear_model.LinearRegression(), func=np.log, inverse_func=np.exp
        ),
        NUMBER,
    ),
    "root of forest": Kind(
        lambda s: TransformedTargetRegressor(
            ensemble.RandomForestRegressor(4, random_state=s), func=np.sqrt, inverse_func=np.square
        ),
        NUMBER,
    ),
    "quantiles of tree": Kind(
        lambda s: TransformedTargetRegressor(
            tree.DecisionTreeRegressor(max_depth=4, random_state=s),
            transformer=QuantileTransformer(n_quantiles=30),
        ),
        NUMBER,
    ),
    "power of linear": Kind(
        lambda s: TransformedTargetRegressor(linear_model.LinearRegression(), transformer=PowerTransformer()),
        NUMBER,
    ),
}

OUTLIERS: dict[str, Kind] = {
    "one-class svm": Kind(lambda s: svm.OneClassSVM(kernel="linear", nu=0.2), OUTLIER),
    "one-class sgd": Kind(lambda s: linear_model.SGDOneClassSVM(random_state=s), OUTLIER),
    "isolation forest": Kind(
        lambda s: ensemble.IsolationForest(n_estimators=8, max_samples=32, random_state=s), OUTLIER
    ),
    "isolation of some columns": Kind(
        lambda s: ensemble.IsolationForest(
            n_estimators=8, max_samples=32, max_features=2, contamination=0.3, random_state=s
        ),
        OUTLIER,
    ),
}

KINDS: Mapping[str, Kind] = {**LINEAR, **TREES, **NUMBERS, **OUTLIERS}
CASES = [(name, task) for name, kind in KINDS.items() for task in kind.tasks]


@dataclass(frozen=True)
class Fitted:
    """A fitted model, the table it was fitted on, and what can be wished for."""

    model: Any
    X: pd.DataFrame
    wishes: tuple[Any, ...]

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        """What the model says."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.ravel(np.asarray(self.model.predict(rows[self.X.columns])))

    def wanted(self, wish: Any, rows: pd.DataFrame) -> np.ndarray:
        """Which rows have what is wished for."""
        said = self.predict(rows)
        if isinstance(wish, dict):
            return said != wish["not"]
        if not isinstance(wish, tuple):
            return said == wish
        low, high = (-np.inf if wish[0] is None else wish[0]), (np.inf if wish[1] is None else wish[1])
        return (low <= said) & (said <= high)


def random_table(rng: np.random.Generator, kind: Kind, n: int = 160) -> pd.DataFrame:
    """Numbers of several scales, a truth value, two columns of labels, and gaps in every second table."""
    if kind.columns != "any":
        return pd.DataFrame(rng.integers(0, 8, (n, 4)), columns=list("abcd"))
    X = pd.DataFrame(
        {
            "small": rng.normal(0.1, 0.02, n).round(int(rng.integers(3, 8))),
            "large": rng.normal(3e3, 900.0, n),
            "whole": rng.integers(0, 12, n),
            "flag": rng.random(n) < 0.5,
            "label": np.array(["a", "b b", "é"], dtype=object)[rng.integers(0, 3, n)],
            "town": np.array(["x", "y", "z", "w"], dtype=object)[rng.integers(0, 4, n)],
        }
    )
    if rng.random() < 0.5:
        X.loc[rng.random(n) < 0.1, "small"] = np.nan
    return X[list(rng.permutation(X.columns))]


def whole_table(rng: np.random.Generator, n: int = 120) -> pd.DataFrame:
    """Three columns of a few whole numbers, so that all rows can be tried."""
    return pd.DataFrame({"a": rng.integers(0, 7, n), "b": rng.integers(0, 6, n), "c": rng.integers(0, 5, n)})


def signal(rng: np.random.Generator, X: pd.DataFrame) -> np.ndarray:
    """A number for each row, above 0, that depends on its columns."""
    total = rng.normal(0, 0.4, len(X))
    for name in X.columns:
        column = X[name]
        values = column if pd.api.types.is_numeric_dtype(column) else pd.factorize(column)[0]
        numbers = np.nan_to_num(np.asarray(values, dtype=float))
        total = total + rng.normal(0.5, 1.0) * (numbers - numbers.mean()) / (numbers.std() + 1e-9)
    return total - total.min() + 0.5


def targets(name: str, task: Task, total: np.ndarray) -> Any:
    """What a model is fitted for, from a number for each row."""
    if task == "three":
        return np.digitize(total, np.quantile(total, [0.4, 0.7]))
    if task != "two":
        return total
    second = total > np.quantile(total, 0.6)
    numbered = name in ("xgboost", "xgboost dart", "self-training")  # which take no text
    return second.astype(int) if numbered else np.array(["bad", "good"])[second.astype(int)]


def wishes_of(task: Task, said: np.ndarray, moved: float = 0.0) -> tuple[Any, ...]:
    """What can be wished for; ends of intervals are numbers that the model has predicted, moved a little."""
    if task == "outlier":
        return 1, -1
    if task == "number":
        low, middle, high = (np.quantile(said, [0.3, 0.7, 0.85], method="nearest") * (1.0 + moved)).tolist()
        return (middle, None), (None, low), (middle, high)
    known = np.unique(said).tolist()
    return (*known, {"not": known[0]})


def fitted(name: str, task: Task, seed: int, whole: bool = False) -> Fitted:
    """A model of a kind, alone where it takes the table, else behind encoders, imputers and scalers."""
    kind, rng = KINDS[name], np.random.default_rng([seed, *map(ord, name)])
    X = whole_table(rng) if whole else random_table(rng, kind)
    total = signal(rng, X)
    model = kind.make(seed)
    y = targets(name, task, total)
    labels = [c for c in X.columns if c in ("label", "town")]
    if not labels or kind.columns != "any":
        ready = model
    elif kind.labels:
        ready = model
        if name.startswith("catboost"):
            model.set_params(cat_features=labels, max_ctr_complexity=2, one_hot_max_size=3)
    else:
        numbers = [c for c in X.columns if c not in labels]
        steps: list[Any] = [] if kind.gaps else [SimpleImputer()]
        steps += [StandardScaler()] if name in LINEAR or name in OUTLIERS or rng.random() < 0.3 else []
        front = ColumnTransformer(
            [
                ("labels", OneHotEncoder(sparse_output=False), labels),
                ("numbers", make_pipeline(*steps) if steps else "passthrough", numbers),
            ]
        )
        ready = Pipeline([("table", front), ("model", model)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ready.fit(X) if task == "outlier" else ready.fit(X, y)
        said = np.ravel(np.asarray(ready.predict(X)))
    return Fitted(ready, X, wishes_of(task, said))
