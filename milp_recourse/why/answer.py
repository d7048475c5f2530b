"""The answer to "why not?": restrictions, minimal sets to lift, prices, and least widenings, each proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milp_recourse.formats.write import result_part
from milp_recourse.instance import Instance
from milp_recourse.options import Clock
from milp_recourse.result import Result, Status
from milp_recourse.solve import as_instance, check_options, solve
from milp_recourse.why.minimal import minimal_sets
from milp_recourse.why.restrictions import lift, restrictions
from milp_recourse.why.widening import Unsettled, Widened, ends_of, least_widening

WHY_FORMAT = "milp-recourse/why-1"


@dataclass(frozen=True)
class Lifted:
    """A minimal set of restrictions, and the optimum without them."""

    lift: tuple[str, ...]
    result: Result


@dataclass(frozen=True)
class Why:
    """Why an applicant gets what they get.

    Attributes
    ----------
    result
        The answer to the instance as it stands.
    restrictions
        Ids of what can be lifted.
    minimal
        Where nothing is feasible: every minimal set whose lifting makes recourse possible, cheapest first.
    complete
        Whether everything asked was settled: no set, price or widening is missing for want of time.
    prices
        Where there is an optimum: per restriction, the optimum without it alone.
    smallest
        Where nothing is feasible: the least widening of one end that suffices by itself.
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
        return {
            "format": WHY_FORMAT,
            **result_part(self.result, "cost", "lower_bound"),
            "restrictions": list(self.restrictions),
            "minimal": [{"lift": list(one.lift), **_numbers(one.result)} for one in self.minimal],
            "complete": self.complete,
            "prices": {id: one.cost for id, one in self.prices.items()},
            "price_bounds": {id: one.lower_bound for id, one in self.prices.items()},
            "smallest": [
                {"id": one.id, "end": one.end, "from": one.start, "to": one.to, **_numbers(one.result)}
                for one in self.smallest
            ],
        }


def why(
    problem: Instance | Mapping[str, Any] | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
) -> Why:
    """What stands in an applicant's way, and what it would take to lift or widen it.

    Parameters
    ----------
    problem
        An instance, the JSON value of one, or the path of its file.
    backend
        As for :func:`milp_recourse.solve`.
    time_limit
        Seconds for everything together; None for no limit. What is not settled by then is left out, and
        ``complete`` says so.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As :func:`milp_recourse.solve`.
    """
    check_options(time_limit)
    instance = as_instance(problem)
    asker = _Asker(instance, backend, time_limit)
    ids = restrictions(instance)
    found = asker.solve(instance)
    if found.status is Status.INFEASIBLE:
        return _impossible(instance, ids, found, asker)
    if found.status is Status.OPTIMAL:
        return _priced(instance, ids, found, asker)
    return Why(instance, found, tuple(ids), complete=False)


class _Asker:
    """Solves what is asked, each problem within what is left of the time, and lifted sets once."""

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
        """Whether there is an action without these restrictions; None where that stayed open."""
        return is_possible(self.lifted(ids))


def is_possible(result: Result) -> bool | None:
    """Whether there is an action; None where that stayed open."""
    return True if result.action is not None else False if result.status is Status.INFEASIBLE else None


def cheapest_first(ids: Sequence[str], found: Mapping[frozenset[str], Result]) -> tuple[Lifted, ...]:
    """What lifting each set leads to, each set in the order of the ids."""
    ways = [Lifted(tuple(one for one in ids if one in some), result) for some, result in found.items()]
    return tuple(sorted(ways, key=lambda one: (one.result.cost or 0.0, len(one.lift), one.lift)))


def _impossible(instance: Instance, ids: list[str], found: Result, asker: _Asker) -> Why:
    sets, settled = minimal_sets(ids, asker.suffices)
    minimal = cheapest_first(ids, {some: asker.lifted(some) for some in sets})
    settled = settled and all(one.result.status is Status.OPTIMAL for one in minimal)
    smallest = []
    for one in minimal:
        if len(one.lift) != 1:
            continue
        for end, start in ends_of(instance, one.lift[0]):
            try:
                widened = least_widening(instance, one.lift[0], end, start, asker.solve)
            except Unsettled:
                settled = False
                continue
            if widened is not None:
                smallest.append(widened)
    return Why(instance, found, tuple(ids), minimal, settled, smallest=tuple(smallest))


def _priced(instance: Instance, ids: list[str], found: Result, asker: _Asker) -> Why:
    prices = {}
    for one in ids:
        free = found.cost == 0.0  # nothing is cheaper than nothing
        result = found if free else asker.lifted(frozenset([one]))
        if result.status is Status.OPTIMAL:
            prices[one] = result
    return Why(instance, found, tuple(ids), complete=len(prices) == len(ids), prices=prices)


def _numbers(result: Result) -> dict[str, float | None]:
    return {"cost": result.cost, "lower_bound": result.lower_bound}
