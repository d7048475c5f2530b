"""Makes features, classifier and causal model from the model that was read and the caller's arguments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, is_number
from milp_recourse.formats.schema_features import steps_of, values_of
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.features import Feature, Kind, Lattice, input_columns
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Classifier
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.readers import Column, Reading
from milp_recourse.readers.classes import OTHER
from milp_recourse.tables.columns import (
    LABEL_KINDS,
    NUMBER_KINDS,
    TableColumn,
    bounds_of,
    declared_labels,
    got_repr,
    infer,
    is_missing,
    label_key,
    position,
    positions,
    printable,
    texts,
)

_FAR = 1e300
"""An end of a domain that no number reaches."""


@dataclass(frozen=True)
class ColumnArguments:
    """The caller's arguments about columns, whose names have been checked."""

    immutable: frozenset[Hashable]
    increase: frozenset[Hashable]
    decrease: frozenset[Hashable]
    kinds: Mapping[Hashable, Any]
    categories: Mapping[Hashable, Sequence[object]]
    bounds: Mapping[Hashable, tuple[float, float]]
    domain: Mapping[Hashable, tuple[float, float]]
    steps: Mapping[Hashable, Any]
    values: Mapping[Hashable, Any]


def table_columns(
    reading: Reading, X: pd.DataFrame, arguments: ColumnArguments, causes: Sequence[Hashable]
) -> tuple[TableColumn, ...]:
    """The columns that the model reads or the causal model names, in X's order, as features.

    Parameters
    ----------
    causes
        The columns that the causal model names.

    Raises
    ------
    BadInput
        A column cannot have the kind, order of labels, bounds or direction that the caller states.
    """
    read = {c.name: c for c in reading.columns}
    columns = [
        _column(key, X[key], read.get(key), arguments) for key in X.columns if key in read or key in causes
    ]
    names = [c.name for c in columns]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise BadInput("X", f"two columns that read {twice!r}", "columns whose names differ as text")
    return tuple(columns)


def with_codes(reading: Reading, X: pd.DataFrame, arguments: ColumnArguments) -> Reading:
    """The reading, with labels in place of the numbers of columns that the caller declares to be labels.

    A column that the model reads as a number holds codes if ``kinds`` calls it categorical or ordinal, or
    ``categories`` orders it. Each number that X holds is then a label.

    Raises
    ------
    BadInput
        X holds a missing value there, which has no code.
    """
    return replace(reading, columns=tuple(_as_labels(c, X, arguments) for c in reading.columns))


def _as_labels(column: Column, X: pd.DataFrame, arguments: ColumnArguments) -> Column:
    key = column.name
    if column.labels is not None or not declared_labels(key, arguments.kinds, arguments.categories):
        return column
    if X[key].isna().any():
        raise BadInput(f"kinds.{key}", "labels", "a number: X misses some values, which have no code")
    codes = tuple(sorted(X[key].unique().tolist()))
    imputed = column.imputed if column.imputed in codes else None
    table = tuple((float(code),) for code in codes)
    return replace(column, labels=codes, encoding="table", table=table, imputed=imputed)


def classifier_over(reading: Reading, columns: Sequence[TableColumn]) -> Classifier:
    """The model's classifier as a function of the features' input columns.

    Labels may be in another order than in the model. Columns that the model does not read are ignored inputs.
    """
    at = 0
    source: dict[Hashable, list[int]] = {}
    for column in reading.columns:
        source[column.name] = list(range(at, at + column.width))
        at += column.width
    order: list[int] = []
    for own in columns:
        if own.key not in source:
            order += [-1] * len(own.feature.columns)
            continue
        places = source[own.key]
        if own.feature.encoding == "one-hot":
            known = next(c for c in reading.columns if c.name == own.key).labels or ()
            places = [places[k] for k in _indices(known, own.labels or ())]
        order += places
    assert len(order) == len(input_columns([c.feature for c in columns]))
    if order == list(range(at)):
        return reading.classifier
    return _rearranged(reading.classifier, np.array(order))


