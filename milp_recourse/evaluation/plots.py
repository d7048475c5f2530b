"""Plots of an evaluation: outcomes per applicant, and cost over optimum of the feasible actions."""

from __future__ import annotations

from pathlib import Path

from milp_recourse.evaluation.evaluate import Evaluation, Judged
from milp_recourse.reports.drawing import draw_shares, panels, save

OUTCOMES = {
    "feasible": "#2c6fb0",
    "refused on the true causal model": "#c0504d",
    "accepted, but not plausible": "#d98b3a",
    "accepted, but mask or range broken": "#8064a2",
    "none given, recourse exists": "#7f7f7f",
    "none given, none exists (proven)": "#d5d5d5",
    "none given, undecided": "#efefef",
}


def outcome(one: Judged) -> str:
    """An applicant's outcome: the first that applies of feasible, refused, out of limits, implausible."""
    names = list(OUTCOMES)
    if not one.given:
        return names[4] if one.recourse else names[5] if one.recourse is False else names[6]
    if one.feasible:
        return names[0]
    if not (one.deployed and one.exact):
        return names[1]
    if one.outside_mask or one.outside_range:
        return names[3]
    return names[2]


def plot(evaluation: Evaluation, title: str, path: Path) -> Path:
    """Plot the number of applicants per outcome, and cost / optimum of the feasible actions."""
    figure, (bars, gaps) = panels((11, 4.0), 1, 2, grid="both")
    counts = {name: 0 for name in OUTCOMES}
    for one in evaluation.applicants:
        counts[outcome(one)] += 1
    shown = [name for name in OUTCOMES if counts[name]]
    bars.barh(shown[::-1], [counts[n] for n in shown[::-1]], color=[OUTCOMES[n] for n in shown[::-1]])
    for k, name in enumerate(shown[::-1]):
        bars.text(counts[name], k, f" {counts[name]}", va="center")
    figure.suptitle(title)
    bars.set(title=f"{len(evaluation.applicants)} applicants")
    bars.margins(x=0.15)
    ratios = [1 + one.excess for one in evaluation.applicants if one.excess is not None]
    if ratios:
        draw_shares(gaps, ratios)
        gaps.set_xscale("log")
    gaps.axvline(1.05, color="black", linewidth=0.8, linestyle=":")
    gaps.set(
        title=f"{len(ratios)} feasible actions",
        xlabel="cost / certified optimum (dotted: 1.05)",
        ylabel="share of them",
        ylim=(0, 1),
    )
    return save(figure, path)
