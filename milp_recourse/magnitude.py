"""Numbers too large for a search in doubles: refused, because what overflows bounds nothing."""

from __future__ import annotations

import numpy as np

from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance
from milp_recourse.judge import deltas
from milp_recourse.program.lower import reachable

LARGEST_COST = 1e300
LARGEST_NUMBER = 1e150
"""Squares and differences of numbers up to here, and sums of many, are doubles."""


def too_large(instance: Instance) -> str | None:
    """Why numbers would overflow a double during search, where "too dear" could pass for "impossible"."""
    return _values(instance) or _costs(instance) or _network(instance)


def _values(instance: Instance) -> str | None:
    for name, reach in reachable(instance).items():
        if max(abs(reach.lower), abs(reach.upper)) > LARGEST_NUMBER:
            return f"{name!r} could pass {LARGEST_NUMBER:g} in size: narrow the bounds or change its unit"
    return None


def _costs(instance: Instance) -> str | None:
    farthest = {
        name: max((low, high), key=lambda end: abs(end - instance.factual[name]))
        for name, (low, high) in instance.levers.items()
    }
    if instance.cost.exact(deltas(instance, farthest), instance.weights) > LARGEST_COST:
        return f"an action could cost more than {LARGEST_COST:g}: narrow the bounds or enlarge cost.scale"
    for name, scale in instance.cost.scale.items() if instance.cost.uses_scale else ():
        if not 1 / LARGEST_NUMBER <= scale <= LARGEST_NUMBER:
            return f"cost.scale of {name!r} is {scale:g}: its square leaves the range of a double"
    return None


def _network(instance: Instance) -> str | None:
    r"""Sums of absolute values through the layers, :math:`m_{k+1} = |W_k| m_k + |b_k|`."""
    network = instance.classifier
    if not isinstance(network, ReluNetwork):
        return None
    reach = reachable(instance)
    sizes = []
    for feature in instance.features:
        ends = reach[feature.name]
        largest = float(max(abs(ends.lower), abs(ends.upper)))
        sizes += [largest] if len(feature.columns) == 1 else [1.0] * len(feature.columns)
    size = np.array(sizes)
    with np.errstate(over="ignore", invalid="ignore"):
        for weight, bias in zip(network.weights, network.biases, strict=True):
            size = np.abs(weight) @ size + np.abs(bias)
            if not size.max() <= LARGEST_NUMBER:  # nan too
                return f"the classifier's numbers could pass {LARGEST_NUMBER:g}: scale its weights down"
    return None
