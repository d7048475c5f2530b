"""51 stacks of the kind that lenders deploy, on German, Adult and Give Me Some Credit.

    MILP_RECOURSE_DATA=FOLDER python -m tests.readers.stacks --json docs/results/readers/stacks_51.json

Each is fitted and read, and refused people are answered. A row says whether it was read, or asked with
the levers' steps of its table, or refused, and with which sentence; how many actions flip ``predict`` on
the raw row; how many answers are proven; and how many certificates the checker verifies.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, svm, tree
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError
from milp_recourse.lab.recipe.real import SETS
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.readers import read_model

FOLDER = "MILP_RECOURSE_DATA"
ROWS = 4000
SECONDS = 10.0
"""The time limit for one person."""

LOGISTIC = partial(linear_model.LogisticRegression, max_iter=2000)


@dataclass(frozen=True)
class Lender:
    """A lender's table.

    Attributes
    ----------
    X, y
        Rows, and whether each has the outcome that people want.
    fixed
        The columns that nobody can change.
    steps
        The steps of the numbers that take more than some values, for models that are asked.
    """

    X: pd.DataFrame
    y: np.ndarray
    fixed: tuple[str, ...]
    steps: dict[str, float]

    @property
    def labels(self) -> list[str]:
        """The columns of labels."""
        return [c for c in self.X if not pd.api.types.is_numeric_dtype(self.X[c])]

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [c for c in self.X if c not in self.labels]


@cache
def lender(name: str) -> Lender:
    """One of the three tables, from the folder that :data:`FOLDER` names."""
    folder = Path(os.environ[FOLDER])
    if name == "german":
        X, y = SETS["german"].read(folder / SETS["german"].file)
        fixed, steps = ("age", "status", "foreign", "liable", "telephone"), {"amount": 500.0}
        X = X.drop(columns="label")
    elif name == "adult":
        X, y = SETS["adult"].read(folder / SETS["adult"].file)
        fixed = ("age", "marital-status", "relationship", "race", "sex", "country")
        X = X.drop(columns=["income", "education", "fnlwgt"])
        steps = {"capital-gain": 2000.0, "capital-loss": 500.0}
    else:
        X = pd.read_csv(folder / SETS["gmsc"].file, index_col=0)
        y, X = X["SeriousDlqin2yrs"] == 0, X.drop(columns="SeriousDlqin2yrs")
        fixed = ("age", "NumberOfDependents", "NumberRealEstateLoansOrLines")
        X["DebtRatio"], X["MonthlyIncome"] = (
            X["DebtRatio"].clip(upper=5),
            X["MonthlyIncome"].clip(upper=20000),
        )
        X["RevolvingUtilizationOfUnsecuredLines"] = X["RevolvingUtilizationOfUnsecuredLines"].clip(upper=2)
        steps = {"RevolvingUtilizationOfUnsecuredLines": 0.1, "DebtRatio": 0.25, "MonthlyIncome": 1000.0}
        good, bad = np.flatnonzero(y)[: ROWS // 2], np.flatnonzero(~y)[: ROWS // 2]
        chosen = np.sort(np.concatenate([good, bad]))
        X, y = X.iloc[chosen], y.iloc[chosen]
    X, y = X.head(ROWS).reset_index(drop=True), y.head(ROWS)
    return Lender(X, y.to_numpy(dtype=int), fixed, steps)


class Woe(TransformerMixin, BaseEstimator):
    """A lender's own transformer: each number becomes the weight of evidence of its bin.

    It says so by ``piecewise``: for each column where its bins begin, and their weights.
    """

    def fit(self, X: Any, y: Any) -> Woe:
        """Bins at the quintiles."""
        z, good = np.asarray(X, dtype=float), np.asarray(y) == 1
        self.n_features_in_ = z.shape[1]
        self.cuts_ = [np.unique(np.quantile(c, [0.2, 0.4, 0.6, 0.8])) for c in z.T]
        self.weights_ = []
        for column, cuts in zip(z.T, self.cuts_, strict=True):
            at = np.searchsorted(cuts, column, side="right")
            counts = [[1 + np.sum((at == k) & (good == g)) for k in range(len(cuts) + 1)] for g in (1, 0)]
            shares = np.array(counts) / np.sum(counts, axis=1, keepdims=True)
            self.weights_.append(np.log(shares[0] / shares[1]))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The weights of the rows' bins."""
        pairs = zip(np.asarray(X, dtype=float).T, self.cuts_, self.weights_, strict=True)
        return np.column_stack([w[np.searchsorted(c, z, side="right")] for z, c, w in pairs])

    def piecewise(self) -> list[dict[str, Any]]:
        """The same as tables."""
        return [{"cuts": c, "values": w} for c, w in zip(self.cuts_, self.weights_, strict=True)]


