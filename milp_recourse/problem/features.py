"""Features: the kind of a column, the values that an action may set, and the limits of its value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.lattice import WHOLE, Lattice

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

    def shown(self, value: float) -> float | int | str | None:
        """As :meth:`show`; None where the value is missing (nan)."""
        return None if math.isnan(value) else self.show(value)


def input_columns(features: Sequence[Feature]) -> tuple[str, ...]:
    """Names of all model input columns, in order."""
    return tuple(column for feature in features for column in feature.columns)
