"""Applicants of the Loan model."""

from __future__ import annotations

import numpy as np

from milp_recourse.domain.loan import FEATURES, loan


def applicant(seed: int) -> dict[str, float]:
    """A row of the Loan model."""
    row = loan().sample(1, np.random.default_rng(seed))[0]
    return dict(zip(FEATURES, (float(v) for v in row), strict=True))
