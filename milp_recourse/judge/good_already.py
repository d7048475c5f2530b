"""Whether doing nothing is feasible, told for many instances at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge.judgement import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork


def already_good(instance: Instance) -> bool:
    """Whether doing nothing is feasible: the factual is accepted and meets domains and conditions."""
    return already_good_among([instance])[0]


def already_good_among(instances: Sequence[Instance]) -> list[bool]:
    """:func:`already_good` of many instances.

    One pass in float64 refuses most factuals of networks; only the others are judged exactly.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for k, one in enumerate(instances):
        groups.setdefault((id(one.classifier), id(one.features)), []).append(k)
    refused = np.zeros(len(instances), dtype=bool)
    for group in groups.values():
        refused[group] = _surely_refused([instances[k] for k in group])
    pairs = zip(instances, refused.tolist(), strict=True)
    return [not sure and judge(one, {}).feasible for one, sure in pairs]


def _surely_refused(instances: Sequence[Instance]) -> NDArray[np.bool_]:
    """Per instance, whether the factual's float64 logit plus its rounding error is below the threshold.

    All instances have one classifier. False throughout for trees.
    """
    first = instances[0]
    network = first.classifier
    if not isinstance(network, ReluNetwork):
        return np.zeros(len(instances), dtype=bool)
    z = first.model_rows(np.array([[one.factual[f.name] for f in first.features] for one in instances]))
    size, operations = np.abs(z), 0
    with np.errstate(over="ignore", invalid="ignore"):  # inf and nan show nothing
        for k, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            if k:
                z = np.maximum(z, 0.0)
            z, size = z @ weight.T + bias, size @ np.abs(weight).T + np.abs(bias)
            operations += weight.shape[1] + 2
        slack = 2.0**-51 * operations * size[:, 0]
        refused: NDArray[np.bool_] = z[:, 0] + slack < [one.accept.threshold for one in instances]
        return refused
