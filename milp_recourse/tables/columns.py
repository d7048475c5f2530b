"""A table's columns as features: numbers for their values, and kinds, bounds and scales inferred from X."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, nearest
from milp_recourse.problem.features import Feature, Kind
from milp_recourse.readers.classes import OTHER
from milp_recourse.readers.gaps import gap

NUMBER_KINDS = ("continuous", "integer", "binary")
LABEL_KINDS = ("categorical", "ordinal")
SCALES = ("spread", "range", "sd", "mad", "iqr", "unit")

OUTLIERS = 10.0
"""A range so many times as long as the distance from the 1st to the 99th percentile is driven by outliers."""


def declared_labels(key: Hashable, kinds: Mapping[Hashable, Any], categories: Container[Hashable]) -> bool:
    """Whether the arguments ``kinds`` and ``categories`` say that a column holds labels."""
    kind = kinds.get(key)
    return key in categories or (isinstance(kind, str) and kind in LABEL_KINDS)


@dataclass(frozen=True)
class TableColumn:
    """One column of the table and the feature made of it.

    Attributes
    ----------
    key
        The column's name in the DataFrame, unchanged.
    feature
        The feature of the problem.
    labels
        The table's own values, in the order of ``feature.categories``; None for a number.
    dtype
        The column's dtype in X.
    imputed
        The number (of a label, the index) that the model's imputer puts in place of a missing value; None
        without an imputer.
    missing
        Whether the classifier has a rule of its own for a missing value.
    gaps
        The missing values that the model's imputer replaces, among those that a column of Python objects can
        hold (:mod:`milp_recourse.readers.gaps`).
    within
        The least and largest number that the model's transformers have a value of; None if they have one of
        all.
    """

    key: Hashable
    feature: Feature
    labels: tuple[object, ...] | None
    dtype: Any
    imputed: float | None = None
    missing: bool = False
    gaps: frozenset[str] = frozenset()
    within: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The feature's name."""
        return self.feature.name

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return positions(self.labels or ())

    def code(self, value: object) -> float:
        """The feature's number for a value of the table (a label's index); nan for a missing value.

        Raises
        ------
        BadInput
            The value is an unknown label, or no number of the feature's kind.
        """
        if self.labels is not None:
            if is_missing(value):
                return self._missing_code(value)
            found = self._places.get(label_key(value))
            if found is None and isinstance(value, str):
                found = self._places.get(label_key(OTHER))
            if found is not None:
                return float(found)
            raise BadInput(self.name, got_repr(value), "one of " + ", ".join(map(str, self.labels)))
        if is_missing(value):
            return math.nan
        if isinstance(value, str | bytes) or not isinstance(value, int | float | np.number | np.bool_):
            raise BadInput(self.name, got_repr(value), "a number")
        number = float(value)
        if not math.isfinite(number):
            raise BadInput(self.name, number, "a finite number")
        if self.within is not None and not self.within[0] <= number <= self.within[1]:
            allowed = (
                f"{self.within[0]:g} to {self.within[1]:g}, of which the model's transformer has a value"
            )
            raise BadInput(self.name, number, allowed)
        if self.feature.kind == "binary" and number not in (0.0, 1.0):
            raise BadInput(self.name, number, "0 or 1")
        if self.feature.integral and not number.is_integer():
            raise BadInput(self.name, number, "a whole number, as X has (kinds can say continuous)")
        return number

    def _missing_code(self, value: object) -> float:
        """The number of a missing value in a column of labels."""
        assert self.labels is not None
        if self.dtype != object:  # a column that holds a single one, which is not None
            found = [k for k, label in enumerate(self.labels) if label is not None and is_missing(label)]
            return float(found[0]) if found else math.nan
        place = self._places.get(label_key(value))
        if place is not None:
            return float(place)
        known = self.gaps | {gap(label) for label in self.labels if is_missing(label)}
        if known and gap(value) not in known:
            raise BadInput(self.name, gap(value), f"a label or {' or '.join(sorted(known))}, as at the fit")
        return math.nan

    def value(self, code: float) -> object:
        """The inverse of :meth:`code`: the table's own value for a number of the feature."""
        if self.labels is not None:
            return self.labels[int(code)]
        if pd.api.types.is_bool_dtype(self.dtype):
            return bool(code)
        return int(code) if self.feature.integral and float(code).is_integer() else float(code)


def infer(series: pd.Series, labels: Sequence[object] | None) -> Kind:
    """The kind of a column if the caller states none.

    Labels are ``categorical``. Numbers are ``binary`` if all are 0 or 1, ``integer`` if all are whole, else
    ``continuous``.
    """
    if labels is not None:
        return "categorical"
    values = numbers(series)
    if len(values) and np.isin(values, (0.0, 1.0)).all():
        return "binary"
    return "integer" if len(values) and (values == np.round(values)).all() else "continuous"


def numbers(series: pd.Series) -> NDArray[np.float64]:
    """The finite numbers of a column; missing and infinite ones are left out.

    Raises
    ------
    BadInput
        A value of the column is no number.
    """
    try:
        values: NDArray[np.float64] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        bad = next((v for v in series if isinstance(v, str) or not np.isscalar(v)), series.iloc[0])
        raise BadInput(f"X.{series.name}", got_repr(bad), "numbers, as the model reads this column") from None
    return values[np.isfinite(values)]


