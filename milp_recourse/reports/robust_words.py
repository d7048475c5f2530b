"""The answer of ``robust`` in words, and as rows of a table."""

from __future__ import annotations

from milp_recourse.problem.result import Status
from milp_recourse.questions.robust import Robust
from milp_recourse.reports.result_words import in_one_line


def robust_lines(found: Robust) -> list[str]:
    """The answer in a line; then the lowest output that was found, and where."""
    result = found.result
    if result.action is not None:
        lines = [in_one_line(found.instance, result)]
    elif result.status is Status.INFEASIBLE:
        lines = [f"infeasible: {result.message}"]
    else:
        lines = [f"{result.status.value}: {result.message}; lower_bound={result.lower_bound!r}"]
    if found.worst is not None:
        output, scenario = found.worst
        parts = [f"{name} missed by {by:+.6g}" for name, by in scenario.missed.items()]
        parts += [f"noise of {name} {by:+.6g}" for name, by in scenario.noise.items()]
        lines.append(f"lowest output found: {output:.6g} ({', '.join(parts) or 'as planned'})")
    return lines


def robust_rows(found: Robust) -> list[dict[str, str | float | None]]:
    """Each feature that changes: its value before and after, and in the worst outcome found."""
    after, worst = found.result.counterfactual or {}, found.worst_counterfactual or {}
    rows = list[dict[str, str | float | None]]()
    for name in after:
        before = found.instance.by_name[name].shown(found.instance.factual[name])
        if not before == after[name] == worst[name]:
            rows.append({"feature": name, "before": before, "after": after[name], "worst": worst[name]})
    return rows
