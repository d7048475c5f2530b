"""How far a given action, from any source, is from the optimum, with a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from milp_recourse.certificates import certificates_for, encode
from milp_recourse.errors import BadInput, got_text, is_number
from milp_recourse.judge import conclude, judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import check_options, solve
from milp_recourse.solvers.protocol import Proposal


@dataclass(frozen=True)
class Proof:
    """What is proven about a given action.

    Attributes
    ----------
    faults
        One sentence per broken demand; empty when the action is feasible.
    result
        The action with its exact cost and a lower bound of every feasible action's cost; None with faults.
        Its status is ``limit`` where the action is dearer than the bound by more than the gap, also if the
        search was complete.
    stopped
        Whether the search for the optimum reached its limit, so that the bound may be far below it.
    """

    faults: tuple[str, ...]
    result: Result | None
    stopped: bool = False


def prove(
    instance: Instance,
    action: Mapping[str, float],
    time_limit: float | None = None,
    index: int | None = None,
) -> Proof:
    """Check an action from any source exactly and bound its distance from the optimum.

    The engine finds a lower bound of every feasible action's cost. Where a certificate can be made
    (``result.evidence``), it holds this bound and the action as it was given.

    Parameters
    ----------
    action
        Feature name -> number (labels by index); features that are not named are not acted on.
    time_limit
        Seconds for each of the two searches; None for no limit.
    index
        The applicant's index, where the instance was taken out of a population; the certificate names it.

    Raises
    ------
    BadInput
        The action names a feature that does not exist or has a value that is not finite, or the time limit
        is no positive number.
    Unsupported
        The back end cannot solve the problem.
    """
    check_options(time_limit)
    names = [f.name for f in instance.features]
    for name, value in action.items():
        if name not in names:
            raise BadInput(f"action.{name}", "an unknown feature", ", ".join(names))
        if not is_number(value):
            raise BadInput(f"action.{name}", got_text(value), "a finite number")
    judgement = judge(instance, action)
    faults = judgement.faults
    if not faults and not judgement.accepted_deployed:
        faults = ("the deployed model does not accept the counterfactual",)
    if faults:
        return Proof(faults, None)
    best = solve(instance, time_limit=time_limit)
    dearer = "the search was complete: the action is feasible, but not the cheapest"
    message = dearer if best.status is Status.OPTIMAL else best.message
    given = best.proof, best.nodes, message, None, judgement, best.rests_on
    proposal = Proposal(action, best.lower_bound, *given)
    result = conclude(instance, proposal, best.backend, best.seconds, as_given=True)
    (certificate,) = certificates_for([instance], [result], time_limit, None if index is None else [index])
    if certificate is not None:
        result = replace(result, evidence=encode(certificate))
    return Proof((), result, best.status is Status.LIMIT)