def bounds_of(series: pd.Series, kind: Kind) -> tuple[float, float]:
    """Least and largest finite number of a column, the default bounds of actions.

    Raises
    ------
    BadInput
        The column has no finite number.
    """
    values = numbers(series)
    if not len(values):
        raise BadInput(f"X.{series.name}", "no number at all", "values to take bounds from, or bounds for it")
    low, high = float(values.min()), float(values.max())
    return (math.ceil(low), math.floor(high)) if kind != "continuous" else (low, high)


def scale_of(series: pd.Series, feature: Feature, rule: str) -> float:
    """The scale of a feature by a rule; 1 if all values are equal.

    ``range`` is the largest less the least value; ``spread`` is the same, but the distance from the 1st to
    the 99th percentile where outliers drive the range (:data:`OUTLIERS`). ``sd`` is the standard deviation,
    ``mad`` the median absolute deviation from the median (Wachter et al. 2018,
    https://arxiv.org/abs/1711.00399), ``iqr`` the distance between the quartiles, and ``unit`` is 1. If one
    of ``mad`` and ``iqr`` is 0, the range is taken. For an ordinal feature the positions of all labels count
    as its values; a categorical feature has scale 1.
    """
    if feature.kind == "categorical" or rule == "unit":
        return 1.0
    if feature.categories is not None:
        values = np.arange(len(feature.categories), dtype=np.float64)
    else:
        values = numbers(series)
    if not len(values):
        return 1.0
    spread = {
        "spread": (outlying(values) or (np.ptp(values),))[-1],
        "range": np.ptp(values),
        "sd": values.std(),
        "mad": np.median(np.abs(values - np.median(values))) or np.ptp(values),
        "iqr": np.subtract(*np.quantile(values, [0.75, 0.25])) or np.ptp(values),
    }[rule]
    return float(spread) if spread > 0 else 1.0


def outlying(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """The range and the distance from the 1st to the 99th percentile, if outliers drive the range."""
    if not len(values):
        return None
    width, inner = float(np.ptp(values)), float(np.subtract(*np.quantile(values, [0.99, 0.01])))
    return (width, inner) if inner > 0.0 and width > OUTLIERS * inner else None


def knots_of(series: pd.Series, feature: Feature) -> list[list[float]]:
    """The knots (value, probability) of a column's distribution function, at most 101 quantiles.

    Raises
    ------
    BadInput
        The column has labels.
    """
    if feature.categories is not None:
        raise BadInput(
            "cost", f"percentiles of {feature.name}", "a cost other than percentile: it has labels"
        )
    values = np.sort(numbers(series))
    known = np.unique(np.quantile(values, np.linspace(0, 1, 101), method="inverted_cdf"))
    shares = np.searchsorted(values, known, side="right") / len(values)
    if len(known) == 1:
        return [[float(known[0]) - 1.0, 0.0], [float(known[0]), 1.0]]
    return [[float(v), float(p)] for v, p in zip(known, shares, strict=True)]


def log_knots(knots: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    """Knots of -log(1 - Q) from those of Q, for costs in log-percentiles (Ustun et al. 2019).

    Parameters
    ----------
    count
        The number n of rows. Q is multiplied by n / (n + 1), so that the logarithm is finite where Q = 1.
    """
    return [[v, -math.log1p(-p * count / (count + 1))] for v, p in knots]


def texts(labels: Sequence[object]) -> tuple[str, ...]:
    """Labels as strings for files: printable, and distinct even if two labels have the same text.

    >>> texts(("yes", 1, "1"))
    ('yes', '1', "'1'")
    """
    seen: dict[str, None] = {}
    for label in labels:
        text = "missing" if is_missing(label) else printable(label)
        if text in seen or not text.strip():
            text = printable(repr(label))
        while text in seen:
            text += "'"
        seen[text] = None
    return tuple(seen)


def printable(name: object) -> str:
    """A name or label as one line of text."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(name))


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, nan, NaT or pandas' NA."""
    empty: Any = pd.isna(value)  # type: ignore[call-overload]
    return isinstance(empty, bool | np.bool_) and bool(empty)


def got_repr(value: object) -> str:
    """A wrong Python value in the words of an error message: its repr, without numpy's type.

    For JSON values there is :func:`milp_recourse.errors.got_text`.
    """
    return repr(value.item()) if isinstance(value, np.generic) else repr(value)


def known_name(argument: str, name: object, columns: Sequence[Hashable] | pd.Index) -> None:
    """Check that a name in an argument is a column of X.

    Raises
    ------
    BadInput
        It is not; the message suggests the name that is spelt most like it.
    """
    if not isinstance(name, Hashable) or name not in columns:
        close = nearest(name, columns)
        hint = f"a column of X (did you mean {close!r}?)" if close else "a column of X"
        raise BadInput(argument, got_repr(name), hint)


def position(labels: Sequence[object], value: object) -> int | None:
    """The position of a value among labels; None if it is not there. :func:`positions` is for many values."""
    return positions(labels).get(label_key(value))


def positions(labels: Iterable[object]) -> dict[Hashable, int]:
    """The first position of each label, by its :func:`label_key`."""
    found: dict[Hashable, int] = {}
    for k, label in enumerate(labels):
        found.setdefault(label_key(label), k)
    return found


def label_key(label: Any) -> Hashable:
    """What two labels have in common if they are the same one.

    True does not equal 1 here; of missing values, nan equals nan, None equals None and NA equals NA.
    """
    return ("missing", gap(label)) if is_missing(label) else (isinstance(label, bool | np.bool_), label)
