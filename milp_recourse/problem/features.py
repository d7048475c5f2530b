"""Features: the kind of a column, the values that an action may set, and the limits of its value.

A *lattice* says which values an action may set, where it may not set every double between two limits. Steps
are the doubles nearest to the decimals :math:`v + k s`, for whole :math:`k`, where :math:`v` and :math:`s`
are the shortest decimals of the given doubles: a step of 0.1 means a tenth, and not the double 0.1. Values
are a list of numbers. Both answer the same questions, in exact arithmetic: which allowed double is the
largest that is not above a number, and which the least that is not below it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, dotted, got_text
from milp_recourse.problem.decimals import Positive, as_written

Array = NDArray[np.float64]

MOST_VALUES = 1_000_000
"""The largest number of values that the steps of a lever may have within its bounds."""


class _Lattice(ABC):
    """What steps and lists of values answer alike."""

    @abstractmethod
    def floor(self, x: float) -> float:
        """The largest allowed double not above ``x``; -inf if there is none."""

    @abstractmethod
    def ceil(self, x: float) -> float:
        """The least allowed double not below ``x``; inf if there is none."""

    def after(self, x: float) -> float:
        """The least allowed double above ``x``; inf if there is none."""
        return self.ceil(math.nextafter(x, math.inf))

    def before(self, x: float) -> float:
        """The largest allowed double below ``x``; -inf if there is none."""
        return self.floor(math.nextafter(x, -math.inf))

    def nearest(self, x: float) -> float:
        """An allowed double nearest to ``x``, the lower one of two that are as near."""
        low, high = self.floor(x), self.ceil(x)
        return low if x - low <= high - x else high

    def __contains__(self, x: float) -> bool:
        return self.floor(x) == x

    def floors(self, x: Array) -> Array:
        """As :meth:`floor`, for each number of an array."""
        return self._each(self.floor, x)

    def ceils(self, x: Array) -> Array:
        """As :meth:`ceil`, for each number of an array."""
        return self._each(self.ceil, x)

    def nearests(self, x: Array) -> Array:
        """As :meth:`nearest`, for each number of an array."""
        low, high = self.floors(x), self.ceils(x)
        return np.where(x - low <= high - x, low, high)

    @staticmethod
    def _each(one: Callable[[float], float], x: Array) -> Array:
        flat = [one(float(v)) for v in np.ravel(x)]
        return np.array(flat, dtype=np.float64).reshape(np.shape(x))


@dataclass(frozen=True)
class Steps(_Lattice):
    """The doubles nearest to origin + k step, for whole k.

    Parameters
    ----------
    step
        Above 0.
    origin
        One of the values.
    """

    step: Positive
    origin: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether these are all the whole numbers."""
        return self.step == 1 and self.origin.is_integer()

    def __str__(self) -> str:
        return "a whole number" if self.whole else f"{self.origin:g} and a number of steps of {self.step:g}"

    @property
    def spaced(self) -> Steps:
        """Itself: neighbours are equally far apart."""
        return self

    def exact(self, low: float, high: float) -> bool:
        """Whether the decimals between two doubles are doubles, so that sums of steps are exact, too."""
        step, origin = self._decimals
        shared = math.lcm(step.denominator, origin.denominator)
        unit = Fraction(math.gcd(int(step * shared), int(origin * shared)), shared)
        largest = max(abs(Fraction(end)) for end in (low, high, self.origin))
        return shared & (shared - 1) == 0 and largest < 2**53 * unit

    def value(self, k: int) -> float:
        """The double nearest to the decimal origin + k step; infinite where no double is as large."""
        step, origin = self._decimals
        try:
            return float(origin + k * step)
        except OverflowError:
            return math.inf if k > 0 else -math.inf

    def count(self, low: float, high: float) -> int:
        """How many k have their decimal between two doubles."""
        step, origin = self._decimals
        ends = math.floor((Fraction(high) - origin) / step), math.ceil((Fraction(low) - origin) / step)
        return max(0, ends[0] - ends[1] + 1)

    def floor(self, x: float) -> float:
        """The largest allowed double not above ``x``."""
        if not math.isfinite(x):
            return x
        if self.whole:
            return float(math.floor(x))
        below, above = self._around(x)
        return above if above == x else below

    def ceil(self, x: float) -> float:
        """The least allowed double not below ``x``."""
        if not math.isfinite(x):
            return x
        if self.whole:
            return float(math.ceil(x))
        below, above = self._around(x)
        return below if below == x else above

    def floors(self, x: Array) -> Array:
        """As :meth:`floor`, for each number of an array."""
        return np.floor(x) if self.whole else super().floors(x)

    def ceils(self, x: Array) -> Array:
        """As :meth:`ceil`, for each number of an array."""
        return np.ceil(x) if self.whole else super().ceils(x)

    def within(self, low: float, high: float) -> Array:
        """The values from ``low`` to ``high``, ascending."""
        if self.whole:
            return np.arange(math.ceil(low), math.floor(high) + 1, dtype=np.float64)
        step, origin = self._decimals
        first = math.floor((Fraction(low) - origin) / step)
        last = math.ceil((Fraction(high) - origin) / step)
        values = np.unique([self.value(k) for k in range(first, last + 1)])
        return values[(values >= low) & (values <= high)]

    @cached_property
    def _decimals(self) -> tuple[Fraction, Fraction]:
        return as_written(self.step), as_written(self.origin)

    def _around(self, x: float) -> tuple[float, float]:
        """Two allowed doubles with none between, the first not above ``x`` and the second not below it.

        The nearest double to a decimal not above a double is not above that double either.
        """
        step, origin = self._decimals
        k = math.floor((Fraction(x) - origin) / step)
        return self.value(k), self.value(k + 1)


