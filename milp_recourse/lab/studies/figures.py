"""The pictures of ``reproduce``: tables as bars, log densities, groups, the grid's cost over the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from milp_recourse.elicitation.schemes import CostProfile, ProfileName, Scores
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.studies.fairness import GAPS, GROUPS
from milp_recourse.lab.studies.paper_cells import SCENARIOS
from milp_recourse.lab.studies.tables import Served
from milp_recourse.reports.drawing import draw_shares, draw_violins, panels, save

COLOURS = {"published": "#9a9a9a", "grid": "#d98b3a", "certified": "#2c6fb0"}
OTHERS = ("#5b5b5b", "#7fb069", "#3f7d3a", "#b07fc4", "#6a3d8a", "#c25b56", "#e3b23c")
"""Colours of iCARMA's rows: the printed one first, then networks trained here."""
ABREAST = 3
"""How many panels are beside each other."""
RANKED = ("table2", "table3")
"""Tables whose rows differ by cost profile; they print hap."""
FIGURE_3_TAIL = 0.005
"""The share of each violin, at its lower end, that may be cut off."""


def profiles(path: Path) -> None:
    """Draw figure 2: the weights of scores by profile, for k = 4, one panel per largest score given."""
    figure, axes = panels((9.5, 3.4), 1, 3, sharey=True)
    for axis, largest in zip(axes, (4, 3, 2), strict=True):
        given = Scores(("a", "b", "c", "d"), np.minimum([1, 2, 3, 4], largest), 5)
        for name in get_args(ProfileName):
            axis.plot(given.values, CostProfile.named(name).weights(given), "o-", markersize=4, label=name)
        axis.set(title=f"largest score given: {largest}", xlabel="score", xticks=range(1, 5), xlim=(0.8, 4.2))
    axes[0].set(ylabel="weight", ylim=(0, 7.5))
    axes[0].legend(fontsize=8)
    save(figure, path)


