"""What every file of the kernel uses: its two exceptions, the clock, checks of numbers, and 0."""

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

LONGEST = 2**17
ZERO = Fraction(0)


class Rejected(Exception):
    """The first reason why a file is refused or a certificate proves nothing."""


class Empty(Exception):
    """Raised where a box turns out to hold nothing feasible: an interval on it is empty, for example."""


class Clock:
    """The time at which a check has to end, on the clock of ``time.monotonic`` (section 9).

    Whoever starts a check sets it.
    """

    end = math.inf

    @classmethod
    def look(cls) -> None:
        """Raise :class:`Rejected` when the time is up."""
        if time.monotonic() > cls.end:
            raise Rejected("the time allowed is up (option --seconds)")


def multipliers(name: str, given: Sequence[Any] | None, count: int, most: float = math.inf) -> list[Fraction]:
    """Return the given numbers as fractions; ``count`` zeros if None is given.

    Raises :class:`Rejected`, with their ``name``, unless there are ``count`` of them, each at least 0, their
    sum at most ``most``.
    """
    numbers = list(map(Fraction, [0] * count if given is None else given))
    if len(numbers) != count:
        raise Rejected(f"{name}: got {len(numbers)} numbers; allowed: a list of {count}")
    if (least := min(given or (), default=0)) < 0:
        raise Rejected(f"{name}: got {least!s:.40}; allowed: a number at least 0")
    if most < math.inf and sum(numbers) > most:
        raise Rejected(f"{name}: sum to more than 1; allowed: at most 1")
    return numbers


def index(given: float, size: int) -> int:
    """Return the given number if it is whole and from 0 to ``size`` - 1; else raise :class:`Rejected`."""
    if not (0 <= given < size and given == int(given)):
        allowed = f"a whole number from 0 to {size - 1}" if size > 0 else "nothing, as there are none"
        raise Rejected(f"got {given!r}; allowed: {allowed}")
    return int(given)


def bounded(value: Fraction) -> Fraction:
    """Return the value; raise :class:`Rejected` if it has too many digits (section 9)."""
    if value.numerator.bit_length() + value.denominator.bit_length() > LONGEST:
        raise Rejected(f"a number of more than {LONGEST} binary digits (section 9)")
    return value
