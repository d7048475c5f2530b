"""Applicants who need no search: whether doing nothing is feasible, told for many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge.judgement import Judgement, judged_together
from milp_recourse.judge.proposal import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork


def already_good(instance: Instance) -> bool:
    """Whether doing nothing is feasible: the factual is accepted and meets domains and conditions."""
    return already_good_among([instance])[0] is not None


def without_search(instances: Sequence[Instance]) -> list[Proposal | None]:
    """For each instance the proposal if doing nothing is feasible or there is no lever; None if a search is
    needed."""
    message = "no feature can be acted on: widen the mask, the ranges, the bounds or the domains"
    nothing = Proposal(None, math.inf, "rigorous", message=message)
    return [
        (None if instance.levers else nothing)
        if good is None
        else Proposal({}, 0.0, "rigorous", judgement=good)
        for instance, good in zip(instances, already_good_among(instances), strict=True)
    ]


def already_good_among(instances: Sequence[Instance]) -> list[Judgement | None]:
    """For each instance the judgement of doing nothing if that is feasible, else None.

    One pass in float64 refuses most factuals of networks; only the others are judged exactly.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for k, one in enumerate(instances):
        groups.setdefault((id(one.classifier), id(one.features)), []).append(k)
    refused = np.zeros(len(instances), dtype=bool)
    for group in groups.values():
        refused[group] = _surely_refused([instances[k] for k in group])
    left = np.flatnonzero(~refused).tolist()
    found: list[Judgement | None] = [None] * len(instances)
    for k, verdict in zip(left, judged_together([(instances[k], {}) for k in left]), strict=True):
        found[k] = verdict if verdict.feasible else None
    return found


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