def scorecard(rows: pd.DataFrame) -> np.ndarray:
    """A lender's own points, as a function."""
    points = rows["checking"].map({"A11": 0, "A12": 8, "A13": 20, "A14": 30}).to_numpy(dtype=float)
    points += np.select([rows["duration"] <= 12, rows["duration"] <= 24], [20, 10], 0)
    points += np.select([rows["amount"] <= 2000, rows["amount"] <= 5000], [15, 8], 0)
    points += np.where(rows["savings"].isin(["A63", "A64", "A65"]), 12, 0) + np.minimum(rows["age"], 60) / 6
    return (points >= 50).astype(int)


Fit = Callable[[Lender], tuple[Any, pd.DataFrame]]
"""The fitted model and the table it was fitted on."""


def behind(numbers: Any, labels: Any, model: Any, keep: str | None = None, kind: Any = None) -> Fit:
    """A model behind a transformer of the numbers and one of the labels, on a table of a certain kind."""

    def fit(one: Lender) -> tuple[Any, pd.DataFrame]:
        parts = [("numbers", numbers, [c for c in one.numbers if c != keep])] if numbers is not None else []
        parts += [("labels", labels, one.labels)] if labels is not None and one.labels else []
        front = ColumnTransformer(parts, remainder="passthrough" if keep or numbers is None else "drop")
        X = one.X if kind is None else kind(one.X)
        return make_pipeline(front, model).fit(X, one.y), X

    return fit


def alone(model: Any, kind: Any = None, keep: Any = None) -> Fit:
    """A model without transformers, on a table of a certain kind."""

    def fit(one: Lender) -> tuple[Any, pd.DataFrame]:
        X = one.X if kind is None else kind(one.X)
        return model.fit(X, one.y), X

    return fit


def in_front(steps: Sequence[Any], model: Any, kind: Any = None) -> Fit:
    """A model behind steps that take all columns."""
    return alone(make_pipeline(*steps, model), kind)


def as_category(X: pd.DataFrame) -> pd.DataFrame:
    """Labels as pandas' categories."""
    return X.astype({c: "category" for c in X if not pd.api.types.is_numeric_dtype(X[c])})


def as_polars(X: pd.DataFrame) -> Any:
    """The table as a polars frame."""
    import polars

    return polars.from_pandas(X)


def as_arrow(X: pd.DataFrame) -> pd.DataFrame:
    """The table in arrow's types."""
    return X.convert_dtypes(dtype_backend="pyarrow")


def two_levels(X: pd.DataFrame) -> pd.DataFrame:
    """The table with columns of two levels."""
    return X.set_axis(pd.MultiIndex.from_tuples([("bureau", c) for c in X]), axis=1)


def onehot(**how: Any) -> Any:
    """One 0/1 column per label."""
    return OneHotEncoder(handle_unknown="ignore", **how)


def bins(**how: Any) -> Any:
    """Five bins."""
    return KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf", **how)


def catboost(one: Lender) -> tuple[Any, pd.DataFrame]:
    """CatBoost with the labels as they are."""
    from catboost import CatBoostClassifier

    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = CatBoostClassifier(iterations=60, depth=4, cat_features=one.labels, **quiet)
    return model.fit(one.X, one.y), one.X


def explainable(one: Lender) -> tuple[Any, pd.DataFrame]:
    """An EBM."""
    from interpret.glassbox import ExplainableBoostingClassifier

    X = one.X[one.numbers]
    return ExplainableBoostingClassifier(interactions=2, outer_bags=2, n_jobs=1).fit(X, one.y), X


def xgb(**how: Any) -> Any:
    """XGBoost's classifier."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1, **how)


def lgbm(**how: Any) -> Any:
    """LightGBM's classifier."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=60, num_leaves=15, n_jobs=1, verbose=-1, **how)


