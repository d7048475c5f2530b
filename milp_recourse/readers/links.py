"""Rising functions between a model's score and what it answers: probabilities, and numbers of a regression.

A threshold on what is answered is one on the score, which bisection over all doubles finds by calling the
model's own function. This assumes that the function, as computed, never falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.readers.tree_parts import last_refused

Probabilities = Callable[[float], tuple[Any, Any]]
"""A function from a score to both classes' probabilities, in the model's own types and arithmetic."""

FAR = 1e30
"""The search for a score ends at this size."""

_ERROR = 2.0**-48
"""More than the error of a computed logistic function or exponential, relative to 1."""

_FLAT = 2.0**-20
"""A stretch of scores this long, relative to their size, on which a function does not rise is no rounding."""


def logistic(score: float) -> tuple[float, float]:
    """Both classes' probabilities at a logit, in doubles."""
    try:
        second = 1.0 / (1.0 + math.exp(-score))
    except OverflowError:
        second = 0.0
    return 1.0 - second, second


def exponential(score: float) -> float:
    """e to a score; infinite beyond the largest double."""
    try:
        return math.exp(score)
    except OverflowError:
        return math.inf


def last_of_all(rule: Callable[[float], bool], single: bool) -> float:
    """The largest score that a rising rule refuses; -1e30 if it refuses none, 1e30 if it refuses all."""
    with np.errstate(all="ignore"):
        if rule(-FAR):
            return -FAR
        return last_refused(rule, -FAR, FAR, single) if rule(FAR) else FAR


def float32_below(number: float) -> float:
    """The largest float32 that is not above a number."""
    with np.errstate(over="ignore"):
        near = np.float32(number)
    return float(near if float(near) <= number else np.nextafter(near, np.float32(-np.inf)))


@dataclass(frozen=True)
class Link:
    """The probabilities of two classes as functions of one score; that of the second rises.

    Attributes
    ----------
    probabilities
        The function.
    single
        Whether scores are float32.
    logistic
        (a, b) where the second class's probability is the logistic function of a s + b, a above 0; None
        where it is another function.
    unit
        Unit roundoff of the function.
    rounds
        Whether the model may compute the function with another rounding.
    """

    probabilities: Probabilities
    single: bool = False
    logistic: tuple[float, float] | None = None
    unit: float = 2.0**-53
    rounds: bool = False

    def second(self, score: float) -> float:
        """The second class's probability."""
        return float(self.probabilities(score)[1])

    def threshold(self, rule: Callable[[tuple[Any, Any]], bool]) -> float:
        """The largest score that a rule refuses, which accepts large probabilities of the second class."""
        return last_of_all(lambda score: rule(self.probabilities(score)), self.single)

    def slack(self, rule: Callable[[tuple[Any, Any]], bool]) -> tuple[float, float]:
        """:func:`slack_of` the rule."""
        error = _ERROR * self.unit * 2.0**53

        def accepts(score: float, sign: float) -> bool:
            first, second = self.probabilities(score)
            return rule((first - sign * error, second + sign * error))

        return slack_of(accepts)


def slack_of(accepts: Callable[[float, float], bool]) -> tuple[float, float]:
    """How far above and below its threshold a function's rounding can change what a rule says of a score.

    Where the function is flat at the threshold, scores on the flat stretch are decided as computed.

    Parameters
    ----------
    accepts
        The rule for a score, and for -1, 0 or 1: with that times the function's error added to its value.
    """

    def end(sign: float) -> float:
        return last_of_all(lambda score: accepts(score, sign), single=False)

    low, at, high = end(1.0), end(0.0), end(-1.0)
    flat = _FLAT * (1.0 + abs(at))
    return (high - at if high - at < flat else 0.0), (at - low if at - low < flat else 0.0)


@dataclass(frozen=True)
class Inverse:
    """The rising function from a regression's score to the number that it predicts.

    Attributes
    ----------
    function
        The function.
    low, high
        The scores between which it is defined and rises.
    beyond
        Whether the model's scores can be below the first of them, and above the second.
    single
        Whether scores are float32.
    rounds
        Whether the model may compute the function with another rounding.
    """

    function: Callable[[float], float]
    low: float = -FAR
    high: float = FAR
    beyond: tuple[bool, bool] = (False, False)
    single: bool = False
    rounds: bool = False

    def last(self, rule: Callable[[float], bool]) -> float:
        """The largest score at which a rule refuses the number; it accepts large ones."""
        with np.errstate(all="ignore"):
            if rule(self.function(self.low)):
                return math.nextafter(self.low, -math.inf)
            if not rule(self.function(self.high)):
                return self.high
            return last_refused(lambda score: rule(self.function(score)), self.low, self.high, self.single)

    def slack(self, rule: Callable[[float], bool]) -> tuple[float, float]:
        """:func:`slack_of` the rule."""

        def accepts(score: float, sign: float) -> bool:
            value = self.function(min(max(score, self.low), self.high))
            return rule(value + sign * _ERROR * abs(value) if math.isfinite(value) else value)

        return slack_of(accepts)
