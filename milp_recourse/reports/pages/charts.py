"""Plots as inline SVG: widths in percent, heights in pixels, so that text keeps its size on every screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import quantiles

from milp_recourse.reports.pages.html import Html, el
from milp_recourse.reports.pages.values import percent, shown

BINS = 24
PLOT = 150
"""Height of a histogram's plot, in pixels."""


def histogram(values: Sequence[float], unit: str) -> Html:
    """A histogram of costs.

    Bins of equal width reach up to three times the 90th percentile, or up to the largest value if that is
    less or the percentile is 0. The last bin also counts all values above it, and its label says so.

    Parameters
    ----------
    values
        At least one value; none is negative.
    unit
        The word in labels for what is counted, such as ``people``.
    """
    high, cut = max(values), 3 * _quantile(values, 0.9)
    end = high if high <= cut or not cut else cut
    step = _nice(end / BINS) if end else 1.0
    bins = max(1, math.ceil(end / step - 1e-9))
    counts = [0] * bins
    for v in values:
        counts[min(int(v / step), bins - 1)] += 1
    tallest, parts = max(counts), []
    for k, count in enumerate(counts):
        above = k == bins - 1 and high > bins * step
        name = f"above {shown(k * step)}" if above else f"{shown(k * step)} to {shown((k + 1) * step)}"
        tip = el("title", f"{name}: {count} {unit}")
        tall, left = PLOT * count / tallest, _p(k / bins)
        sides = {"y": f"{16 + PLOT - tall:.1f}", "height": f"{tall:.1f}"}
        parts.append(el("rect", x=left, width=_p(0.92 / bins), rx="2", class_="bar", **sides))
        whole = {"y": "16", "height": f"{PLOT}", "fill": "transparent"}  # a tip for short bars, too
        parts.append(el("rect", tip, x=left, width=_p(1 / bins), **whole))
    base = PLOT + 16
    axis = el("line", x1="0", x2="100%", y1=f"{base}", y2=f"{base}", class_="axis")
    every = max(1, math.ceil(bins / 4))
    for k in range(0, bins + 1, every):
        anchor = "start" if k == 0 else "end" if k == bins else "middle"
        plus = " +" if k == bins and high > bins * step else ""
        parts.append(el("text", shown(k * step) + plus, x=_p(k / bins), y=f"{base + 17}", text_anchor=anchor))
    top = (counts.index(tallest) + 0.46) / bins
    most = el("text", f"{tallest} {unit}", x=_p(top), y="11", **_anchor(top))
    label = f"Distribution of the cost over {len(values)} {unit}"
    return el("svg", *parts, axis, most, height=f"{base + 24}", role="img", aria_label=label)


def frequency_bars(
    rows: Sequence[tuple[str, Mapping[str, int]]], whole: int, words: Mapping[str, str]
) -> Html:
    """One bar per name, with its parts side by side; the full width is the count ``whole``.

    Parameters
    ----------
    rows
        Pairs of name and count per part.
    words
        The words for each part, whose CSS class is ``seg-PART``.
    """
    return el("div", *(_frequency(name, counts, whole, words) for name, counts in rows))


def stacked_bar(parts: Sequence[tuple[str, str, int]]) -> Html:
    """One bar whose parts (CSS class, label, count) are side by side."""
    whole = sum(count for _, _, count in parts)
    return el(
        "div",
        *(
            el(
                "i",
                class_=name,
                style=f"width:{100 * count / whole:.3f}%",
                title=f"{label}: {count} ({percent(count, whole)})",
            )
            for name, label, count in parts
            if count
        ),
        class_="stack",
        role="img",
        aria_label="; ".join(f"{label}: {count}" for _, label, count in parts if count),
    )


def quartile_line(values: Sequence[float], end: float) -> Html:
    """A line from the lower to the upper quartile and a dot at the median, on an axis from 0 to ``end``."""
    low, middle, high = quartiles(values)
    tip = f"median {shown(middle)}; half of them between {shown(low)} and {shown(high)}"
    place = [v / end if end else 0.0 for v in (low, middle, high)]
    return el(
        "svg",
        el("title", tip),
        el("rect", x="0", width="100%", y="6", height="2", class_="ground"),
        el("line", x1=_p(place[0]), x2=_p(place[2]), y1="7", y2="7", stroke_width="4", class_="range"),
        el("circle", cx=_p(place[1]), cy="7", r="5", class_="dot"),
        height="14",
        role="img",
        aria_label=tip,
    )


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile, interpolated between the values."""
    return _quantile(values, 0.25), _quantile(values, 0.5), _quantile(values, 0.75)


def _frequency(name: str, counts: Mapping[str, int], whole: int, words: Mapping[str, str]) -> Html:
    parts, start = [el("rect", x="0", width="100%", y="0", height="10", rx="4", class_="ground")], 0
    for part, count in counts.items():
        if count:
            tip = el("title", f"{name} {words[part]}: {count} of {whole}")
            at, width = _p(start / whole), _p(count / whole)
            parts.append(el("rect", tip, x=at, width=width, y="0", height="10", class_=f"seg-{part}"))
            start += count
    total = f"{start} ({percent(start, whole)})"
    label = ", ".join(f"{words[part]} {count}" for part, count in counts.items() if count)
    return el(
        "div",
        el("div", el("span", name), el("span", total)),
        el("svg", *parts, height="10", role="img", aria_label=f"{name}: {label}"),
        class_="barrow",
    )


def _quantile(values: Sequence[float], p: float) -> float:
    if len(values) == 1:
        return values[0]
    cuts = quantiles(values, n=100, method="inclusive")
    return cuts[round(100 * p) - 1]


def _nice(step: float) -> float:
    """The least number not below ``step`` that is 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step * (1 - 1e-9))


def _anchor(place: float) -> dict[str, str]:
    return {"text_anchor": "start" if place < 0.1 else "end" if place > 0.9 else "middle"}


def _p(share: float) -> str:
    return f"{100 * share:.3f}%"