def oversampled(one: Lender) -> tuple[Any, pd.DataFrame]:
    """A pipeline of imbalanced-learn."""
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline as sampled

    return sampled(SimpleImputer(strategy="median"), SMOTE(random_state=0), forest()).fit(one.X, one.y), one.X


def polynomial(one: Lender) -> tuple[Any, pd.DataFrame]:
    """Squares and products of two columns."""
    pair = ["hours-per-week", "education-num"]
    front = make_column_transformer(
        (make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False)), pair),
        (StandardScaler(), ["age", "capital-gain"]),
        (onehot(), one.labels),
    )
    return make_pipeline(front, LOGISTIC()).fit(one.X, one.y), one.X


def the_function(one: Lender) -> tuple[Any, pd.DataFrame]:
    """The plain function."""
    return scorecard, one.X[["checking", "duration", "amount", "savings", "age"]]


def grid(one: Lender) -> tuple[Any, pd.DataFrame]:
    """A search over a pipeline."""
    front = make_column_transformer((StandardScaler(), one.numbers), (onehot(), one.labels))
    model = make_pipeline(front, xgb())
    return GridSearchCV(model, {"xgbclassifier__max_depth": [2, 3]}, cv=2).fit(one.X, one.y), one.X


def forest(**how: Any) -> Any:
    """A forest of 50 trees."""
    return ensemble.RandomForestClassifier(50, max_depth=8, random_state=0, n_jobs=1, **how)


def median(*then: Any, **how: Any) -> Any:
    """The median in place of missing numbers, and what follows."""
    return make_pipeline(SimpleImputer(strategy="median", **how), *then)


def several(*models: Any) -> list[tuple[str, Any]]:
    """Members of an ensemble, with names."""
    return [(f"m{k}", model) for k, model in enumerate(models)]


