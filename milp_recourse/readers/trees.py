"""Read tree ensembles of scikit-learn, XGBoost and LightGBM, bit for bit.

Trees hold their model's rule for missing values where it has one. :func:`safe_threshold` gives the
``accept.above`` from which on the library predicts class 1; :func:`milp_recourse.readers.read_model` says it
exactly. Where a finite value counts as missing, the model is refused.
"""

from __future__ import annotations

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.readers.from_lightgbm import read_lightgbm
from milp_recourse.readers.from_sklearn_trees import read_sklearn_trees
from milp_recourse.readers.from_xgboost import read_xgboost

__all__ = ["read_lightgbm", "read_sklearn_trees", "read_xgboost", "safe_threshold"]


def safe_threshold(ensemble: TreeEnsemble, at_zero: bool = False) -> float:
    r"""The ``accept.above`` from which on the library itself predicts class 1.

    Means: the library compares :math:`p_1` with :math:`p_0`, both rounded sums of n shares that add up to 1,
    so :math:`p_1 > 1/2 + 2 n 2^{-52}` settles it. Sums: 0, the margin at probability 1/2, plus what rounding
    of the sigmoid may hide (1e-6 where sums are float32, 1e-12 else).

    Parameters
    ----------
    at_zero
        For sums whose library compares with 0 itself (scikit-learn's boosting): exactly 0.
    """
    if ensemble.aggregate == "mean":
        return 0.5 + 2 * len(ensemble.trees) * 2.0**-52
    if at_zero:
        return 0.0
    return 1e-6 if ensemble.sum_dtype == "float32" else 1e-12
