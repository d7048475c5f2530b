"""Judging an action: the doubles that are returned, in exact arithmetic and by the deployed model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import TRUE, condition_text, holds, meaning
from milp_recourse.problem.enclosure import Enclosure, Rounded
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork

Action = Mapping[str, float]


REFUSES = "the classifier does not accept the counterfactual in exact arithmetic"
"""The fault of an action after which the classifier does not accept."""


@dataclass(frozen=True)
class Judgement:
    """Everything that can be said about one action.

    Attributes
    ----------
    instance, action
        What is judged.
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
        Deployed score of trees; None for networks and models that are asked.
    accepted_exact, accepted_deployed
        Whether the classifier accepts in exact arithmetic, and as deployed.
    """

    instance: Instance = field(repr=False, compare=False)
    action: Action
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

    @property
    def broken(self) -> tuple[str, ...]:
        """The faults that are not the classifier's: demands that are broken whether or not it accepts."""
        return tuple(fault for fault in self.faults if fault != REFUSES)

    def is_of(self, instance: Instance, action: Action) -> bool:
        """Whether it was made of this very instance and of this action."""
        return self.instance is instance and self.action == action


def judge(instance: Instance, action: Action) -> Judgement:
    """Evaluate an action exactly: mask, bounds, domains, SCM, classifier, plausibility, conditions, cost.

    Parameters
    ----------
    action
        Feature name -> double (labels by index); {} for doing nothing.
    """
    return judged_together([(instance, action)])[0]


def judged_together(pairs: Sequence[tuple[Instance, Action]]) -> list[Judgement]:
    """The judgements of several instances' actions, the same as one by one, to the last bit.

    Each network is evaluated once for all of its actions.
    """
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


def counterfactual_if_allowed(instance: Instance, action: Action) -> dict[str, float] | None:
    """The counterfactual of an action that keeps every demand but acceptance, as in
    :attr:`Judgement.counterfactual`; None if it breaks one."""
    outcome = _outcome(instance, action)
    if outcome.faults or not _is_plausible(instance, action, outcome):
        return None
    if instance.demand != TRUE and _condition_faults(instance, action, outcome.exact, outcome.nearest):
        return None
    return outcome.nearest


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


def _outcome(instance: Instance, action: Action) -> _Outcome:
    faults = _permission_faults(instance, action)
    rest = known_exactly(instance)
    exact = instance.scm.counterfactual_exact(rest, action)
    for name in instance.missing - action.keys():
        del exact[name]
    nearest = dict.fromkeys(instance.missing, math.nan)
    for name, e in exact.items():
        if e is rest[name]:
            nearest[name] = instance.factual[name] + 0.0  # no -0.0
            continue
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
        own = instance.classifier.score(seen.row)
        accepted_exact = accepted_deployed = own > instance.accept.above
        score = None if isinstance(instance.classifier, AskedModel) else own
    if not accepted_exact:
        faults.append(REFUSES)
    if not _is_plausible(instance, action, outcome):
        offset = f" and {instance.offset:+g} in log density" if instance.offset else ""
        faults.append(f"the counterfactual is less plausible than the factual{offset}")
    faults += _condition_faults(instance, action, exact, nearest)
    cost = Fraction(0)
    if action.keys() <= set(instance.preferences.actionable):
        cost = instance.cost_of(action)
    verdict = tuple(faults), cost, nearest, logit, score, accepted_exact, accepted_deployed
    return Judgement(instance, dict(action), *verdict)


def _is_plausible(instance: Instance, action: Action, outcome: _Outcome) -> bool:
    return not instance.plausible or instance.scm.plausible_exact(
        instance.factual, outcome.exact, frozenset(action), instance.offset
    )


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


def known_factual(instance: Instance) -> Mapping[str, float]:
    """The factual with a number in place of each missing value; no result depends on the number."""
    if not instance.missing:
        return instance.factual
    return {name: 0.0 if name in instance.missing else x for name, x in instance.factual.items()}


def known_exactly(instance: Instance) -> Mapping[str, Enclosure]:
    """The numbers of :func:`known_factual` exactly, made once for all actions that are judged."""
    return (
        instance.exact_factual
        if not instance.missing
        else {name: Enclosure.of(x) for name, x in known_factual(instance).items()}
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


def nearest_double(value: Enclosure, what: str) -> float:
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
        elif (lattice := instance.by_name[name].lattice) is not None and value not in lattice:
            faults.append(f"{name!r} = {value!r} is not {lattice}")
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
    by_name, faults = instance.by_name, []
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
    least = network.enclose(model_inputs(instance, exact))[0]
    for scenario in instance.scenarios:
        values = instance.scm.counterfactual_exact(known_factual(instance), action, scenario)
        logit = network.enclose(model_inputs(instance, values))[0]
        least = logit if logit.lower < least.lower else least
    return least


def model_inputs(instance: Instance, values: Mapping[str, Enclosure]) -> list[Enclosure]:
    """The classifier's columns of exact values."""
    inputs = []
    for f in instance.features:
        lookup = f.lookup if f.by_label else None
        if lookup is None:
            inputs.append(values[f.name])
        else:
            chosen = [values[f.name].lower == label for label in range(len(lookup))] @ lookup
            inputs += [Enclosure.of(number) for number in chosen.tolist()]
    return inputs
