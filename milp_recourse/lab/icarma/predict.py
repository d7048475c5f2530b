"""Recommendations for a DataFrame of applicants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.problem.instance import Preferences

if TYPE_CHECKING:
    import pandas as pd


def predict(
    model: Recommender, applicants: pd.DataFrame, preferences: Preferences | Sequence[Preferences]
) -> pd.DataFrame:
    """One recommendation per applicant: the features to act on, and their values.

    Recommendations are not proven, and may be refused; ``judge`` or ``prove`` checks them.

    Parameters
    ----------
    applicants
        One column per feature of the model, in any order; others are ignored.
    preferences
        One for all, or one per applicant: mask, weights, and ranges that limit actions.

    Returns
    -------
    DataFrame
        Indexed as the applicants. ``action_<feature>`` for each globally actionable feature, nan where it is
        not acted on, and never outside the applicant's mask, bounds or ranges; ``counterfactual_<feature>``
        for each feature, under the flow; and ``limited``, whether a bound or a range changed a value of the
        networks.

    Raises
    ------
    BadInput
        A column is missing or has a value that is no finite number; or preferences name other features, or
        are neither one nor as many as the applicants.
    """
    import pandas as pd

    rows = rows_of(applicants, model.flow.features)
    each = [preferences] * len(rows) if isinstance(preferences, Preferences) else list(preferences)
    if len(each) != len(rows):
        raise BadInput("preferences", len(each), f"one for all, or one per applicant ({len(rows)})")
    for given in each:
        for name in (*given.actionable, *given.ranges):
            if name not in model.levers:
                raise BadInput("preferences", name, ", ".join(model.levers))
    action, limited = model.recommend(rows, Wishes.of(each, model.levers), limits_of(each, model))
    after = model.flow.counterfactual(rows, action)
    columns = {f"action_{f}": action[:, model.flow.features.index(f)] for f in model.levers}
    columns |= {f"counterfactual_{f}": after[:, i] for i, f in enumerate(model.flow.features)}
    return pd.DataFrame(columns | {"limited": limited}, index=applicants.index)


def rows_of(applicants: pd.DataFrame, features: Sequence[str]) -> NDArray[np.float64]:
    """The features' columns as numbers, shape (n, d).

    Raises
    ------
    BadInput
        A column is missing or has a value that is no finite number.
    """
    import pandas as pd

    missing = [f for f in features if f not in applicants.columns]
    if missing:
        raise BadInput("applicants", f"no column {missing[0]}", ", ".join(features))
    columns = [pd.to_numeric(applicants[f], errors="coerce").to_numpy(dtype=np.float64) for f in features]
    rows = np.stack(columns, axis=-1) if len(applicants) else np.zeros((0, len(features)))
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        got = applicants[features[column]].iloc[row]
        raise BadInput(f"applicants: row {row}: {features[column]}", got, "a finite number")
    return rows


def limits_of(preferences: Sequence[Preferences], model: Recommender) -> NDArray[np.float64] | None:
    """The ends of the applicants' ranges, shape (n, 2, k), infinite without one; None if nobody has any."""
    if not any(p.ranges for p in preferences):
        return None
    everything: dict[str, tuple[float, float]] = dict.fromkeys(model.levers, (-np.inf, np.inf))
    each = [everything | dict(p.ranges) for p in preferences]
    return np.array([[ranges[f] for f in model.levers] for ranges in each]).transpose(0, 2, 1)
