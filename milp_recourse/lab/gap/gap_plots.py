"""Figures of ``gap`` and ``icarma decompose``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milp_recourse.lab.gap.compared import MISSED, Compared
from milp_recourse.reports.drawing import panels, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTS = ("1", "2", "3", "4")
AMORTISED, CERTIFIED, NEITHER = "C1", "C0", "0.75"


def plot(compared: Sequence[Compared], folder: Path) -> Path:
    """Draw FOLDER/gap.png (table 1, by number of actionable features) and profiles.png (tables 2 and 3)."""
    table_one = {(c.setting.label, c.plausible): c for c in compared if c.setting.table == 1}
    if table_one:
        figure, axes = panels((9.5, 6.4), 2, 2, sharex="col")
        for pair, plausible in zip(axes, (True, False), strict=True):
            chosen = [table_one[label, plausible] for label in COUNTS if (label, plausible) in table_one]
            _served(pair[0], chosen, [c.setting.label for c in chosen])
            _ratios(pair[1], chosen, [c.setting.label for c in chosen])
            demand = "plausible recourse demanded" if plausible else "plausibility not demanded"
            pair[0].set_title(f"{demand}: whom each side serves", fontsize=10)
            pair[1].set_title("cost over optimal cost, of those whom both serve", fontsize=10)
        for one in axes[-1]:
            one.set_xlabel("actionable features")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        save(figure, folder / "gap.png")
    profiles = [c for c in compared if c.setting.table in (2, 3)]
    if profiles:
        figure, (left, right) = panels((10.5, 7), 2, 1, sharex=True)
        names = [f"{c.setting.cell.elicitation}\n{c.setting.label.replace(', ', chr(10))}" for c in profiles]
        _served(left, profiles, names)
        _ratios(right, profiles, names)
        left.set_title("plausible recourse demanded: whom each side serves", fontsize=10)
        right.set_title("cost over optimal cost, of those whom both serve", fontsize=10)
        right.tick_params(axis="x", labelsize=7)
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        save(figure, folder / "profiles.png")
    return folder


def plot_rows(rows: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """Draw FOLDER/rows.svg: every printed row, and a line to the mean of the seeds."""
    figure, axes = panels((7, 5), grid="both")
    for k, table in enumerate(dict.fromkeys(row["table"] for row in rows)):
        for row in (one for one in rows if one["table"] == table):
            ends = [[row[f"printed {key}"], row[key]] for key in ("plausibility", "validity")]
            axes.plot(*ends, color=f"C{k}", linewidth=0.8)
            axes.plot(*(end[:1] for end in ends), "o", color=f"C{k}", markerfacecolor="white")
            axes.plot(*(end[1:] for end in ends), "o", color=f"C{k}")
        axes.plot([], [], "o", color=f"C{k}", label=f"table {table}")
    axes.plot([], [], "o", color="0.4", markerfacecolor="white", label="as printed")
    axes.set_xlabel("plausible")
    axes.set_ylabel("valid")
    axes.legend()
    return save(figure, folder / "rows.svg")


WRONG = dict(zip(MISSED, ("C4", "C3", "C5"), strict=True))
"""Colours of the parts of the applicants whose recommendation fails, by what is wrong with it."""


def plot_decomposition(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw, by number of features, whom the networks serve or why not, and the mean cost of each level."""
    figure, (left, right) = panels((9.5, 3.9), 1, 2)
    x, labels = np.arange(len(rows)), [str(row["actionable"]) for row in rows]
    below = np.zeros(len(rows))
    parts = {"served, networks": AMORTISED} | WRONG | {"impossible": NEITHER}
    for name, colour in parts.items():
        heights = np.array([row[name] for row in rows])
        label = {"served, networks": "iCARMA serves", "impossible": "proven impossible"}.get(name, name)
        left.bar(x, heights, bottom=below, color=colour, label=label, width=0.7)
        below += heights
    left.set(ylim=(0, 1), ylabel="share of applicants", xlabel="actionable features")
    levels = {"optimum": CERTIFIED, "mask": "C2", "direction": "C6", "networks": AMORTISED}
    words = {
        "optimum": "certified optimum",
        "mask": "... within the networks' mask",
        "direction": "... and direction",
        "networks": "what the networks recommend",
    }
    for k, (name, colour) in enumerate(levels.items()):
        means = np.array([row[f"cost, {name}"] for row in rows])
        ends = np.array([[row[f"cost, {name} low"], row[f"cost, {name} high"]] for row in rows]).T
        at = x + 0.2 * (k - 1.5)
        error = {"elinewidth": 1, "capsize": 2}
        right.bar(at, means, 0.19, yerr=np.abs(ends - means), color=colour, label=words[name], error_kw=error)
    right.set(ylabel="mean cost of those iCARMA serves", xlabel="actionable features")
    for one in (left, right):
        one.set_xticks(x, labels)
        one.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8, frameon=False)
    save(figure, path)


def _served(axes: Axes, compared: Sequence[Compared], names: Sequence[str]) -> None:
    """Draw stacked shares: feasible recommendation, missed, proven impossible; what is left of 1 was not
    settled in time."""
    x = np.arange(len(compared))
    served = np.array([c.both.mean() for c in compared])
    missed = np.array([c.missed.mean() for c in compared])
    axes.bar(x, served, color=AMORTISED, label="iCARMA serves")
    axes.bar(x, missed, bottom=served, color=CERTIFIED, label="missed: certified recourse exists")
    impossible = np.array([c.optimum.impossible.mean() for c in compared])
    axes.bar(x, impossible, bottom=served + missed, color=NEITHER, label="proven impossible")
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of applicants")
    axes.set_xticks(x, names)


def _ratios(axes: Axes, compared: Sequence[Compared], names: Sequence[str]) -> None:
    """Draw cost ratios: boxes between the quartiles, whiskers from the 5th to the 95th percentile."""
    ratios = [c.ratio if len(c.ratio) else np.array([np.nan]) for c in compared]
    axes.boxplot(
        ratios,
        positions=range(len(compared)),
        whis=(5, 95),
        showfliers=False,
        widths=0.6,
        medianprops={"color": AMORTISED},
    )
    axes.axhline(1.0, color=CERTIFIED, linewidth=1.5)
    axes.set_yscale("log")
    axes.set_ylabel("times the optimum")
    axes.set_xticks(range(len(compared)), names)
