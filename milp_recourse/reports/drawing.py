"""Functions shared by the figures: panels, parts that several figures draw, and writing; needs matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def panels(
    size: tuple[float, float],
    rows: int = 1,
    columns: int = 1,
    grid: Literal["x", "y", "both"] = "y",
    **more: Any,
) -> tuple[Any, Any]:
    """A figure and its axes: a single object for one panel, an array for several.

    Parameters
    ----------
    size
        Width and height in inches.
    grid
        Which grid lines are drawn.
    more
        Further arguments of matplotlib's ``Figure.subplots``: ``sharex``, ``sharey``, ``squeeze``.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    import numpy as np  # not needed to list commands
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    axes = figure.subplots(rows, columns, **more)
    for axis in np.ravel(axes):
        axis.grid(alpha=0.3, axis=grid)
        axis.set_axisbelow(True)
    return figure, axes


def draw_shares(
    axis: Any, values: ArrayLike, whole: int | None = None, end: float | None = None, **style: Any
) -> None:
    """Draw the share of values at or below each value, as a step function.

    Parameters
    ----------
    whole
        The number that counts as 1; None for the number of values.
    end
        The value up to which the last step is drawn; None for the largest value.
    """
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    shares = np.arange(1, len(ordered) + 1) / (whole or max(1, len(ordered)))
    if end is not None:
        ordered, shares = np.append(ordered, end), np.append(shares, shares[-1] if len(shares) else 0.0)
    axis.step(ordered, shares, where="post", **style)


def draw_violins(
    axis: Any, groups: Sequence[tuple[str, NDArray[np.float64]]], colour: str, **ticks: Any
) -> None:
    """Draw a violin with its median for each named group that has two different values, the first group's in
    grey, and a dotted line at the first group's median."""
    import numpy as np

    shown = [k for k, (_, values) in enumerate(groups) if len(values) > 1 and np.ptp(values) > 0]
    if shown:
        drawn = [groups[k][1] for k in shown]
        parts = axis.violinplot(drawn, shown, widths=0.85, showextrema=False, showmedians=True)
        for k, body in zip(shown, parts["bodies"], strict=True):
            body.set(facecolor="#777777" if k == 0 else colour, alpha=0.75)
        parts["cmedians"].set_color("black")
    axis.set_xticks(range(len(groups)), [f"{name}\n({len(values)})" for name, values in groups], **ticks)
    axis.axhline(float(np.median(groups[0][1])), color="black", linewidth=0.8, linestyle=":")


def draw_if_possible(draw: Callable[[], Path]) -> None:
    """Draw a figure and print its path; if matplotlib is missing, print on stderr what to install."""
    try:
        print(draw())
    except ImportError:
        print("no plot: pip install matplotlib", file=sys.stderr)


def save(figure: Any, *paths: Path) -> Path:
    """Write a figure to every path and return the first; the same figure always gives the same bytes."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "milp-recourse"}):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            vectors = path.suffix == ".svg"
            figure.savefig(path, **({"metadata": {"Date": None}} if vectors else {"dpi": 130}))
    return paths[0]
