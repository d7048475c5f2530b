"""Judging an action: the doubles that are returned, in exact arithmetic and by the deployed model.

A back end proposes an action and a bound. :func:`conclude` is the only function that makes a
:class:`~milp_recourse.problem.result.Result`. It evaluates the action anew, and withdraws a bound that is above the
cost of a feasible action.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.judge.smaller import smaller_changes
from milp_recourse.problem.conditions import TRUE, Counted, Switched, condition_text, holds, leaves, meaning
from milp_recourse.problem.enclosure import Enclosure, Rounded, round_up
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.plausibility import plausible_exact
from milp_recourse.problem.result import Proof, Proposal, Result, Status, gap_tolerance, is_closed

Action = Mapping[str, float]
Repair = Callable[[Instance, Action], "Action | None"]


@dataclass(frozen=True)
class Judgement:
    """Everything that can be said about one action.

    Attributes
    ----------
    faults
        One sentence per broken demand; empty when the action is feasible in exact arithmetic.
    cost
        Exact.
    counterfactual
        The doubles nearest to the exact counterfactual; nan where a value is missing and stays so.
    logit
        An enclosure of the logit, from doubles and their error where that decides acceptance, else from exact
        arithmetic; with scenarios, the least over the counterfactual and theirs. None for trees.
    score
        Deployed score of trees; None for networks.
    accepted_exact, accepted_deployed
        Whether the classifier accepts in exact arithmetic, and as deployed.
    """

    faults: tuple[str, ...]
    cost: Fraction
    counterfactual: Mapping[str, float]
    logit: Enclosure | None
    score: float | None
    accepted_exact: bool
    accepted_deployed: bool

    @property
    def feasible(self) -> bool:
        """Whether the action meets every demand and the deployed model accepts it."""
        return not self.faults and self.accepted_deployed


_KNOWN = threading.local()
"""Per thread the latest judgement, and those of :func:`judged_together`."""


def judge(instance: Instance, action: Action) -> Judgement:
    """Evaluate an action exactly: mask, bounds, domains, SCM, classifier, plausibility, conditions, cost.

    Each thread keeps its latest judgement, because :func:`conclude` judges what a search has just judged.

    Parameters
    ----------
    action
        Feature name -> double (labels by index); {} for doing nothing.
    """
    known = _KNOWN.__dict__
    for one, other, verdict in (known.get("latest", _NOTHING), *known.get("batch", {}).get(id(instance), ())):
        if one is instance and other == action:
            return cast(Judgement, verdict)
    [verdict] = _judged([(instance, action)])
    _KNOWN.latest = instance, dict(action), verdict
    return verdict


_NOTHING = None, None, None


@contextmanager
def judged_together(pairs: Sequence[tuple[Instance, Action]]) -> Iterator[None]:
    """Judge an action of each of several instances at once, and what :func:`held_exactly` would make of it;
    inside, :func:`judge` has them at hand.

    Each network is evaluated once for all of its actions. Judgements are the same as one by one, to the last
    bit.
    """
    before = _KNOWN.__dict__.get("batch", {})
    every = [
        (instance, one)
        for instance, action in pairs
        for one in (action, *(_held(instance, action, [name]) for name in _negligible(instance, action)))
    ]
    _KNOWN.batch = {}
    for (instance, action), verdict in zip(every, _judged(every), strict=True):
        _KNOWN.batch.setdefault(id(instance), []).append((instance, dict(action), verdict))
    try:
        yield
    finally:
        _KNOWN.batch = before


class _Outcome(NamedTuple):
    """The counterfactual of an action: faults found so far, exact values, nearest doubles."""

    faults: list[str]
    exact: dict[str, Enclosure]
    nearest: dict[str, float]


class _Seen(NamedTuple):
    """What a classifier sees of an outcome: its input, and of a network the logit as
    :meth:`ReluNetwork.nearly` gives it."""

    row: NDArray[np.float64]
    near: tuple[Rounded, float] | None = None


def _judged(pairs: Sequence[tuple[Instance, Action]]) -> list[Judgement]:
    outcomes = [_outcome(instance, action) for instance, action in pairs]
    seen: dict[int, _Seen] = {}
    of_model: dict[tuple[int, int], list[int]] = {}
    for k, (instance, _) in enumerate(pairs):
        of_model.setdefault((id(instance.classifier), id(instance.features)), []).append(k)
    for numbers in of_model.values():
        one = pairs[numbers[0]][0]
        rows = one.model_rows(
            np.array([[outcomes[k].nearest[f.name] for f in one.features] for k in numbers])
        )
        if isinstance(one.classifier, ReluNetwork):
            seen.update(zip(numbers, map(_Seen, rows, one.classifier.nearly(rows)), strict=True))
        else:
            seen.update(zip(numbers, map(_Seen, rows), strict=True))
    return [_verdict(*pair, outcomes[k], seen[k]) for k, pair in enumerate(pairs)]


def _outcome(instance: Instance, action: Action) -> _Outcome:
    faults = _permission_faults(instance, action)
    exact = instance.scm.counterfactual_exact(known_factual(instance), action)
    for name in instance.missing - action.keys():
        del exact[name]
    nearest = dict.fromkeys(instance.missing, math.nan)
    for name, e in exact.items():
        try:
            nearest[name] = e.nearest
        except OverflowError:
            nearest[name] = double(e.midpoint, f"the counterfactual's {name!r}")
    return _Outcome(faults + _domain_faults(instance, exact), exact, nearest)


def _verdict(instance: Instance, action: Action, outcome: _Outcome, seen: _Seen) -> Judgement:
    faults, exact, nearest = outcome
    logit: Enclosure | None = None
    score: float | None = None
    if isinstance(instance.classifier, ReluNetwork):
        logit, accepted_exact, accepted_deployed = _network_accepts(instance, action, exact, seen)
    else:
        score = instance.classifier.score(seen.row)
        accepted_exact = accepted_deployed = score > instance.accept.above
    if not accepted_exact:
        faults.append("the classifier does not accept the counterfactual in exact arithmetic")
    if instance.plausible and not plausible_exact(
        instance.scm, instance.factual, exact, frozenset(action), instance.offset
    ):
        offset = f" and {instance.offset:+g} in log density" if instance.offset else ""
        faults.append(f"the counterfactual is less plausible than the factual{offset}")
    faults += _condition_faults(instance, action, exact, nearest)
    cost = Fraction(0)
    if action.keys() <= set(instance.preferences.actionable):
        cost = instance.cost.exact(deltas(instance, action), instance.weights)
    return Judgement(tuple(faults), cost, nearest, logit, score, accepted_exact, accepted_deployed)


def _network_accepts(
    instance: Instance, action: Action, exact: Mapping[str, Enclosure], seen: _Seen
) -> tuple[Enclosure, bool, bool]:
    """The logit, whether it is at least threshold plus margin, and whether the deployed network accepts.

    Exact arithmetic is used only where doubles and their error leave the answer open.
    """
    network, accept = instance.classifier, instance.accept
    assert isinstance(network, ReluNetwork)
    logit: Enclosure | None = None
    single = not instance.scenarios and all(e.exact for e in exact.values())
    if single and seen.near is not None:
        near, deployed = seen.near
        value, error = near.value, near.error
        need = accept.threshold + accept.margin
        # the rounding of ``need`` and of the two differences below
        slack = ROUNDOFF * (abs(accept.threshold) + accept.margin + abs(value))
        if abs(value - need) > error + slack:
            logit, accepted = near, value > need
        if logit is not None and value - accept.threshold > deployed + slack:
            return logit, accepted, True
    if logit is None:
        logit = _least_logit(instance, action, exact)
        accepted = logit.lower >= accept.needed
    return logit, accepted, network.deploys_at_least(seen.row, accept.threshold)


ROUNDOFF = 2.0**-50
"""Relative error of a few roundings: eight times 2^-53, the largest of one rounding to a double."""


def deltas(instance: Instance, action: Action) -> dict[str, Fraction]:
    """delta_i of the acted features: a - x (or Q(a) - Q(x)), or 1 for a changed category.

    Where x is missing, delta is the feature's scale, so that delta / scale is 1 in every part of the cost.
    """
    result = {}
    for name, value in action.items():
        x = instance.factual[name]
        if name in instance.missing:
            delta = Fraction(instance.cost.scale.get(name, 1.0))
        elif instance.feature(name).kind == "categorical":
            delta = Fraction(int(value != x))
        else:
            delta = instance.cost.change(name, x, value)
        result[name] = delta
    return result


def known_factual(instance: Instance) -> Mapping[str, float]:
    """The factual with a number in place of each missing value; no result depends on the number."""
    if not instance.missing:
        return instance.factual
    return {name: 0.0 if name in instance.missing else x for name, x in instance.factual.items()}


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
        Whether to return the action unchanged, to the last digit. Otherwise idle holds are left out of it,
        and changes are undone or made smaller where that costs nothing.

    Returns
    -------
    Result
        ``optimal`` only if the exact cost and the bound agree to the gap; ``infeasible`` only
        for a bound of infinity and no feasible action in hand; ``found`` or ``not-found`` for a
        proposal without bound; otherwise ``limit``.
    """
    start = time.perf_counter()
    action, judgement, message = _admitted(instance, proposal, repair, as_given)
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
        **_shown(instance, action, judgement),
    )


