"""Read a trained binary classifier: networks from torch, scikit-learn or ONNX, trees from three libraries.

Each reader imports its library only when called, and refuses with one line whatever it cannot
represent: a classifier is read as it is or not at all.
"""

from milp_recourse.readers.fold import standardised
from milp_recourse.readers.from_onnx import read_onnx
from milp_recourse.readers.from_sklearn import read_sklearn
from milp_recourse.readers.from_torch import read_torch
from milp_recourse.readers.json_form import to_json
from milp_recourse.readers.trees import read_lightgbm, read_sklearn_trees, read_xgboost, safe_threshold

__all__ = [
    "read_lightgbm",
    "read_onnx",
    "read_sklearn",
    "read_sklearn_trees",
    "read_torch",
    "read_xgboost",
    "safe_threshold",
    "standardised",
    "to_json",
]
