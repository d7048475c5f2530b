"""The cheapest action that is accepted even if not everything turns out as planned."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milp_recourse.certificates import without_certificate
from milp_recourse.errors import Unsupported
from milp_recourse.formats.write import result_part
from milp_recourse.judge import conclude
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result
from milp_recourse.problem.scenario import Scenario
from milp_recourse.questions.robust.box_search import TreeSearch
from milp_recourse.questions.robust.scenario_search import NetworkSearch
from milp_recourse.questions.robust.uncertainty import Uncertainty, at_worst_threshold, uncertainty_of
from milp_recourse.questions.solve import as_instance, check_options, choose_backend, solve

ROBUST_FORMAT = "milp-recourse/robust-1"

NO_CERTIFICATE = "a certificate cannot claim anything about missed targets or other noise"


@dataclass(frozen=True)
class Robust:
    """The cheapest certain action, with a proof.

    Attributes
    ----------
    result
        The result for the problem with the highest threshold. Its action is proven to be accepted in every
        outcome, and no action that is accepted in every outcome costs less than the lower bound. With status
        ``infeasible`` there is no such action.
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
        """The problem with the highest threshold; the result's certificate is about this problem."""
        return at_worst_threshold(self.instance, self.uncertainty)

    def to_dict(self) -> dict[str, Any]:
        """As a ``robust-1`` document."""
        result = self.result
        worst = None
        if self.worst is not None:
            output, scenario = self.worst
            worst = {"output": output, "missed": dict(scenario.missed), "noise": dict(scenario.noise)}
        return {
            "format": ROBUST_FORMAT,
            **result_part(result, "cost", "lower_bound", "proof", "action", "counterfactual"),
            "withstands": self.uncertainty.to_dict(),
            "worst": worst,
            "cuts": self.cuts,
            "rounds": self.rounds,
            "message": result.message,
        }


def robust(
    problem: Instance | Mapping[str, Any] | str | Path,
    missed: Mapping[str, float] | None = None,
    threshold: float | None = None,
    noise: Mapping[str, float | Sequence[float]] | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    certificates: bool = False,
) -> Robust:
    """The cheapest action that is accepted whatever happens within the limits given.

    Only acceptance must hold in every outcome. Mask, bounds, ranges, domains, conditions and plausibility are
    about the action as planned.

    Parameters
    ----------
    problem
        An instance, the JSON value of one, or the path of its file.
    missed, threshold, noise
        See :class:`~milp_recourse.questions.robust.uncertainty.Uncertainty`.
    backend
        As for :func:`milp_recourse.solve`; it solves all problems of the search.
    time_limit
        Wall seconds for everything; None for no limit.
    certificates
        Whether to make a certificate. There is one only if nothing but the threshold is uncertain; it is
        about :attr:`Robust.problem`.

    Raises
    ------
    BadInput
        The file breaks the format, or the uncertainty does not fit the problem.
    Unsupported
        As for :func:`milp_recourse.solve`; also if the back end proves nothing, or trees have levers or
        effects that :class:`~milp_recourse.questions.robust.box_search.TreeSearch` does not take.
    BackendUnavailable
        As for :func:`milp_recourse.solve`.
    """
    check_options(time_limit)
    start, clock = time.perf_counter(), Clock.start(time_limit)
    given = as_instance(problem)
    uncertainty = uncertainty_of(given, missed, threshold, noise)
    instance = at_worst_threshold(given, uncertainty)
    chosen = choose_backend(instance, backend)
    if not chosen.proves:
        raise Unsupported(f"backend {chosen.name}: certainty needs one that proves")
    name = chosen.name
    if not uncertainty.of_outcomes:  # with the highest threshold it is an ordinary problem
        return Robust(given, solve(instance, name, time_limit, certificates), uncertainty, None, 0, 1)
    kind = NetworkSearch if isinstance(instance.classifier, ReluNetwork) else TreeSearch
    search = kind(instance, uncertainty, name, clock)
    result = conclude(instance, search.run(), name, time.perf_counter() - start, as_given=True)
    result = without_certificate(instance, result, NO_CERTIFICATE)
    return Robust(given, result, uncertainty, search.worst, search.cuts, search.rounds)
