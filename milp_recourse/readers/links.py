"""Rising functions between a model's score and what it answers: probabilities, and numbers of a regression.

A threshold on what is answered is one on the score, which a search over all doubles finds by calling the
model's own function. This assumes that the function, as computed, never falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.readers.boundaries import Array, Rule, Rules, last_refused

Probabilities = Callable[[float], tuple[Any, Any]]
"""A function from a score to both classes' probabilities, in the model's own types and arithmetic."""

Rows = Callable[[Array], Any]
"""The same for several scores at once: from shape (n,) to (n, 2)."""

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


def last_of_all(rule: Rule, single: bool, together: Rules | None = None) -> float:
    """The largest score that a rising rule refuses; -1e30 if it refuses none, 1e30 if it refuses all.

    Parameters
    ----------
    together
        The rule for several scores at once.
    """
    with np.errstate(all="ignore"):
        if rule(-FAR):
            return -FAR
        return last_refused(rule, -FAR, FAR, single, together) if rule(FAR) else FAR


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
    rows
        The function for several scores at once, where that takes hardly longer than one.
    """

    probabilities: Probabilities
    single: bool = False
    logistic: tuple[float, float] | None = None
    unit: float = 2.0**-53
    rounds: bool = False
    rows: Rows | None = None

    def second(self, score: float) -> float:
        """The second class's probability."""
        return float(self.probabilities(score)[1])

    def seconds(self, scores: Array) -> Array:
        """The second class's probability at several scores, shape (n,)."""
        if self.rows is None:
            return np.array([self.second(float(score)) for score in scores])
        return np.asarray(self.rows(scores)[:, 1], dtype=np.float64)

    def threshold(self, rule: Callable[[tuple[Any, Any]], bool]) -> float:
        """The largest score that a rule refuses, which accepts large probabilities of the second class."""
        return self._last(rule, self.single)

    def slack(self, rule: Callable[[tuple[Any, Any]], bool]) -> tuple[float, float]:
        """:func:`slack_of` the rule."""
        error = _ERROR * self.unit * 2.0**53

        def end(sign: float) -> float:
            return self._last(lambda p: rule((p[0] - sign * error, p[1] + sign * error)), single=False)

        return slack_of(end)

    def _last(self, rule: Callable[[tuple[Any, Any]], bool], single: bool) -> float:
        rows = self.rows

        def together(scores: Array) -> list[bool]:
            return [rule((first, second)) for first, second in rows(scores)] if rows else []

        one = self.probabilities
        return last_of_all(lambda score: rule(one(score)), single, together if rows else None)


def link_of(rows: Rows, **options: Any) -> Link:
    """A link whose function is given for several scores at once."""

    def probabilities(score: float) -> tuple[Any, Any]:
        first, second = rows(np.array([score]))[0]
        return first, second

    return Link(probabilities, rows=rows, **options)


def slack_of(last: Callable[[float], float]) -> tuple[float, float]:
    """How far above and below its threshold a function's rounding can change what a rule says of a score.

    Where the function is flat at the threshold, scores on the flat stretch are decided as computed.

    Parameters
    ----------
    last
        For -1, 0 and 1: the largest score that is refused with that times the function's error added to its
        value.
    """
    low, at, high = last(1.0), last(0.0), last(-1.0)
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
    together
        The function for several scores at once, where that takes hardly longer than one.
    """

    function: Callable[[float], float]
    low: float = -FAR
    high: float = FAR
    beyond: tuple[bool, bool] = (False, False)
    single: bool = False
    rounds: bool = False
    together: Callable[[Array], Array] | None = None

    def last(self, rule: Callable[[float], bool]) -> float:
        """The largest score at which a rule refuses the number; it accepts large ones."""
        with np.errstate(all="ignore"):
            if rule(self.function(self.low)):
                return math.nextafter(self.low, -math.inf)
            if not rule(self.function(self.high)):
                return self.high
            many = self._each(rule, lambda scores: scores)
            return last_refused(
                lambda score: rule(self.function(score)), self.low, self.high, self.single, many
            )

    def slack(self, rule: Callable[[float], bool]) -> tuple[float, float]:
        """:func:`slack_of` the rule."""

        def end(sign: float) -> float:
            def moved(value: float) -> bool:
                return rule(value + sign * _ERROR * abs(value) if math.isfinite(value) else value)

            def accepts(score: float) -> bool:
                return moved(self.function(min(max(score, self.low), self.high)))

            many = self._each(moved, lambda scores: np.clip(scores, self.low, self.high))
            return last_of_all(accepts, single=False, together=many)

        return slack_of(end)

    def _each(self, rule: Rule, within: Callable[[Array], Array]) -> Rules | None:
        """The rule for the numbers of several scores at once."""
        function = self.together
        if function is None:
            return None
        return lambda scores: [rule(float(number)) for number in function(within(scores))]


def inverse_of(together: Callable[[Array], Array], **options: Any) -> Inverse:
    """An inverse whose function is given for several scores at once."""
    return Inverse(lambda score: float(together(np.array([score]))[0]), together=together, **options)
