"""Judges a method's actions one by one, and compares them with the optima."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.evaluation.optima import Optimum
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import gap_tolerance

Action = Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    """A method's action for one applicant, judged.

    Attributes
    ----------
    recourse
        Whether recourse exists: True, False (proven), or None (the search stopped).
    given
        Whether the method gave an action.
    outside_mask
        Features that it acts on although the applicant cannot, joined by ``+``.
    outside_range
        Features that it sets to a value that bounds, range, domain or kind forbid, joined by ``+``.
    claimed
        Whether the deployed model accepts the factual with the action's values put in and no effects on other
        features, as a method without a causal model assumes.
    deployed, exact
        Whether the counterfactual under the true causal model is accepted: by the deployed model, and in
        exact arithmetic with the stated margin.
    plausible
        Whether the counterfactual is plausible under the true causal model; None if that is not demanded.
    feasible
        Whether every demand is met.
    cost
        Cost of the action, feasible or not; None if it acts outside the mask.
    optimum, lower_bound
        The certified cost and lower bound.
    excess
        cost / optimum - 1 of a feasible action; 0 if both are 0.
    """

    index: int
    recourse: bool | None
    given: bool
    outside_mask: str = ""
    outside_range: str = ""
    claimed: bool = False
    deployed: bool = False
    exact: bool = False
    plausible: bool | None = None
    feasible: bool = False
    cost: float | None = None
    optimum: float | None = None
    lower_bound: float | None = None
    excess: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """A method's actions for all applicants, judged."""

    applicants: tuple[Judged, ...]

    def near(self, within: float) -> tuple[int, int]:
        """The numbers of applicants with an action near the optimum (:func:`is_near`) and with recourse."""
        have = [one for one in self.applicants if one.recourse]
        return sum(is_near(one, within) for one in have), len(have)

    def summary(self) -> dict[str, Any]:
        """Counts and shares by name; the name of a share says of which applicants it is."""
        everyone = self.applicants
        given = [one for one in everyone if one.given]
        have = [one for one in everyone if one.recourse]
        feasible = [one for one in given if one.feasible]
        excesses = [one.excess for one in feasible if one.excess is not None]
        with_density = [one for one in given if one.plausible is not None]

        def over(part: int, whole: int) -> float | None:
            return part / whole if whole else None

        def of_given(key: str) -> float | None:
            return over(sum(bool(getattr(one, key)) for one in given), len(given))

        quantiles: dict[str, float | None] = dict.fromkeys(("10", "50", "90", "99"))
        if excesses:
            quantiles = {q: float(np.quantile(excesses, int(q) / 100)) for q in quantiles}
        return {
            "applicants": len(everyone),
            "with recourse (proven)": len(have),
            "without recourse (proven)": sum(one.recourse is False for one in everyone),
            "undecided": sum(one.recourse is None for one in everyone),
            "given": len(given),
            "feasible": len(feasible),
            "share of all: given and accepted by the deployed model on the true causal model": over(
                sum(one.deployed for one in given), len(everyone)
            ),
            "share of given: accepted by the deployed model, causes left out": of_given("claimed"),
            "share of given: accepted by the deployed model on the true causal model": of_given("deployed"),
            "share of given: accepted in exact arithmetic with margin": of_given("exact"),
            "share of given: plausible": over(
                sum(bool(one.plausible) for one in with_density), len(with_density)
            ),
            "share of given: acts outside the mask": of_given("outside_mask"),
            "share of given: value outside bounds, range or domain": of_given("outside_range"),
            "missed: recourse exists, none given": sum(not one.given for one in have),
            "missed: recourse exists, none feasible given": sum(not one.feasible for one in have),
            "share of those with recourse: none feasible given": over(
                sum(not one.feasible for one in have), len(have)
            ),
            "cheaper than the optimum, because not feasible": sum(
                one.cost is not None and one.lower_bound is not None and one.cost < one.lower_bound
                for one in given
                if not one.feasible
            ),
            "excess over the optimum, mean over feasible": fmean(excesses) if excesses else None,
            "excess over the optimum, median over feasible": median(excesses) if excesses else None,
            "excess over the optimum, quantiles over feasible": quantiles,
            "share of those with recourse: within 5% of the optimum": over(*self.near(0.05)),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per applicant, with the attributes of :class:`Judged`."""
        return [asdict(one) for one in self.applicants]


def evaluate(
    population: Population, actions: Sequence[Action | None], optima: Sequence[Optimum]
) -> Evaluation:
    """Judge everybody's action and compare it with their optimum.

    Parameters
    ----------
    actions
        One per applicant; None where the method gives none.
    optima
        One per applicant, from :func:`~milp_recourse.evaluation.optima.certified_optima`.

    Raises
    ------
    BadInput
        There is not one action and one optimum per applicant, or an action names an unknown feature.
    """
    for what, given in (("actions", actions), ("optima", optima)):
        if len(given) != len(population):
            raise BadInput(what, len(given), f"one per applicant: {len(population)}")
    return Evaluation(
        tuple(
            _judged(k, instance, action, optimum)
            for k, (instance, action, optimum) in enumerate(zip(population, actions, optima, strict=True))
        )
    )


def is_near(one: Judged, within: float) -> bool:
    """Whether a feasible action is proven to cost at most (1 + within) times the optimum."""
    if not one.feasible or one.cost is None or one.lower_bound is None:
        return False
    return one.cost <= (1 + within) * one.lower_bound + gap_tolerance(one.cost)


def _judged(k: int, instance: Instance, action: Action | None, optimum: Optimum) -> Judged:
    recourse = True if optimum.cost is not None else (False if optimum.status == "infeasible" else None)
    base = Judged(k, recourse, action is not None, optimum=optimum.cost, lower_bound=optimum.lower_bound)
    if action is None:
        return base
    for name in action:
        if name not in instance.by_name:
            raise BadInput(f"applicant {k}", name, ", ".join(sorted(instance.by_name)))
    outside = [name for name in action if name not in instance.preferences.actionable]
    settable = {name for name in action if name in instance.levers and instance.may_set(name, action[name])}
    beyond = [name for name in action if name not in outside and name not in settable]
    verdict = judge(instance, action)
    written = np.array([action.get(f.name, instance.factual[f.name]) for f in instance.features])
    cost = None if outside else float(verdict.cost)
    excess = None
    if verdict.feasible and cost is not None and optimum.cost is not None:
        excess = cost / optimum.cost - 1 if optimum.cost > 0 else (0.0 if cost == 0 else None)
    return replace(
        base,
        outside_mask="+".join(outside),
        outside_range="+".join(beyond),
        claimed=_deployed(instance, written),
        deployed=verdict.accepted_deployed,
        exact=verdict.accepted_exact,
        plausible=not any("plausible" in f for f in verdict.faults) if instance.plausible else None,
        feasible=verdict.feasible,
        cost=cost,
        excess=excess,
    )


def _deployed(instance: Instance, row: np.ndarray) -> bool:
    inputs, accept = instance.model_rows(row), instance.accept
    if isinstance(instance.classifier, ReluNetwork):
        return instance.classifier.deployed_logit(inputs) >= accept.threshold
    return instance.classifier.score(inputs) > accept.above
