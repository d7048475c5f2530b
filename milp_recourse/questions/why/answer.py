"""The answer of ``why`` about one applicant: minimal sets of restrictions, prices, and least widenings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milp_recourse.formats.schema_answers import LiftedModel, WhyModel, WidenedModel
from milp_recourse.formats.stated import document
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import as_instance, check_options, solve
from milp_recourse.questions.why.restrictions import lift, minimal_sets, restrictions
from milp_recourse.questions.why.widening import Unsettled, Widened, ends_of, least_widening


@dataclass(frozen=True)
class Lifted:
    """A minimal set of restrictions whose lifting makes recourse possible, and the optimum without them."""

    lift: tuple[str, ...]
    result: Result


@dataclass(frozen=True)
class Why:
    """How an applicant's restrictions lead to their result.

    Attributes
    ----------
    result
        The result with all restrictions.
    restrictions
        Ids of the restrictions, each of which can be lifted.
    minimal
        If nothing is feasible, every minimal set whose lifting makes recourse possible, cheapest first.
    complete
        Whether no set, price or widening is missing because time ran out.
    prices
        If there is an optimum, for each restriction the optimum without it.
    smallest
        If nothing is feasible, for each end of a restriction whose widening suffices by itself, the least
        widening.
    """

    instance: Instance = field(repr=False)
    result: Result
    restrictions: tuple[str, ...]
    minimal: tuple[Lifted, ...] = ()
    complete: bool = True
    prices: Mapping[str, Result] = field(default_factory=dict)
    smallest: tuple[Widened, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As a ``why-1`` document."""
        return document(
            WhyModel,
            self.result,
            restrictions=list(self.restrictions),
            minimal=[document(LiftedModel, one.result, lift=list(one.lift)) for one in self.minimal],
            complete=self.complete,
            prices={id: one.cost for id, one in self.prices.items()},
            price_bounds={id: one.lower_bound for id, one in self.prices.items()},
            smallest=[
                document(WidenedModel, one.result, id=one.id, end=one.end, from_=one.start, to=one.to)
                for one in self.smallest
            ],
        )


def why(
    problem: Instance | Mapping[str, Any] | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
) -> Why:
    """Which restrictions make an applicant's recourse impossible or dearer, and what lifting them would do.

    Parameters
    ----------
    problem, backend
        As for :func:`milp_recourse.solve`.
    time_limit
        Seconds for everything together; None for no limit. What is not known by then is left out of the
        answer, and ``complete`` is False.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As for :func:`milp_recourse.solve`.
    """
    check_options(time_limit)
    instance = as_instance(problem)
    solver = _Solver(instance, backend, time_limit)
    ids = restrictions(instance)
    found = solver.solve(instance)
    if found.status is Status.INFEASIBLE:
        return _impossible(instance, ids, found, solver)
    if found.status is Status.OPTIMAL:
        return _priced(instance, ids, found, solver)
    return Why(instance, found, tuple(ids), complete=False)


class _Solver:
    """Solves problems within the time that is left, and keeps the results for lifted sets."""

    def __init__(self, instance: Instance, backend: str | None, time_limit: float | None) -> None:
        self.instance, self.backend = instance, backend
        self.clock = Clock.start(time_limit)
        self.known: dict[frozenset[str], Result] = {}

    def solve(self, instance: Instance) -> Result:
        return solve(instance, self.backend, self.clock.left())

    def lifted(self, ids: frozenset[str]) -> Result:
        if ids not in self.known:
            self.known[ids] = self.solve(lift(self.instance, ids))
        return self.known[ids]

    def suffices(self, ids: frozenset[str]) -> bool | None:
        """Whether there is an action without these restrictions; None if that stayed open."""
        return is_possible(self.lifted(ids))


def is_possible(result: Result) -> bool | None:
    """Whether a result shows that there is an action; None if it leaves that open."""
    return True if result.action is not None else False if result.status is Status.INFEASIBLE else None


def cheapest_first(ids: Sequence[str], found: Mapping[frozenset[str], Result]) -> tuple[Lifted, ...]:
    """The sets that were lifted with their results, by cost; each set's ids are in the order of ``ids``."""
    lifted = [Lifted(tuple(one for one in ids if one in some), result) for some, result in found.items()]
    return tuple(sorted(lifted, key=lambda one: (one.result.cost or 0.0, len(one.lift), one.lift)))


def _impossible(instance: Instance, ids: list[str], found: Result, solver: _Solver) -> Why:
    sets, settled = minimal_sets(ids, solver.suffices)
    minimal = cheapest_first(ids, {some: solver.lifted(some) for some in sets})
    settled = settled and all(one.result.status is Status.OPTIMAL for one in minimal)
    smallest = []
    for one in minimal:
        if len(one.lift) != 1:
            continue
        for end, start in ends_of(instance, one.lift[0]):
            try:
                widened = least_widening(instance, one.lift[0], end, start, solver.solve)
            except Unsettled:
                settled = False
                continue
            if widened is not None:
                smallest.append(widened)
    return Why(instance, found, tuple(ids), minimal, settled, smallest=tuple(smallest))


def _priced(instance: Instance, ids: list[str], found: Result, solver: _Solver) -> Why:
    prices = {}
    for one in ids:
        free = found.cost == 0.0  # no cost is below 0
        result = found if free else solver.lifted(frozenset([one]))
        if result.status is Status.OPTIMAL:
            prices[one] = result
    return Why(instance, found, tuple(ids), complete=len(prices) == len(ids), prices=prices)
