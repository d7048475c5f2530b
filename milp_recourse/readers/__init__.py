"""Readers of fitted classifiers: pipelines, networks (scikit-learn, torch, ONNX) and trees (scikit-learn,
XGBoost, LightGBM).

:func:`read_model` takes a fitted model and the DataFrame it was fitted on. Each reader imports its library
only when called. A model that cannot be represented is refused with one line; none is approximated.
:func:`to_json` gives what was read as instance files state it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from milp_recourse.problem.instance import Classifier
    from milp_recourse.readers.column import Column, Reading, rounding_margin, rounding_margins
    from milp_recourse.readers.from_lightgbm import read_lightgbm
    from milp_recourse.readers.from_onnx import read_onnx
    from milp_recourse.readers.from_sklearn import read_sklearn
    from milp_recourse.readers.from_sklearn_trees import read_sklearn_trees
    from milp_recourse.readers.from_torch import read_torch
    from milp_recourse.readers.from_xgboost import read_xgboost
    from milp_recourse.readers.read_model import read_model
    from milp_recourse.readers.standardisation import standardised
    from milp_recourse.readers.steps_before import model_columns
    from milp_recourse.readers.tree_parts import safe_threshold

__all__ = [
    "Column",
    "Reading",
    "model_columns",
    "read_lightgbm",
    "read_model",
    "read_onnx",
    "read_sklearn",
    "read_sklearn_trees",
    "read_torch",
    "read_xgboost",
    "rounding_margin",
    "rounding_margins",
    "safe_threshold",
    "standardised",
    "to_json",
]

_HOMES = {
    "column": ("Column", "Reading", "rounding_margin", "rounding_margins"),
    "from_lightgbm": ("read_lightgbm",),
    "from_onnx": ("read_onnx",),
    "from_sklearn": ("read_sklearn",),
    "from_sklearn_trees": ("read_sklearn_trees",),
    "from_torch": ("read_torch",),
    "from_xgboost": ("read_xgboost",),
    "read_model": ("read_model",),
    "standardisation": ("standardised",),
    "steps_before": ("model_columns",),
    "tree_parts": ("safe_threshold",),
}


def to_json(network: "Classifier") -> dict[str, Any]:
    """A classifier as JSON: the entry ``classifier`` of an instance file.

    Parameters
    ----------
    network
        A classifier of the features' columns (:attr:`~milp_recourse.problem.features.Feature.columns`), in
        feature order and in the features' own units (fold any standardisation first, see
        :func:`milp_recourse.readers.standardised`).

    Returns
    -------
    dict
        Plain lists and floats, for ``json.dump``: per layer ``weight`` (outputs x inputs) and ``bias``
        (outputs), or per tree its node arrays.

    Raises
    ------
    Unsupported
        The classifier is a function that is asked, which no file can hold.

    Examples
    --------
    >>> from milp_recourse.problem.network import ReluNetwork
    >>> to_json(ReluNetwork.from_layers([([[1.0, -2.0]], [0.5])]))
    {'kind': 'relu-network', 'dtype': 'float64', 'layers': [{'weight': [[1.0, -2.0]], 'bias': [0.5]}]}
    """
    return network.written


def __getattr__(name: str) -> Any:
    """Import a name on first use: most of this room serves only who hands over a fitted model."""
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
