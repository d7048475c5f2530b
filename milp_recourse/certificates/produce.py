"""Producing certificates: a second search with the target frozen, for many applicants at once.

A certificate names its instance by the digest of the canonical content (section 1 of the document).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from milp_recourse.certificates.causal_tree_proof import causal_configurations
from milp_recourse.certificates.conditions import why_not_cases
from milp_recourse.certificates.engine_proofs import Claim, Configurations, proofs
from milp_recourse.certificates.engine_proofs import ready as compile_proofs
from milp_recourse.certificates.ensemble_proof import ensemble_configurations
from milp_recourse.certificates.limits import acted_sets, beyond_a_support, beyond_limits, by_prices, fits
from milp_recourse.engine.networks.problem_arrays import jumping
from milp_recourse.formats.schema import settled_cost_to_dict
from milp_recourse.formats.schema_classifiers import accept_to_dict
from milp_recourse.formats.schema_conditions import condition_to_dict
from milp_recourse.formats.schema_features import feature_to_dict
from milp_recourse.formats.schema_scm import scm_to_dict
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.cost import root_below
from milp_recourse.problem.instance import Classifier, Instance, kept_with, under
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status, is_closed

TOO_MUCH = "the proof, or a check of it, would take more time, nodes or room than is allowed"
"""The reason why there is no certificate where one might have been had."""

CERTIFICATE_FORMAT = "milp-recourse/certificate-1"

_DEFAULTED = ("bounds", "categories", "domain", "monotone")
"""What files leave out of a feature where there is none."""

_SPARE = 0.05
"""Share of the allowed gap by which every leaf must reach more than is claimed."""


def why_not(instance: Instance) -> str | None:
    """Why no certificate can be had for an instance whose answer needs a search, or None."""
    if isinstance(instance.classifier, AskedModel):
        return beyond_limits(instance)
    if instance.demand != TRUE:
        reason = why_not_cases(instance)
        if reason is not None:
            return reason
    own = None if by_prices(instance) else jumping(instance)
    return own or beyond_limits(instance) or beyond_a_support(instance)


def why_none(instance: Instance, result: Result) -> str | None:
    """Why no certificate can be had for a result, as far as that is known before one is made; else None."""
    instance = under(instance, result.rests_on)
    if result.proof is None or not _provable(result):
        return f"an answer that is {result.status.value} claims nothing that a certificate could prove"
    return beyond_limits(instance) if _needs_no_tree(instance, result) else why_not(instance)


def reason_for_none(instance: Instance, result: Result, time_limit: float | None = None) -> str:
    """Why a result came without the certificate that was asked for, in one line.

    Parameters
    ----------
    time_limit
        Seconds for the search and the proof together.
    """
    own = why_none(instance, result)
    if own is None and time_limit is not None and result.seconds >= time_limit:
        return f"the proof did not fit into the time limit of {time_limit:g} s, which the search is part of"
    return own or TOO_MUCH


def without_certificate(instance: Instance, result: Result, reason: str | None = None) -> Result:
    """The result, with ``proof`` lowered from ``rigorous`` to ``solver`` if no certificate is possible.

    ``rigorous`` promises a certificate. The reason why there is none is added to the message.

    Parameters
    ----------
    reason
        Why no certificate is possible; None: the reason that follows from the problem. Where none does, the
        result is returned unchanged.
    """
    if result.proof != "rigorous" or result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return result
    reason = reason or why_none(instance, result)
    if reason is None:
        return result
    return result.noted(f"No certificate: {reason}.", proof="solver")


def _needs_no_tree(instance: Instance, result: Result) -> bool:
    """Whether the claim holds without a search: there is no lever, or the bound is 0."""
    return not instance.levers or _bound(result) == 0.0


def _trivial(instance: Instance) -> list[dict[str, Any]]:
    """Configurations of one leaf each, which prove a bound of 0; none if there is no lever."""
    return [{"acted": list(names), "tree": [["e"]]} for names in acted_sets(instance, by_prices(instance))]


def ready(instance: Instance) -> None:
    """Make what the certificates of all applicants of a model share, and compile what they need, before
    anybody's time limit starts."""
    if isinstance(instance.classifier, AskedModel):
        return
    classifier_text(instance.classifier)
    if why_not(instance) is not None:
        return
    if by_prices(instance):
        from milp_recourse.engine.forests.priced import ready as compile_all  # loads numba

        compile_all()
    else:
        compile_proofs()


