"""Plots of fronts: cost against the density offset or the number of actions, per person and on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milp_recourse.questions.density_front import DensityFront, average
from milp_recourse.questions.front import Front, average_of_actions
from milp_recourse.reports.drawing import panels, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 200
"""The largest number of people whose lines are drawn."""

Line = list[tuple[float, float | None]]
"""Points (offset or number of actions, cost); the cost is None if there is no action."""


def plot_density_fronts(fronts: Sequence[DensityFront], path: str | Path) -> None:
    """Plot people's costs at each offset and a mean, and below them the share of people with an action.

    The lines are those of the first :data:`MOST_LINES` people; the mean is over those who have an action at
    every offset. A line ends at the offset from which there is no action any more. The cost without any
    demand on the density is drawn at the left end.
    """
    offsets = [point.offset for point in fronts[0].points if point.offset is not None]
    step = (offsets[-1] - offsets[0]) / max(1, len(offsets) - 1)
    x, rows = [offsets[0] - 1.5 * step, *offsets], average(fronts)
    lines: list[Line] = [list(zip(x, (p.result.cost for p in front.points), strict=True)) for front in fronts]
    label = f"{rows[0]['people with an action at every offset']} with an action throughout"
    figure, axes = _drawn(lines, list(zip(x, rows, strict=True)), label)
    axes[1].set_xlabel("log density of the outcome, at least so much above today's (nats)")
    _name_the_left_end(axes[1], x)
    for one in axes:
        one.axvline(0.0, color="#999999", linewidth=0.8, linestyle=":")
    save(figure, Path(path))


def _name_the_left_end(axes: Axes, x: Sequence[float]) -> None:
    """Label the first point "not asked", because it demands nothing of the density."""
    apart = 1 if x[-1] - x[1] <= 8 else 2 if x[-1] - x[1] <= 16 else 10
    whole = [tick for tick in range(math.ceil(x[1]), math.floor(x[-1]) + 1) if tick % apart == 0]
    axes.set_xticks([x[0], *whole], ["not\nasked", *map(str, whole)])


def plot_action_fronts(fronts: Sequence[Front], path: str | Path) -> None:
    """Plot costs and a mean against the number of actions, and below them the share of people with one."""
    rows = average_of_actions(fronts)
    lines: list[Line] = [[(p.actions, p.result.cost) for p in front.points] for front in fronts]
    label = f"{rows[0]['people whom one action suffices']} whom one action suffices"
    figure, axes = _drawn(lines, [(row["at most actions"], row) for row in rows], label)
    axes[1].set_xticks([row["at most actions"] for row in rows])
    axes[1].set_xlabel("features acted on, at most")
    save(figure, Path(path))


def _drawn(
    lines: Sequence[Line], rows: Sequence[tuple[float, dict[str, Any]]], averaged: str
) -> tuple[Figure, tuple[Axes, Axes]]:
    """A figure with the costs of at most :data:`MOST_LINES` people and a mean above, and the shares of people
    with an action below.

    Parameters
    ----------
    rows
        Points of the x axis with the row of averages there.
    averaged
        The people over whom the mean is taken, in words.
    """
    figure, (above, below) = panels((6.5, 6.0), 2, sharex=True, height_ratios=[3, 1])
    for line in lines[:MOST_LINES]:
        shown = [(x, cost) for x, cost in line if cost is not None]
        if shown:
            above.plot(*zip(*shown, strict=True), color="#4c72b0", alpha=0.25, linewidth=0.8, marker=".")
    means = [(x, row["mean cost of these"]) for x, row in rows if row["mean cost of these"] is not None]
    if means:
        above.plot(*zip(*means, strict=True), color="#c44e52", linewidth=2.2, label=f"mean of the {averaged}")
        above.legend(frameon=False)
    above.set_ylabel("least cost, proven")
    shares = [row["share with an action"] for _, row in rows]
    below.plot([x for x, _ in rows], shares, color="#222222", marker=".")
    below.set_ylabel("share with\nan action")
    below.set_ylim(0, 1.05)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    return figure, (above, below)
