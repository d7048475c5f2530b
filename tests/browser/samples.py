"""Pages and letters of every kind, with long names, units and many levers, to be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.questions.solve import solve_population
from milp_recourse.questions.why import why
from milp_recourse.reports.letters import LANGUAGES, letter
from milp_recourse.reports.pages import facts_of, person_page, persons_of, population_page, reasons_of
from milp_recourse.reports.view import Change, Person
from tests.helpers.page_samples import FACTS, HOSTILE, crowd, everybody, solved

DAY = date(2026, 11, 28)
LONG = "NumberOfTimes90DaysLateOnRevolvingUtilizationOfUnsecuredLines"


def lender() -> Person:
    """A person whose columns have the names that data sets have."""
    features = [
        Change(
            "RevolvingUtilizationOfUnsecuredLines", 0.8765, 0.655912, "action", True, "0 to 1", 0.7, 0.6559
        ),
        Change(LONG, 2, 1, "action", True, "0 to 98, only down", 0.2),
        Change(
            "MonthlyIncome", 2500.0, 3119.9, "action", True, "0 to 9000", 0.1, 3119, "what you earn", "EUR"
        ),
        Change("DebtRatio", 0.5, 0.4012345, "effect", False, printed=0.4012),
        Change("age", 41, 41, "unchanged", False, unit="years"),
        *(
            Change(f"number_of_open_credit_lines_and_loans_{k}", k, k, "unchanged", True, "0 to 58")
            for k in range(9)
        ),
    ]
    return solved("applicant-2026-000017-of-the-north-western-branch", cost=1.973e-5, features=features)


def many_levers(count: int = 23) -> Person:
    """As many changes as a letter holds."""
    names = [f"lever number {k}" for k in range(count)]
    return solved(
        "many",
        features=[
            Change(n, 1000.5 * k, 1200.25 * k + 1, "action", True, share=0.1) for k, n in enumerate(names)
        ],
    )


def loan() -> Iterator[tuple[str, str]]:
    """Shipped people: with effects by a causal model, without recourse and why."""
    population = read_population(instances_path() / "loan" / "population.json")
    people = persons_of(population, list(solve_population(population, last=40)))
    facts = facts_of(population)
    yield "population-loan", population_page(people, "Loan", facts)
    moved = next(p for p in people if p.caused("effect"))
    yield "person-effects", person_page(moved, "Loan", facts)
    yield "letter-effects-en", letter(moved, day=DAY)
    stuck = next((k for k, p in enumerate(people) if p.status == "infeasible"), None)
    if stuck is not None:
        own = replace(people[stuck], why=reasons_of(why(population[stuck])))
        yield "person-why", person_page(own, "Loan", facts)


def samples() -> Iterator[tuple[str, str]]:
    """(name, HTML) of each; letters' names begin with ``letter``."""
    yield "person-long-names", person_page(lender(), "Give Me Some Credit", FACTS)
    for k, person in enumerate(everybody()):
        yield f"person-{k}", person_page(person, "Everybody", FACTS)
    yield "population-everybody", population_page([lender(), *everybody()], HOSTILE, FACTS)
    yield "population-crowd", population_page([lender(), *crowd(200)], "Two hundred people", FACTS)
    for language in LANGUAGES:
        for name, person in (("long-names", lender()), ("many", many_levers())):
            yield f"letter-{name}-{language}", letter(person, language=language, day=DAY)
        for k, person in enumerate(everybody()):
            yield f"letter-{k}-{language}", letter(person, language=language, day=DAY)
    yield from loan()
