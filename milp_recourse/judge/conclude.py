"""The only place where a :class:`~milp_recourse.problem.result.Result` is made: of a proposal, judged anew.

A back end proposes an action and a bound. :func:`conclude` evaluates the action anew, in exact arithmetic and
by the deployed model, and withdraws a bound that is above the cost of a feasible action. It leaves idle holds
and slight changes out of an action that stays feasible, and proven, without them.

Where doing nothing is feasible no search is needed: :func:`without_search` tells that for many applicants at
once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from milp_recourse.judge.judgement import Action, Judgement, double, judge, judged_together, nearest_double
from milp_recourse.judge.polish import smaller_changes
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import Counted, Switched, leaves
from milp_recourse.problem.enclosure import round_up
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Proof, Result, Status, gap_tolerance, is_closed

Repair = Callable[[Instance, Action], "Action | None"]
"""Moves an action that fails by a solver's tolerance inward, or returns None."""


@dataclass(frozen=True)
class Proposal:
    """What a back end returns for an instance: an action, a lower bound, or both.

    Parameters
    ----------
    action
        Feature name -> number (labels by index); None if the back end found no action.
    lower_bound
        No feasible action costs less; ``inf`` claims that none exists; None claims nothing (grid).
    proof
        What the bound rests on; None with ``lower_bound`` None.
    nodes
        The number of boxes searched, plus the nodes of solver runs where the solver counts them (Pyomo does
        not); None if nothing is counted.
    message
        Why the back end stopped early, if it did.
    seconds
        This applicant's share of the time, where many were solved at once; None where the caller takes the
        time.
    judgement
        The judgement of ``action``, if the back end has one: :func:`milp_recourse.judge.conclude` then need
        not judge it anew. One of another instance or action is not used.
    rests_on
        Positions of the conditions that the bound rests on: it holds without the others, too. None: all.
    """

    action: Mapping[str, float] | None
    lower_bound: float | None
    proof: Proof | None = None
    nodes: int | None = None
    message: str | None = None
    seconds: float | None = None
    judgement: Judgement | None = field(default=None, repr=False, compare=False)
    rests_on: frozenset[int] | None = None


def conclude(
    instance: Instance,
    proposal: Proposal,
    backend: str,
    seconds: float,
    repair: Repair | None = None,
    as_given: bool = False,
) -> Result:
    """Make a result of a proposal: judge its action exactly, repair rounding, compare cost and bound.

    Parameters
    ----------
    proposal
        An action and a bound. The action is judged here; the bound is believed as far as ``proof`` goes.
    seconds
        What the proposal has taken; the time of this function is added.
    repair
        A function that moves an action that fails by a solver's tolerance inward, or returns None. With it,
        slight changes are also left out where the others, a little larger, keep the result proven.
    as_given
        Whether to return the action unchanged, to the last digit, as one that was found by asking always is.
        Otherwise idle holds are left out of it, and changes are undone or made smaller where that costs
        nothing.

    Returns
    -------
    Result
        ``optimal`` only if the exact cost and the bound agree to the gap; ``infeasible`` only
        for a bound of infinity and no feasible action in hand; ``found`` or ``not-found`` for a
        proposal without bound; otherwise ``limit``.
    """
    start = time.perf_counter()
    judgement, message = _admitted(instance, proposal, repair, as_given or proposal.proof == "asked")
    bound, proof = proposal.lower_bound, proposal.proof
    cost = double(judgement.cost, "the cost", round_up) if judgement is not None else None
    if bound is None:
        status, bound, proof = (Status.FOUND if cost is not None else Status.NOT_FOUND), None, None
    elif cost is None and bound == math.inf and proposal.action is None and proof is not None:
        status, bound = Status.INFEASIBLE, None
        message = message or status.sentence
    else:
        status, bound, message = _weigh(cost, bound, proof, message, instance.gap_allowance)
    return Result(
        status,
        cost,
        bound,
        proof,
        backend=backend,
        seconds=seconds + time.perf_counter() - start,
        nodes=proposal.nodes,
        message=message,
        gap_allowance=instance.gap_allowance,
        rests_on=proposal.rests_on,
        **_shown(judgement),
    )


def _admitted(
    instance: Instance, proposal: Proposal, repair: Repair | None, as_given: bool
) -> tuple[Judgement | None, str | None]:
    """The judgement of the proposed action, repaired if need be, and the proposal's message.

    If the action fails, there is no judgement and the message says why.
    """
    action, judgement, message = proposal.action, proposal.judgement, proposal.message
    if action is None:
        return None, message
    if not set(action) <= set(instance.preferences.actionable):
        return None, message or "the proposed action changes what is not individually actionable"
    if not all(math.isfinite(v) for v in action.values()):
        return None, message or "the proposed action holds a number that is not finite"
    action = dict(action) if as_given else without_idle_holds(instance, action)
    if judgement is None or not judgement.is_of(instance, action):
        judgement = judge(instance, action)
    if as_given and judgement.feasible:
        return judgement, message
    if not judgement.feasible and repair is not None:
        repaired = repair(instance, action)
        if repaired is not None:
            judgement = judge(instance, without_idle_holds(instance, repaired))
    if not judgement.feasible:
        return None, message or _refusal(instance, judgement)
    judgement = held_exactly(judgement)
    if repair is not None:
        judgement = without_slight_changes(judgement, repair, proposal.lower_bound)
    return smaller_changes(judgement) if instance.leaves_open else judgement, message


