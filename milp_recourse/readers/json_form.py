"""A classifier as JSON: the entry ``classifier`` of an instance file."""

from __future__ import annotations

from typing import Any

from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.derived_networks import CurvedNetwork
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.readers.refusal import refuse


def to_json(network: ReluNetwork | TreeEnsemble | AskedModel) -> dict[str, Any]:
    """The entry: ``{"kind": ..., "dtype": ..., "layers": [...]}``, or ``"trees"`` in place of ``"layers"``.

    Parameters
    ----------
    network
        A classifier of the features' columns (:attr:`~milp_recourse.problem.features.Feature.columns`), in
        feature order and in the features' own units (fold any standardisation first, see
        :func:`milp_recourse.readers.standardised`).

    Returns
    -------
    dict
        Plain lists and floats, for ``json.dump``: per layer ``weight`` (outputs x inputs) and
        ``bias`` (outputs), or per tree its node arrays. Python writes doubles so that they are read back
        unchanged, and every float32 value is a double, so nothing is lost.

    Raises
    ------
    Unsupported
        The classifier is a function that is asked, which no file can hold.

    Examples
    --------
    >>> to_json(ReluNetwork.from_layers([([[1.0, -2.0]], [0.5])]))
    {'kind': 'relu-network', 'dtype': 'float64', 'layers': [{'weight': [[1.0, -2.0]], 'bias': [0.5]}]}
    """
    if isinstance(network, AskedModel):
        raise refuse("model", "one that is asked", "one that is read, where a file is written")
    if isinstance(network, TreeEnsemble):
        return _forest_to_json(network)
    layers = layers_to_json(network)
    bends = network.bends if isinstance(network, CurvedNetwork) else ()
    for layer, functions in zip(layers, bends, strict=False):
        layer.update({"functions": list(functions)} if functions else {})
    return {"kind": "relu-network", "dtype": network.dtype, "layers": layers}


def layers_to_json(network: ReluNetwork) -> list[dict[str, Any]]:
    """The entry ``layers`` of a network."""
    return [
        {"weight": weight.tolist(), "bias": bias.tolist()}
        for weight, bias in zip(network.weights, network.biases, strict=True)
    ]


def _forest_to_json(forest: TreeEnsemble) -> dict[str, Any]:
    """The entry of trees.

    ``aggregate``, ``base`` and ``sum_dtype`` are left out for a mean; ``parts`` and ``combine`` where there
    are no parts; ``missing_left`` where the tree has none.
    """
    keys = ("feature", "threshold", "left", "right", "value")
    entry: dict[str, Any] = {"kind": "tree-ensemble", "dtype": forest.dtype}
    if forest.aggregate != "mean":
        entry |= {"aggregate": forest.aggregate, "base": forest.base, "sum_dtype": forest.sum_dtype}
    if forest.parts:
        entry |= {"parts": list(forest.parts), "combine": forest.combine}
    trees = []
    for tree in forest.trees:
        used = keys if tree.missing_left is None else (*keys, "missing_left")
        trees.append({key: getattr(tree, key).tolist() for key in used})
    return entry | {"trees": trees}
