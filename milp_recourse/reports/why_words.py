"""The answers of ``why`` in words: rows of tables, tables for terminals, and sentences for restrictions."""

from __future__ import annotations

from rich.table import Table

from milp_recourse.problem.conditions import condition_text
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.why import PopulationWhy, Why
from milp_recourse.reports.view import short


def restriction_in_words(instance: Instance, id: str) -> str:
    """A restriction as a sentence: ``income is set within -4 to 2.5 (own range)``."""
    kind, _, name = id.partition(":")
    if kind == "mask":
        return f"{name} is left alone"
    if kind == "range":
        low, high = instance.preferences.ranges[name]
        return f"{name} is set within {short(low)} to {short(high)} (own range)"
    if kind == "monotone":
        return f"{name} is only {'raised' if instance.by_name[name].monotone == 'increase' else 'lowered'}"
    if kind == "domain":
        low, high = instance.by_name[name].domain or (0.0, 0.0)
        return f"{name} ends within {short(low)} to {short(high)}"
    if kind == "condition":
        return condition_text(instance.all_conditions[int(name)], instance.by_name)
    return "the outcome is as plausible as today"


def why_rows(found: Why) -> list[dict[str, str | float | None]]:
    """The sets of restrictions that make recourse possible if lifted, or what each one costs, a row each."""
    instance, rows = found.instance, list[dict[str, str | float | None]]()

    def add(without: str, words: str, result: Result) -> None:
        costs = {"cost": result.cost, "lower bound": result.lower_bound}
        rows.append({"without": without, "that is": words, **costs})

    if found.result.status is Status.OPTIMAL:
        for id, one in found.prices.items():
            add(id, restriction_in_words(instance, id), one)
            rows[-1]["saved"] = max(0.0, (found.result.cost or 0.0) - (one.cost or 0.0))
        return rows
    for lifted in found.minimal:
        words = "; ".join(restriction_in_words(instance, id) for id in lifted.lift)
        add(" + ".join(lifted.lift), words, lifted.result)
    for end in found.smallest:
        moved = f"{end.end} end moved from {short(end.start)} to {short(end.to, 9)}"
        add(f"{end.id}, partly", moved, end.result)
    return rows


def why_table(found: Why) -> Table:
    """:func:`why_rows` for terminals."""
    rows, table = why_rows(found), Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold" if name == "that is" else "ellipsis")
    for row in rows:
        table.add_row(*(short(value, 3 if name == "saved" else 6) for name, value in row.items()))
    return table


def headline(found: Why) -> str:
    """One line above :func:`why_table`: the status, and what the table lists."""
    status, result = found.result.status, found.result
    open_ = "" if found.complete else " Not everything was settled in time."
    if status is Status.OPTIMAL:
        listed = (
            "What each restriction costs:" if found.prices else "No restriction is known to cost anything."
        )
        return f"optimal at cost {short(result.cost)}. {listed}{open_}"
    if status is not Status.INFEASIBLE:
        return f"{status.value}: {result.message or status.sentence}"
    if not found.minimal:
        reason = (
            "no set of restrictions lifts this" if found.complete else "no set is known whose lifting helps"
        )
        return f"infeasible, proven, and {reason}: the bounds leave nothing that is accepted.{open_}"
    return f"infeasible, proven. Each of these sets, lifted, makes recourse possible:{open_}"


def population_table(found: PopulationWhy) -> Table:
    """A table of restrictions with the number of people whose recourse they prevent."""
    table = Table("restriction", "that is", "in the way of", "alone", box=None, pad_edge=False)
    for row in found.table():
        own = next(w.instance for w in found.people.values() if row["id"] in w.restrictions)
        words = restriction_in_words(own, row["id"])
        if row["id"].startswith("range:"):
            words = f"{row['id'].partition(':')[2]} is set within their own range"
        table.add_row(row["id"], words, str(row["people"]), str(row["alone"]))
    return table


def population_headline(found: PopulationWhy) -> str:
    """One line: how many people have no recourse, and how many of them not even without any restriction."""
    total, stuck = sum(found.statuses.values()), len(found.people)
    open_ = "" if found.complete else " Not everything was settled in time."
    return (
        f"{stuck} of {total} people have no recourse, proven; {found.beyond_help} of them have none whatever "
        f"is lifted. What stands in how many people's way:{open_}"
    )
