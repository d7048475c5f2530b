"""Where a rule that rises changes its answer: the last number that it refuses, among all doubles or float32.

A rule that a library computes takes about as long for many numbers as for one. The numbers between the ends
are therefore asked 63 at a time, as many between each two as between the others, which needs 11 questions of
doubles and 6 of float32. Libraries may round many numbers otherwise than one alone: what
:func:`last_refused` found counts only if the rule, asked for one number alone, refuses it and accepts the
next; else all are asked one by one. :func:`narrowed` itself confirms nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
Rule = Callable[[float], bool]
Rules = Callable[[Array], Any]
"""A rule for several numbers, shape (n,): n answers."""

AT_ONCE = 63
"""How many numbers are asked at a time."""


def last_refused(
    accepts: Rule, low: float, high: float, single: bool = False, together: Rules | None = None
) -> float:
    """The largest number from ``low`` to below ``high`` that a rising rule refuses.

    Parameters
    ----------
    accepts
        The rule; it refuses ``low`` and accepts ``high``.
    single
        Whether numbers are float32; else they are doubles. The ends may be others.
    together
        The same rule for several numbers at once; None where that is no quicker.
    """
    ends = np.array([low]), np.array([high])
    first, last = (_ranks_beside(end, single) for end in ends)

    def number(rank: int) -> float:
        if rank == first[0][0] or rank == last[1][0]:
            return low if rank == first[0][0] else high
        return float(_numbers(np.array([rank]), single)[0])

    def one_by_one(ranks: Ranks) -> NDArray[np.bool_]:
        return np.array([[accepts(number(int(ranks[0, 0])))]])

    def many(ranks: Ranks) -> NDArray[np.bool_]:
        assert together is not None
        return np.asarray(together(_numbers(ranks[0], single)), dtype=bool)[None]

    if together is not None:
        found = int(narrowed(many, first[0], last[1], AT_ONCE)[0])
        below = found == first[0][0] or not accepts(number(found))
        if below and (found + 1 == last[1][0] or accepts(number(found + 1))):
            return number(found)
    return number(int(narrowed(one_by_one, first[0], last[1], 1)[0]))


def last_on_the_way(holds: Rule, start: float, end: float, together: Rules | None = None) -> float:
    """The last double from ``start`` to ``end``, in either direction, up to which something holds.

    Parameters
    ----------
    holds
        What holds at ``start`` and not at ``end``.
    together
        The same for several numbers at once.
    """
    sign = 1.0 if end > start else -1.0

    def ended(numbers: Array) -> Any:
        assert together is not None
        return np.logical_not(together(sign * numbers))

    many = None if together is None else ended
    return sign * last_refused(lambda x: not holds(sign * x), sign * start, sign * end, together=many) + 0.0


def narrowed(accepts: Callable[[Ranks], Any], low: Ranks, high: Ranks, at_once: int) -> Ranks:
    """Per search the last rank that is refused, from ``low``, which is, to ``high``, which is not.

    Parameters
    ----------
    accepts
        The rule for ranks of shape (searches, at_once): an answer for each.
    low, high
        Shape (searches,).
    """
    parts, every = np.uint64(at_once + 1), np.arange(len(low))
    steps = np.arange(1, at_once + 1, dtype=np.uint64)
    while True:
        gap = high.view(np.uint64) - low.view(np.uint64)  # may be above the largest int64
        unfinished = gap > 1
        if not unfinished.any():
            return low
        if at_once == 1:  # the same, quicker
            middle = low + (gap >> np.uint64(1)).view(np.int64)
            above = np.asarray(accepts(middle[:, None]), dtype=bool)[:, 0]
            low = np.where(unfinished & ~above, middle, low)
            high = np.where(unfinished & above, middle, high)
            continue
        ahead = gap[:, None] // parts * steps + np.minimum(steps, gap[:, None] % parts)
        asked = low[:, None] + np.minimum(ahead, gap[:, None] - np.uint64(1)).view(np.int64)
        yes = np.asarray(accepts(asked), dtype=bool)
        some, first = yes.any(axis=1), yes.argmax(axis=1)
        before = np.where(some, first - 1, at_once - 1)
        low = np.where(unfinished & (before >= 0), asked[every, before], low)
        high = np.where(unfinished & some, asked[every, first], high)


def ranks_of(numbers: Array) -> Ranks:
    """Whole numbers that are ordered as the doubles are."""
    bits = numbers.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def doubles_of(ranks: Ranks) -> Array:
    """The doubles of these ranks."""
    return np.where(ranks >= 0, ranks, np.int64(-(2**63)) - ranks).view(np.float64)


def _numbers(ranks: Ranks, single: bool) -> Array:
    if not single:
        return doubles_of(ranks)
    bits = np.where(ranks >= 0, ranks, -(2**31) - ranks).astype(np.int32)
    return bits.view(np.float32).astype(np.float64)


def _ranks_beside(numbers: Array, single: bool) -> tuple[Ranks, Ranks]:
    """The ranks of the last number of the kind that is not above each, and of the first not below."""
    if not single:
        return ranks_of(numbers), ranks_of(numbers)
    near = numbers.astype(np.float32)
    bits = near.view(np.int32).astype(np.int64)
    rank = np.where(bits >= 0, bits, -(2**31) - bits)
    return rank - (near.astype(np.float64) > numbers), rank + (near.astype(np.float64) < numbers)
