"""Arithmetic on numbers as people write them, where a product or sum of what was written decides.

As a double, 0.1 is a little more than a tenth. Ten times 0.1 is then more than 1, so that whole numbers that
are 1 apart would not be "0.1 scales of 10" apart. With decimals they are.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Annotated

from annotated_types import Gt

Positive = Annotated[float, Gt(0)]
"""A number above 0, as files state it."""


def as_written(number: float) -> Fraction:
    """The shortest decimal that denotes a double, as it is printed.

    >>> as_written(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(number)))


def written_above(value: Fraction) -> float:
    """The least double whose decimal is not below a number; inf if there is none.

    >>> written_above(Fraction(7, 10))
    0.7
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if as_written(nearest) >= value else math.nextafter(nearest, math.inf)


def written_below(value: Fraction) -> float:
    """The largest double whose decimal is not above a number; -inf if there is none."""
    return -written_above(-value)
