"""Checks of what :class:`~milp_recourse.tables.recourse.Recourse` is told of columns, and the cost of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

import pandas as pd

from milp_recourse.errors import BadInput, is_number
from milp_recourse.formats.schema import SCALE_FORMS, OneScale, StatedCost
from milp_recourse.formats.stated import Known, validate
from milp_recourse.problem.cost import KINDS, PARTS, PERCENTILES, Cost
from milp_recourse.problem.features import Feature
from milp_recourse.reports.own_words import OwnWords, check_words
from milp_recourse.tables.columns import (
    SCALES,
    TableColumn,
    got_repr,
    knots_of,
    known_name,
    log_knots,
    numbers,
    outlying,
    scale_of,
)

Interval = tuple[float, float]

RELATIVE = "factual"


def some_columns(argument: str, given: Iterable[Hashable], columns: pd.Index) -> frozenset[Hashable]:
    """An argument that is a list of X's columns, as a set.

    Raises
    ------
    BadInput
        It is no list, or names a column that X does not have.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise BadInput(argument, repr(given), "a list of columns of X")
    names = list(given)
    for name in names:
        known_name(argument, name, columns)
    return frozenset(names)


def by_column(
    argument: str, given: Mapping[Hashable, Any] | None, columns: pd.Index | Sequence[Hashable]
) -> dict[Hashable, Any]:
    """An argument that is a mapping from X's columns; empty for None.

    Raises
    ------
    BadInput
        It is no mapping, or names a column that X does not have.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadInput(argument, type(given).__name__, "a mapping from columns of X")
    for name in given:
        known_name(argument, name, columns)
    return dict(given)


def intervals(
    argument: str, given: Mapping[Hashable, Sequence[float]] | None, columns: pd.Index
) -> dict[Hashable, Interval]:
    """An argument that maps columns to (lowest, highest).

    Raises
    ------
    BadInput
        As for :func:`by_column`; or a value is not two finite numbers in order.
    """
    found = {}
    for name, ends in by_column(argument, given, columns).items():
        where = f"{argument}.{name}"
        pair = list(ends) if isinstance(ends, Iterable) and not isinstance(ends, str) else []
        if len(pair) != 2 or not all(is_number(end) for end in pair):
            raise BadInput(where, got_repr(ends), "(lowest, highest), two finite numbers")
        if pair[0] > pair[1]:
            raise BadInput(where, f"({pair[0]}, {pair[1]})", "(lowest, highest) with lowest <= highest")
        found[name] = (float(pair[0]), float(pair[1]))
    return found


def own_words(
    names: Mapping[Hashable, str] | None,
    units: Mapping[Hashable, str] | None,
    columns: Sequence[TableColumn],
    order: pd.Index,
) -> OwnWords:
    """The arguments ``names`` and ``units``, by feature.

    Raises
    ------
    BadInput
        As for :func:`by_column`; or a value is no text, or blank.
    """
    known = {c.key: c.name for c in columns}
    found = []
    for argument, given in (("names", names), ("units", units)):
        words = check_words(argument, by_column(argument, given, order))
        found.append({known[key]: text for key, text in words.items() if key in known})
    return OwnWords(*found)


def positive(
    argument: str, given: Mapping[Hashable, float] | None, columns: pd.Index
) -> dict[Hashable, float]:
    """An argument that maps columns to numbers above 0.

    Raises
    ------
    BadInput
        As for :func:`by_column`; or a value is no finite number above 0.
    """
    found = {}
    for name, value in by_column(argument, given, columns).items():
        if not is_number(value) or value <= 0:
            raise BadInput(f"{argument}.{name}", got_repr(value), "a finite number above 0")
        found[name] = float(value)
    return found


def check_path(argument: str, given: object, allowed: str) -> None:
    """Raise BadInput, which says what is ``allowed``, if an argument is no path."""
    if not isinstance(given, str | PathLike):
        raise BadInput(argument, got_repr(given), allowed)


@contextmanager
def written_to(argument: str) -> Iterator[None]:
    """Errors about ``--out`` name the argument that a caller from Python has given instead."""
    try:
        yield
    except BadInput as error:
        if error.field != "--out":
            raise
        raise BadInput(argument, error.got, error.allowed) from None


def cost_of(
    cost: str | Mapping[str, float],
    scale: str | Mapping[Hashable, Any],
    columns: Sequence[TableColumn],
    X: pd.DataFrame,
) -> Cost:
    """The cost, from ``cost`` and ``scale`` of :class:`~milp_recourse.tables.recourse.Recourse`.

    Raises
    ------
    BadInput
        A name is unknown, a coefficient or scale is out of range, or a column cannot have the scale given.
    """
    features = [c.feature for c in columns]
    if isinstance(cost, str) and cost in PERCENTILES:
        knots = {c.name: knots_of(X[c.key], c.feature) for c in columns if c.feature.kind != "categorical"}
        if KINDS[cost].axis == "log-percentile":
            knots = {name: log_knots(own, len(X)) for name, own in knots.items()}
        return _cost({"kind": cost, "quantiles": knots}, features)
    scales = _scales(scale, columns, X)
    allowed = ", ".join(KINDS) + ', or a mixture such as {"l0": 0.1, "l1": 1}'
    if isinstance(cost, Mapping):
        for part, value in cost.items():
            if part not in PARTS:
                raise BadInput("cost", str(part), "parts called " + ", ".join(PARTS))
            if not is_number(value) or value < 0:
                raise BadInput(f"cost.{part}", got_repr(value), "a finite number, 0 or more")
        entry: dict[str, Any] = {"kind": "mixture", **cost, "scale": scales}
    elif isinstance(cost, str) and cost in KINDS:
        entry = {"kind": cost} if cost == "l0" else {"kind": cost, "scale": scales}
    else:
        raise BadInput("cost", str(cost), allowed)
    return _cost(entry, features)


def _cost(entry: dict[str, Any], features: Sequence[Feature]) -> Cost:
    return validate(StatedCost, entry, "cost", Known(features))


def _scales(
    scale: str | Mapping[Hashable, Any], columns: Sequence[TableColumn], X: pd.DataFrame
) -> dict[str, Any]:
    """The scales as in a file: by a rule, or as given, with the spread for columns that are not named.

    Only columns that somebody can act on are relative to a person's own value, which may be 0 in the others.
    """
    if scale is not None and not isinstance(scale, str):
        own = {k: _given_scale(f"scale.{k}", s) for k, s in by_column("scale", scale, X.columns).items()}
        scales = {c: own.get(c.key, scale_of(X[c.key], c.feature, "spread")) for c in columns}
        return {c.name: 1.0 if s == RELATIVE and not c.feature.actionable else s for c, s in scales.items()}
    if scale == RELATIVE:
        sized = {c.name for c in columns if c.feature.actionable and not c.feature.labelled}
        return {c.name: RELATIVE if c.name in sized else 1.0 for c in columns}
    if scale in SCALES:
        return {c.name: scale_of(X[c.key], c.feature, scale) for c in columns}
    allowed = ", ".join((*SCALES, RELATIVE)) + ", or a mapping from columns to numbers above 0"
    raise BadInput("scale", str(scale), allowed)


def outlying_scales(
    scale: str | Mapping[Hashable, Any], columns: Sequence[TableColumn], X: pd.DataFrame
) -> dict[Hashable, tuple[float, float]]:
    """Range and scale of each lever whose scale is not its range, because outliers drive that."""
    found = {}
    for c in columns:
        by_rule = scale == "spread" if isinstance(scale, str) else c.key not in scale
        if by_rule and c.feature.actionable and not c.feature.labelled:
            found[c.key] = outlying(numbers(X[c.key]))
    return {key: ends for key, ends in found.items() if ends is not None}


def _given_scale(where: str, scale: object) -> Any:
    """One column's scale as files state it, checked."""
    plain = {k: _plain(s) for k, s in scale.items()} if isinstance(scale, Mapping) else _plain(scale)
    try:
        validate(OneScale, plain, where)
    except BadInput as fault:
        raise fault if isinstance(plain, dict) else BadInput(where, fault.got, SCALE_FORMS) from None
    return plain


def _plain(number: Any) -> Any:
    """Python's own float in place of a number of any type."""
    return float(number) if is_number(number) else number


def cost_in_words(cost: Cost, scale: str | Mapping[Hashable, Any]) -> str:
    """The cost's name and the scales of its changes, for the summary."""
    if not cost.uses_scale or not cost.lengths:
        return cost.kind
    units = {
        "spread": "its range in X",
        "range": "its range in X",
        "sd": "its standard deviation",
        "mad": "its median deviation",
        "iqr": "the distance between its quartiles",
        RELATIVE: "the person's own value",
    }
    unit = units.get(scale, "1") if isinstance(scale, str) else "the given scale"
    return f"{cost.kind}, a number's change divided by {unit}, a changed label counting 1"
