"""The operations of scalers and imputers on a number, rounded as the libraries round, and their inverse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.boundaries import AT_ONCE, doubles_of, narrowed, ranks_of
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.tree_parts import LARGEST

_ASKED = 512
"""How many numbers a column's operations are asked at a time, where its thresholds are not more."""


@dataclass(frozen=True)
class Operation:
    """One elementwise operation in doubles: z + a, z * a, z / a, min(max(z, a), b), a if z is missing
    (``impute``), z itself (``known``), z as float32 (``round``), missing if z is 0 (``sparse``), 1 if z is
    missing, else 0 (``indicator``), or a function, which is known between a and b and is taken at the nearer
    end beyond: one that rises, or any other (``curve``).

    Attributes
    ----------
    gaps
        Whether a missing value stays missing; False where the function takes none.
    name
        The function's, for messages.
    marks
        Numbers between which the function has no known bend and no jump; each is the first of a piece.
    stepped
        Whether it is constant between them.
    """

    kind: Literal[
        "add",
        "multiply",
        "divide",
        "clip",
        "impute",
        "known",
        "round",
        "sparse",
        "indicator",
        "function",
        "curve",
    ]
    a: float
    b: float = 0.0
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    gaps: bool = True
    name: str = ""
    marks: tuple[float, ...] = ()
    stepped: bool = False


def apply(operations: Sequence[Operation], z: np.ndarray) -> np.ndarray:
    """The operations in doubles, rounded one by one as the library does."""
    with np.errstate(all="ignore"):
        for o in operations:
            if o.kind == "add":
                z = z + o.a
            elif o.kind == "multiply":
                z = z * o.a
            elif o.kind == "divide":
                z = z / o.a
            elif o.kind == "clip":
                z = np.clip(z, o.a, o.b)
            elif o.kind == "round":
                z = z.astype(np.float32).astype(np.float64)
            elif o.function is not None:
                known = ~np.isnan(z)
                made = np.full(z.shape, np.nan)
                if known.any():
                    made[known] = o.function(np.clip(z[known], o.a, o.b))
                z = made
            elif o.kind == "indicator":
                z = np.isnan(z).astype(np.float64)
            elif o.kind == "sparse":
                z = np.where(z == 0.0, np.nan, z)
            elif o.kind == "impute":
                z = np.where(np.isnan(z), o.a, z)
    return z


def last_raw(operations: Sequence[Operation], thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per threshold t, the largest double x with g(x) <= t; the least finite double if there is none.

    Parameters
    ----------
    operations
        The operations that make g, a function that never falls. Imputing is left out.
    thresholds
        Doubles, shape (n,).

    Raises
    ------
    Unsupported
        A factor or divisor is not above 0.

    Examples
    --------
    >>> float(last_raw([Operation("add", -1.0)], np.array([0.5]))[0])
    1.5
    """
    steps = [o for o in operations if o.kind not in ("impute", "sparse")]
    if not steps:
        return np.clip(thresholds, -LARGEST, LARGEST)
    if any(o.kind in ("multiply", "divide") and not o.a > 0 for o in steps):
        raise refuse("model", "a scale that is not above 0", "scales above 0")
    ends = ranks_of(np.array([-LARGEST, LARGEST]))
    low, high = (np.full(len(thresholds), end) for end in (ends[0] - 1, ends[1] + 1))

    def above(ranks: NDArray[np.int64]) -> NDArray[np.bool_]:
        values = apply(steps, doubles_of(ranks.ravel())).reshape(ranks.shape)
        return ~(values <= thresholds[:, None])

    at_once = int(np.clip(_ASKED // max(len(thresholds), 1), 1, AT_ONCE))
    return doubles_of(np.maximum(narrowed(above, low, high, at_once), ends[0]))


def is_whole(numbers: NDArray[np.float64]) -> bool:
    """Whether a column has numbers, and only whole ones."""
    held = numbers[np.isfinite(numbers)]
    return bool(len(held) and (held == np.round(held)).all())


def curved(operations: Sequence[Operation]) -> bool:
    """Whether a linear model cannot take the operations as they are: some is a function or cuts off ends."""
    return any(o.kind in ("function", "curve", "clip", "indicator") for o in operations)


def marks_of(operations: Sequence[Operation]) -> list[NDArray[np.float64]]:
    """The raw numbers at which the functions among the operations may bend or jump: each is the first of a
    piece. What comes after a function that need not rise has none."""
    found = [np.zeros(0)]
    for k, o in enumerate(operations):
        if curved([o]):
            ends = (o.a, o.b) if o.kind == "clip" else o.marks
            found.append(first_raw(operations[:k], np.array(ends)))
        if o.kind in ("curve", "indicator"):
            break
    return found


def first_raw(operations: Sequence[Operation], marks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per number m, the least double x with g(x) >= m; infinite if there is none."""
    before = last_raw(operations, np.nextafter(marks, -np.inf))
    with np.errstate(over="ignore"):
        return np.nextafter(before, np.inf)


def known_between(operations: Sequence[Operation]) -> tuple[float, float]:
    """The least and largest raw double that all functions among the operations are known of."""
    low, high = -LARGEST, LARGEST
    for k, o in enumerate(operations):
        if o.kind in ("function", "curve"):
            if o.a > -LARGEST:
                first = last_raw(operations[:k], np.array([math.nextafter(o.a, -math.inf)]))[0]
                low = max(low, math.nextafter(float(first), math.inf))
            if o.b < LARGEST:
                high = min(high, float(last_raw(operations[:k], np.array([o.b]))[0]))
    return low, high


def doubles_between(low: float, high: float, count: int) -> NDArray[np.float64]:
    """At most so many doubles from one to another, with about as many others between each two."""
    first, last = (int(rank) for rank in ranks_of(np.array([low, high])))
    ranks = [first + (last - first) * k // max(count - 1, 1) for k in range(count)]
    return doubles_of(np.array(ranks, dtype=np.int64))


def stand_in(operations: Sequence[Operation], value: float) -> float:
    """The raw number x for which g(x) is nearest to a value that is imputed after the operations g."""
    if not operations:
        return value
    at = float(last_raw(operations, np.array([value]))[0])
    ends = np.array([at, np.nextafter(at, np.inf)])
    return float(ends[np.argmin(np.abs(apply(operations, ends) - value))])
