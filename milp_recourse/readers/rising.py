"""Transformers that turn each number into another by a function that rises: logs, powers, quantiles, bins.

Before trees such a function only moves thresholds, to doubles that a search finds by calling the
transformer's own ``transform``. That it rises is tried, not proven: on thousands of doubles from one end of
its domain to the other, and on doubles that follow each other.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.boundaries import last_on_the_way
from milp_recourse.readers.operations import Operation, doubles_between
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.tree_parts import LARGEST

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_NEXT = 16
"""How many doubles on each side of a tried one are tried, too."""


def is_function(step: Any) -> bool:
    """Whether a transformer is taken as a function of each column, which has to rise."""
    from sklearn import preprocessing as p

    if type(step) is p.KBinsDiscretizer:
        return bool(step.encode == "ordinal")
    kinds = p.FunctionTransformer, p.PowerTransformer, p.QuantileTransformer, p.Binarizer
    return type(step) in kinds


def rising(step: Any, columns: Sequence[Array], where: str) -> list[Operation]:
    """The transformer as one operation on each of its columns.

    Parameters
    ----------
    columns
        What enters it for rows of X: one array per column, nan where nothing is.

    Raises
    ------
    Unsupported
        It fails, makes another number of columns, gives no finite number for a number of X, makes a number of
        a missing one, or does not rise.
    """
    base = [float(c[np.isfinite(c)][0]) if np.isfinite(c).any() else 0.0 for c in columns]
    made = (
        _operation(partial(column_of, step, base, k, where), column, f"{where} column {k}")
        for k, column in enumerate(columns)
    )
    name = type(step).__name__
    return [
        replace(one, name=name, marks=marks, stepped=_steps(step))
        for one, marks in zip(made, _marks(step, len(base)), strict=True)
    ]


def _steps(step: Any) -> bool:
    """Whether the function is constant between marks."""
    return type(step).__name__ in ("KBinsDiscretizer", "Binarizer")


def _marks(step: Any, count: int) -> list[tuple[float, ...]]:
    """Where the function of each column jumps or bends, as far as that is known."""
    name = type(step).__name__
    if name == "KBinsDiscretizer":
        return [tuple(edges[1:-1].tolist()) for edges in step.bin_edges_]
    if name == "Binarizer":
        return [(math.nextafter(float(step.threshold), math.inf),)] * count
    if name == "QuantileTransformer":
        return [tuple(np.unique(own).tolist()) for own in step.quantiles_.T]
    return [()] * count


def _operation(function: Function, column: Array, where: str) -> Operation:
    seen = np.unique(column[~np.isnan(column)])
    if not len(seen):
        raise refuse(where, "no number in X", "a column that is not all missing")
    if not np.isfinite(function(seen)).all():
        raise refuse(
            where, "no finite number for a number of X", "a function that X's numbers have a value of"
        )
    low = last_finite(function, float(seen[0]), -LARGEST)
    high = last_finite(function, float(seen[-1]), LARGEST)
    some = seen[np.linspace(0, len(seen) - 1, min(len(seen), 200)).astype(int)]
    grid = [doubles_between(low, high, 3000), np.linspace(seen[0], seen[-1], 3000)]
    for at in some:
        grid.append(doubles_between(_step(at, -_NEXT), _step(at, _NEXT), 2 * _NEXT + 1))
    tried = np.unique(np.clip(np.concatenate(grid), low, high))
    made = function(tried)
    if not np.isfinite(made).all() or (np.diff(made) < 0).any():
        raise refuse(where, "a function that falls, or has gaps", "a function that rises, before trees")
    return Operation("function", low, high, function, keeps_gaps(function, where))


def column_of(
    step: Any, base: Sequence[float], k: int, where: str, values: Array, output: int | None = None
) -> Array:
    """What the transformer makes of one column's numbers, where the others hold a number of X each.

    Parameters
    ----------
    output
        The column that it makes; None: the one in the same place, of as many.
    """
    import pandas as pd

    table = np.tile(np.array(base, dtype=np.float64), (len(values), 1))
    table[:, k] = values
    names = getattr(step, "feature_names_in_", None)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = step.transform(table if names is None else pd.DataFrame(table, columns=names))
        made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
    except Exception as error:
        raise refuse(
            where, f"{type(error).__name__} in transform: {error}", "one that takes numbers"
        ) from error
    if output is None and made.shape != table.shape:
        raise refuse(
            where, f"{made.shape[1:]} columns made of {len(base)}", "one of each, a function of it alone"
        )
    return np.ascontiguousarray(made[:, k if output is None else output])


def keeps_gaps(function: Function, where: str) -> bool:
    """Whether a missing number stays one; False where the transformer does not take any."""
    try:
        made = function(np.array([np.nan]))
    except Exception:
        return False
    if not np.isnan(made[0]):
        raise refuse(where, "a number made of a missing one", "SimpleImputer before it")
    return True


def last_finite(function: Function, start: float, end: float) -> float:
    """The double farthest from ``start`` towards ``end`` up to which the function is finite."""

    def finite(values: Array) -> Any:
        try:
            return np.isfinite(function(values))
        except Exception:
            return np.zeros(len(values), dtype=bool)

    def known(value: float) -> bool:
        return bool(finite(np.array([value]))[0])

    return end if known(end) else last_on_the_way(known, start, end, finite)


def _step(value: float, count: int) -> float:
    for _ in range(abs(count)):
        value = math.nextafter(value, math.inf if count > 0 else -math.inf)
    return value
