"""The answer of ``robust`` in words, and as rows of a table."""

from __future__ import annotations

from milp_recourse.problem.result import Status
from milp_recourse.questions.robust import Robust
from milp_recourse.reports.view import changes_of, in_one_line, person_of


def robust_lines(found: Robust) -> list[str]:
    """The answer in a line; then the lowest output that was found, and where."""
    result = found.result
    if result.action is not None:
        lines = [in_one_line(person_of(result, found.instance))]
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


def robust_rows(found: Robust) -> list[dict[str, object]]:
    """Each feature that changes: its value before and after, and in the worst outcome found."""
    result, worst = found.result, found.worst_counterfactual or {}
    return [
        {"feature": c.feature, "before": c.before, "after": c.after, "worst": worst[c.feature]}
        for c in changes_of(found.instance, result.action, result.counterfactual)
        if worst and not c.before == c.after == worst[c.feature]
    ]
