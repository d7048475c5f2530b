"""What needs a proof tree: sets of levers (section 5 of the document), cases of conditions (section 11)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from milp_recourse.engine.forests.axes import separable
from milp_recourse.problem.conditions import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Demand,
    Row,
    factors,
    leaves,
    unlabelled,
)
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import exact_cost
from milp_recourse.program import lower
from milp_recourse.program.demands import for_acted, limited, told_apart
from milp_recourse.program.neutral_program import Program
from milp_recourse.program.presolve import told_apart_by_scenarios, without_conditions


def counted(instance: Instance) -> tuple[int | None, Demand]:
    """How many levers may be acted on, None without a limit that proofs by prices count, and what else is
    demanded. In percentiles values may change at no cost, which those proofs do not count."""
    demand = unlabelled(instance.demand)
    free = any(not instance.lever_costs[f].measure.strict for f in instance.levers)  # Q may be flat
    return (None, demand) if free else limited(demand)


def not_idle(instance: Instance, priced: bool = False) -> list[str]:
    """Levers that are not idle: acting on them at their factual value is not allowed, or differs in cost or
    effect, in some scenario, from not acting on them.

    ``priced``: whether proofs are by prices, which themselves count how many values change.
    """
    levers, demand = list(instance.levers), instance.demand
    apart = {f for other in levers for f in instance.scm.descendants({other}) - {other}}
    if instance.scenarios:
        apart |= told_apart_by_scenarios(instance)
    if demand != TRUE:
        apart |= told_apart(counted(instance)[1] if priced else demand, levers)
    return [
        f for f in levers if instance.lever_costs[f].prices.fixed or f in apart or not instance.may_hold(f)
    ]


def acted_sets(instance: Instance, priced: bool = False) -> Iterator[tuple[str, ...]]:
    """Sets of levers that together stand for every set: every combination of those that are not idle, with
    all idle ones.

    Each set is in the order of the features, and not empty. With ``priced``, as in :func:`not_idle`, only
    sets that may be acted on are stood for; where there is room for one idle lever, each has its own set.
    """
    levers = [f.name for f in instance.features if f.name in instance.levers]
    others, most = not_idle(instance, priced), len(levers)
    if priced and (limit := counted(instance)[0]) is not None:
        most = limit
    idle = [f for f in levers if f not in others]
    for size in range(min(len(others), most) + 1):
        for chosen in combinations(others, size):
            for held in combinations(idle, most - size) if most - size <= 1 < len(idle) else [idle]:
                acted = tuple(f for f in levers if f in held or f in chosen)
                if acted:
                    yield acted


def dearest(instance: Instance, acted: Sequence[str]) -> Fraction:
    """At least what any action on these levers costs: the sum of each alone at its dearer end (more than the
    most where the cost has a maximum)."""
    ends = ([exact_cost([(instance.lever_costs[f], end)]) for end in instance.levers[f]] for f in acted)
    return sum(map(max, ends), Fraction(0))


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


def by_prices(instance: Instance) -> bool:
    """Whether it is an ensemble that is proven by prices: its levers move nothing else, no plausibility is
    asked for, and no condition limits a sum of several of them."""
    if not isinstance(instance.classifier, TreeEnsemble):
        return False
    rows = (one for one in leaves(unlabelled(instance.demand)) if isinstance(one, Row))
    return separable(without_conditions(instance)) and not any(tied(row, instance.levers) for row in rows)


def tied(row: Row, levers: Collection[str]) -> bool:
    """Whether a row is about several of some levers."""
    return sum(f in levers for of, _ in row.terms for f in factors(of)) > 1


def why_not_cases(instance: Instance, most_levers: int) -> str | None:
    """Why the cases of an instance's conditions are not proven one by one, or None."""
    demand = counted(instance)[1] if by_prices(instance) else instance.demand
    conditional = told_apart(demand, list(instance.levers))
    if len(conditional & instance.levers.keys()) > most_levers:
        return f"conditions ask of more than {most_levers} levers whether they are acted on"
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