def certificates_for(
    instances: Sequence[Instance],
    results: Sequence[Result],
    time_limit: float | None = None,
    indices: Sequence[int] | None = None,
    spent: Sequence[float] | None = None,
    ensemble: Callable[..., Configurations | None] = ensemble_configurations,
) -> list[dict[str, Any] | None]:
    """One certificate per result, as JSON values; None where nothing can be proven, or no proof was found.

    Parameters
    ----------
    results
        From any back end: a floating-point solver's bound is proven here or not certified.
    time_limit
        Seconds per applicant.
    indices
        Where the instances are applicants of a population: their indices.
    spent
        How many of these seconds each has had already; where none are left, there is no certificate.
    ensemble
        What proves the bounds of trees whose levers move nothing else.
    """
    limits: Limits = [None if time_limit is None else time_limit - s for s in spent or [0.0] * len(results)]
    trees: dict[int, Configurations | None] = {}
    own, answers = instances, results
    instances = [under(one, answer.rests_on).squared() for one, answer in zip(own, answers, strict=True)]
    results = [_in_squares(*both) for both in zip(own, answers, strict=True)]
    chosen = [k for k, result in enumerate(results) if _provable(result) and _some(limits[k])]
    plain = [k for k in chosen if _needs_no_tree(instances[k], results[k])]
    trees |= {k: _trivial(instances[k]) for k in plain if beyond_limits(instances[k]) is None}
    chosen = [k for k in chosen if k not in plain and why_not(instances[k]) is None]
    of_networks = [k for k in chosen if isinstance(instances[k].classifier, ReluNetwork)]
    trees |= _in_two_tries(proofs, instances, results, of_networks, limits)
    for k in chosen:
        if k in trees:
            continue
        if by_prices(instances[k]):
            trees[k] = ensemble(instances[k], _bound(results[k]), Clock.start(limits[k]))
        else:
            trees |= _in_two_tries(_of_causal_trees, instances, results, [k], limits)
    certificates: list[dict[str, Any] | None] = [None] * len(instances)
    for k, tree in trees.items():
        if tree is not None:
            index = None if indices is None else indices[k]
            bound = _bound(results[k])
            if bound is not None and own[k].cost.is_root:
                bound = root_below(bound)
            found = _certificate(own[k], answers[k], bound, tree, index)
            certificates[k] = found if fits(own[k], found) else None
    return certificates


def _in_squares(instance: Instance, result: Result) -> Result:
    """A result about l2 as one about its square, the bound rounded down and the cost up. A gap that is small
    enough for l2 may be twice too large for the square, which is then a limit."""
    if not instance.cost.is_root or result.cost is None or result.lower_bound is None:
        return result
    cost, bound = result.cost**2 * (1 + 2.0**-50), result.lower_bound**2 * (1 - 2.0**-50)
    bound, allowance = min(bound, cost), instance.squared().gap_allowance
    status = result.status if is_closed(cost, bound, allowance) else Status.LIMIT
    return replace(result, status=status, cost=cost, lower_bound=bound, gap_allowance=allowance)


def encode(certificate: dict[str, Any]) -> bytes:
    """The certificate as a gzipped file; the same bytes for the same certificate."""
    text = json.dumps(certificate, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode(), 6, mtime=0)


Limits = Sequence[float | None]
"""For each claim the seconds that may be spent on it; None without a limit."""

Prove = Callable[[Sequence[Claim], Limits], list[tuple[Configurations | None, float]]]
"""From claims and their limits to each claim's configurations, None without a proof, and what they took."""


def _some(limit: float | None) -> bool:
    """Whether there is any time."""
    return limit is None or limit > 0.0


def _of_causal_trees(claims: Sequence[Claim], limits: Limits) -> list[tuple[Configurations | None, float]]:
    """A :data:`Prove` for trees inside a causal model."""
    found = []
    for (instance, _, target), limit in zip(claims, limits, strict=True):
        start = time.perf_counter()
        made = causal_configurations(instance, target, Clock.start(limit))
        found.append((made, time.perf_counter() - start))
    return found


def _in_two_tries(
    prove: Prove,
    instances: Sequence[Instance],
    results: Sequence[Result],
    chosen: Sequence[int],
    limits: Limits,
) -> dict[int, Configurations | None]:
    """The configurations of the chosen instances, by position.

    Claims of a bound above 0 that fail are tried once more, with a lower target, in what the first try has
    left of their time (not at all if that is nothing): the first target may lie so near to the optimum, or to
    the cheapest actions of many cases, that boxes become too many.
    """
    trees: dict[int, Configurations | None] = {}
    left = {k: limits[k] for k in chosen}
    for spare in (_SPARE, _SPARE / 50):
        waiting = [k for k in left if _some(left[k])]
        bounds = [_bound(results[k]) for k in waiting]
        claims = [
            (instances[k], bound, _target(bound, results[k], spare))
            for k, bound in zip(waiting, bounds, strict=True)
        ]
        tried = prove(claims, [left[k] for k in waiting]) if claims else []
        trees |= {k: made for k, (made, _) in zip(waiting, tried, strict=True)}
        left = {
            k: None if (limit := left[k]) is None else limit - took
            for k, (made, took) in zip(waiting, tried, strict=True)
            if made is None and _bound(results[k])
        }
    return trees