def _admitted(
    instance: Instance, proposal: Proposal, repair: Repair | None, as_given: bool
) -> tuple[Action | None, Judgement | None, str | None]:
    """The proposed action, repaired if need be, its judgement, and the proposal's message.

    If the action fails, the first two are None and the message says why.
    """
    action, message = proposal.action, proposal.message
    if action is None:
        return None, None, message
    if not set(action) <= set(instance.preferences.actionable):
        return None, None, message or "the proposed action changes what is not individually actionable"
    if not all(math.isfinite(v) for v in action.values()):
        return None, None, message or "the proposed action holds a number that is not finite"
    action = dict(action) if as_given else without_idle_holds(instance, action)
    judgement = judge(instance, action)
    if as_given and judgement.feasible:
        return action, judgement, message
    if not judgement.feasible and repair is not None:
        repaired = repair(instance, action)
        if repaired is not None:
            action = without_idle_holds(instance, repaired)
            judgement = judge(instance, action)
    if not judgement.feasible:
        return None, None, message or _refusal(instance, judgement)
    action, judgement = held_exactly(instance, action, judgement)
    if repair is not None:
        action, judgement = _without_slight_changes(instance, action, judgement, repair, proposal.lower_bound)
    return *smaller_changes(instance, action, judgement, judge), message


