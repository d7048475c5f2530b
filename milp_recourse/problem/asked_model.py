"""A classifier that is not read: it can only be asked whether it accepts rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, Unsupported

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AskedModel:
    """A function that accepts or refuses rows. Nothing else is known of it, so no bound can be derived.

    An instance with it is accepted at a score above 1/2: scores are 1 where the function accepts, else 0.

    Parameters
    ----------
    inputs
        The number of columns.
    accepts
        (n, columns) -> whether each row is accepted, (n,).
    """

    inputs: int
    accepts: Callable[[Array], NDArray[np.bool_]]

    def __repr__(self) -> str:
        """The number of columns."""
        return f"AskedModel({self.inputs} columns)"

    @property
    def written(self) -> dict[str, Any]:
        """Raises Unsupported, as no file can hold a function."""
        raise Unsupported("model: got one that is asked; allowed: one that is read, where a file is written")

    def scores(self, rows: Array) -> Array:
        """1 for each accepted row, else 0."""
        return np.asarray(self.accepts(rows), dtype=np.float64)

    def score(self, row: Array) -> float:
        """As :meth:`scores`, of one row that is asked alone."""
        return float(self.scores(row[None])[0])


def two_answers() -> BadInput:
    """The error of a function that answers differently for one row."""
    allowed = "a function that gives a row the same answer alone and among others"
    return BadInput("predict", "two answers for one row", allowed)
