"""Pictures of ``gmsc``: how good the learned causal model is, the proofs, and the paper's figures 7 and 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.recipe.gmsc_data import COUNTS, FEATURES
from milp_recourse.lab.studies.gmsc.fidelity import Fidelity
from milp_recourse.lab.studies.gmsc.gmsc_tables import MethodsCompared
from milp_recourse.reports.drawing import draw_shares, draw_violins, panels, save

COLOURS = {"data": "0.6", "spline flow": "C1", "SCM": "C0"}
METHOD_COLOURS = {"certified": "C0", "iCARMA, flow": "C1", "iCARMA, equations": "C2"}


def densities(found: Fidelity, path: Path) -> None:
    """Draw each model's mean log density below the flow's, per feature, with two standard errors."""
    names = list(dict.fromkeys(row["model"] for row in found.densities))
    columns = (*FEATURES, "all")
    of = {(row["model"], row["feature"]): row for row in found.densities}
    figure, axis = panels((9.0, 4.0))
    others = [name for name in names if name != "spline flow"]
    for shift, name in enumerate(others):
        at = np.arange(len(columns)) + 0.8 * ((shift + 0.5) / len(others) - 0.5)
        lost = [of["spline flow", f]["log_density"] - of[name, f]["log_density"] for f in columns]
        error = [2 * of[name, f]["standard_error"] for f in columns]
        axis.errorbar(at, lost, error, fmt="o", markersize=4, capsize=2, label=name)
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    axis.set_ylabel("log density below the spline flow's\n(nats per test row)")
    axis.legend(fontsize=8)
    save(figure, path)


def interventions(found: Fidelity, path: Path) -> None:
    """Draw means after an intervention: each model's against those of the rows, adjusted for causes."""
    figure, axes = panels((9.0, 4.2), 1, 2, grid="both", sharex=True, sharey=True)
    levers = list(dict.fromkeys(row["lever"] for row in found.interventions))
    for axis, model, title in zip(axes, ("scm", "flow"), ("learned equations", "spline flow"), strict=True):
        for k, lever in enumerate(levers):
            mine = [row for row in found.interventions if row["lever"] == lever]
            axis.plot(
                [r["adjusted"] for r in mine],
                [r[model] for r in mine],
                "o",
                color=f"C{k}",
                ms=4,
                label=f"do({lever})",
            )
        ends = axis.get_xlim()
        axis.axline((0, 0), slope=1, color="0.5", linewidth=0.8)
        axis.set_xlim(ends)
        axis.set_title(title)
        axis.set_xlabel("held-out rows, adjusted (sd from the mean)")
    axes[0].set_ylabel("model's mean after the intervention\n(sd from the mean)")
    axes[0].legend(fontsize=8)
    save(figure, path)


UNITS = {"age": "age (years)", "income": "income (thousand dollars a month)"}
LEAST_SHOWN = 2e-4
"""The smallest share of rows in a bin that logarithmic axes show."""


def marginals(found: Fidelity, path: Path) -> None:
    """Draw figure 7: the distribution of every feature in the rows, the flow and the learned equations.

    Bars are shares of all rows, so values outside the picture make its bars smaller. For counts there is a
    bin per whole number.
    """
    figure, axes = panels((13.0, 5.4), 2, 5)
    for axis, (k, f) in zip(axes.flat, enumerate(FEATURES), strict=True):
        unit = 1000.0 if f == "income" else 1.0
        true = found.samples["data"][:, k] / unit
        low, high = np.quantile(true, [0.001, 0.995])
        if f in COUNTS:
            edges = np.arange(np.floor(low) - 2.5, np.ceil(high) + 1.6)
        else:
            margin = 0.15 * (high - low)
            edges = np.linspace(low - margin, high + margin, 45)
        for name, rows in found.samples.items():
            colour, values = COLOURS[name.split(",")[0]], rows[:, k] / unit
            style: dict[str, Any] = {"histtype": "stepfilled" if name == "data" else "step"}
            weights = np.full(len(values), 1 / len(values))
            axis.hist(values, edges, weights=weights, color=colour, label=name, **style)
        axis.set_xlabel(UNITS.get(f, f), fontsize=9)
        if f.startswith("late") or f in ("utilization", "debt_ratio"):
            axis.set_yscale("log")
            axis.set_ylim(LEAST_SHOWN, 1.5)
        axis.tick_params(labelsize=8)
    for line in axes:
        line[0].set_ylabel("share of the rows per bin", fontsize=9)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(figure, path)


