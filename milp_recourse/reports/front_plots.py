"""Fronts as pictures: cost against density offset, people one by one and together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from milp_recourse.density_front import DensityFront, average

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 200


def plot_density_fronts(fronts: Sequence[DensityFront], path: str | Path) -> None:
    """Above, everybody's cost at each offset and the mean; below, the share of people with an action.

    A line ends at the offset from which there is no action any more. The cost without any demand on the density
    is drawn at the left end.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    offsets = [point.offset for point in fronts[0].points if point.offset is not None]
    step = (offsets[-1] - offsets[0]) / max(1, len(offsets) - 1)
    x = [offsets[0] - step, *offsets]
    for front in fronts[:MOST_LINES]:
        costs = [point.result.cost for point in front.points]
        shown = [(a, c) for a, c in zip(x, costs, strict=True) if c is not None]
        if shown:
            above.plot(*zip(*shown, strict=True), color="#4c72b0", alpha=0.25, linewidth=0.8)
    rows = average(fronts)
    means = [row["mean cost of these"] for row in rows]
    if means[0] is not None:
        count = rows[0]["people with an action at every offset"]
        above.plot(x, means, color="#c44e52", linewidth=2.2, label=f"mean of the {count} with an action throughout")
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
    whole = [tick for tick in range(int(x[1]), int(x[-1]) + 1, 2) if x[1] <= tick <= x[-1]]
    axes.set_xticks([x[0], *whole], ["not\nasked", *map(str, whole)])
