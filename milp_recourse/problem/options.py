"""How a back end or an engine is asked to solve."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Options:
    """How to solve.

    Parameters
    ----------
    time_limit
        Wall seconds per applicant; None for no limit.
    certificates
        Whether results are to carry certificates. The search for a certificate is a second one, for which
        there is what the first leaves of ``time_limit``.
    starts
        Rows (n, features), in feature order and raw units, that the model is believed to accept. A first
        action is looked for near them. None if no such rows are known.
    others
        Whether an applicant whom the back end cannot solve goes to the other default back ends.
    explain
        Whether a result that no action exists says so if the margin is all that forbids one. That takes
        another search.
    watch
        Called with the cost of the best action in hand (inf without one) and the lower bound, whenever one
        of them has improved; ``bab`` on networks calls it in between, too. Other back ends need not call it.
    threads
        Most threads that search for one applicant. Only ``bab`` on networks has several, where it takes long.
    found
        Called with each action that was judged feasible and is the cheapest so far. Only ``cpsat`` calls it.
    """

    time_limit: float | None = None
    certificates: bool = False
    starts: NDArray[np.float64] | None = None
    others: bool = False
    explain: bool = False
    watch: Callable[[float, float], object] | None = None
    threads: int = 1
    found: Callable[[Mapping[str, float]], object] | None = None


GRACE = 1.0
"""Seconds after the time limit, or a tenth of it if that is longer, by which an answer is there on a quiet
machine: the step in hand is finished, and where there is no action yet, one is looked for."""

LATE = "the time limit was reached"
"""The message of an answer whose search ended for want of time."""


class OutOfTime(Exception):
    """Raised by :meth:`Clock.check`; what is built up in the meantime is lost."""


@dataclass(frozen=True)
class Clock:
    """When a search has to stop.

    Attributes
    ----------
    end
        An instant of :func:`time.perf_counter`; None for never.
    """

    end: float | None = None

    @staticmethod
    def start(limit: float | None, begun: float | None = None) -> Clock:
        """A clock that ends ``limit`` seconds from now, or from an instant ``begun``; never if ``limit`` is
        None."""
        begun = time.perf_counter() if begun is None else begun
        return Clock(None if limit is None else begun + limit)

    def later(self, seconds: float) -> Clock:
        """A clock that ends so many seconds later."""
        return Clock(None if self.end is None else self.end + seconds)

    def within(self, seconds: float) -> Clock:
        """This clock, or the one that ends in so many seconds, whichever ends first."""
        end = time.perf_counter() + seconds
        return Clock(end if self.end is None else min(self.end, end))

    def at_least(self, seconds: float) -> Clock:
        """This clock, or the one that ends in so many seconds, whichever ends last."""
        return self if self.end is None else Clock(max(self.end, time.perf_counter() + seconds))

    @property
    def over(self) -> bool:
        """Whether the end has passed."""
        return self.end is not None and time.perf_counter() > self.end

    def check(self) -> None:
        """Raise :class:`OutOfTime` if the end has passed: between the steps of what takes long to build."""
        if self.over:
            raise OutOfTime

    def left(self, least: float = 1e-3) -> float | None:
        """Seconds until the end, at least ``least``, as a time limit of the next search; None for no end."""
        return None if self.end is None else max(self.end - time.perf_counter(), least)


NEVER = Clock()
"""A clock that does not end."""