def log_densities(
    compared: Mapping[str, MethodsCompared],
    density: Mapping[tuple[str, str], FloatArray],
    factual: FloatArray,
    path: Path,
) -> None:
    """Draw figure 8: log densities under the flow of factuals and counterfactuals, by setting and method."""
    figure, axes = panels((12.5, 4.2), 1, 3, sharey=True)
    floor = float(np.quantile(factual, 0.1))
    for axis, (method, colour) in zip(axes, METHOD_COLOURS.items(), strict=True):
        found = [(label, density[label, method]) for label in compared if (label, method) in density]
        groups = [(name, np.maximum(group, floor)) for name, group in [("factual", factual), *found]]
        draw_violins(axis, groups, colour, rotation=25, ha="right", fontsize=8)
        axis.set_title(method)
    axes[0].set_ylabel(f"log density under the spline flow (nats;\nbelow {floor:.0f} drawn at {floor:.0f})")
    save(figure, path)


def proofs(compared: Sequence[MethodsCompared], path: Path) -> None:
    """Draw processor time per applicant, and the networks' cost divided by the optimum, by setting."""
    figure, (left, right) = panels((10.0, 4.0), 1, 2, grid="both")
    for one in compared:
        draw_shares(left, 1000 * one.seconds, label=one.setting.key.replace("table ", ""))
    left.axvline(100, color="0.5", linestyle="--", linewidth=0.8)
    left.set_xscale("log")
    left.set(xlabel="processor time per applicant (ms)", ylabel="share of applicants", ylim=(0, 1))
    left.legend(fontsize=7)
    at = np.arange(len(compared))
    for shift, (method, colour) in zip((-0.2, 0.2), list(METHOD_COLOURS.items())[1:], strict=True):
        ends, medians, places = [], [], []
        for k, one in enumerate(compared):
            if method in one.sides:
                side, best = one.sides[method], one.sides["certified"]
                both = side.served & best.served & (best.scored.cost > 0)
                if both.any():
                    ratio = side.scored.cost[both] / best.scored.cost[both]
                    ends.append(np.quantile(ratio, [0.1, 0.9]))
                    medians.append(float(np.median(ratio)))
                    places.append(at[k] + shift)
        if places:
            around = np.abs(np.array(ends).T - np.array(medians))
            right.errorbar(places, medians, around, fmt="o", color=colour, capsize=3, label=method)
    right.axhline(1, color="black", linewidth=0.8)
    right.set_yscale("log")
    right.set_xticks(at, [one.setting.key.replace("table ", "") for one in compared], rotation=30, ha="right")
    right.set_ylabel("cost over certified optimum,\nwhom both serve (median, 10% to 90%)")
    if right.get_legend_handles_labels()[0]:
        right.legend(fontsize=8)
    save(figure, path)


def sizes(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw held-out log density against processor time of a proof, by number of ReLUs per equation."""
    figure, axis = panels((5.5, 3.6), grid="both")
    for row in rows:
        place = 1000 * row["seconds_median"], row["log_density"]
        ends = [[place[0] - 1000 * row["seconds_p10"]], [1000 * row["seconds_p90"] - place[0]]]
        axis.errorbar(*place, xerr=ends, fmt="o", color="C0", capsize=3)
        axis.annotate(f"{row['units']}", place, textcoords="offset points", xytext=(5, 5))
    axis.set_xscale("log")
    axis.set(
        xlabel="processor time per applicant (ms; median, 10% to 90%)",
        ylabel="held-out log density (nats per row)",
        title="ReLUs per structural equation",
    )
    save(figure, path)
