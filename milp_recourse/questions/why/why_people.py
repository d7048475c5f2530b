"""The answer of ``why`` about a population: how many people's recourse each restriction makes impossible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import backend_for, check_options, solve_as_finished, solve_together
from milp_recourse.questions.why.answer import Why, cheapest_first, is_possible
from milp_recourse.questions.why.restrictions import Asking, Set, asking, lift, restrictions
from milp_recourse.questions.workers import Workers

WHY_POPULATION_FORMAT = "milp-recourse/why-population-1"


@dataclass(frozen=True)
class PopulationWhy:
    """The minimal sets of restrictions of all people without recourse.

    Attributes
    ----------
    statuses
        Number of people per status.
    people
        For everybody who is proven to have no recourse, by index, an answer with the minimal sets.
    """

    statuses: Mapping[str, int]
    people: Mapping[int, Why]

    def table(self) -> list[dict[str, Any]]:
        """For each restriction, the number of people who have it in a minimal set, the largest first.

        ``people`` counts those with the restriction in one of their minimal sets, and ``alone`` those of whom
        it is a minimal set by itself.
        """
        among, alone = Counter[str](), Counter[str]()
        for one in self.people.values():
            among.update({id for lifted in one.minimal for id in lifted.lift})
            alone.update(lifted.lift[0] for lifted in one.minimal if len(lifted.lift) == 1)
        order = sorted(among, key=lambda id: (-among[id], id))
        return [{"id": id, "people": among[id], "alone": alone[id]} for id in order]

    @property
    def beyond_help(self) -> int:
        """The number of people who have no recourse even without any restriction, because of the bounds."""
        return sum(one.complete and not one.minimal for one in self.people.values())

    @property
    def complete(self) -> bool:
        """Whether all minimal sets are known, and everybody is known to have recourse or not."""
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
    """The minimal sets of everybody without recourse, without the prices and widenings of :func:`why`.

    Parameters
    ----------
    backend, time_limit
        As for :func:`milp_recourse.solve`; the limit holds per problem.
    jobs
        Processes that solve everybody's problem. The problems with lifted sets are then solved in batches, in
        this process.
    """
    counts: Counter[str] = Counter({"bad-input": len(population.unreadable)} if population.unreadable else {})
    name, everybody = backend_for(population, backend).name, range(len(population))
    options = replace(check_options(time_limit, jobs), others=backend is None)
    found: dict[int, Result] = {}
    for k, result in solve_as_finished(population, name, options, everybody, Workers(jobs)):
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
    """Everybody's minimal sets. In each round one lifted set per person is solved, all people together."""
    ids = {k: restrictions(one) for k, one in problems.items()}
    generators: dict[int, Asking] = {k: asking(ids[k]) for k in problems}
    lifted: dict[int, Set] = {k: next(questions) for k, questions in generators.items()}
    known: dict[int, dict[Set, Result]] = {k: {} for k in problems}
    done: dict[int, tuple[list[Set], bool]] = {}
    while lifted:
        people = list(lifted)
        batch = [lift(problems[k], lifted[k]) for k in people]
        for k, result in zip(people, solve_together(batch, backend, time_limit), strict=True):
            known[k][lifted[k]] = result
            try:
                lifted[k] = generators[k].send(is_possible(result))
            except StopIteration as end:
                done[k] = end.value
                del lifted[k]
    for k, (sets, settled) in done.items():
        minimal = cheapest_first(ids[k], {one: known[k][one] for one in sets})
        closed = settled and all(one.result.status is Status.OPTIMAL for one in minimal)
        yield k, Why(problems[k], stuck[k], tuple(ids[k]), minimal, closed)
