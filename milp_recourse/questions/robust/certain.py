"""The cheapest action that is accepted even if not everything turns out as planned."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from milp_recourse.certificates import TOO_MUCH, encode
from milp_recourse.errors import Unsupported
from milp_recourse.formats.schema_answers import RobustModel
from milp_recourse.formats.stated import document
from milp_recourse.judge import conclude, known_factual
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scenario import Scenario
from milp_recourse.questions.robust.box_search import TreeSearch
from milp_recourse.questions.robust.certain_search import Evidence
from milp_recourse.questions.robust.certify import certain_certificate, why_no_certificate
from milp_recourse.questions.robust.scenario_search import NetworkSearch
from milp_recourse.questions.robust.uncertainty import Uncertainty, at_worst_threshold, uncertainty_of
from milp_recourse.questions.solve import as_instance, check_options, choose_backend, solve


@dataclass(frozen=True)
class Robust:
    """The cheapest certain action, with a proof.

    Attributes
    ----------
    result
        The result for the problem with the highest threshold. Its action is accepted in every outcome, and no
        action that is accepted in every outcome costs less than the lower bound. With status ``infeasible``
        there is no such action. ``proof`` is ``rigorous`` only if ``evidence`` is a certificate of this.
    uncertainty
        What the action withstands.
    worst
        The lowest logit or score that was found among the action's outcomes, and the scenario that leads to
        it; None without an action, and if the action has only one outcome.
    cuts, rounds
        The number of scenarios (networks) or refused boxes (trees) on which the lower bound rests, and the
        number of problems solved.
    """

    instance: Instance = field(repr=False)
    result: Result
    uncertainty: Uncertainty
    worst: tuple[float, Scenario] | None
    cuts: int
    rounds: int

    @property
    def problem(self) -> Instance:
        """The problem with the highest threshold."""
        return at_worst_threshold(self.instance, self.uncertainty)

    @property
    def worst_counterfactual(self) -> Mapping[str, float | int | str | None] | None:
        """The values of every feature in the worst outcome found, or as planned if there is no other."""
        if self.worst is None or self.result.action is None or self.result.counterfactual is None:
            return self.result.counterfactual
        instance = self.instance
        action, factual = instance.numbers(self.result.action), known_factual(instance)
        exact = instance.scm.counterfactual_exact(factual, action, self.worst[1])
        stays = instance.missing - action.keys()
        return {
            name: None if name in stays else instance.by_name[name].show(value.nearest)
            for name, value in exact.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """As a ``robust-1`` document."""
        worst = None
        if self.worst is not None:
            output, scenario = self.worst
            worst = {"output": output, "missed": dict(scenario.missed), "noise": dict(scenario.noise)}
        own = {"withstands": self.uncertainty.to_dict(), "cuts": self.cuts, "rounds": self.rounds}
        return document(RobustModel, self.result, worst=worst, **own)

    def without_certificate(self, reason: str) -> Robust:
        """The same answer, whose proof is only as sure as the search, with the reason in the message."""
        note = f"No certificate, so the proof is only as sure as the search: {reason}."
        said = (
            f"The search says: {NONE_CERTAIN}"
            if self.result.status is Status.INFEASIBLE
            else self.result.message
        )
        message = note if said is None else f"{said.rstrip('.')}. {note}"
        return replace(self, result=replace(self.result, proof="solver", evidence=None, message=message))


NONE_CERTAIN = "no action is accepted whatever happens. Withstand less, or relax mask, ranges or conditions."


def robust(
    problem: Instance | Mapping[str, Any] | str | Path,
    missed: Mapping[str, float] | None = None,
    threshold: float | None = None,
    noise: Mapping[str, float | Sequence[float]] | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    certificates: bool = True,
    index: int | None = None,
) -> Robust:
    """The cheapest action that is accepted whatever happens within the limits given.

    Only acceptance must hold in every outcome. Mask, bounds, ranges, domains, conditions and plausibility are
    about the action as planned.

    Parameters
    ----------
    problem, backend, index
        As for :func:`milp_recourse.solve`; the back end solves all problems of the search.
    missed, threshold, noise
        See :class:`~milp_recourse.questions.robust.uncertainty.Uncertainty`.
    time_limit
        Wall seconds for everything; None for no limit.
    certificates
        Whether to make a certificate. It belongs to ``problem`` and is in ``result.evidence``. Without one
        ``proof`` is ``solver``, and the message says why there is none.

    Raises
    ------
    BadInput
        The file breaks the format, or the uncertainty does not fit the problem.
    Unsupported
        As for :func:`milp_recourse.solve`; also if the back end proves nothing, or trees have levers or
        effects that :class:`~milp_recourse.questions.robust.box_search.TreeSearch` does not take, or outcomes
        are uncertain and a lever takes only steps or listed values.
    BackendUnavailable
        As for :func:`milp_recourse.solve`.
    """
    check_options(time_limit, certificates=certificates)
    start, clock = time.perf_counter(), Clock.start(time_limit)
    given = as_instance(problem)
    if isinstance(given.classifier, AskedModel):
        raise Unsupported("robust: the model is asked, not read; allowed: a network or trees that are read")
    uncertainty = uncertainty_of(given, missed, threshold, noise)
    instance = at_worst_threshold(given, uncertainty)
    chosen = choose_backend(instance, backend)
    if not chosen.proves:
        raise Unsupported(f"backend {chosen.name}: certainty needs one that proves")
    evidence: Evidence = ()
    stepped = next((name for name in instance.levers if instance.by_name[name].only), None)
    if stepped is not None and uncertainty.of_outcomes:
        raise Unsupported(
            f"{stepped} takes steps or listed values only: leave these out, or missed and noise"
        )
    if uncertainty.of_outcomes:
        kind = NetworkSearch if isinstance(instance.classifier, ReluNetwork) else TreeSearch
        search = kind(instance, uncertainty, chosen.name, clock)
        proposal, evidence = search.run(), search.evidence
        result = conclude(instance, proposal, chosen.name, time.perf_counter() - start, as_given=True)
        found = Robust(given, result, uncertainty, search.worst, search.cuts, search.rounds)
    else:  # with the highest threshold it is an ordinary problem
        found = Robust(given, solve(instance, chosen.name, time_limit), uncertainty, None, 0, 1)
    return _certified(found, instance, evidence, clock, certificates, index)


def _certified(
    found: Robust,
    instance: Instance,
    evidence: Evidence,
    clock: Clock,
    certificates: bool,
    index: int | None,
) -> Robust:
    """The answer with its certificate, or with the reason why there is none."""
    result, begun = found.result, time.perf_counter()
    reason = "none was asked for"
    if certificates:
        reason = why_no_certificate(instance, found.uncertainty, result) or ""
    if clock.over and not reason:
        reason = "the time limit was reached"
    if reason:
        if result.status is Status.OPTIMAL:  # what solve() says of an ordinary problem is about certificates
            found = replace(found, result=replace(result, message=None))
        return found.without_certificate(reason)
    made = certain_certificate(found.instance, instance, found.uncertainty, result, evidence, clock)
    if made is None:
        return found.without_certificate(TOO_MUCH)
    made |= {} if index is None else {"index": index}
    message = f"Proven: {NONE_CERTAIN}" if result.status is Status.INFEASIBLE else result.message
    seconds = result.seconds + time.perf_counter() - begun
    done = replace(result, evidence=encode(made), message=message, seconds=seconds)
    return replace(found, result=done)
