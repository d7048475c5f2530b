"""How figures of experiments are begun and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def panels(size: tuple[float, float], rows: int = 1, columns: int = 1, **more: Any) -> tuple[Any, Any]:
    """A figure and its panels: one comes as itself, more of them as an array.

    Parameters
    ----------
    size
        Inches, width and height.
    more
        As of matplotlib's ``Figure.subplots``: ``sharex``, ``sharey``, ``squeeze``.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def save(figure: Any, *paths: Path) -> Path:
    """Write a figure to every path, the same figure as the same bytes; the first path."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "milp-recourse"}):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            vectors = path.suffix == ".svg"
            figure.savefig(path, **({"metadata": {"Date": None}} if vectors else {"dpi": 130}))
    return paths[0]