def _shown(instance: Instance, action: Action | None, judgement: Judgement | None) -> dict[str, Any]:
    """The fields of a result that it has only with an action."""
    if action is None or judgement is None:
        return {}
    return {
        "action": {n: instance.feature(n).show(v) for n, v in action.items()},
        "counterfactual": {f.name: f.shown(judgement.counterfactual[f.name]) for f in instance.features},
        "logit": None if judgement.logit is None else _nearest(judgement.logit, "the logit"),
        "score": judgement.score,
        "accepted_exact": judgement.accepted_exact,
        "accepted_deployed": judgement.accepted_deployed,
    }


NEGLIGIBLE = 2e-3
"""How far from the factual :func:`held_exactly` looks, in cost scales: squared costs hide changes up to about
the root of the gap."""


def held_exactly(instance: Instance, action: Action, judgement: Judgement) -> tuple[Action, Judgement]:
    """The action with values near the factual set exactly to it, where it stays feasible and costs no more.

    A search with squared costs may leave a change that is too small to matter for the cost; "hold duration"
    is easier to read than a change of 1e-5.
    """
    for name in _negligible(instance, action):
        held = _held(instance, action, [name])
        verdict = judge(instance, held)
        if verdict.feasible and verdict.cost <= judgement.cost:
            action, judgement = held, verdict
    return action, judgement


SLIGHT = 1e-4
"""Up to how many cost scales a change is slight: it is left out if others, a little larger, spare it."""


def _without_slight_changes(
    instance: Instance, action: Action, judgement: Judgement, repair: Repair, bound: float | None
) -> tuple[Action, Judgement]:
    """The action without its slight changes, if others can replace these and the proof still holds.

    A search that ends within the gap may leave many changes of 1e-7 that one larger change spares. What is
    left of the action alone is hardly ever feasible; ``repair`` makes it so.
    """
    slight = _negligible(instance, action, SLIGHT)
    if bound is None or not math.isfinite(bound) or not slight or len(slight) == len(action):
        return action, judgement
    spared = repair(instance, _held(instance, action, slight))
    if spared is None or len(_negligible(instance, spared, SLIGHT)) >= len(slight):
        return action, judgement
    found = judge(instance, spared)
    dearest = max(0.0, bound) + 0.75 * gap_tolerance(max(0.0, bound), instance.gap_allowance)
    if found.feasible and found.cost <= max(judgement.cost, Fraction(dearest)):
        return spared, found
    return action, judgement


