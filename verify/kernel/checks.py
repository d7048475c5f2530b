"""What every file of the kernel needs: the two outcomes, the clock, numbers that may not be too long."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

LONGEST = 2**17


class Rejected(Exception):
    """The first reason why a certificate proves nothing."""


class Empty(Exception):
    """A box holds nothing feasible, as a logarithm of what is nowhere positive shows."""


class Clock:
    """When a check has to end (section 9); whoever starts one says so."""

    end = math.inf

    @classmethod
    def look(cls) -> None:
        """Raise :class:`Rejected` when the time is up."""
        if time.monotonic() > cls.end:
            raise Rejected("the time allowed is up")


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Say of what is rejected inside where it is."""
    try:
        yield
    except Rejected as reason:
        raise Rejected(f"{where}: {reason}") from None


def multipliers(given: Sequence[Fraction | float] | None, count: int) -> list[Fraction]:
    """One number at least 0 for each of so many rows; zeros where none are given."""
    numbers: Sequence[Fraction | float] = [0.0] * count if given is None else given
    if len(numbers) != count:
        raise Rejected(f"got {len(numbers)} numbers; allowed: a list of {count}")
    if min(numbers, default=0) < 0:
        raise Rejected(f"got {min(numbers)!r}; allowed: a number at least 0")
    return [Fraction(number) for number in numbers]


def shares(given: Sequence[float] | None, count: int) -> list[Fraction]:
    """Every action's share of the cost's maximum."""
    found = multipliers(given, count)
    if sum(found) > 1:
        raise Rejected("shares that sum to more than 1")
    return found


def index(given: float, size: int) -> int:
    """The number of one of so many things."""
    if not (0 <= given < size and given == int(given)):
        raise Rejected(f"got {given!r}; allowed: a whole number from 0 to {size - 1}")
    return int(given)


def bounded(value: Fraction) -> Fraction:
    """The value, if it can be written with a tolerable number of digits (section 9)."""
    if value.numerator.bit_length() + value.denominator.bit_length() > LONGEST:
        raise Rejected(f"a number of more than {LONGEST} binary digits (section 9)")
    return value