def _column(key: Hashable, series: pd.Series, read: Column | None, arguments: ColumnArguments) -> TableColumn:
    labels = None if read is None else read.labels
    kind = _kind(key, series, labels, arguments, read is not None and read.whole)
    settable = None
    if labels is not None:
        if kind == "ordinal" or key not in arguments.immutable:
            labels = tuple(label for label in labels if label is not OTHER)
        labels = _ordered(key, labels, arguments)
        labels, settable = _settable(key, labels, kind, series, read)
    elif key in arguments.categories:
        raise BadInput(f"categories.{key}", "labels", "none: the model reads this column as a number")
    name, encoding, table = printable(key), "code", None
    if read is not None and read.labels is not None and labels is not None:
        encoding, table = _encoding(read, labels)
    actionable = key not in arguments.immutable and settable != 0
    within = None if read is None else read.within
    bounds = None if settable is None or settable == len(labels or ()) else (0.0, max(settable, 1) - 1.0)
    if labels is None and actionable:
        bounds = _bounds(key, series, kind, arguments)
        if (
            within is not None
            and key in arguments.bounds
            and not within[0] <= bounds[0] <= bounds[1] <= within[1]
        ):
            allowed = f"an interval within {within[0]:g} and {within[1]:g}, for which the model is read"
            raise BadInput(f"bounds.{key}", f"({bounds[0]:g}, {bounds[1]:g})", allowed)
    feature = Feature(
        name=name,
        kind=kind,
        actionable=actionable,
        bounds=bounds,
        categories=None if labels is None else texts(labels),
        domain=_domain(arguments.domain.get(key), within),
        monotone=_direction(key, kind, arguments),
        encoding=encoding,  # type: ignore[arg-type]
        table=table,
    )
    feature = replace(feature, only=_only(key, feature, labels, settable, arguments))
    if labels is not None and key in arguments.bounds:
        raise BadInput(
            f"bounds.{key}", got_repr(arguments.bounds[key]), "nothing: an action may set any of its labels"
        )
    if feature.domain is not None and kind == "categorical":
        raise BadInput(f"domain.{key}", got_repr(feature.domain), "nothing: its labels have no order")
    missing = read is not None and read.missing
    gaps = frozenset() if read is None else read.gaps
    column = TableColumn(key, feature, labels, series.dtype, missing=missing, gaps=gaps, within=within)
    if read is None or read.imputed is None:
        return column
    value: Any = read.imputed
    if labels is None:
        if feature.kind == "binary" and value not in (0, 1):  # a mean: a factual value between the two
            column = replace(column, feature=replace(feature, kind="integer"))
        return replace(column, imputed=float(value))
    if position(labels, value) is None and value in (0.0, 1.0):  # a truth value, as the imputer returns it
        value = bool(value)
    return replace(column, imputed=column.code(value))


def _domain(
    given: tuple[float, float] | None, within: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The domain that the caller states, and the numbers that the model's transformers have a value of."""
    if within is None:
        return given
    low, high = (-_FAR, _FAR) if given is None else given
    return max(low, within[0]), min(high, within[1])


def _kind(
    key: Hashable, series: pd.Series, labels: Sequence[object] | None, arguments: ColumnArguments, whole: bool
) -> Kind:
    allowed = LABEL_KINDS if labels is not None else NUMBER_KINDS
    if key in arguments.kinds:
        kind = arguments.kinds[key]
        if not isinstance(kind, str) or kind not in allowed:
            what = "labels" if labels is not None else "a number"
            raise BadInput(f"kinds.{key}", str(kind), ", ".join(allowed) + f": the model reads it as {what}")
        if kind == "binary" and infer(series, None) != "binary":
            raise BadInput(f"kinds.{key}", "binary", "integer or continuous: X has values other than 0 and 1")
        if kind == "integer" and infer(series, None) == "continuous":
            raise BadInput(f"kinds.{key}", "integer", "continuous: X has values that are not whole")
        if kind == "continuous" and whole:
            raise BadInput(
                f"kinds.{key}", "continuous", "integer: the model is read on whole numbers, as in X"
            )
        return kind  # type: ignore[return-value]
    if labels is not None and key in arguments.categories:
        return "ordinal"
    return infer(series, labels)


def _ordered(key: Hashable, labels: tuple[object, ...], arguments: ColumnArguments) -> tuple[object, ...]:
    """The labels in the order of the argument ``categories``, or in the model's order without it."""
    if key not in arguments.categories:
        return labels
    given = arguments.categories[key]
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray | pd.Index):
        raise BadInput(f"categories.{key}", got_repr(given), "a list of labels in order")
    order = _indices(labels, given)
    for label, place in zip(given, order, strict=True):
        if place < 0:
            raise BadInput(
                f"categories.{key}", got_repr(label), "labels of X: " + ", ".join(map(str, labels))
            )
    if len(set(order)) != len(order):
        raise BadInput(f"categories.{key}", "a label twice", "each label once")
    named = set(order)
    lost = [labels[k] for k in range(len(labels)) if k not in named and not is_missing(labels[k])]
    if lost:
        raise BadInput(f"categories.{key}", f"a list without {lost[0]!r}", "every label of X, in order")
    rest = [label for k, label in enumerate(labels) if k not in named]  # the missing value, if it is a label
    return (*(labels[k] for k in order), *rest)


def _encoding(read: Column, labels: Sequence[object]) -> tuple[str, tuple[tuple[float, ...], ...] | None]:
    """The encoding and table of a feature with these labels, in this order."""
    assert read.labels is not None
    if read.encoding != "table":
        return read.encoding, None
    assert read.table is not None
    return "table", tuple(read.table[k] for k in _indices(read.labels, labels))


