"""Transformers that make columns of one column each, by functions that need not rise.

========================================  =============================================
KBinsDiscretizer(encode="onehot")         a 0/1 column for each bin
SplineTransformer                         a column for each spline
PolynomialFeatures                        powers; products of two columns are refused
a transformer with ``piecewise``          one column, as its tables say
========================================  =============================================

A transformer of one's own says what it computes by ``piecewise()``: for each of its columns
``{"knots": [...], "values": [...]}``, a line from each knot to the next that goes on beyond the ends, or
``{"cuts": [...], "values": [...]}``, one value more than there are cuts: each cut is the first number of the
next interval. What it computes is compared with its ``transform`` on X.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.operations import Operation
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.rising import column_of, keeps_gaps, last_finite
from milp_recourse.readers.tree_parts import LARGEST

Array = NDArray[np.float64]


def makes_several(step: Any) -> bool:
    """Whether a transformer is one of these."""
    from sklearn import preprocessing as p

    kinds = (p.KBinsDiscretizer, p.SplineTransformer, p.PolynomialFeatures)
    return type(step) in kinds or is_declared(step)


def is_declared(step: Any) -> bool:
    """Whether a transformer says by ``piecewise`` what it computes."""
    return callable(getattr(step, "piecewise", None)) and not isinstance(step, type)


def functions_of(step: Any, columns: Sequence[Array], where: str) -> list[tuple[int, Operation]]:
    """For each column that the transformer makes, the column that it is made of, and how.

    Parameters
    ----------
    columns
        What enters it for rows of X.

    Raises
    ------
    Unsupported
        It makes a column of several, has a value for few numbers only, or declares what cannot be read.
    """
    if is_declared(step):
        return _declared(step, len(columns), where)
    base = [float(c[np.isfinite(c)][0]) if np.isfinite(c).any() else 0.0 for c in columns]
    name = type(step).__name__
    found: list[tuple[int, Operation]] = []
    for j, (k, marks, stepped) in enumerate(_made_of(step, where)):
        one = partial(column_of, step, base, k, where, output=j)
        seen = columns[k][np.isfinite(columns[k])]
        start = float(seen[0]) if len(seen) else 0.0
        if not np.isfinite(one(np.array([start]))).all():
            raise refuse(
                where, f"no finite number for {start:g}", "a function that X's numbers have a value of"
            )
        low, high = (last_finite(one, start, end) for end in (-LARGEST, LARGEST))
        kind = "curve", low, high, one, keeps_gaps(one, where), name
        found.append((k, Operation(*kind, marks, stepped)))  # type: ignore[arg-type]
    return found


def _made_of(step: Any, where: str) -> list[tuple[int, tuple[float, ...], bool]]:
    """For each column made: what it is made of, the marks of the function, and whether it has steps only."""
    from sklearn import preprocessing as p

    if isinstance(step, p.KBinsDiscretizer):
        cuts = [tuple(edges[1:-1].tolist()) for edges in step.bin_edges_]
        return [(k, own, True) for k, own in enumerate(cuts) for _ in range(int(step.n_bins_[k]))]
    if isinstance(step, p.SplineTransformer):
        if step.extrapolation == "periodic":
            raise refuse(where, "SplineTransformer(extrapolation='periodic')", "another extrapolation")
        each = step.bsplines_[0].c.shape[1] - (not step.include_bias)
        bends = [tuple(np.unique(spline.t).tolist()) for spline in step.bsplines_]
        return [(k, own, False) for k, own in enumerate(bends) for _ in range(each)]
    several = next((row for row in step.powers_ if np.count_nonzero(row) > 1), None)
    if several is not None:
        names = getattr(step, "feature_names_in_", [f"column {k}" for k in range(len(several))])
        shown = " and ".join(str(names[k]) for k in np.flatnonzero(several))
        allowed = (
            "powers alone, or trees, which find products themselves, or steps= for the levers (it is asked)"
        )
        raise refuse(where, f"{type(step).__name__} with the product of {shown}", allowed)
    return [(int(np.argmax(row > 0)), (), False) for row in step.powers_]


def _declared(step: Any, count: int, where: str) -> list[tuple[int, Operation]]:
    """The functions that a transformer declares."""
    tables = step.piecewise()
    if not isinstance(tables, Sequence) or len(tables) != count:
        raise refuse(where, f"piecewise() that is no list of {count} tables", "one for each column")
    return [(k, _function(table, f"{where} piecewise()[{k}]", step)) for k, table in enumerate(tables)]


def _function(table: Any, where: str, step: Any) -> Operation:
    allowed = '{"knots": rising numbers, "values": as many} or {"cuts": rising numbers, "values": one more}'
    if not isinstance(table, Mapping) or set(table) not in ({"knots", "values"}, {"cuts", "values"}):
        raise refuse(where, type(table).__name__, allowed)
    stepped = "cuts" in table
    marks, values = (
        np.asarray(v, dtype=np.float64) for v in (table["cuts" if stepped else "knots"], table["values"])
    )
    fits = marks.ndim == values.ndim == 1 and len(values) == len(marks) + stepped and len(marks) + stepped > 1
    if not fits or not (
        np.isfinite(marks).all() and np.isfinite(values).all() and (np.diff(marks) > 0).all()
    ):
        raise refuse(where, f"{len(marks)} numbers with {len(values)} values", allowed)
    name, numbers = type(step).__name__, tuple(marks.tolist())
    if stepped:
        kind: Literal["function", "curve"] = "function" if (np.diff(values) >= 0).all() else "curve"
        return Operation(kind, -LARGEST, LARGEST, partial(_steps, marks, values), False, name, numbers, True)
    far = 1e6 * max(float(np.ptp(marks)), abs(float(marks[0])), abs(float(marks[-1])))  # nothing overflows
    return Operation("curve", -far, far, partial(_lines, marks, values), False, name, numbers)


def _steps(cuts: Array, values: Array, x: Array) -> Array:
    return values[np.searchsorted(cuts, x, side="right")]


def _lines(knots: Array, values: Array, x: Array) -> Array:
    slopes = np.diff(values) / np.diff(knots)
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(slopes) - 1)
    made: Array = values[at] + slopes[at] * (x - knots[at])
    return made
