"""The three values that stand for a missing one in a table: nan, None and pandas' NA.

In a column of Python objects scikit-learn tells them apart: an encoder that was fitted on nan does not know
None, and an imputer of nan leaves None as it is. A column of any other type holds one of them only.
"""

from __future__ import annotations

from collections.abc import Sequence

NAN, NONE, NA = "nan", "None", "NA"


def gap(missing: object) -> str:
    """Which of the three a missing value is."""
    if missing is None:
        return NONE
    return NA if type(missing).__name__ == "NAType" else NAN


def imputed_gaps(missing_values: object) -> frozenset[str]:
    """The missing values that scikit-learn's imputer replaces; with NA it replaces all."""
    own = gap(missing_values)
    return frozenset((NAN, NONE, NA) if own == NA else (own,))


def first_gaps(cells: Sequence[object]) -> list[object]:
    """The first cell of each kind, of cells that are all missing."""
    found: dict[str, object] = {}
    for cell in cells:
        found.setdefault(gap(cell), cell)
    return list(found.values())