@dataclass(frozen=True)
class Values(_Lattice):
    """The numbers of a list, ascending, each once.

    Parameters
    ----------
    values
        At least one.
    """

    values: tuple[float, ...]

    def __str__(self) -> str:
        few = ", ".join(f"{v:g}" for v in self.values[:6])
        return f"one of {few}{', ...' if len(self.values) > 6 else ''}"

    @cached_property
    def spaced(self) -> Steps | None:
        """The steps that lead through the numbers, counted in decimals; None if they are not equally far
        apart."""
        decimals = [as_written(v) for v in self.values]
        gaps = {b - a for a, b in pairwise(decimals)} or {Fraction(1)}
        step = float(min(gaps))
        even = len(gaps) == 1 and as_written(step) in gaps
        return Steps(step, self.values[0]) if even else None

    def floor(self, x: float) -> float:
        """The largest of the numbers not above ``x``; -inf if there is none, nan for nan."""
        k = bisect_right(self.values, x)
        return x if math.isnan(x) else self.values[k - 1] if k else -math.inf

    def ceil(self, x: float) -> float:
        """The least of the numbers not below ``x``; inf if there is none, nan for nan."""
        k = bisect_left(self.values, x)
        return x if math.isnan(x) else self.values[k] if k < len(self.values) else math.inf

    def count(self, low: float, high: float) -> int:
        """How many of the numbers are between two doubles."""
        return max(0, bisect_right(self.values, high) - bisect_left(self.values, low))

    def within(self, low: float, high: float) -> Array:
        """The numbers from ``low`` to ``high``, ascending."""
        return np.array([v for v in self.values if low <= v <= high], dtype=np.float64)


Lattice = Steps | Values

WHOLE = Steps(1.0)
"""The whole numbers."""


Kind = Literal["continuous", "integer", "binary", "ordinal", "categorical"]
Monotone = Literal["increase", "decrease"]
Encoding = Literal["code", "one-hot", "table"]


