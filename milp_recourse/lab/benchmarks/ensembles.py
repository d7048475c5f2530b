"""Ensembles as lenders deploy them: published tables, every column a lever, refused applicants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.features import Feature
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.scm import independent
from milp_recourse.errors import BadInput
from milp_recourse.instance import Acceptance, Instance
from milp_recourse.lab.recipe.credit import EDUCATION, EMPLOYMENT, NAMES, sample_profiles
from milp_recourse.lab.recipe.real import SETS, Table, numeric, read_set
from milp_recourse.readers import read_lightgbm, read_sklearn_trees, read_xgboost, safe_threshold

MODELS = ("forest", "extra", "boosting", "xgboost", "lightgbm")

UNIT = ":unit"
"""What a data set's name ends with where numeric columns are scaled to [0, 1] and take any value there."""

OTHERS = ("credit", "cancer")
"""Data sets that need no file: the repository's own, which is sampled, and one of scikit-learn's."""


@dataclass(frozen=True)
class Ensemble:
    """A fitted model with its refused applicants.

    Attributes
    ----------
    name
        Data set, kind, trees and depth, as ``german/forest-100x6``.
    estimator
        What the library fitted.
    classifier
        The same as read.
    table
        The data.
    refused
        Rows of the last fifth that the model refuses.
    accepted
        Rows of the first four fifths that it accepts.
    """

    name: str
    estimator: Any
    classifier: TreeEnsemble
    threshold: float
    table: Table
    refused: NDArray[np.int64]
    accepted: NDArray[np.int64]

    def instance(self, row: int, cost: str = "l1") -> Instance:
        """One row's problem; a change of a label costs 1, any other its share of the column's range."""
        scm = independent([f.name for f in self.table.features])
        accept = Acceptance(self.threshold, 0.0, strict=True)
        return self.table.problem(row, cost, scm, self.classifier, accept, f"{self.name}/{row}")


def read_table(name: str, data: Path | None, seed: int = 0) -> Table:
    """A published table of :data:`~milp_recourse.lab.recipe.real.SETS`, or one of :data:`OTHERS`.

    ``cancer`` is the Wisconsin diagnostic table (Street, Wolberg and Mangasarian 1993,
    https://doi.org/10.1117/12.148698): 30 correlated measurements. With :data:`UNIT` behind its name a
    table's numeric columns are scaled to [0, 1] and continuous, or binary where they have two values.

    Raises
    ------
    BadInput
        Unknown, or its file is not in the folder.
    """
    if name.endswith(UNIT):
        return _in_units(read_table(name.removesuffix(UNIT), data, seed))
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
    if name not in SETS:
        said = ", ".join([*SETS, *OTHERS])
        raise BadInput("--sets", name, f"{said}; each also with {UNIT} behind it")
    table = read_set(name, data, seed, "--sets")
    return replace(table, features=tuple(replace(f, actionable=True, monotone=None) for f in table.features))


def fit(table: Table, kind: str, trees: int, depth: int, seed: int = 0) -> Ensemble:
    """Train on four fifths (at most 20000 rows), as the libraries come but for size.

    Raises
    ------
    BadInput
        An unknown kind of model.
    """
    inputs, labels = table.inputs, table.labels
    cut = int(0.8 * len(inputs))
    train = slice(0, min(cut, 20000))
    estimator = _estimator(kind, trees, depth, seed).fit(inputs[train], labels[train])
    read = {"xgboost": read_xgboost, "lightgbm": read_lightgbm}.get(kind, read_sklearn_trees)
    classifier = read(estimator)
    threshold = safe_threshold(classifier, at_zero=kind == "boosting")
    good = classifier.scores(inputs) > threshold
    refused = cut + np.flatnonzero(~good[cut:] & (estimator.predict(inputs[cut:]) == 0))
    name = f"{table.name}/{kind}-{trees}x{depth}"
    return Ensemble(name, estimator, classifier, threshold, table, refused, np.flatnonzero(good[:cut]))


def _estimator(kind: str, trees: int, depth: int, seed: int) -> Any:
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=trees, max_depth=depth, random_state=seed, n_jobs=1)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier

        size = {"max_depth": depth, "num_leaves": 2**depth}
        return LGBMClassifier(n_estimators=trees, random_state=seed, n_jobs=1, verbose=-1, **size)
    from sklearn import ensemble

    made = {
        "forest": ensemble.RandomForestClassifier,
        "extra": ensemble.ExtraTreesClassifier,
        "boosting": ensemble.GradientBoostingClassifier,
    }
    if kind not in made:
        raise BadInput("--models", kind, ", ".join(MODELS))
    return made[kind](n_estimators=trees, max_depth=depth, random_state=seed)


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
