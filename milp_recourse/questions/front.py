r"""Cost against the number of actions: the exact Pareto front of one applicant.

Point k of the front is :math:`\min \{c(u) : u \text{ feasible}, |u| \le k\}`: at most k features are
acted on, held ones included (condition ``at_most_actions``). A point is listed only if every point with
fewer actions costs more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from milp_recourse.formats.write import result_part
from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import as_instance, check_options, solve

FRONT_FORMAT = "milp-recourse/front-1"


@dataclass(frozen=True)
class Point:
    """The cheapest action on at most ``actions`` features."""

    actions: int
    result: Result


@dataclass(frozen=True)
class Front:
    """The front of one applicant.

    Attributes
    ----------
    points
        By number of actions, ascending; costs fall. Empty if nothing is feasible, or nothing was found.
    fewest
        The least number of actions with which there is a recourse, proven; None if that is open or there is
        no recourse.
    complete
        Whether every search ended with a proof, of an optimum or of infeasibility.
    """

    points: tuple[Point, ...]
    fewest: int | None
    complete: bool

    def to_dict(self) -> dict[str, Any]:
        """As a ``front-1`` document."""
        rows = [
            {"actions": point.actions, **result_part(point.result, "cost", "lower_bound", "action")}
            for point in self.points
        ]
        return {"format": FRONT_FORMAT, "points": rows, "fewest": self.fewest, "complete": self.complete}


def front(
    problem: Instance | Mapping[str, Any] | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
) -> Front:
    """Cost against the number of actions, every point proven.

    Parameters
    ----------
    problem, backend
        As for :func:`milp_recourse.solve`; the back end is chosen for each point.
    time_limit
        Wall seconds for all points together; None for no limit.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As for :func:`milp_recourse.questions.solve.solve`.
    """
    check_options(time_limit)
    instance = as_instance(problem)
    clock = Clock.start(time_limit)
    points: list[Point] = []
    complete, fewest, most = True, None, len(instance.levers)
    while True:
        result = solve(_at_most(instance, most), backend, clock.left())
        complete &= result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if result.status is Status.INFEASIBLE:
            fewest = most + 1 if points else None
        if result.action is None:
            break
        count = len(result.action)
        if points and result.cost is not None and points[-1].result.cost is not None:
            allowed = points[-1].result.tolerance or 0.0
            if result.cost <= points[-1].result.cost + allowed:  # as cheap with fewer actions
                points.pop()
        points.append(Point(count, result))
        if count <= 1:
            fewest = count if result.status is Status.OPTIMAL else None
            break
        most = count - 1
    return Front(tuple(reversed(points)), fewest, complete)


def _at_most(instance: Instance, count: int) -> Instance:
    if count >= len(instance.levers):
        return instance
    return replace(instance, conditions=(*instance.conditions, AtMostActions(count)))


def average_of_actions(fronts: Sequence[Front]) -> list[dict[str, Any]]:
    """For each k, the share of people who have an action on at most k features, and a mean cost.

    The mean is over the people for whom an action on at most one feature suffices, so it is over the same
    people for every k. Points that stopped at a limit count with the cost of the action in hand.
    """
    costs = [{point.actions: point.result.cost for point in front.points} for front in fronts]
    most = max((k for own in costs for k in own), default=0)
    rows = []
    compared = [own for own in costs if own and min(own) <= 1]
    for k in range(most + 1):
        having = sum(any(j <= k for j in own) for own in costs)
        least = [min(c for j, c in own.items() if j <= max(k, 1) and c is not None) for own in compared]
        rows.append(
            {
                "at most actions": k,
                "share with an action": having / len(fronts),
                "people whom one action suffices": len(compared),
                "mean cost of these": sum(least) / len(least) if least and k else None,
            }
        )
    return rows
