r"""Reasons that can be acted on: for each lever, and each small set of them, the least change that suffices.

For a set S of levers the answer is :math:`\min \{c(a) : a \text{ feasible}, a \text{ acts on } S
\text{ only}\}`, or the proof that S has no feasible action. What is feasible on S is feasible on every larger
set, so larger sets are solved first: one without a feasible action settles everything inside it, and an
optimum that acts on S alone is the optimum of every set between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput, is_number
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status, is_closed
from milp_recourse.questions.solve import as_instance, check_options, solve, solve_together

_TOGETHER = 32
"""Sets that are solved in one batch; a time limit is shared out anew for each batch."""


@dataclass(frozen=True)
class Sufficient:
    """The least change that acts only on ``levers``, or the proof that there is none."""

    levers: tuple[str, ...]
    result: Result


def reasons(
    problem: Instance | Mapping[str, Any] | str | Path,
    most: int = 2,
    backend: str | None = None,
    time_limit: float | None = None,
    known: Result | None = None,
) -> list[Sufficient]:
    """What suffices by itself: one answer per lever and per set of at most ``most`` levers, cheapest first.

    An applicant who is accepted as they are has the empty action at cost 0 in every row.

    Parameters
    ----------
    problem, backend
        As for :func:`milp_recourse.solve`.
    most
        The most levers of a set, 1 or more.
    time_limit
        Wall seconds for all sets together; None for no limit.
    known
        The answer on all levers, if it is there already.

    Returns
    -------
    list
        Sets with an action by its cost, the smaller set first where two cost the same; then those that
        stayed open; then those that are proven not to suffice.

    Raises
    ------
    BadInput
        The file breaks the format, or an argument is not what is allowed.
    Unsupported, BackendUnavailable
        As for :func:`milp_recourse.solve`.
    """
    check_options(time_limit)
    if not (is_number(most) and isinstance(most, Integral) and most >= 1):
        raise BadInput("most", repr(most), "a whole number, 1 or more")
    instance = as_instance(problem)
    levers, clock = tuple(instance.levers), Clock.start(time_limit)
    whole = solve(replace(instance, reference=None), backend, clock.left()) if known is None else known
    settled = {levers: whole}
    for size in range(min(int(most), len(levers)), 0, -1):
        _settle(instance, list(combinations(levers, size)), settled, backend, clock)
    found = [Sufficient(own, result) for own, result in settled.items() if 0 < len(own) <= most]
    return sorted(found, key=_rank)


def _settle(
    instance: Instance,
    sets: Sequence[tuple[str, ...]],
    known: dict[tuple[str, ...], Result],
    backend: str | None,
    clock: Clock,
) -> None:
    """Add every set's result to those that are known: from a larger set's, else by a search."""
    problems = {own: _only(instance, own) for own in sets if own not in known}
    settled = ((own, _from_larger(problem, own, known)) for own, problem in problems.items())
    known |= {own: result for own, result in list(settled) if result is not None}
    left = [own for own in problems if own not in known]
    for start in range(0, len(left), _TOGETHER):
        batch, seconds = left[start : start + _TOGETHER], clock.left()
        share = None if seconds is None else seconds / (len(left) - start)
        known |= zip(batch, solve_together([problems[own] for own in batch], backend, share), strict=True)


def _only(instance: Instance, levers: Iterable[str]) -> Instance:
    """The problem of somebody who can act on these levers only."""
    own = replace(instance.preferences, actionable=tuple(levers))
    return replace(instance, preferences=own, reference=None)


def _from_larger(
    problem: Instance, levers: tuple[str, ...], known: Mapping[tuple[str, ...], Result]
) -> Result | None:
    """The result of a set as it follows from a larger one's; None if it does not.

    Nothing is feasible where nothing is on more levers. An optimum on more levers that acts on these alone is
    the optimum here, and its bound holds, if the gap is within what is allowed here.
    """
    own = set(levers)
    for more, result in known.items():
        if not own <= set(more):
            continue
        if result.status is Status.INFEASIBLE:
            return result
        if result.status is Status.OPTIMAL and result.action is not None and own >= result.action.keys():
            allowed = problem.gap_allowance
            if is_closed(result.cost or 0.0, result.lower_bound or 0.0, allowed):
                return replace(result, gap_allowance=allowed)
    return None


def _rank(one: Sufficient) -> tuple[bool, float, bool, int]:
    result = one.result
    cost = math.inf if result.cost is None else result.cost
    return result.cost is None, cost, result.status is Status.INFEASIBLE, len(one.levers)
