"""A model that no reader reads, as a classifier that is asked: rows of numbers become rows of the table."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers import Column, Reading, read_model
from milp_recourse.readers.classes import Interval, Target, choose_interval, choose_target, plain
from milp_recourse.tables.columns import NUMBER_KINDS, TableColumn, declared_labels, is_missing, position
from milp_recourse.tables.people_rows import read_rows
from milp_recourse.tables.verdict import Desired, OwnWord, Predict, labels_of, own_predict

SAMPLE = 1_000
"""The most rows of X that are asked to learn which labels a function gives."""

Array = NDArray[np.float64]


def read_or_ask(
    model: Any,
    X: pd.DataFrame,
    desired: Desired,
    confidence: float | None,
    margin: float | None,
    predict: Predict | None,
    kinds: Mapping[Hashable, Any],
    labelled: Mapping[Hashable, Any],
    fixed: Collection[Hashable] = (),
) -> tuple[Reading, Predict | None, str | None]:
    """The model as it is read, or, if no reader reads it, as a function that is asked.

    Parameters
    ----------
    kinds, labelled
        The arguments ``kinds`` and ``categories``, which say of a model that is not read which columns hold
        labels.
    fixed
        Columns that nobody can act on: people may have labels there that X does not hold, if the model takes
        them.

    Returns
    -------
    Reading, Predict or None, str or None
        What was read; the function to ask; and the reader's refusal, None where there is none.

    Raises
    ------
    Unsupported
        The model is not read, and it cannot be asked either.
    BadInput
        As :func:`milp_recourse.readers.read_model`; or a margin is asked of a model that is not read.
    """
    try:
        return read_model(model, X, desired, confidence, bool(margin), fixed), predict, None
    except Unsupported as error:
        refusal = error
    ask = predict or _function(model, X)
    sure = confidence is None or hasattr(model, "predict_proba")
    if ask is None or not sure:
        raise refusal
    if margin:
        raise BadInput("margin", margin, "None: this model is asked, not read, and has no score")
    try:
        seen = labels_of(ask, X.sample(min(len(X), SAMPLE), random_state=0))
    except BadInput as error:
        if predict is not None or not hasattr(model, "predict"):
            raise
        raise Unsupported(f"{refusal} (and it cannot be asked: {error})") from None
    classes, wish = _wish(None if predict else model, desired, seen)
    columns = tuple(_column(key, X[key], kinds, labelled) for key in X.columns)
    own = AskedModel(len(columns), lambda rows: np.zeros(len(rows), dtype=bool))
    reading = Reading(columns, own, Acceptance(0.5, strict=True), classes, wish, measure="answer")
    return reading, ask, str(refusal)


def _function(model: Any, X: pd.DataFrame) -> Predict | None:
    """What to ask of a model: its ``predict``, or the model itself if it is a function."""
    no_file = isinstance(model, str | PathLike) and not Path(model).is_file()
    if isinstance(model, type) or no_file:
        return None
    own: Predict | None = own_predict(model, X, range(2**31))
    return model if own is None and callable(model) else own


def _wish(
    model: Any, desired: Desired, seen: Sequence[object]
) -> tuple[tuple[object, ...], Target | Interval]:
    """The classes, () for numbers, and what people want; of a function the labels that it gives for X."""
    known = getattr(model, "classes_", None)
    if known is not None:
        classes = tuple(map(plain, known))
        return classes, choose_target(desired, classes)
    labels: list[object] = []
    for one in map(plain, seen):
        if position(labels, one) is None:
            labels.append(one)
        if isinstance(one, float) and not one.is_integer():
            return (), choose_interval(desired, "the model")
    if isinstance(desired, list | tuple):
        return (), choose_interval(desired, "the model")
    try:
        classes = tuple(sorted(labels))
    except TypeError:
        classes = tuple(sorted(labels, key=str))
    return classes, choose_target(desired, classes)


def _column(
    key: Hashable, series: pd.Series, kinds: Mapping[Hashable, Any], labelled: Mapping[Hashable, Any]
) -> Column:
    """A column as a function of it sees it: a number, or the labels that X holds."""
    kind = kinds.get(key)
    number = pd.api.types.is_numeric_dtype(series.dtype) or (isinstance(kind, str) and kind in NUMBER_KINDS)
    if number and not declared_labels(key, kinds, labelled):
        return Column(key, None, "code", None, None, bool(series.isna().any()))
    held = series.unique().tolist()
    if isinstance(series.dtype, pd.CategoricalDtype):
        held = [*series.dtype.categories.tolist(), *(v for v in held if is_missing(v))]
    present, missing = [v for v in held if not is_missing(v)], [v for v in held if is_missing(v)]
    if not isinstance(series.dtype, pd.CategoricalDtype):
        try:
            present.sort()
        except TypeError:
            present.sort(key=str)
    return Column(key, (*present, *missing), "code", None, None, missing=False)


@dataclass(frozen=True)
class AskedTable:
    """Rows of features' numbers as rows of the table, always in the same types.

    A column has its type in X, but float64 where an action can move continuous numbers, which a narrower type
    may not have.

    Attributes
    ----------
    moved
        The features that an action can move.
    """

    X: pd.DataFrame
    columns: Sequence[TableColumn]
    moved: Collection[str]

    def asked_by(self, word: OwnWord) -> tuple[AskedModel, OwnWord]:
        """The classifier that asks, and the model's own word on rows in the types in which it is asked."""

        def predict(frame: pd.DataFrame) -> Any:
            return word.predict(self.frame(read_rows(frame, self.columns, self.X.columns).values))

        classifier = AskedModel(len(self.columns), lambda rows: word.accepts(self.frame(rows)))
        return classifier, replace(word, predict=predict)

    def frame(self, values: Array) -> pd.DataFrame:
        """Feature rows (n, features) as a table with X's columns."""
        cells = {c.key: self._cells(c, values[:, k]) for k, c in enumerate(self.columns)}
        return pd.DataFrame(cells, columns=self.X.columns)

    def _cells(self, column: TableColumn, codes: Array) -> pd.Series:
        dtype = column.dtype
        if column.labels is not None:
            labels = np.empty(len(column.labels), dtype=object)
            labels[:] = column.labels
            return pd.Series(labels[codes.astype(np.intp)], dtype=object).astype(dtype)
        if pd.api.types.is_object_dtype(dtype):
            return pd.Series([None if np.isnan(v) else column.value(v) for v in codes.tolist()], dtype=object)
        wide = column.feature.kind == "continuous" and column.name in self.moved
        if wide and isinstance(dtype, np.dtype):
            return pd.Series(codes, dtype=np.float64)
        return pd.Series(codes).astype(dtype)
