r"""Cost against plausibility: what each nat of density costs one applicant, and people on average.

The point at an offset o is the least cost of feasible actions u with
:math:`\log p(x_{cf}(u)) \ge \log p(x) + o`, proven as any other answer; the point without an offset asks
nothing of the density. Costs never fall as the offset grows. So an optimum that is dense enough for the next
offset is optimal there too, with the same bound, and if an offset is infeasible, so are all higher ones.
Neither is searched for again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats.write import result_part
from milp_recourse.judge import conclude, judge
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.instance import Instance, check_density
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.front import FRONT_FORMAT
from milp_recourse.questions.solve import check_options, solve_together
from milp_recourse.solvers.protocol import Proposal

OFFSETS = (-3.0, 1.75, 20)
"""Default first offset and last offset, in nats, and number of points."""


@dataclass(frozen=True)
class DensityPoint:
    """The cheapest action whose log density is at least the factual's plus an offset.

    Attributes
    ----------
    offset
        The offset in nats; None if nothing is asked of the density.
    gain
        log p(x_cf) - log p(x) of the action, rounded to a double; None without an action.
    """

    offset: float | None
    gain: float | None
    result: Result


@dataclass(frozen=True)
class DensityFront:
    """The front of one applicant.

    Attributes
    ----------
    points
        By offset, ascending; the first one asks nothing of the density.
    """

    points: tuple[DensityPoint, ...]

    @property
    def complete(self) -> bool:
        """Whether every point is proven optimal or infeasible."""
        return all(p.result.status in (Status.OPTIMAL, Status.INFEASIBLE) for p in self.points)

    def to_dict(self) -> dict[str, Any]:
        """As a ``front-1`` document."""
        rows = [
            {
                "offset": point.offset,
                "gain": point.gain,
                **result_part(point.result, "cost", "lower_bound", "action"),
            }
            for point in self.points
        ]
        return {"format": FRONT_FORMAT, "against": "density", "points": rows, "complete": self.complete}


def offsets_between(first: float, last: float, count: int) -> list[float]:
    """Evenly spaced offsets.

    Raises
    ------
    BadInput
        ``first`` or ``last`` is not finite, ``first`` is not below ``last``, or ``count`` is below 2.
    """
    if not (math.isfinite(first) and math.isfinite(last) and first < last and count >= 2):
        raise BadInput(
            "offsets", f"{first}:{last}:{count}", "FIRST:LAST:POINTS, ascending, at least 2 points"
        )
    return [first + (last - first) * k / (count - 1) for k in range(count)]


def density_fronts(
    people: Sequence[Instance],
    offsets: Sequence[float] | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    advance: Callable[[int], object] | None = None,
) -> list[DensityFront]:
    """Cost against density offset for applicants of one model, every point proven.

    Parameters
    ----------
    people
        Their problems; the offsets in them are ignored.
    offsets
        Ascending, in nats; None: :data:`OFFSETS`.
    backend
        Name of a back end; None takes the default.
    time_limit
        Wall seconds for each point of each applicant; None for no limit.
    advance
        Called with the number of points that are done since the last call.

    Raises
    ------
    BadInput
        The causal model has no density, or the offsets do not ascend.
    Unsupported, BackendUnavailable
        As for :func:`milp_recourse.questions.solve.solve`.
    """
    check_options(time_limit)
    levels = list(offsets_between(*OFFSETS) if offsets is None else offsets)
    if sorted(set(levels)) != levels or not all(map(math.isfinite, levels)):
        raise BadInput("offsets", str(levels), "finite numbers, ascending")
    if people:
        check_density(people[0].scm)
    points: list[list[DensityPoint]] = [[] for _ in people]
    found: list[Result | None]
    for offset in [None, *levels]:
        own = [_at(one, offset) for one in people]
        found = [_known(one, points[k][-1]) if points[k] else None for k, one in enumerate(own)]
        left = [k for k, result in enumerate(found) if result is None]
        for k, result in zip(left, solve_together([own[k] for k in left], backend, time_limit), strict=True):
            found[k] = _no_worse(result, points[k][-1].result if points[k] else None)
        for k, one in enumerate(found):
            assert one is not None
            points[k].append(DensityPoint(offset, _gain(own[k], one), one))
        if advance is not None:
            advance(len(people))
    return [DensityFront(tuple(of_one)) for of_one in points]


def average(fronts: Sequence[DensityFront]) -> list[dict[str, Any]]:
    """Per offset, the share of people with an action, and a mean cost.

    The mean is over the people who have an action at every offset, so that means at different offsets are
    means over the same people. Points that stopped at a limit count with the cost of the action in hand.
    """
    rows = []
    always = [f for f in fronts if f.points and all(p.result.cost is not None for p in f.points)]
    for k in range(len(fronts[0].points) if fronts else 0):
        having = [f for f in fronts if f.points[k].result.cost is not None]
        costs = [f.points[k].result.cost or 0.0 for f in always]
        rows.append(
            {
                "offset": fronts[0].points[k].offset,
                "share with an action": len(having) / len(fronts),
                "people with an action at every offset": len(always),
                "mean cost of these": sum(costs) / len(costs) if costs else None,
            }
        )
    return rows


def _at(instance: Instance, offset: float | None) -> Instance:
    """The problem with this offset instead of its own; None asks nothing of the density."""
    own = replace(instance.preferences, density_offset=offset)
    return replace(instance, plausible=offset is not None, preferences=own, reference=None)


def _known(instance: Instance, before: DensityPoint) -> Result | None:
    """The answer if it follows from the point at the offset before, else None."""
    last = before.result
    if last.status is Status.INFEASIBLE:
        return last
    if last.action is None or last.status is not Status.OPTIMAL or (before.gain or 0.0) < instance.offset:
        return None
    action = instance.numbers(last.action)
    start = time.perf_counter()
    judgement = judge(instance, action)
    if not judgement.feasible:
        return None
    proposal = Proposal(action, last.lower_bound, last.proof, 0, judgement=judgement)
    return conclude(instance, proposal, last.backend, time.perf_counter() - start, as_given=True)


def _no_worse(result: Result, before: Result | None) -> Result:
    """The result, its bound raised to that of the offset before if the search stopped at a limit."""
    known = None if before is None else before.lower_bound
    if result.status is not Status.LIMIT or known is None or result.lower_bound is None:
        return result
    most = known if result.cost is None else min(known, result.cost)
    return replace(result, lower_bound=max(result.lower_bound, most))


def _gain(instance: Instance, result: Result) -> float | None:
    """By how much the log density rises, from the exact counterfactual; -inf if the density becomes 0."""
    if result.action is None:
        return None
    action = instance.numbers(result.action)
    exact: Mapping[str, Enclosure] = instance.scm.counterfactual_exact(instance.factual, action)
    excess = instance.scm.excess_energy(instance.factual, exact, frozenset(action))
    return -math.inf if excess is None else -float(excess.midpoint)
