"""A network as the classifier entry of an instance file."""

from __future__ import annotations

from typing import Any

from milp_recourse.domain.network import ReluNetwork


def to_json(network: ReluNetwork) -> dict[str, Any]:
    """The classifier entry: ``{"kind": "relu-network", "dtype": ..., "layers": [...]}``.

    Parameters
    ----------
    network
        Takes raw features in feature order (fold any standardisation first, see
        :func:`milp_recourse.readers.standardised`).

    Returns
    -------
    dict
        Plain lists and floats, for ``json.dump``: per layer ``weight`` (outputs x inputs) and
        ``bias`` (outputs). Python writes doubles so that they are read back unchanged, and a
        float32 value is a double, so nothing is lost.

    Examples
    --------
    >>> to_json(ReluNetwork.from_layers([([[1.0, -2.0]], [0.5])]))
    {'kind': 'relu-network', 'dtype': 'float64', 'layers': [{'weight': [[1.0, -2.0]], 'bias': [0.5]}]}
    """
    return {
        "kind": "relu-network",
        "dtype": network.dtype,
        "layers": [
            {"weight": weight.tolist(), "bias": bias.tolist()}
            for weight, bias in zip(network.weights, network.biases, strict=True)
        ],
    }