def _shown(judgement: Judgement | None) -> dict[str, Any]:
    """The fields of a result that it has only with an action."""
    if judgement is None:
        return {}
    instance = judgement.instance
    return {
        "action": {n: instance.by_name[n].show(v) for n, v in judgement.action.items()},
        "counterfactual": {f.name: f.shown(judgement.counterfactual[f.name]) for f in instance.features},
        "logit": None if judgement.logit is None else nearest_double(judgement.logit, "the logit"),
        "score": judgement.score,
        "accepted_exact": judgement.accepted_exact,
        "accepted_deployed": judgement.accepted_deployed,
    }


def _weigh(
    cost: float | None, bound: float, proof: Proof | None, message: str | None, allowance: float
) -> tuple[Status, float, str | None]:
    """The status (optimal or limit), the lower bound, which is never above the cost, and the message."""
    bound = max(0.0, bound)
    if cost is None:
        if bound == math.inf:  # an action was proposed and refused, or nothing backs the claim
            bound = 0.0
        return Status.LIMIT, bound, message or "stopped before any feasible action was found"
    if not bound - cost <= gap_tolerance(cost, allowance):
        why = f"withdrawn: the lower bound {bound!r} is above the cost {cost!r} of a feasible action"
        return Status.LIMIT, 0.0, why
    bound = min(bound, cost)
    if proof is not None and is_closed(cost, bound, allowance):
        return Status.OPTIMAL, bound, None
    return Status.LIMIT, bound, message or "stopped with the gap open"


def _refusal(instance: Instance, judgement: Judgement) -> str:
    if judgement.faults:
        return "the proposed action fails the exact check: " + "; ".join(judgement.faults)
    dtype = instance.classifier.dtype if isinstance(instance.classifier, ReluNetwork) else "float32"
    return (
        f"accepted exactly but not by the deployed {dtype} model, which rounds near the threshold: "
        "set accept.margin to cover its rounding"
    )


def without_idle_holds(instance: Instance, action: Action) -> dict[str, float]:
    """The action without idle holds: features set to the factual value that they would have anyway.

    The action stays as it is if it would become infeasible without them. That can be so only with scenarios,
    and with conditions on which features, or how many, are acted on.
    """
    shorter = _without_idle_holds(instance, action)
    if len(shorter) == len(action):
        return shorter
    depends = instance.scenarios or any(
        isinstance(one, Switched | Counted) for one in leaves(instance.demand)
    )
    return dict(action) if depends and not judge(instance, shorter).feasible else shorter


def _without_idle_holds(instance: Instance, action: Action) -> dict[str, float]:
    moving = {n for n, v in action.items() if v != instance.factual[n]}
    if len(moving) == len(action):
        return dict(action)
    downstream = instance.scm.descendants(moving)
    return {n: v for n, v in action.items() if n in moving or n in downstream}


NEGLIGIBLE = 2e-3
"""The largest size of changes that :func:`held_exactly` looks at: squared costs hide changes up to about the
root of the gap."""


def held_exactly(judgement: Judgement) -> Judgement:
    """The action with values near the factual set exactly to it, where it stays feasible and costs no more.

    A search with squared costs may leave a change that is too small to matter for the cost; "hold duration"
    is easier to read than a change of 1e-5.
    """
    instance = judgement.instance
    for name in _negligible(judgement):
        verdict = judge(instance, _held(instance, judgement.action, [name]))
        if verdict.feasible and verdict.cost <= judgement.cost:
            judgement = verdict
    return judgement


SLIGHT = 1e-4
"""Up to what size a change is slight: it is left out if others, a little larger, spare it."""


def without_slight_changes(judgement: Judgement, repair: Repair, bound: float | None) -> Judgement:
    """The action without its slight changes, if others can replace these and the proof still holds.

    A search that ends within the gap may leave many changes of 1e-7 that one larger change spares. What is
    left of the action alone is hardly ever feasible; ``repair`` makes it so.
    """
    instance, slight = judgement.instance, _negligible(judgement, SLIGHT)
    if bound is None or not math.isfinite(bound) or not slight or len(slight) == len(judgement.action):
        return judgement
    spared = repair(instance, _held(instance, judgement.action, slight))
    if spared is None:
        return judgement
    found = judge(instance, spared)
    dearest = max(0.0, bound) + 0.75 * gap_tolerance(max(0.0, bound), instance.gap_allowance)
    cheap = found.feasible and found.cost <= max(judgement.cost, Fraction(dearest))
    return found if cheap and len(_negligible(found, SLIGHT)) < len(slight) else judgement


def _negligible(judgement: Judgement, share: float = NEGLIGIBLE) -> list[str]:
    """The features whose change is of at most that size, and which may be held."""
    instance, names = judgement.instance, []
    for name, value in judgement.action.items():
        held = value != instance.factual[name] and instance.may_hold(name)
        if held and instance.lever_costs[name].about(value) <= share:
            names.append(name)
    return names


def _held(instance: Instance, action: Action, names: Iterable[str]) -> dict[str, float]:
    """The action with features set to their factual values, without idle holds."""
    return without_idle_holds(instance, {**action, **{name: instance.factual[name] for name in names}})


def already_good(instance: Instance) -> bool:
    """Whether doing nothing is feasible: the factual is accepted and meets domains and conditions."""
    [rest] = at_rest([instance])
    return rest is not None and rest.feasible


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


def _surely_refused(instances: Sequence[Instance]) -> list[bool]:
    """Per instance, whether the factual's float64 logit plus its rounding error is below the threshold.

    All instances have one classifier. False throughout for trees and for networks with curves.
    """
    first = instances[0]
    if not isinstance(first.classifier, ReluNetwork):
        return [False] * len(instances)
    rows = first.model_rows(np.array([one.factual_row for one in instances]))
    thresholds = (one.accept.threshold for one in instances)
    near = zip(first.classifier.nearly(rows), thresholds, strict=True)
    return [logit is not None and logit[0].upper < threshold for logit, threshold in near]
