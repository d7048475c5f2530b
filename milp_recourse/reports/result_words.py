"""Results in words and short numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status


def action_in_words(instance: Instance, result: Result) -> str:
    """``income from 0.75 to 3.2; hold savings at 2``; ``none needed``; ``-`` without an action."""
    return "-" if result.action is None else describe_action(instance, result.action)


def describe_action(instance: Instance, action: Mapping[str, float | int | str]) -> str:
    """What an action changes, in words; ``none needed`` for the empty action."""
    parts = []
    for name, value in action.items():
        before = instance.by_name[name].shown(instance.factual[name])
        if before is None:
            parts.append(f"{name} from missing to {short(value)}")
        elif value == before:
            parts.append(f"hold {name} at {short(before)}")
        else:
            digits = 6 if short(before) != short(value) else 17
            parts.append(f"{name} from {short(before)} to {short(value, digits)}")
    return "; ".join(parts) or "none needed"


def short(value: float | int | str | None, digits: int = 6) -> str:
    """A value in a few characters: ``-`` for None, numbers to ``digits`` significant digits."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def stated_day(day: date | None) -> date:
    """The day that a document states; None: today."""
    if not isinstance(day, date | None):
        raise BadInput("day", repr(day), "a datetime.date, or None for today")
    return day or date.today()


def in_one_line(instance: Instance, result: Result) -> str:
    """Status, cost, lower bound and, if there is one, the action."""
    changes = "" if result.action is None else f"; {describe_action(instance, result.action)}"
    return f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}{changes}"


def describe_given(instance: Instance, result: Result) -> str:
    """A few lines about the result for an action that the user gave, which need not be the cheapest."""
    head, *rest = describe(instance, result).splitlines()
    if result.status is Status.LIMIT:
        head = f"feasible (proof: {result.proof}): No feasible action costs less than the lower bound."
    return "\n".join([head, *rest])


def distance(result: Result) -> str:
    """A line that says how far, at most, the cost is above the optimum, by the lower bound."""
    if result.cost is None or result.lower_bound is None or result.gap is None:
        return "distance     nothing is proven"
    if not result.lower_bound:
        return f"distance     at most {short(result.gap)} above the optimum"
    share = 100 * result.gap / result.lower_bound
    return f"distance     at most {short(result.gap)} above the optimum ({share:.3g}% of it)"


def describe(instance: Instance, result: Result) -> str:
    """A few lines about one result."""
    proof = f" (proof: {result.proof})" if result.proof else ""
    lines = [f"{result.status.value}{proof}: {result.status.sentence}"]
    if result.cost is not None:
        lines.append(f"action       {action_in_words(instance, result)}")
        lines.append(f"cost         {result.cost!r}")
    if result.lower_bound is not None:
        lines.append(f"lower bound  {result.lower_bound!r}   gap {short(result.gap, 3)}")
    if result.message and result.message != result.status.sentence:
        lines.append(f"note         {result.message}")
    nodes = "" if result.nodes is None else f", {result.nodes} nodes"
    lines.append(f"back end     {result.backend}, {result.seconds:.2f} s{nodes}")
    return "\n".join(lines)
