"""A column between two transformers."""

from __future__ import annotations

from dataclasses import dataclass

from milp_recourse.readers.operations import Operation


@dataclass(frozen=True)
class Track:
    """A column between two steps, made of one raw column.

    Attributes
    ----------
    raw
        Position among the model's raw columns.
    operations
        The operations on a number, in order.
    filled
        The value that an imputer puts in place of a missing one, as a raw value: if it imputes after a
        scaler, the number whose scaled value is nearest. None if there was no imputer so far, or if an
        encoder refuses its value because nothing was imputed at the fit.
    coded
        Whether an encoder has treated the column as labels.
    gaps
        The missing values that the imputer replaces (:mod:`milp_recourse.readers.gaps`).
    """

    raw: int
    operations: tuple[Operation, ...] = ()
    filled: object | None = None
    coded: bool = False
    gaps: frozenset[str] = frozenset()
