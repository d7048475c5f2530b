"""The tables of an auditor's file: assumptions, people, groups, reasons, and who has no recourse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from statistics import median

from milp_recourse.formats.schema import scales_to_dict
from milp_recourse.formats.schema_features import feature_to_dict
from milp_recourse.problem.conditions import condition_text
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.reasons import Sufficient
from milp_recourse.questions.why import Why
from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.audit.audited_run import AuditedRun
from milp_recourse.reports.pages.gather import detailed, facts_of, reasons_of
from milp_recourse.reports.pages.values import said, shown_beside
from milp_recourse.reports.pages.wording import confirmation, proof
from milp_recourse.reports.view import Change, Person, person_of

Cell = str | float | int | None
Table = list[list[Cell]]

OUTCOMES = [kind for kind in Outcome if kind is not Outcome.UNREACHED]
IN_THE_FILE = "stated in the problem's file"
REASONS = ["index", "id", "levers", "status", "cost", "lower_bound", "proof", "values that suffice"]
NO_RECOURSE = ["index", "id", "what", "cost then", "settled"]
LIFT, NOTHING = "without: ", "nothing helps but other bounds"


def assumptions(run: AuditedRun) -> Table:
    """What was assumed, of each feature and of the whole problem, and where it comes from."""
    problem, features = run.population.template, run.sources.get("features", {})
    table: Table = [["about", "assumption", "value", "source"]]
    scales = scales_to_dict(problem.cost) if problem.cost.uses_scale else {}
    for f in problem.features:
        written = feature_to_dict(f)
        lever = f.name in problem.preferences.actionable
        stated = {
            "kind": f.kind,
            "changed by an action": "yes" if lever else "no",
            "direction": f.monotone or ("up and down" if lever and f.kind != "categorical" else None),
            "lowest and highest value of an action": written.get("bounds"),
            "labels": written.get("categories"),
            "steps": written.get("step"),
            "values": written.get("values"),
            "lowest and highest value afterwards": written.get("domain"),
            "range that people accept": problem.preferences.ranges.get(f.name),
            "scale of a change": scales.get(f.name) if lever else None,
            "weight": problem.preferences.weights.get(f.name, 1) if lever else None,
        }
        own = features.get(f.name, {})
        for what, value in stated.items():
            if value is not None:
                text = (
                    value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
                )
                table.append([f.name, what, text, own.get(what, IN_THE_FILE)])
    whole = run.sources.get("problem", {})
    facts = facts_of(run.population)
    facts |= {f"Condition {k}": condition_text(c, problem.by_name) for k, c in enumerate(problem.conditions)}
    for what, value in facts.items():
        table.append(["problem", what, value, whole.get(what.split(" ")[0], IN_THE_FILE)])
    return table


def own_limits(population: Population, k: int) -> str:
    """What one person's preferences say otherwise than the first person's, in words."""
    if k in population.unreadable:
        return ""
    mine, first = population.preferences[k], population.template.preferences
    parts = {
        "levers": mine.actionable != first.actionable,
        "weights": mine.weights != first.weights,
        "ranges": mine.ranges != first.ranges,
        "conditions": mine.conditions != first.conditions,
        "density": mine.density_offset != first.density_offset,
    }
    return ", ".join(name for name, differs in parts.items() if differs)


def people(run: AuditedRun, reasons: Sequence[Sequence[str]]) -> Table:
    """A row per person: what came out, what to do, the principal reasons, and what proves it.

    Parameters
    ----------
    reasons
        The rows of the table :data:`REASONS`, as text.
    """
    alone: dict[str, list[str]] = {}
    for reason in reasons:
        if reason[7] and " + " not in reason[2]:
            alone.setdefault(reason[0], []).append(reason[7])
    head = ["index", "id", "outcome", "what to do", "what follows", "levers that suffice alone", "cost"]
    table: Table = [
        [
            *head,
            "no cheaper than",
            "proof",
            "certificate",
            "predict agrees",
            "limits unlike the first person's",
            "message",
        ]
    ]
    for k, (person, row) in enumerate(zip(run.people, run.rows, strict=True)):
        kind = outcome(person)
        acts = [change(c) for c in person.caused("action")] + [
            f"{c.called} kept at {_amount(c.before, c)}" for c in person.caused("held")
        ]
        table.append(
            [
                k,
                person.id,
                kind.value,
                "; ".join(acts),
                "; ".join(change(c) for c in person.caused("effect")),
                "; or ".join(alone.get(str(k), [])),
                person.cost,
                person.lower_bound,
                proof(person) if person.proof else "",
                row.get("certificate", ""),
                confirmation(person) if person.confirmed is not None else "",
                own_limits(run.population, k),
                row.get("message", ""),
            ]
        )
    return table


def groups(everybody: Iterable[Person]) -> Table:
    """Outcomes and costs by the values of every column by which people can be grouped."""
    cells: dict[tuple[str, str], list[Person]] = {}
    for person in everybody:
        for key in (("everybody", ""), *person.group.items()):
            cells.setdefault(key, []).append(person)
    table: Table = [
        ["column", "value", "people", *(kind.value for kind in OUTCOMES), "median cost of a change"]
    ]
    for (column, value), some in sorted(cells.items(), key=lambda item: (item[0][0] != "everybody", item[0])):
        kinds = [outcome(person) for person in some]
        costs = [p.cost for p in some if p.cost is not None and p.caused("action", "held")]
        counts = [kinds.count(kind) for kind in OUTCOMES]
        table.append([column, value, len(some), *counts, median(costs) if costs else None])
    return table


def reason_rows(run: AuditedRun, k: int, found: Sequence[Sufficient]) -> Table:
    """One person's reasons that can be acted on, cheapest first."""
    return [
        [
            k,
            run.people[k].id,
            " + ".join(_called(run, name) for name in one.levers),
            one.result.status.value,
            one.result.cost,
            one.result.lower_bound,
            one.result.proof,
            "; ".join(_to(c) for c in _changes(run, run.population[k], one)),
        ]
        for one in found
    ]


def no_recourse_rows(run: AuditedRun, k: int, found: Why) -> Table:
    """What stands in the way of one person who has no recourse: what would have to be lifted or moved."""
    reasons, settled = reasons_of(found), "yes" if found.complete else "no"
    rows = [(LIFT + "; ".join(one.restrictions), one.cost) for one in reasons.reasons]
    return [[k, run.people[k].id, what, cost, settled] for what, cost in rows or [(NOTHING, None)]]


def change(c: Change) -> str:
    """A change in words: ``income from 1,200 to 1,500 EUR``."""
    return f"{c.called} from {shown_beside(c.before, c.said)[0]} to {_amount(c.said, c)}"


def _to(c: Change) -> str:
    return f"{c.called} to {_amount(c.said, c)}"


def _amount(value: object, c: Change) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{said(value)} {c.unit}" if c.unit and number else said(value)


def _called(run: AuditedRun, feature: str) -> str:
    return run.words.names.get(feature, feature)


def _changes(run: AuditedRun, instance: Instance, one: Sufficient) -> list[Change]:
    person = detailed(person_of(one.result, instance), instance)
    return run.words.of(person).caused("action", "held")