@dataclass(frozen=True)
class Feature:
    """One feature of an applicant.

    Inside the package every value is a number: an ordinal or categorical label is replaced by
    its index in ``categories``; labels appear only in files and results.

    Parameters
    ----------
    name
        Unique within an instance.
    kind
        ``continuous``, ``integer``, ``binary`` (0 or 1), ``ordinal`` (ordered labels) or
        ``categorical`` (unordered labels).
    actionable
        Whether anyone may act on it at all (the global mask).
    bounds
        Lowest and highest value an *action* may set, in the feature's unit, labels by their index. None for
        features that nobody can act on, and for labels if any of them may be set.
    categories
        The labels in order; None for numeric kinds.
    domain
        Limits of the *counterfactual's* value, acted on or not.
    monotone
        ``increase``: an action may not go below the factual value; ``decrease``: not above.
    encoding
        How labels enter the model: ``code`` (the index, one column) or ``one-hot`` (one 0/1
        column per label) or ``table`` (the numbers of ``table``). Numeric kinds are always one column.
    table
        With encoding ``table``, one row per label: the numbers that the label puts into the model's columns.
        Tables can express dropped labels, codes in another order, and splits on sets of labels.
    only
        The steps or the list of values (labels by their index) to which actions are limited within
        ``bounds``; None for every value of the kind.
    """

    name: str
    kind: Kind = "continuous"
    actionable: bool = False
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None
    domain: tuple[float, float] | None = None
    monotone: Monotone | None = None
    encoding: Encoding = "code"
    table: tuple[tuple[float, ...], ...] | None = None
    only: Lattice | None = None

    @property
    def labelled(self) -> bool:
        """Whether values are labels in files."""
        return self.categories is not None

    @property
    def integral(self) -> bool:
        """Whether values are whole numbers (labels are, by their index)."""
        return self.kind != "continuous"

    @property
    def lattice(self) -> Lattice | None:
        """Which values between two limits an action may set; None for every double."""
        return self.only or (WHOLE if self.integral else None)

    def floor(self, x: float) -> float:
        """The largest double not above ``x`` that an action may set, whatever the bounds."""
        return x if self.lattice is None else self.lattice.floor(x)

    def ceil(self, x: float) -> float:
        """The least double not below ``x`` that an action may set, whatever the bounds."""
        return x if self.lattice is None else self.lattice.ceil(x)

    def after(self, x: float) -> float:
        """The least double above ``x`` that an action may set, whatever the bounds."""
        return math.nextafter(x, math.inf) if self.lattice is None else self.lattice.after(x)

    def before(self, x: float) -> float:
        """The largest double below ``x`` that an action may set, whatever the bounds."""
        return math.nextafter(x, -math.inf) if self.lattice is None else self.lattice.before(x)

    def nearest(self, x: float) -> float:
        """A double nearest to ``x`` that an action may set, whatever the bounds."""
        return x if self.lattice is None else self.lattice.nearest(x)

    @property
    def action_bounds(self) -> tuple[float, float]:
        """Lowest and highest number an action may set: ``bounds``, or the first and last index."""
        if self.bounds is not None:
            return self.bounds
        if self.categories is None:
            raise ValueError(f"feature {self.name!r} has no bounds")
        return 0.0, float(len(self.categories) - 1)

    @property
    def by_label(self) -> bool:
        """Whether every label has numbers of its own in the model's columns, instead of its index."""
        return self.categories is not None and self.encoding != "code"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the model's input columns this feature fills."""
        if self.categories is not None and self.encoding == "one-hot":
            return tuple(f"{self.name}={label}" for label in self.categories)
        if self.table is not None:
            return tuple(f"{self.name}[{k}]" for k in range(len(self.table[0])))
        return (self.name,)

    @cached_property
    def lookup(self) -> NDArray[np.float64] | None:
        """The numbers each label puts into the columns, (labels x columns); None for numeric kinds."""
        if self.categories is None:
            return None
        if self.table is not None:
            return np.array(self.table, dtype=np.float64)
        codes = np.arange(len(self.categories), dtype=np.float64)[:, None]
        return np.eye(len(self.categories)) if self.encoding == "one-hot" else codes

    def show(self, value: float) -> float | int | str:
        """The value as in files and results: a label, a whole number, or a float."""
        if self.categories is not None:
            return self.categories[int(value)]
        return int(value) if self.integral and float(value).is_integer() else float(value)

    def number(self, shown: float | int | str) -> float:
        """The inverse of :meth:`show`: a label's index, or the number itself."""
        return float(shown) if self.categories is None else float(self.categories.index(str(shown)))

    def read(self, value: float | str | None, path: str, imputed: bool = False) -> float:
        """A file's value as the number used inside: labels by their index, null as nan.

        Parameters
        ----------
        imputed
            Whether the value of an integer feature may be a fraction, as a mean put in by an imputer is.

        Raises
        ------
        BadInput
            An unknown label, text for a number, or a fraction where a whole number is due.
        """
        if value is None:
            return math.nan
        if self.categories is not None:
            if not isinstance(value, str) or value not in self.categories:
                raise BadInput(path, got_text(value), "one of " + ", ".join(self.categories))
            return float(self.categories.index(value))
        if isinstance(value, str):
            raise BadInput(path, repr(value), "a number")
        if self.kind == "binary" and value not in (0, 1):
            raise BadInput(path, value, "0 or 1")
        if self.integral and not float(value).is_integer() and not (imputed and self.kind == "integer"):
            raise BadInput(path, value, "a whole number")
        return float(value)

    def shown(self, value: float) -> float | int | str | None:
        """As :meth:`show`; None where the value is missing (nan)."""
        return None if math.isnan(value) else self.show(value)


def input_columns(features: Sequence[Feature]) -> tuple[str, ...]:
    """Names of all model input columns, in order."""
    return tuple(column for feature in features for column in feature.columns)


def with_columns(features: Sequence[Feature]) -> Iterator[tuple[Feature, range]]:
    """Each feature with the numbers of the classifier's columns that it fills."""
    column = 0
    for feature in features:
        yield feature, range(column, column := column + len(feature.columns))


def build_factual(values: Mapping[str, Any], features: Sequence[Feature], path: str) -> dict[str, float]:
    """One applicant's values as numbers.

    Raises
    ------
    BadInput
        A feature is missing or unknown, or :meth:`Feature.read` refuses a value. The error names the path,
        e.g. ``factual.income``.
    """
    names = {f.name for f in features}
    for name in values:
        if name not in names:
            raise BadInput(dotted(path, name), "an unknown feature", ", ".join(f.name for f in features))
    for f in features:
        if f.name not in values:
            raise BadInput(dotted(path, f.name), "nothing", "a value for every feature")
    try:
        return {f.name: f.read(values[f.name], f.name, imputed=True) for f in features}
    except BadInput as fault:
        raise BadInput(dotted(path, fault.field), fault.got, fault.allowed) from None
