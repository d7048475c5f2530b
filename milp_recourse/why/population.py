"""Why not, for everybody of a population: who has no recourse, and what stands in how many people's way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from milp_recourse.instance import Instance, Population
from milp_recourse.result import Result, Status
from milp_recourse.solve import check_options, choose_backend, solve_as_finished, solve_together
from milp_recourse.why.answer import Why, cheapest_first, is_possible
from milp_recourse.why.minimal import Asking, Set, asking
from milp_recourse.why.restrictions import lift, restrictions
from milp_recourse.workers import Workers

WHY_POPULATION_FORMAT = "milp-recourse/why-population-1"


@dataclass(frozen=True)
class PopulationWhy:
    """Why those without recourse have none.

    Attributes
    ----------
    statuses
        How many people have which status.
    people
        By index, the answer for everybody who is proven to have no recourse: their minimal sets.
    """

    statuses: Mapping[str, int]
    people: Mapping[int, Why]

    def table(self) -> list[dict[str, Any]]:
        """Per restriction: in how many people's way it stands, alone, and among others.

        A restriction stands in somebody's way if it is in one of their minimal sets; alone, if it is one of
        them by itself. Most first.
        """
        among, alone = Counter[str](), Counter[str]()
        for one in self.people.values():
            among.update({id for way in one.minimal for id in way.lift})
            alone.update(way.lift[0] for way in one.minimal if len(way.lift) == 1)
        order = sorted(among, key=lambda id: (-among[id], id))
        return [{"id": id, "people": among[id], "alone": alone[id]} for id in order]

    @property
    def beyond_help(self) -> int:
        """How many have no recourse even without any restriction: the bounds are in their way."""
        return sum(one.complete and not one.minimal for one in self.people.values())

    @property
    def complete(self) -> bool:
        """Whether every set was settled."""
        return all(one.complete for one in self.people.values()) and "limit" not in self.statuses

    def to_dict(self) -> dict[str, Any]:
        """As a JSON value."""
        return {
            "format": WHY_POPULATION_FORMAT,
            "statuses": dict(self.statuses),
            "table": self.table(),
            "beyond_help": self.beyond_help,
            "complete": self.complete,
            "people": {str(index): one.to_dict() for index, one in self.people.items()},
        }


def why_population(
    population: Population, backend: str | None = None, time_limit: float | None = None, jobs: int = 1
) -> PopulationWhy:
    """The minimal sets of everybody without recourse; prices and widenings are for one person at a time.

    Parameters
    ----------
    backend, time_limit
        As for :func:`milp_recourse.solve`; the limit holds per problem.
    jobs
        Processes for the first answers; the questions after them are asked of all people together.
    """
    counts: Counter[str] = Counter({"bad-input": len(population.unreadable)} if population.unreadable else {})
    name, everybody = choose_backend(population.template, backend).name, range(len(population))
    found: dict[int, Result] = {}
    for k, result in solve_as_finished(
        population, name, check_options(time_limit, jobs), everybody, Workers(jobs)
    ):
        counts[result.status.value] += 1
        if result.status is Status.INFEASIBLE:
            found[k] = result
    stuck = {k: found[k] for k in sorted(found)}
    problems = {k: population[k] for k in stuck}
    return PopulationWhy(counts, dict(_answers(problems, stuck, backend, time_limit)))


def _answers(
    problems: Mapping[int, Instance],
    stuck: Mapping[int, Result],
    backend: str | None,
    time_limit: float | None,
) -> Iterator[tuple[int, Why]]:
    """Everybody's minimal sets: one question of each at a time, solved together."""
    ids = {k: restrictions(one) for k, one in problems.items()}
    open_: dict[int, Asking] = {k: asking(ids[k]) for k in problems}
    asked: dict[int, Set] = {k: next(questions) for k, questions in open_.items()}
    known: dict[int, dict[Set, Result]] = {k: {} for k in problems}
    done: dict[int, tuple[list[Set], bool]] = {}
    while asked:
        people = list(asked)
        some = [lift(problems[k], asked[k]) for k in people]
        for k, result in zip(people, solve_together(some, backend, time_limit), strict=True):
            known[k][asked[k]] = result
            try:
                asked[k] = open_[k].send(is_possible(result))
            except StopIteration as end:
                done[k] = end.value
                del asked[k]
    for k, (sets, settled) in done.items():
        ways = cheapest_first(ids[k], {way: known[k][way] for way in sets})
        closed = settled and all(way.result.status is Status.OPTIMAL for way in ways)
        yield k, Why(problems[k], stuck[k], tuple(ids[k]), ways, closed)
