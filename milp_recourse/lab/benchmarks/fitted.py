"""Models fitted to published tables, in the sizes that lenders deploy, with the applicants that they refuse.

Every column is a lever. With a causal graph, columns that causes move are continuous, and what a person
cannot act on is no lever. ``gmsc:graph`` is Give Me Some Credit with the graph of PEAR and linear equations
fitted by least squares; ``loan:graph`` is the Loan model with its own equations.

References
----------
De Toni et al. (2023), https://openreview.net/forum?id=8sg9RbHjMM (PEAR: preprocessing and graph of GMSC)
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.lab.recipe.credit import EDUCATION, EMPLOYMENT, NAMES, sample_profiles
from milp_recourse.lab.recipe.gmsc_data import COLUMNS, PARENTS
from milp_recourse.lab.recipe.loan_rows import sample_loan
from milp_recourse.lab.recipe.real import SETS, Column, Table, file_in, numeric, read_set, table_of
from milp_recourse.problem.expression import Constant, Expression, Variable
from milp_recourse.problem.features import Feature, Kind
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.loan import FEATURES as LOAN_COLUMNS
from milp_recourse.problem.loan import loan
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel, independent
from milp_recourse.readers import (
    read_lightgbm,
    read_sklearn,
    read_sklearn_trees,
    read_xgboost,
    safe_threshold,
    standardised,
)

MODELS = ("forest", "extra", "boosting", "xgboost", "lightgbm")

UNIT = ":unit"
"""Ending of a data set's name that scales its numeric columns to [0, 1], where they may take any value."""

OTHERS = ("credit", "cancer", "loan", "whole")
"""Data sets that need no file: three that this package samples, and a table of scikit-learn."""

OWN = ".csv"
"""Ending of the name of one's own table, a file in the folder of ``--data``, or here without one, that begins
with a line of names. Its last column is 1 where a row has the outcome that people want, else 0; text becomes
labels, and rows with missing values are left out."""

LEAST_ROWS = 10
"""The fewest rows of each outcome that a network is trained on: a tenth of them tells when to stop."""

GRAPH = ":graph"
"""Ending of a data set's name for columns that cause each other."""

IMMUTABLE = {"gmsc": ("age",), "loan": ("gender", "age")}
"""The data sets with a graph, and which columns nobody can act on in it."""

MARGIN = 1e-9
"""Margin of the logit; it covers the rounding of the deployed float64 network."""

MOST_ROWS = 20000
"""The most rows that a model is trained on."""


@dataclass(frozen=True)
class Fitted:
    """A fitted model with its refused applicants.

    Attributes
    ----------
    name
        Data set and model, as ``german/forest-100x6`` or ``gmsc/32x32``; with causes ``gmsc/32x32+graph``.
    estimator
        The library's fitted model.
    classifier
        The same model as this package reads it.
    accept
        The scores, or logits, that are accepted.
    table
        The data.
    scm
        The causal model.
    refused
        The rows of the last fifth of the data that the model refuses, by ascending score.
    """

    name: str
    estimator: Any
    classifier: TreeEnsemble | ReluNetwork
    accept: Acceptance
    table: Table
    scm: StructuralCausalModel
    refused: NDArray[np.int64]

    def instance(self, row: int, cost: str) -> Instance:
        """The problem of one row: changing a label costs 1, changing a number its share of the range."""
        return self.table.problem(row, cost, self.scm, self.classifier, self.accept, f"{self.name}/{row}")


def read_table(name: str, data: Path | None, seed: int = 0) -> Table:
    """A table of :data:`~milp_recourse.lab.recipe.real.SETS`, one of :data:`OTHERS`, or a file (:data:`OWN`).

    ``cancer`` is the Wisconsin diagnostic table (Street, Wolberg and Mangasarian 1993,
    https://doi.org/10.1117/12.148698): 30 correlated measurements. ``whole`` has 23 correlated columns of
    whole numbers, ``whole50`` has 50. If the name ends in :data:`UNIT`,
    numeric columns are scaled to [0, 1] and are continuous, or binary if they have two values.

    Raises
    ------
    BadInput
        The name is unknown, the table's file is not in the folder, or it is not as :data:`OWN` says.
    """
    if name.endswith(UNIT):
        return _in_units(read_table(name.removesuffix(UNIT), data, seed))
    if name.endswith(OWN):
        return _own(name, file_in(data or Path(), name), seed)
    rng = np.random.default_rng(seed)
    if name == "cancer":
        from sklearn.datasets import load_breast_cancer

        rows, wanted, names = (load_breast_cancer()[k] for k in ("data", "target", "feature_names"))
        order = rng.permutation(len(rows))
        measured = tuple(numeric(str(n), "continuous", rows[:, k]) for k, n in enumerate(names))
        return Table(name, measured, rows[order], wanted[order].astype(np.int64))
    if name == "credit":
        profiles = sample_profiles(rng, 20000)
        kinds = {"education": EDUCATION, "employment": EMPLOYMENT}
        features = tuple(
            Feature(n, "categorical", True, categories=tuple(k for k, *_ in kinds[n]), encoding="one-hot")
            if n in kinds
            else numeric(n, "integer" if n == "credit_score" else "continuous", profiles.rows[:, k])
            for k, n in enumerate(NAMES)
        )
        return Table(name, features, profiles.rows, profiles.approved)
    if name == "loan":
        drawn = sample_loan(seed, (20000, 0, 0)).train
        columns = tuple(
            numeric(n, "binary" if n == "gender" else "continuous", drawn.rows[:, k])
            for k, n in enumerate(LOAN_COLUMNS)
        )
        return Table(name, columns, drawn.rows, drawn.labels)
    if name.startswith("whole"):
        return _whole(rng, name)
    if name not in SETS:
        names = ", ".join([*SETS, *OTHERS, f"FILE{OWN}"])
        raise BadInput("--sets", name, f"{names}; each also with {UNIT} behind it")
    table = read_set(name, data, seed, "--sets")
    return replace(table, features=tuple(replace(f, actionable=True, monotone=None) for f in table.features))