def _settable(
    key: Hashable, labels: tuple[object, ...], kind: Kind, series: pd.Series, read: Column | None
) -> tuple[tuple[object, ...], int]:
    """The labels, first those that an action may set, and the number of these.

    An action may not set a missing value, or a label that X never holds (such as an imputer's constant). The
    labels of an ordinal column do not include the missing value, so a person with a missing value cannot be
    read.

    Raises
    ------
    BadInput
        The column is ordinal, and the model treats a missing value, which has no place in the order, as a
        label.
    """
    held = positions(series.unique().tolist())
    if kind == "ordinal":
        order = tuple(label for label in labels if not is_missing(label))
        own_column = read is not None and read.encoding == "one-hot"
        if len(order) < len(labels) and (own_column or series.isna().any()):
            raise BadInput(f"categories.{key}", "an order", "none: missing is a label here; impute it first")
        return order, len(order)
    can = [not is_missing(label) and label_key(label) in held for label in labels]
    first = [label for label, can_set in zip(labels, can, strict=True) if can_set]
    return (*first, *(label for label, can_set in zip(labels, can, strict=True) if not can_set)), len(first)


def _only(
    key: Hashable,
    feature: Feature,
    labels: Sequence[object] | None,
    settable: int | None,
    arguments: ColumnArguments,
) -> Lattice | None:
    """The steps or the listed values to which the caller limits actions; None without any."""
    if key in arguments.steps:
        where, given = f"steps.{key}", arguments.steps[key]
        if key in arguments.values:
            raise BadInput(f"values.{key}", got_repr(arguments.values[key]), "nothing beside steps")
        both = {"step": given} if not isinstance(given, Mapping) else dict(given)
        step, origin = both.pop("step", None), both.pop("from", 0.0)
        if both or not (is_number(step) and step > 0 and is_number(origin)):
            raise BadInput(
                where, got_repr(given), 'a number above 0, or {"step": number above 0, "from": number}'
            )
        return steps_of(feature, float(step), float(origin), where)
    if key not in arguments.values:
        return None
    where, listed = f"values.{key}", _listed(key, arguments)
    if labels is None:
        wrong = next((v for v in listed if not is_number(v)), None)
        if wrong is not None:
            raise BadInput(where, got_repr(wrong), "numbers")
        return values_of(feature, [float(v) for v in listed], where)
    places = _indices(labels, listed)
    for label, place in zip(listed, places, strict=True):
        if not 0 <= place < (len(labels) if settable is None else settable):
            raise BadInput(where, got_repr(label), "labels that X holds: " + ", ".join(map(str, labels)))
    return values_of(feature, [texts(labels)[k] for k in places], where)


def _listed(key: Hashable, arguments: ColumnArguments) -> list[Any]:
    """The values that the caller lists for a column."""
    given = arguments.values[key]
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray | pd.Index) or not len(given):
        raise BadInput(
            f"values.{key}", got_repr(given), "a list of what an action may set, one value or more"
        )
    return list(given)


def _bounds(key: Hashable, series: pd.Series, kind: Kind, arguments: ColumnArguments) -> tuple[float, float]:
    given = arguments.bounds.get(key)
    if given is None and key in arguments.values:
        listed = [float(v) for v in _listed(key, arguments) if is_number(v)]
        given = (min(listed), max(listed)) if listed else None
    low, high = given or bounds_of(series, kind)
    if kind == "binary" and not (low >= 0 and high <= 1):
        raise BadInput(f"bounds.{key}", f"({low:g}, {high:g})", "an interval within 0 and 1: it is binary")
    return low, high


def _direction(key: Hashable, kind: Kind, arguments: ColumnArguments) -> Any:
    chosen = [word for word in ("increase", "decrease") if key in getattr(arguments, word)]
    if len(chosen) == 2:
        raise BadInput(
            "decrease", got_repr(key), "columns that increase does not name; immutable keeps a value"
        )
    if chosen and kind == "categorical":
        raise BadInput(chosen[0], got_repr(key), "numbers and ordinal columns: its labels have no order")
    return chosen[0] if chosen else None


def _indices(labels: Sequence[object], some: Sequence[object]) -> list[int]:
    """The positions of some labels among others; -1 of those that are not there."""
    known = positions(labels)
    return [known.get(label_key(label), -1) if isinstance(label, Hashable) else -1 for label in some]


def _rearranged(classifier: Classifier, order: NDArray[np.int64]) -> Classifier:
    """The classifier of other input columns: k is the old ``order[k]``, or is ignored if that is -1."""
    if isinstance(classifier, AskedModel):
        return replace(classifier, inputs=len(order))
    if isinstance(classifier, ReluNetwork):
        weight = np.where(order >= 0, classifier.weights[0][:, np.maximum(order, 0)], 0.0)
        return replace(classifier, weights=(weight, *classifier.weights[1:]))
    assert isinstance(classifier, TreeEnsemble)
    place = np.full(classifier.inputs + 2, -2, dtype=np.int64)
    place[order[order >= 0]] = np.flatnonzero(order >= 0)
    trees = tuple(
        replace(t, feature=np.where(t.left == -1, -2, place[np.maximum(t.feature, 0)]))
        for t in classifier.trees
    )
    return replace(classifier, trees=trees, inputs=len(order))
