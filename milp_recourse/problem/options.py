"""How a back end or an engine is asked to solve."""

from __future__ import annotations

import time
from collections.abc import Callable
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
        Whether results are to carry certificates. The search for a certificate is a second one, to which
        ``time_limit`` applies anew.
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
    """

    time_limit: float | None = None
    certificates: bool = False
    starts: NDArray[np.float64] | None = None
    others: bool = False
    explain: bool = False
    watch: Callable[[float, float], object] | None = None


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
    def start(limit: float | None) -> Clock:
        """A clock that ends ``limit`` seconds from now, or never if ``limit`` is None."""
        return Clock(None if limit is None else time.perf_counter() + limit)

    @property
    def over(self) -> bool:
        """Whether the end has passed."""
        return self.end is not None and time.perf_counter() > self.end

    def left(self, least: float = 1e-3) -> float | None:
        """Seconds until the end, at least ``least``, as a time limit of the next search; None for no end."""
        return None if self.end is None else max(self.end - time.perf_counter(), least)