SCALE = StandardScaler
STACKS: dict[str, tuple[str, Fit]] = {
    "logistic, scaled, one-hot": ("german", behind(SCALE(), onehot(), LOGISTIC())),
    "logistic on a polars frame, drop first": (
        "german",
        behind(SCALE(), OneHotEncoder(drop="first"), LOGISTIC(), kind=as_polars),
    ),
    "logistic, bins one-hot": ("german", behind(bins(encode="onehot"), onehot(), LOGISTIC())),
    "logistic, bins ordinal, one column kept": (
        "german",
        behind(bins(encode="ordinal"), onehot(), LOGISTIC(), keep="amount"),
    ),
    "scorecard: weights of evidence": ("german", behind(Woe(), TargetEncoder(random_state=0), LOGISTIC())),
    "linear SVM, ordinal": ("german", behind(MinMaxScaler(), OrdinalEncoder(), svm.LinearSVC(max_iter=9999))),
    "calibrated linear SVM": (
        "german",
        behind(SCALE(), onehot(), CalibratedClassifierCV(svm.LinearSVC(max_iter=9999), ensemble=False)),
    ),
    "isotonic logistic": (
        "german",
        behind(SCALE(), onehot(), CalibratedClassifierCV(LOGISTIC(), method="isotonic", cv=3)),
    ),
    "forest, one-hot": ("german", behind(None, onehot(sparse_output=False), forest())),
    "extra trees, ordinal": (
        "german",
        behind(None, OrdinalEncoder(), ensemble.ExtraTreesClassifier(50, max_depth=8, random_state=0)),
    ),
    "gradient boosting, target encoder": (
        "german",
        behind(None, TargetEncoder(random_state=0), ensemble.GradientBoostingClassifier(random_state=0)),
    ),
    "soft vote of logistic and forest": (
        "german",
        behind(SCALE(), onehot(), ensemble.VotingClassifier(several(LOGISTIC(), forest()), voting="soft")),
    ),
    "stack of forest and logistic": (
        "german",
        behind(SCALE(), onehot(), ensemble.StackingClassifier(several(forest(), LOGISTIC()), cv=3)),
    ),
    "AdaBoost": (
        "german",
        behind(None, onehot(sparse_output=False), ensemble.AdaBoostClassifier(random_state=0)),
    ),
    "naive Bayes": ("german", behind(SCALE(), OrdinalEncoder(), naive_bayes.GaussianNB())),
    "nearest neighbours": ("german", behind(SCALE(), onehot(), neighbors.KNeighborsClassifier(15))),
    "CatBoost on labels": ("german", catboost),
    "explainable boosting": ("german", explainable),
    "a plain function": ("german", the_function),
    "histogram boosting on categories": (
        "adult",
        alone(ensemble.HistGradientBoostingClassifier(max_iter=60, random_state=0), as_category),
    ),
    "LightGBM on categories": ("adult", alone(lgbm(), as_category)),
    "XGBoost on categories": ("adult", alone(xgb(enable_categorical=True), as_category)),
    "logistic, cubic splines": ("adult", behind(SplineTransformer(5), onehot(), LOGISTIC())),
    "logistic, squares and products": ("adult", polynomial),
    "logistic, PCA of the numbers": ("adult", behind(make_pipeline(SCALE(), PCA(3)), onehot(), LOGISTIC())),
    "linear SVM behind SVD of one-hot": (
        "adult",
        lambda one: (
            make_pipeline(
                make_column_transformer((SCALE(), one.numbers), (onehot(), one.labels)),
                TruncatedSVD(20, random_state=0),
                svm.LinearSVC(max_iter=9999),
            ).fit(one.X, one.y),
            one.X,
        ),
    ),
    "network": (
        "adult",
        behind(SCALE(), onehot(), neural_network.MLPClassifier((16,), max_iter=60, random_state=0)),
    ),
    "network, tanh": (
        "adult",
        behind(
            SCALE(),
            onehot(),
            neural_network.MLPClassifier((8,), activation="tanh", max_iter=60, random_state=0),
        ),
    ),
    "forest behind a selection": (
        "adult",
        lambda one: (
            make_pipeline(
                make_column_transformer((onehot(sparse_output=False), one.labels), remainder="passthrough"),
                VarianceThreshold(0.01),
                SelectKBest(k=20),
                forest(),
            ).fit(one.X, one.y),
            one.X,
        ),
    ),
    "bagged trees": (
        "adult",
        behind(
            None, OrdinalEncoder(), ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=6), 20)
        ),
    ),
    "linear discriminant": (
        "adult",
        behind(SCALE(), onehot(sparse_output=False), LinearDiscriminantAnalysis()),
    ),
    "SVM, Gaussian kernel": ("adult", behind(SCALE(), onehot(), svm.SVC())),
    "logistic, quantiles": ("adult", behind(QuantileTransformer(n_quantiles=50), onehot(), LOGISTIC())),
    "logistic, Yeo-Johnson": ("adult", behind(PowerTransformer(), onehot(), LOGISTIC())),
    "forest at a fixed threshold": (
        "adult",
        behind(None, onehot(sparse_output=False), FixedThresholdClassifier(forest(), threshold=0.4)),
    ),
    "logistic at a tuned threshold": (
        "adult",
        behind(SCALE(), onehot(), TunedThresholdClassifierCV(LOGISTIC(), cv=3)),
    ),
    "a search over XGBoost": ("adult", grid),
    "histogram boosting on arrow columns": (
        "gmsc",
        alone(ensemble.HistGradientBoostingClassifier(max_iter=40, max_depth=4), as_arrow),
    ),
    "LightGBM, gaps": ("gmsc", alone(lgbm())),
    "XGBoost, monotone": ("gmsc", alone(xgb(monotone_constraints=(-1, 0, -1, 0, 1, 0, -1, 0, -1, 0)))),
    "logistic, median and indicator": ("gmsc", in_front([median(SCALE(), add_indicator=True)], LOGISTIC())),
    "forest, median and indicator": ("gmsc", in_front([median(add_indicator=True)], forest())),
    "logistic, logs": ("gmsc", in_front([median(FunctionTransformer(np.log1p), SCALE())], LOGISTIC())),
    "XGBoost, logs": ("gmsc", in_front([FunctionTransformer(np.log1p)], xgb())),
    "logistic, neighbours' imputer": ("gmsc", in_front([SCALE(), KNNImputer()], LOGISTIC())),
    "boosting, iterative imputer": (
        "gmsc",
        in_front([IterativeImputer(random_state=0, max_iter=3)], ensemble.GradientBoostingClassifier()),
    ),
    "logistic, linear splines": ("gmsc", in_front([median(SplineTransformer(6, degree=1))], LOGISTIC())),
    "quadratic discriminant": ("gmsc", in_front([median(SCALE())], QuadraticDiscriminantAnalysis())),
    "oversampled forest": ("gmsc", oversampled),
    "a tree on columns of two levels": (
        "gmsc",
        alone(tree.DecisionTreeClassifier(max_depth=6, random_state=0), two_levels),
    ),
    "soft vote of XGBoost and LightGBM": (
        "gmsc",
        alone(ensemble.VotingClassifier(several(xgb(), lgbm()), voting="soft")),
    ),
}