def bars(target: str, rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw validity, mean cost, and hap or plausibility where printed: a bar per cell and method."""
    networks = any(row["method"] not in COLOURS for row in rows)
    accepted, everybody = (" (networks: of the accepted)", " (networks: of all)") if networks else ("", "")
    measures = [
        ("validity", f"validity: share with recourse{' (networks: accepted)' if networks else ''}"),
        ("cost mean", f"mean cost of the served{accepted}"),
    ]
    if target in RANKED:
        measures.append(("hap", f"hap: least preferred feature changed{everybody}"))
    if target == "table6" or networks:
        measures.append(("plausibility", f"plausibility of the served{everybody}"))
    labels = list(dict.fromkeys(_label(target, row) for row in rows if row["method"] in COLOURS))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    colours = {method: colour for method, colour in COLOURS.items() if method in methods}
    colours |= dict(zip((m for m in methods if m not in COLOURS), OTHERS, strict=False))
    width = 0.81 / len(colours)
    tall = len(labels) > 5  # many cells: one panel above the other
    wide = (1, len(measures)), (4.5 * len(measures), 3.8)
    grid, size = ((len(measures), 1), (9.5, 2.3 * len(measures) + 1.6)) if tall else wide
    figure, axes = panels(size, *grid, sharex=True)
    for axis, (column, title) in zip(axes, measures, strict=True):
        for shift, (method, colour) in enumerate(colours.items()):
            mine = {_label(target, row): row for row in rows if row["method"] == method}
            at = [k for k, label in enumerate(labels) if label in mine]
            heights = [mine[labels[k]][column] or 0.0 for k in at]
            middle = shift - (len(colours) - 1) / 2
            spread = [mine[labels[k]].get(f"{column.split()[0]} sd of seeds") for k in at]
            ends = np.nan_to_num([value or 0.0 for value in spread])
            many = ends > 0  # one seed has no spread
            axis.bar(np.array(at) + width * middle, heights, 0.96 * width, color=colour, label=method)
            if many.any():
                places, means = np.array(at)[many] + width * middle, np.array(heights)[many]
                axis.errorbar(places, means, ends[many], fmt="none", ecolor="black", capsize=2)
        axis.set_xticks(
            range(len(labels)), labels, rotation=35 if tall else 0, ha="right" if tall else "center"
        )
        axis.set(title=title)
        if target == "table1":
            axis.set_xlabel("actionable features")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save(figure, path, path.with_suffix(".svg"))


def _label(target: str, row: Mapping[str, Any]) -> str:
    if target in RANKED:
        return f"{'all 4' if row['actionable'] == '4' else 'random'}, {row['profile']}"
    label = str(row["actionable"]) if row["distribution"] == "uniform" and target == "table1" else ""
    label = label or f"{row['distribution']}, {row['actionable']}"
    return label + (", not asked" if row["plausibility asked"] == "no" else "")


def _coloured(methods: Sequence[str]) -> dict[str, str]:
    """A colour for every method; those of networks are taken from OTHERS in order."""
    others = [method for method in methods if method not in COLOURS]
    return COLOURS | dict(zip(others, OTHERS[1:], strict=False))


def densities(factual: FloatArray, by_count: Mapping[str, Mapping[str, Served]], path: Path) -> None:
    """Draw figure 3: log densities of factuals and of counterfactuals, by number of features and method."""
    methods = list(next(iter(by_count.values())))
    colours = _coloured(methods)
    figure, axes = _panels(len(methods), 5.4, 4.2)
    lowest = float(np.quantile(factual, FIGURE_3_TAIL))
    for axis, method in zip(axes, methods, strict=True):
        groups = [("factual", factual)]
        for count, answers in by_count.items():
            mine = answers[method].log_density
            groups.append((f"cf ({'all' if count == '4' else count})", mine[~np.isnan(mine)]))
        lowest = min(lowest, *(float(np.quantile(v, FIGURE_3_TAIL)) for _, v in groups if len(v)))
        draw_violins(axis, groups, colours[method])
        whose = "served" if method in COLOURS else "accepted, plausible or not"
        axis.set_title(f"{method}\n(in brackets: {whose})", fontsize=11)
    axes[0].set_ylim(lowest, float(np.max(factual)) + 1)
    for axis in axes[::ABREAST]:
        axis.set_ylabel("log density, true equations (nats)")
    save(figure, path, path.with_suffix(".svg"))


def _panels(count: int, width: float, height: float) -> tuple[Any, list[Any]]:
    """A figure of ``count`` panels that share the y axis, :data:`ABREAST` beside each other."""
    columns, lines = min(count, ABREAST), -(-count // ABREAST)
    size = (width * columns, height * lines)
    figure, axes = panels(size, lines, columns, sharey=True, squeeze=False)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, list(axes.flat[:count])


UNITS = {"cost": "mean cost", "log density": "mean log density (nats)"}


def by_group(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw figure 4: mean cost and mean log density by scenario and group, with a panel per method."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    columns, lines = min(len(methods), ABREAST), -(-len(methods) // ABREAST)
    figure = Figure(figsize=(4.6 * columns, 6.0 * lines), layout="constrained")
    colours = ("#e07b91", "#a01f45", "#7fb3e0", "#1b5488")
    parts: Any = figure.subfigures(len(UNITS), 1)
    shown = []
    for part, key in zip(parts, UNITS, strict=True):
        axes = part.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for axis in axes.flat[len(methods) :]:
            axis.set_visible(False)
        shown += list(axes.flat[: len(methods)])
        for axis, method in zip(axes.flat, methods, strict=False):
            for k, (group, colour) in enumerate(zip(GROUPS, colours, strict=True)):
                mine = [r for r in rows if r["group"] == group and r["method"] == method]
                _intervals(
                    axis, mine, key, 0.17 * (k - 1.5), fmt="o", color=colour, label=group, markersize=5
                )
            axis.grid(alpha=0.3, axis="y")
            axis.tick_params(labelbottom=True)
            axis.set_title(
                f"{method} ({'served' if method in COLOURS else 'accepted, plausible or not'})", fontsize=10
            )
        for axis in axes[:, 0]:
            axis.set_ylabel(f"{UNITS[key]},\n95% bootstrap")
    figure.legend(*shown[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path, path.with_suffix(".svg"))


def gaps(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the gaps between groups by scenario and method, with bootstrap intervals over applicants."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    colours, markers = _coloured(methods), "osD^v"
    figure, axes = panels((4.4 * len(GAPS), 6.2), 2, len(GAPS), sharex=True, sharey="row")
    for line, key in zip(axes, UNITS, strict=True):
        for axis, gap in zip(line, GAPS, strict=True):
            for k, method in enumerate(methods):
                mine = [r for r in rows if r["group"] == gap and r["method"] == method]
                shift = 0.8 / len(methods) * (k - (len(methods) - 1) / 2)
                fmt = markers[k % len(markers)]
                _intervals(axis, mine, key, shift, fmt=fmt, color=colours[method], label=method, markersize=5)
            axis.axhline(0, color="black", linewidth=0.8)
            for at in range(1, len(SCENARIOS), 2):
                axis.axvspan(at - 0.5, at + 0.5, color="#f2f2f2", zorder=0)
            axis.set_xlim(-0.5, len(SCENARIOS) - 0.5)
        line[0].set_ylabel(f"difference of {UNITS[key]},\n95% bootstrap")
    for axis, gap in zip(axes[0], GAPS, strict=True):
        axis.set_title(gap)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(methods))
    save(figure, path, path.with_suffix(".svg"))


def _intervals(axis: Any, rows: Sequence[Mapping[str, Any]], key: str, shift: float, **style: Any) -> None:
    """Draw means with their intervals at the scenarios' places, moved by ``shift``."""
    at = np.array([SCENARIOS.index(r["scenario"]) for r in rows], dtype=float) + shift
    means = np.array([r[key] for r in rows])
    ends = np.array([[r[f"{key} low"], r[f"{key} high"]] for r in rows]).T
    axis.errorbar(at, means, np.abs(ends - means), capsize=2, **style)
    axis.set_xticks(range(len(SCENARIOS)), [s.replace("-", "-\n") for s in SCENARIOS])


def excesses(by_cell: Mapping[str, Mapping[str, Served]], path: Path) -> None:
    """Draw the grid's cost divided by the certified optimum, as shares of the applicants who have both."""
    figure, axis = panels((6.4, 4.0), grid="both")
    largest = 1.0
    for k, (name, answers) in enumerate(by_cell.items()):
        both = answers["grid"].served & answers["certified"].served
        if not both.any():
            continue
        ratio = answers["grid"].optimised[both] / answers["certified"].optimised[both]
        largest = max(largest, float(np.quantile(ratio, 0.95)))
        label, colour = f"{name} ({len(ratio)})", colormaps["viridis"](k / 5)
        draw_shares(axis, ratio, label=label, color=colour, linewidth=1.2)
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20, 50, 100) if tick <= largest]
    axis.set_xscale("log")
    axis.set_xlim(1, largest)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set(
        xlabel="grid's cost / certified optimum (cut where 5% are beyond)",
        ylabel="share of the applicants whom both serve",
        ylim=(0, 1),
    )
    axis.legend(title="actionable (people)", loc="lower right")
    save(figure, path, path.with_suffix(".svg"))
