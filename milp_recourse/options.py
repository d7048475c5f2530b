"""How a back end or an engine is asked to solve."""

from __future__ import annotations

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
        Whether results are to carry certificates; the limit then holds for that search by itself.
    starts
        Rows (n, features), in feature order and raw units, that the model is believed to accept: where to
        look for a good action first. None: there are none at hand.
    watch
        Called with the cost of the best action in hand (inf without one) and the lower bound, whenever one
        of them has improved. Searches over trees call it; others need not.
    """

    time_limit: float | None = None
    certificates: bool = False
    starts: NDArray[np.float64] | None = None
    watch: Callable[[float, float], object] | None = None
