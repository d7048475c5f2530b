"""The numbers of the plots on pages; ``charts.html.j2`` draws them as inline SVG.

Widths are in percent, heights in pixels, so that text keeps its size on every screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import NamedTuple

from milp_recourse.reports.pages.values import shown

BINS = 24


class Bin(NamedTuple):
    """One bar of a histogram: places and heights are shares of the whole."""

    left: float
    tall: float
    name: str
    holds: int


class Histogram(NamedTuple):
    """Bins of one width, what is written below them and where, and where the tallest ends."""

    bins: list[Bin]
    width: float
    ticks: list[tuple[float, str]]
    top: float
    tallest: int


def binned(values: Sequence[float], say: Callable[[float], str] = shown) -> Histogram:
    """A histogram of costs.

    Bins of equal width reach up to three times the 90th percentile, or up to the largest value if that is
    less or the percentile is 0. The last bin also counts all values above it, and its label says so.

    Parameters
    ----------
    values
        At least one value; none is negative.
    say
        How a number is written.
    """
    high, cut = max(values), 3 * _quantile(values, 0.9)
    end = high if high <= cut or not cut else cut
    step = _nice(end / BINS) if end else 1.0
    bins = max(1, math.ceil(end / step - 1e-9))
    counts = [0] * bins
    for v in values:
        counts[min(int(v / step), bins - 1)] += 1
    tallest, open_ = max(counts), high > bins * step
    names = [f"{say(k * step)} – {say((k + 1) * step)}" for k in range(bins)]
    if open_:
        names[-1] = f"> {say((bins - 1) * step)}"
    bars = [
        Bin(k / bins, count / tallest, name, count)
        for k, (count, name) in enumerate(zip(counts, names, strict=True))
    ]
    every = range(0, bins + 1, max(1, math.ceil(bins / 4)))
    ticks = [(k / bins, say(k * step) + (" +" if k == bins and open_ else "")) for k in every]
    return Histogram(bars, 1 / bins, ticks, (counts.index(tallest) + 0.46) / bins, tallest)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile, interpolated between the values."""
    return _quantile(values, 0.25), _quantile(values, 0.5), _quantile(values, 0.75)


def _quantile(values: Sequence[float], p: float) -> float:
    if len(values) == 1:
        return values[0]
    cuts = quantiles(values, n=100, method="inclusive")
    return cuts[round(100 * p) - 1]


def _nice(step: float) -> float:
    """The least number not below ``step`` that is 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step * (1 - 1e-9))
