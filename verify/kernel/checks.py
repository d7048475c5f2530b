"""What every file of the kernel needs: the two outcomes, the clock, numbers that may not be too long."""

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

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


def multipliers(given: Sequence[Any] | None, count: int, most: float = math.inf) -> list[Fraction]:
    """One number at least 0 for each of so many rows, zeros where none are given; their sum has a limit."""
    numbers = list(map(Fraction, [0] * count if given is None else given))
    if len(numbers) != count:
        raise Rejected(f"got {len(numbers)} numbers; allowed: a list of {count}")
    if min(given or (), default=0) < 0:
        raise Rejected(f"got {given!r:.40}; allowed: a number at least 0")
    if most < math.inf and sum(numbers) > most:
        raise Rejected("shares that sum to more than 1")
    return numbers


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
