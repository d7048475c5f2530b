"""The cases that conditions leave to prove, in each set of levers (section 11 of the document)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from milp_recourse.certificates.limits import MOST_LEVERS, acted_sets, by_prices, counted
from milp_recourse.problem.conditions import FALSE, TRUE, AllOf, AnyOf, Demand, Row, unlabelled
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.program import lower
from milp_recourse.program.demands import for_acted, told_apart
from milp_recourse.program.neutral_program import Program

MOST_CASES = 3000
"""Most cases that are proven one by one: sets of features acted on, times alternatives of conditions."""


@dataclass(frozen=True)
class Case:
    """A case of the conditions: the rows that hold in it, and the "any of" that are still open, in the order
    of the document."""

    rows: tuple[Row, ...] = ()
    open: tuple[AnyOf, ...] = ()

    def joined(self, demand: Demand) -> Case:
        """The case in which a demand holds too. The demand may not depend on which features are acted on
        (:func:`~milp_recourse.program.demands.for_acted`)."""
        parts = demand.parts if isinstance(demand, AllOf) else (demand,)
        rows = tuple(part for part in parts if isinstance(part, Row))
        return Case(self.rows + rows, self.open + tuple(part for part in parts if isinstance(part, AnyOf)))

    def alternatives(self) -> list[Case]:
        """The cases that the first open "any of" falls into."""
        rest = Case(self.rows, self.open[1:])
        return [rest.joined(part) for part in self.open[0].parts]

    def count(self) -> int:
        """How many cases without open alternatives this one falls into."""
        if not self.open:
            return 1
        return sum(one.count() for one in self.alternatives())


def cases_of(instance: Instance) -> list[tuple[frozenset[str], Case]]:
    """Every configuration that conditions allow, and the case at the root of its tree."""
    demand = unlabelled(instance.demand)
    sets: Iterable[frozenset[str]]
    if isinstance(instance.classifier, TreeEnsemble):
        priced = by_prices(instance)
        demand = counted(instance)[1] if priced else demand
        sets = (frozenset(acted) for acted in acted_sets(instance, priced))
    else:
        sets = replace(without_demand(instance), demand=demand).configurations()
    settled = ((acted, for_acted(demand, acted)) for acted in sets if acted)
    return [(acted, Case().joined(one)) for acted, one in settled if one != FALSE]


def why_not_cases(instance: Instance) -> str | None:
    """Why the cases of an instance's conditions are not proven one by one, or None."""
    demand = counted(instance)[1] if by_prices(instance) else instance.demand
    conditional = told_apart(demand, list(instance.levers))
    if len(conditional & instance.levers.keys()) > MOST_LEVERS:
        return f"conditions ask of more than {MOST_LEVERS} levers whether they are acted on"
    if instance.missing and isinstance(instance.classifier, TreeEnsemble) and not by_prices(instance):
        return "a value is missing, and a condition limits a sum of several levers"
    cases = cases_of(instance)
    if len(cases) > MOST_CASES or _many(cases):
        return f"conditions leave more than {MOST_CASES} cases to prove"
    return None


def _many(cases: list[tuple[frozenset[str], Case]]) -> bool:
    """Whether the cases fall into more than :data:`MOST_CASES` without open alternatives."""
    total = 0
    for _, case in cases:
        size = 1
        for one in case.open:
            size *= max(1, len(one.parts))
        total += size if size > MOST_CASES else case.count()
        if total > MOST_CASES:
            return True
    return False


def case_programs(instance: Instance) -> Iterator[tuple[frozenset[str], Iterator[Program | None]]]:
    """Every configuration with its cases in the order of the document's nodes.

    A case without open alternatives is given by its program, in which the case's rows come last. None stands
    for a node that takes the first open "any of" of a case apart.
    """
    program = without_demand(instance)
    for acted, root in cases_of(instance):
        yield acted, programs_below(program.fix(acted), root)


def programs_below(fixed: Program, root: Case) -> Iterator[Program | None]:
    """The cases below ``root`` in preorder, as :func:`case_programs` gives them."""
    waiting = [root]
    while waiting:
        case = waiting.pop(0)
        if case.open:
            waiting[:0] = case.alternatives()
            yield None
            continue
        made = [fixed.demand_row(f"condition_{k}", row) for k, row in enumerate(case.rows)]
        yield replace(fixed, rows=(*fixed.rows, *made))


def without_demand(instance: Instance) -> Program:
    """The program without what conditions demand; it keeps the forms that the conditions' rows are sums
    of."""
    program = lower(instance)
    rows = tuple(row for row in program.rows if row.name.startswith("domain_"))
    return replace(program, rows=rows, demand=TRUE)