def _own(name: str, path: Path, seed: int) -> Table:
    """See :data:`OWN`."""
    file = str(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows with more values than names
            frame = pd.read_csv(path, low_memory=False, index_col=False)
    except (ValueError, pd.errors.ParserWarning) as error:
        said, allowed = " ".join(str(error).split()), "CSV in UTF-8, with a line of as many names as values"
        raise BadInput("table", said, allowed, file) from None
    frame = frame.dropna().infer_objects()
    *inputs, last = frame.columns
    if frame.empty or not inputs:
        raise BadInput("rows", "none without a missing value", "rows of inputs and an outcome", file)
    if set(frame[last].tolist()) != {0, 1}:
        found = ", ".join(map(str, frame[last].unique()[:5].tolist()))
        allowed = "as last column 1 for the outcome that people want and 0 for the other"
        raise BadInput(f"column {last}", found, allowed, file)
    columns = {column: Column(_kind(frame[column]), True) for column in inputs}
    for column, how in columns.items():
        if how.kind != "categorical" and not np.isfinite(frame[column].to_numpy(dtype=np.float64)).all():
            raise BadInput(f"column {column}", "infinity", "finite numbers", file)
    return table_of(name, frame, frame[last], columns, seed)


def _kind(column: pd.Series) -> Kind:
    if not pd.api.types.is_numeric_dtype(column):
        return "categorical"
    return "integer" if (column % 1 == 0).all() else "continuous"


def _whole(rng: np.random.Generator, name: str, rows: int = 10000) -> Table:
    """Correlated columns of whole numbers of several ranges, and labels that depend on most of them."""
    asked = name.removeprefix("whole") or "23"
    if not (asked.isdecimal() and int(asked) >= 8):
        raise BadInput("--sets", name, "whole, or whole and a number of columns, 8 or more, as whole50")
    count = int(asked)
    seen = rng.normal(size=(rows, 5)) @ rng.normal(size=(5, count)) / np.sqrt(5)
    seen += 0.7 * rng.normal(size=(rows, count))
    share = 1.0 / (1.0 + np.exp(-1.2 * seen))
    share[:, ::3] **= 2
    values = np.floor(share * rng.choice([9, 20, 40, 100, 250], size=count))
    z = (seen - seen.mean(axis=0)) / seen.std(axis=0)
    weights = rng.normal(size=count) * (rng.random(count) < 0.7)
    logit = 0.5 * z @ weights + 0.6 * z[:, 0] * z[:, 1] - 0.5 * np.abs(z[:, 2])
    logit += 0.4 * np.maximum(z[:, 4], z[:, 7])
    labels = rng.random(rows) < 1.0 / (1.0 + np.exp(np.median(logit) - logit))
    columns = tuple(numeric(f"c{j}", "integer", values[:, j]) for j in range(count))
    return Table(name, columns, values, labels.astype(np.int64))


def fit_trees(table: Table, kind: str, trees: int, depth: int | None, seed: int = 0) -> Fitted:
    """Train trees on four fifths of a table (at most :data:`MOST_ROWS`), with the library's default settings.

    ``kind`` is one of :data:`MODELS`. Without a ``depth`` it is the library's own: scikit-learn's forests
    grow until no leaf can be split.
    """
    inputs, labels = table.inputs, table.labels
    cut = int(0.8 * len(inputs))
    train = slice(0, min(cut, MOST_ROWS))
    estimator = _estimator(kind, trees, depth, seed).fit(inputs[train], labels[train])
    read = {"xgboost": read_xgboost, "lightgbm": read_lightgbm}.get(kind, read_sklearn_trees)
    classifier = read(estimator)
    threshold = safe_threshold(classifier, at_zero=kind == "boosting")
    scores = classifier.scores(inputs[cut:])
    refused = cut + _ascending(scores, (scores <= threshold) & (estimator.predict(inputs[cut:]) == 0))
    size, accept = f"x{depth}" if depth else "", Acceptance(threshold, 0.0, strict=True)
    name = f"{table.name}/{kind}-{trees}{size}"
    return Fitted(name, estimator, classifier, accept, table, _no_causes(table), refused)


def fit_network(name: str, widths: str, data: Path | None, seed: int = 0) -> Fitted:
    """Train scikit-learn's MLPClassifier on four fifths of a table.

    It is trained on as many rows of one class as of the other, at most :data:`MOST_ROWS` in all.

    Raises
    ------
    BadInput
        The table or the widths are unknown, the table's file is not in the folder, or it has too few rows.
    """
    from sklearn.neural_network import MLPClassifier

    units, caused = parsed_widths(widths), name.endswith(GRAPH)
    table = read_table(name.removesuffix(GRAPH), data, seed)
    scm = _no_causes(table)
    if caused:
        table = _in_graph(table)
        scm = loan() if table.name == "loan" else linear_scm(table)
    inputs, labels = table.inputs, table.labels
    cut = int(0.8 * len(inputs))
    rng = np.random.default_rng(seed)
    few = min(int((labels[:cut] == k).sum()) for k in (0, 1))
    if few < LEAST_ROWS:
        allowed = f"{LEAST_ROWS} or more among the four fifths to train on"
        raise BadInput("--sets", f"{name}, with {few} rows of one outcome", allowed)
    each = min(few, MOST_ROWS // 2)
    train = rng.permutation(
        np.concatenate([rng.permutation(np.flatnonzero(labels[:cut] == k))[:each] for k in (0, 1)])
    )
    mean, sd = inputs[train].mean(axis=0), inputs[train].std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    model = MLPClassifier(units, max_iter=60, random_state=seed, early_stopping=True)
    model.fit((inputs[train] - mean) / sd, labels[train])
    network = standardised(read_sklearn(model), mean, sd)
    logits = network.evaluate(inputs[cut:])[:, 0]
    refused = cut + _ascending(logits, logits < 0)
    shown = f"{table.name}/{widths}{'+graph' if caused else ''}"
    return Fitted(shown, model, network, Acceptance(0.0, MARGIN), table, scm, refused)


def parsed_widths(widths: str) -> tuple[int, ...]:
    """The units of the hidden layers, from text like ``32x32``; raise BadInput for other text."""
    parts = widths.split("x")
    if not all(part.isdigit() and int(part) for part in parts):
        raise BadInput("--networks", widths, "units of the hidden layers, as 32x32")
    return tuple(int(part) for part in parts)


def _ascending(scores: NDArray[np.float64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The numbers of the rows with ``kept``, by ascending score."""
    rows = np.flatnonzero(kept)
    return rows[np.argsort(scores[rows], kind="stable")]


def _no_causes(table: Table) -> StructuralCausalModel:
    return independent([f.name for f in table.features])


def _estimator(kind: str, trees: int, depth: int | None, seed: int) -> Any:
    size = {"n_estimators": trees, "random_state": seed} | ({"max_depth": depth} if depth else {})
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_jobs=1, **size)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, verbose=-1, **size | ({"num_leaves": 2**depth} if depth else {}))
    from sklearn import ensemble

    classes = {
        "forest": ensemble.RandomForestClassifier,
        "extra": ensemble.ExtraTreesClassifier,
        "boosting": ensemble.GradientBoostingClassifier,
    }
    return classes[kind](**size)


def _in_units(table: Table) -> Table:
    features, values = list(table.features), table.values.copy()
    for k, feature in enumerate(table.features):
        if feature.bounds is None:
            continue
        low, high = feature.bounds
        values[:, k] = (values[:, k] - low) / ((high - low) or 1.0)
        kind = "binary" if len(np.unique(values[:, k])) <= 2 else "continuous"
        features[k] = Feature(feature.name, kind, True, (0.0, 1.0))  # type: ignore[arg-type]
    return Table(table.name + UNIT, tuple(features), values, table.labels)


def linear_scm(table: Table) -> StructuralCausalModel:
    r"""Equations x_j = b_0 + sum_k b_k x_k + u_j over PEAR's graph, by least squares; roots have none."""
    names = [f.name for f in table.features]
    mechanisms: dict[str, Mechanism] = {}
    for ours, causes in PARENTS.items():
        if not causes:
            continue
        name, parents = COLUMNS[ours], [COLUMNS[cause] for cause in causes]
        columns = table.values[:, [names.index(p) for p in parents]]
        design = np.column_stack([columns, np.ones(len(columns))])
        found, *_ = np.linalg.lstsq(design, table.values[:, names.index(name)], rcond=None)
        equation: Expression = Constant(float(found[-1]))
        for slope, parent in zip(found[:-1].tolist(), parents, strict=True):
            equation = equation + slope * Variable(parent)
        mechanisms[name] = Mechanism(equation, Link(), None)
    return StructuralCausalModel(tuple(names), mechanisms)


def _in_graph(table: Table) -> Table:
    """The table with continuous columns, but for those that nobody can act on."""
    if table.name not in IMMUTABLE:
        raise BadInput("--sets", table.name + GRAPH, " or ".join(name + GRAPH for name in IMMUTABLE))
    fixed = IMMUTABLE[table.name]
    features: list[Any] = [
        replace(f, actionable=False) if f.name in fixed else replace(f, kind="continuous", actionable=True)
        for f in table.features
    ]
    return replace(table, features=tuple(features))
