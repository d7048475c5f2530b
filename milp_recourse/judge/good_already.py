"""Applicants who need no search: whether doing nothing is feasible, told for many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge.judgement import Judgement, judged_together
from milp_recourse.judge.proposal import Proposal
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.curved_network import CurvedNetwork
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Proof


def already_good(instance: Instance) -> bool:
    """Whether doing nothing is feasible: the factual is accepted and meets domains and conditions."""
    return already_good_among([instance])[0] is not None


def without_search(instances: Sequence[Instance]) -> list[Proposal | None]:
    """For each instance the proposal if doing nothing is feasible or there is no lever; None if a search is
    needed."""
    return [at_once(*pair) for pair in zip(instances, at_rest(instances), strict=True)]


def at_once(instance: Instance, rest: Judgement | None) -> Proposal | None:
    """:func:`without_search` of one instance, given what :func:`at_rest` says of it."""
    proof: Proof = "asked" if isinstance(instance.classifier, AskedModel) else "rigorous"
    if rest is not None and rest.feasible:
        return Proposal({}, 0.0, proof, judgement=rest)
    if instance.levers:
        return None
    message = "no feature can be acted on: widen the mask, the ranges, the bounds or the domains"
    return Proposal(None, math.inf, proof, message=message)


def already_good_among(instances: Sequence[Instance]) -> list[Judgement | None]:
    """For each instance the judgement of doing nothing if that is feasible, else None."""
    return [None if rest is None or not rest.feasible else rest for rest in at_rest(instances)]


def at_rest(instances: Sequence[Instance]) -> list[Judgement | None]:
    """The judgement of doing nothing, for each instance; None where a network surely refuses the factual.

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
        found[k] = verdict
    return found


def at_rest_in_words(rest: Judgement | None) -> str | None:
    """What is the case for a person whom the model accepts as they are, but whose values break a domain or a
    condition, so that an action is needed all the same; None for everybody else.

    Parameters
    ----------
    rest
        The judgement of doing nothing.
    """
    if rest is None or not (rest.accepted_exact and rest.accepted_deployed and rest.broken):
        return None
    return f"The model accepts this person as they are, but {'; '.join(rest.broken)}."


def _surely_refused(instances: Sequence[Instance]) -> NDArray[np.bool_]:
    """Per instance, whether the factual's float64 logit plus its rounding error is below the threshold.

    All instances have one classifier. False throughout for trees and for networks with curves.
    """
    first = instances[0]
    network = first.classifier
    if not isinstance(network, ReluNetwork) or isinstance(network, CurvedNetwork):
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
