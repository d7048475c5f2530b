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
    """The time that one check may take (section 9)."""

    end = math.inf

    @classmethod
    @contextmanager
    def within(cls, seconds: float) -> Iterator[None]:
        """So much for what runs inside."""
        cls.end = time.monotonic() + seconds
        try:
            yield
        finally:
            cls.end = math.inf

    @classmethod
    def look(cls) -> None:
        """Raise :class:`Rejected` when the time is up."""
        if time.monotonic() > cls.end:
            raise Rejected("the time allowed is up")


def multipliers(given: Sequence[Fraction | float] | None, count: int, where: str) -> list[Fraction]:
    """One number at least 0 for each of so many rows; zeros where none are given."""
    numbers: Sequence[Fraction | float] = [0.0] * count if given is None else given
    if len(numbers) != count:
        raise Rejected(f"{where}: got {len(numbers)} numbers; allowed: a list of {count}")
    if wrong := [number for number in numbers if number < 0]:
        raise Rejected(f"{where}: got {wrong[0]!r}; allowed: a number at least 0")
    return [Fraction(number) for number in numbers]


def shares(given: Sequence[float] | None, count: int, where: str) -> list[Fraction]:
    """Every action's share of the cost's maximum."""
    found = multipliers(given, count, f"{where}.shares")
    if sum(found) > 1:
        raise Rejected(f"{where}: shares that sum to more than 1")
    return found


def index(given: float, size: int, where: str) -> int:
    """The number of one of so many things."""
    if not (0 <= given < size and given == int(given)):
        raise Rejected(f"{where}: got {given!r}; allowed: a whole number from 0 to {size - 1}")
    return int(given)


def bounded(value: Fraction) -> Fraction:
    """The value, if it can be written with a tolerable number of digits (section 9)."""
    if value.numerator.bit_length() + value.denominator.bit_length() > LONGEST:
        raise Rejected(f"a number of more than {LONGEST} binary digits (section 9)")
    return value


def near(value: Fraction) -> str:
    """A number for people."""
    return repr(float(value)) if abs(value) < 2**1023 else "a number beyond every double"