def _negligible(instance: Instance, action: Action, share: float = NEGLIGIBLE) -> list[str]:
    """The features whose change is at most that share of a cost scale, and which may be held."""
    names = []
    for name, value in action.items():
        x = instance.factual[name]
        near = share * instance.cost.scale.get(name, 1.0)
        if (
            value != x
            and abs(value - x) <= near
            and instance.levers[name][0] <= x <= instance.levers[name][1]
        ):
            names.append(name)
    return names


def _held(instance: Instance, action: Action, names: Iterable[str]) -> dict[str, float]:
    """The action with features set to their factual values, without idle holds."""
    return without_idle_holds(instance, {**action, **{name: instance.factual[name] for name in names}})


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


def double(value: Fraction, what: str, rounded: Callable[[Fraction], float] = float) -> float:
    """The nearest double, or the one that ``rounded`` gives.

    Raises
    ------
    Unsupported
        There is none: the number is larger than any.
    """
    try:
        return rounded(value)
    except OverflowError:
        raise Unsupported(f"{what} is larger than any double: use larger units or smaller weights") from None


def _nearest(value: Enclosure, what: str) -> float:
    """The double nearest to the middle of an enclosure; raises as :func:`double`."""
    try:
        return value.nearest
    except OverflowError:
        return double(value.midpoint, what)


def _permission_faults(instance: Instance, action: Action) -> list[str]:
    faults = []
    for name, value in action.items():
        if name not in instance.preferences.actionable:
            faults.append(f"{name!r} is not individually actionable")
            continue
        allowed = instance.levers.get(name)
        if allowed is None or not (math.isfinite(value) and allowed[0] <= value <= allowed[1]):
            faults.append(f"{name!r} = {value!r} lies outside {allowed}")
        elif instance.feature(name).integral and not float(value).is_integer():
            faults.append(f"{name!r} = {value!r} is not a whole number")
    return faults


def _domain_faults(instance: Instance, values: Mapping[str, Enclosure]) -> list[str]:
    faults = []
    for f in instance.features:
        if f.domain is not None and f.name in values:
            low, high = (Fraction(end) for end in f.domain)
            if not (low <= values[f.name].lower and values[f.name].upper <= high):
                faults.append(f"{f.name!r} leaves its domain {f.domain}")
    return faults


def _condition_faults(
    instance: Instance, action: Action, exact: Mapping[str, Enclosure], nearest: Mapping[str, float]
) -> list[str]:
    """A sentence per condition that the exact counterfactual, or the doubles returned for it, break."""
    if instance.demand == TRUE:
        return []
    returned = {name: Enclosure.of(value) for name, value in nearest.items() if not math.isnan(value)}
    by_name = {f.name: f for f in instance.features}
    faults = []
    for k, one in enumerate(instance.all_conditions):
        demand = meaning(one, by_name, instance.factual)
        if not (holds(demand, exact, action) and holds(demand, returned, action)):
            faults.append(f"condition {k} does not hold: {condition_text(one, by_name)}")
    if not all(holds(one, exact, action) and holds(one, returned, action) for one in instance.demands):
        faults.append("a demand of the alternative at hand does not hold")
    return faults


def _least_logit(instance: Instance, action: Action, exact: Mapping[str, Enclosure]) -> Enclosure:
    """The logit of the counterfactual, or of the scenario that brings it lowest."""
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    least = network.enclose(_model_inputs(instance, exact))[0]
    for scenario in instance.scenarios:
        values = instance.scm.counterfactual_exact(known_factual(instance), action, scenario)
        logit = network.enclose(_model_inputs(instance, values))[0]
        least = logit if logit.lower < least.lower else least
    return least


def _model_inputs(instance: Instance, values: Mapping[str, Enclosure]) -> list[Enclosure]:
    inputs = []
    for f in instance.features:
        lookup = f.lookup if f.by_label else None
        if lookup is None:
            inputs.append(values[f.name])
        else:
            chosen = [values[f.name].lower == label for label in range(len(lookup))] @ lookup
            inputs += [Enclosure.of(number) for number in chosen.tolist()]
    return inputs
