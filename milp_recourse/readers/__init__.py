"""Read a trained binary classifier from torch, scikit-learn or ONNX into a ReluNetwork.

Each reader imports its library only when called, and refuses with one line whatever it cannot
represent: a classifier is read as it is or not at all.
"""

from milp_recourse.readers.fold import standardised
from milp_recourse.readers.from_onnx import read_onnx
from milp_recourse.readers.from_sklearn import read_sklearn
from milp_recourse.readers.from_torch import read_torch
from milp_recourse.readers.json_form import to_json

__all__ = ["read_onnx", "read_sklearn", "read_torch", "standardised", "to_json"]
