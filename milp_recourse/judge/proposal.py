"""What a back end proposes, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from milp_recourse.judge.judgement import Judgement
from milp_recourse.problem.result import Proof


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