def run(name: str, people: int, seconds: float = SECONDS) -> dict[str, Any]:
    """What becomes of one stack, and of so many people whom it refuses."""
    table, fit = STACKS[name]
    one = lender(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, X = fit(one)
        row: dict[str, Any] = {"stack": name, "table": table, "people": 0, "outcome": "read"}
        ask = model if callable(model) else model.predict
        columns = list(X.columns)
        keys = {c[-1] if isinstance(c, tuple) else c: c for c in columns}
        fixed = [keys[c] for c in one.fixed if c in keys]
        steps = {keys[c]: s for c, s in one.steps.items() if c in keys}
        refused = np.flatnonzero(np.ravel(np.asarray(ask(X))) == 0)[:people]
        group = X[refused.tolist()] if hasattr(X, "to_pandas") else X.iloc[refused]
        begun = time.perf_counter()
        try:
            recourse = Recourse(model, X, desired=1, immutable=fixed)
            if isinstance(recourse.reading.classifier, AskedModel):
                row["outcome"], row["sentence"] = "asked", refusal(model, X)
                whole = {c: s for c, s in steps.items() if c not in fixed}
                recourse = Recourse(model, X, desired=1, immutable=fixed, steps=whole)
            row["seconds_to_read"] = round(time.perf_counter() - begun, 2)
            answers = recourse.certify(group, time_limit=seconds, certificates=True)
        except RecourseError as error:
            return row | {"outcome": "refused", "sentence": str(error)}
        row["seconds"] = round(time.perf_counter() - begun, 2)
        said = answers.table
        acted = (said["cost"].notna() & (said["status"] != "bad-input")).to_numpy()
        after = answers.counterfactuals
        after = after[columns] if isinstance(after, pd.DataFrame) else after.select(columns)
        flips = np.ravel(np.asarray(ask(after))) == 1
    counts = {str(k): int(v) for k, v in said["status"].value_counts().items()}
    row |= {"people": len(said), "answers": counts, "with_action": int(acted.sum())}
    row |= {"flipped": int((flips & acted).sum()), "proven": counts.get("optimal", 0)}
    row["margin"] = float(np.nanmax(said["margin"])) if "margin" in said and acted.any() else None
    row["unread"] = sorted({str(m) for m in said.loc[said["status"] == "bad-input", "message"]})[:1]
    certified = sum(result is not None and result.evidence is not None for result in answers.results)
    row["certificates"], row["verdict"] = certified, answers.verify().split(";")[0] if certified else ""
    return row


def refusal(model: Any, X: Any) -> str:
    """Why a model is not read."""
    try:
        read_model(model, X, 1)
    except RecourseError as error:
        return str(error)
    return ""


def main() -> int:
    """Run all that are not in the file yet, print a line each, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = (
        json.loads(options.json.read_text("utf-8"))["stacks"]
        if options.json and options.json.exists()
        else []
    )
    known = {row["stack"] for row in rows}
    for name, (table, _) in STACKS.items():
        if options.only in f"{table}: {name}" and name not in known:
            rows.append(run(name, options.people, options.seconds))
            print(json.dumps(rows[-1]), flush=True)
            if options.json is not None:
                document = {"summary": summary(rows), "stacks": rows}
                options.json.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    total = summary(rows)
    print(json.dumps(total))
    return int(total["with_action"] != total["flipped"])


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The counts over all stacks."""
    outcomes = [row["outcome"] for row in rows]
    total = {word: outcomes.count(word) for word in ("read", "asked", "refused")}
    for key in ("people", "with_action", "flipped", "proven", "certificates"):
        total[key] = sum(row.get(key, 0) for row in rows)
    total["verified"] = sum(
        row["certificates"] for row in rows if row.get("verdict", "").startswith("VERIFIED")
    )
    return total


if __name__ == "__main__":
    sys.exit(main())
