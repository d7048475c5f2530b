"""The answers of ``why`` in words: tables for terminals, and sentences for restrictions."""

from __future__ import annotations

from rich.table import Table

from milp_recourse.problem.conditions import condition_text
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.why import PopulationWhy, Why
from milp_recourse.reports.result_words import short


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


def why_table(found: Why) -> Table:
    """A table of the sets of restrictions that make recourse possible if lifted, or of each one's price."""
    instance, table = found.instance, Table(box=None, pad_edge=False)
    table.add_column("without")
    table.add_column("that is", overflow="fold")
    table.add_column("cost")
    table.add_column("lower bound")
    if found.result.status is Status.OPTIMAL:
        table.add_column("saved")
        for id, one in found.prices.items():
            saved = max(0.0, (found.result.cost or 0.0) - (one.cost or 0.0))
            bound = short(one.lower_bound)
            table.add_row(id, restriction_in_words(instance, id), short(one.cost), bound, short(saved, 3))
        return table
    for lifted in found.minimal:
        words = "; ".join(restriction_in_words(instance, id) for id in lifted.lift)
        cost, bound = short(lifted.result.cost), short(lifted.result.lower_bound)
        table.add_row(" + ".join(lifted.lift), words, cost, bound)
    for end in found.smallest:
        moved = f"{end.end} end moved from {short(end.start)} to {short(end.to, 9)}"
        cost, bound = short(end.result.cost), short(end.result.lower_bound)
        table.add_row(f"{end.id}, partly", moved, cost, bound)
    return table


def headline(found: Why) -> str:
    """One line above :func:`why_table`: the status, and what the table lists."""
    status, result = found.result.status, found.result
    open_ = "" if found.complete else " Not everything was settled in time."
    if status is Status.OPTIMAL:
        return f"optimal at cost {short(result.cost)}. What each restriction costs:{open_}"
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
