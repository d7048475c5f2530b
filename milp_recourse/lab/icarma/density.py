"""The log density of Loan rows under the shipped flow."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.shipped import FOLDER


def log_density(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """log p of Loan rows under the shipped flow, shape (n, 7) -> (n,)."""
    return _flow().log_densities(rows)


@cache
def _flow() -> CausalFlow:
    # the flow does not depend on the classifier, so it is the same for both populations
    flow = read_recommender(FOLDER / "loan_sharp_constant.npz")[0].flow
    assert isinstance(flow, CausalFlow)
    return flow