def _provable(result: Result) -> bool:
    """Whether a result claims something that a certificate can state."""
    return result.status is Status.INFEASIBLE or (
        result.status in (Status.OPTIMAL, Status.LIMIT) and result.cost is not None
    )


def _bound(result: Result) -> float | None:
    """The lower bound to certify: the result's, or 45% of the allowed gap below the cost if that is lower, so
    that leaves have room to prove it; None for infeasible."""
    if result.cost is None or result.lower_bound is None:
        return None
    room = 0.45 * (result.tolerance or 0.0)  # the bounds of bab leave more
    return max(0.0, min(result.lower_bound, result.cost - room))


def _target(bound: float | None, result: Result, spare: float) -> float:
    """The bound that every leaf must reach; inf to prove that there is no action."""
    if bound is None:
        return math.inf
    return bound + spare * (result.tolerance or 0.0) if bound > 0 else 0.0


def _kept(instance: Instance, result: Result) -> dict[str, Any]:
    """The key for the conditions that the bound rests on; none where these are all."""
    if result.rests_on is None or len(result.rests_on) == len(instance.all_conditions):
        return {}
    return {"conditions": sorted(result.rests_on)}


def _certificate(
    instance: Instance,
    result: Result,
    bound: float | None,
    configurations: list[dict[str, Any]],
    index: int | None,
) -> dict[str, Any]:
    """The certificate as JSON values; what it claims follows from cost and bound."""
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
        **_kept(instance, result),
        "configurations": configurations,
    }


def instance_digest(instance: Instance) -> str:
    """SHA-256 of the canonical text; equal for instances whose canonical content is equal."""
    texts = {key: _text(value) for key, value in _besides_classifier(instance).items()}
    texts["classifier"] = classifier_text(instance.classifier)  # long, and shared
    joined = ",".join(f'"{key}":{texts[key]}' for key in sorted(texts))
    return hashlib.sha256(f"{{{joined}}}".encode()).hexdigest()


def canonical_content(instance: Instance) -> dict[str, Any]:
    """The content of an instance as plain JSON values, every default filled in."""
    return {**_besides_classifier(instance), "classifier": instance.classifier.written}


def _besides_classifier(instance: Instance) -> dict[str, Any]:
    names = [f.name for f in instance.features if f.name in instance.preferences.actionable]
    conditions = [condition_to_dict(one) for one in instance.all_conditions]
    return {
        "features": [
            {**dict.fromkeys(_DEFAULTED), "encoding": f.encoding, **feature_to_dict(f)}
            for f in instance.features
        ],
        "scm": _scm(instance),
        "accept": accept_to_dict(instance),
        "factual": {f.name: f.shown(instance.factual[f.name]) for f in instance.features},
        "actionable": names,
        "weights": {name: instance.weight(name) for name in names},
        "ranges": {name: _pair(instance.preferences.ranges.get(name)) for name in names},
        "cost": settled_cost_to_dict(instance.cost, names),
        "plausibility": instance.plausible,
        **({"density_offset": instance.offset} if instance.offset else {}),
        **({"conditions": conditions} if conditions else {}),
    }


def _pair(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _scm(instance: Instance) -> dict[str, Any]:
    written = scm_to_dict(instance.scm)
    for mechanism in written.get("mechanisms", {}).values():
        mechanism.setdefault("link", None)
        mechanism.setdefault("noise", None)
    return written


@kept_with()
def classifier_text(classifier: Classifier) -> str:
    """The classifier's canonical text, which is long."""
    return _text(classifier.written)


def _text(content: Any) -> str:
    return json.dumps(_spelled(content), sort_keys=True, separators=(",", ":"))


def _spelled(value: Any) -> Any:
    """Content with its numbers as the hexadecimal digits of their doubles."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _spelled(v) for key, v in value.items()}
    if not isinstance(value, list | tuple):
        return _digits([value])[0]
    return _digits(value) if value and {*map(type, value)} <= {int, float} else [_spelled(v) for v in value]


def _digits(numbers: Sequence[float]) -> list[str]:
    """The hexadecimal digits of doubles; -0.0 is written as 0.0."""
    doubles = np.array(numbers, dtype=np.float64) + 0.0
    return doubles.astype(">f8").tobytes().hex(",", 8).split(",")
