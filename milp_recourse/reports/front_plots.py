"""Fronts as pictures: cost against density offset, people one by one and together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from milp_recourse.density_front import DensityFront, average
from milp_recourse.front import Front, average_of_actions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 200


def plot_density_fronts(fronts: Sequence[DensityFront], path: str | Path) -> None:
    """Above, everybody's cost at each offset and the mean; below, the share of people with an action.

    A line ends at the offset from which there is no action any more. The cost without any demand on the
    density is drawn at the left end.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    offsets = [point.offset for point in fronts[0].points if point.offset is not None]
    step = (offsets[-1] - offsets[0]) / max(1, len(offsets) - 1)
    x = [offsets[0] - 1.5 * step, *offsets]
    for front in fronts[:MOST_LINES]:
        costs = [point.result.cost for point in front.points]
        shown = [(a, c) for a, c in zip(x, costs, strict=True) if c is not None]
        if shown:
            above.plot(*zip(*shown, strict=True), color="#4c72b0", alpha=0.25, linewidth=0.8)
    rows = average(fronts)
    means = [row["mean cost of these"] for row in rows]
    if means[0] is not None:
        count = rows[0]["people with an action at every offset"]
        above.plot(
            x, means, color="#c44e52", linewidth=2.2, label=f"mean of the {count} with an action throughout"
        )
        above.legend(frameon=False)
    above.set_ylabel("least cost, proven")
    below.plot(x, [row["share with an action"] for row in rows], color="#222222", marker=".")
    below.set_ylabel("share with\nan action")
    below.set_ylim(0, 1.05)
    below.set_xlabel("log density of the outcome, at least so much above today's (nats)")
    _name_the_left_end(below, x)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.axvline(0.0, color="#999999", linewidth=0.8, linestyle=":")
    figure.savefig(path, dpi=150)


def _name_the_left_end(axes: Axes, x: Sequence[float]) -> None:
    """The first point asks nothing of the density."""
    apart = 1 if x[-1] - x[1] <= 8 else 2 if x[-1] - x[1] <= 16 else 10
    whole = [tick for tick in range(math.ceil(x[1]), math.floor(x[-1]) + 1) if tick % apart == 0]
    axes.set_xticks([x[0], *whole], ["not\nasked", *map(str, whole)])


def plot_action_fronts(fronts: Sequence[Front], path: str | Path) -> None:
    """Above, everybody's cost with at most so many actions and a mean; below, whom so many suffice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    for front in fronts[:MOST_LINES]:
        shown = [(p.actions, p.result.cost) for p in front.points if p.result.cost is not None]
        if shown:
            above.plot(*zip(*shown, strict=True), color="#4c72b0", alpha=0.25, linewidth=0.8, marker=".")
    rows = average_of_actions(fronts)
    means = [(row["at most actions"], row["mean cost of these"]) for row in rows]
    means = [(k, cost) for k, cost in means if cost is not None]
    if means:
        count = rows[0]["people whom one action suffices"]
        label = f"mean of the {count} whom one action suffices"
        above.plot(*zip(*means, strict=True), color="#c44e52", linewidth=2.2, label=label)
        above.legend(frameon=False)
    above.set_ylabel("least cost, proven")
    ks = [row["at most actions"] for row in rows]
    below.plot(ks, [row["share with an action"] for row in rows], color="#222222", marker=".")
    below.set_ylabel("share with\nan action")
    below.set_ylim(0, 1.05)
    below.set_xticks(ks)
    below.set_xlabel("features acted on, at most")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
