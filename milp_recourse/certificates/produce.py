"""Producing certificates: a second search with the target frozen, for many applicants at once."""

from __future__ import annotations

import gzip
import json
import math
import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from milp_recourse.certificates.canonical import instance_digest
from milp_recourse.certificates.causal import causal_configurations, why_not_causal
from milp_recourse.certificates.document import CERTIFICATE_FORMAT
from milp_recourse.certificates.limits import too_large
from milp_recourse.certificates.networks import configurations_of
from milp_recourse.certificates.prices import ensemble_configurations
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.forests.axes import separable
from milp_recourse.instance import Instance
from milp_recourse.result import Result, Status, is_closed

MOST_LEVERS = 16
"""Of those whose acting or not makes a difference: their sets are told apart one by one."""

_SPARE = 0.05  # of the allowed gap: every leaf reaches so much more than is claimed


def why_not(instance: Instance) -> str | None:
    """Why no certificate can be had for an instance, or None."""
    if isinstance(instance.classifier, TreeEnsemble) and not separable(instance):
        reason = why_not_causal(instance)
        if reason is not None:
            return reason
    if any(re.fullmatch("[0-9a-f]{16}", f.name) for f in instance.features):
        return "a feature's name reads as a number in the digest"
    if instance.cost.quantiles or instance.cost.kind.startswith("percentile"):
        return "version 1 of the certificate has no costs in percentiles"
    reason = too_large(instance)
    if reason is not None:
        return reason
    count = len(_not_idle(instance)) if len(instance.levers) > MOST_LEVERS else 0
    if count > MOST_LEVERS:
        return (
            f"{count} levers can be acted on or not, at different cost or effect, and version 1 of the "
            f"certificate tells at most {MOST_LEVERS} such levers apart"
        )
    return None


def _not_idle(instance: Instance) -> list[str]:
    """Levers for which not acting differs from holding them at their factual value at no cost."""
    levers = list(instance.levers)
    driven = {f for other in levers for f in instance.scm.descendants({other}) - {other}}
    return [f for f in levers if instance.cost.l0 or f in driven or not instance.may_hold(f)]


def certificates_for(
    instances: Sequence[Instance],
    results: Sequence[Result],
    time_limit: float | None = None,
    indices: Sequence[int] | None = None,
) -> list[dict[str, Any] | None]:
    """One certificate per result, as JSON values; None where nothing can be proven or it was not managed.

    Parameters
    ----------
    results
        From any back end: a floating-point solver's bound is proven here or not certified.
    time_limit
        Seconds per applicant.
    indices
        Where the instances are applicants of a population: their indices.
    """
    certificates: list[dict[str, Any] | None] = [None] * len(instances)
    chosen = [k for k, r in enumerate(results) if _provable(r) and why_not(instances[k]) is None]
    bounds = {k: _bound(results[k]) for k in chosen}
    of_networks = [k for k in chosen if isinstance(instances[k].classifier, ReluNetwork)]
    targets = np.array([_target(bounds[k], results[k]) for k in of_networks])
    trees = dict(
        zip(
            of_networks,
            configurations_of([instances[k] for k in of_networks], targets, time_limit),
            strict=True,
        )
    )
    for k, bound in bounds.items():
        if k in trees:
            tree = trees[k]
        elif separable(instances[k]):
            tree = ensemble_configurations(instances[k], bound, time_limit)
        else:
            tree = _causal(instances[k], bound, results[k], time_limit)
        if tree is not None:
            index = None if indices is None else indices[k]
            certificates[k] = _certificate(instances[k], results[k], bound, tree, index)
    return certificates


def encode(certificate: dict[str, Any]) -> bytes:
    """The certificate as a gzipped file; the same bytes for the same certificate."""
    text = json.dumps(certificate, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode(), 6, mtime=0)


def _causal(
    instance: Instance, bound: float | None, result: Result, time_limit: float | None
) -> list[dict[str, Any]] | None:
    """The configurations; a second try spares less, as an action may lie nearly half the gap too high."""
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    for target in dict.fromkeys(_target(bound, result, spare) for spare in (_SPARE, _SPARE / 50)):
        if deadline is None or time.perf_counter() < deadline:
            found = causal_configurations(instance, target, deadline)
            if found is not None:
                return found
    return None


def _provable(result: Result) -> bool:
    return result.status is Status.INFEASIBLE or (
        result.status in (Status.OPTIMAL, Status.LIMIT) and result.cost is not None
    )


def _bound(result: Result) -> float | None:
    """What to certify: the result's bound, less where a solver's leaves no room; None: infeasible."""
    if result.cost is None or result.lower_bound is None:
        return None
    room = 0.45 * (result.tolerance or 0.0)  # bab's bounds leave more
    return max(0.0, min(result.lower_bound, result.cost - room))


def _target(bound: float | None, result: Result, spare: float = _SPARE) -> float:
    """What every leaf must reach: inf where nothing is to be left."""
    if bound is None:
        return math.inf
    return bound + spare * (result.tolerance or 0.0) if bound > 0 else 0.0


def _certificate(
    instance: Instance,
    result: Result,
    bound: float | None,
    configurations: list[dict[str, Any]],
    index: int | None,
) -> dict[str, Any]:
    claim = "bounds"
    if bound is None or result.cost is None:
        claim = "infeasible"
    elif is_closed(result.cost, bound, result.gap_allowance):
        claim = "optimal"
    return {
        "format": CERTIFICATE_FORMAT,
        "claim": claim,
        "instance_sha256": instance_digest(instance),
        **({} if index is None else {"index": index}),
        "action": None if result.action is None else dict(result.action),
        "cost": result.cost,
        "lower_bound": bound,
        "configurations": configurations,
    }
