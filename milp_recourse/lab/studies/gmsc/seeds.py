"""``gmsc`` with several seeds: how much its numbers vary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.formats.strict_json import read_json
from milp_recourse.lab.means import mean, sd
from milp_recourse.lab.run_table import read_rows, write_table
from milp_recourse.lab.studies.report import write_page
from milp_recourse.reports.drawing import panels, save

PROVEN = {
    "proven": "share of applicants with a proof",
    "seconds_median": "processor seconds per applicant, median",
}
COMPARED = {"served": "share of applicants served", "cost_ratio_median": "cost over the optimum, median"}
KEPT = (*PROVEN, "valid", "plausible", *COMPARED)
"""The numbers whose spread is reported."""

COLOURS = {"certified": "C0", "iCARMA, flow": "C1", "iCARMA, equations": "C2"}


def write_spread(out: Path) -> list[dict[str, Any]]:
    """Write OUT/seeds.csv, by_seed.csv, seeds.svg and report.html from the seeds whose results are complete.

    Returns
    -------
    list
        Means and standard deviations over seeds, by setting and method.
    """
    runs = sorted(
        out.glob("seed_*/results/tables.csv"), key=lambda path: read_json(path.with_name("fit.json"))["seed"]
    )
    every = [row for path in runs for row in _of_seed(path.parent)]
    write_table(out / "by_seed.csv", every)
    spread = []
    for setting, method in dict.fromkeys((row["setting"], row["method"]) for row in every):
        mine = [row for row in every if (row["setting"], row["method"]) == (setting, method)]
        numbers: dict[str, Any] = {"setting": setting, "method": method, "seeds": len(mine)}
        for name in KEPT:
            values = [row[name] for row in mine if row[name] is not None]
            if values:
                numbers |= {f"{name} mean": mean(values), f"{name} sd": sd(values)}
        spread.append(numbers)
    write_table(out / "seeds.csv", spread)
    _draw(every, out / "seeds.svg")
    write_page(out / "report.html", "seeds_of_gmsc", {"seeds": spread, "by_seed": every}, ["seeds"])
    return spread


def _of_seed(results: Path) -> list[dict[str, Any]]:
    """A row per setting and method of one seed."""
    seed = read_json(results / "fit.json")["seed"]
    proofs = {row["setting"]: row for row in read_rows(results / "proofs.csv")}
    found = []
    for row in read_rows(results / "tables.csv"):
        if row["method"].startswith("published"):
            continue
        proof = proofs[row["setting"]]
        own: dict[str, Any] = {"seed": seed, "setting": row["setting"], "method": row["method"]}
        own |= {name: float(row[name]) if row.get(name) else None for name in KEPT}
        if row["method"] == "certified":
            count = int(proof["optimal"]) + int(proof["infeasible"])
            own |= {
                "proven": count / int(proof["applicants"]),
                "seconds_median": float(proof["seconds_median"]),
            }
        found.append(own)
    return found


def _draw(every: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw each number by setting: a dot per seed and method, means with a standard deviation."""
    names = PROVEN | COMPARED
    figure, axes = panels((10.0, 6.4), 2, 2)
    settings = list(dict.fromkeys(row["setting"] for row in every))
    for axis, (name, words) in zip(axes.flat, names.items(), strict=True):
        for shift, (method, colour) in zip((-0.22, 0.0, 0.22), COLOURS.items(), strict=True):
            label = method
            for at, setting in enumerate(settings):
                values = [
                    row[name]
                    for row in every
                    if (row["setting"], row["method"]) == (setting, method) and row[name] is not None
                ]
                if not values:
                    continue
                place, style = at + shift, {"color": colour}
                axis.plot(np.full(len(values), place), values, ".", alpha=0.4, **style)
                error = sd(values) if len(values) > 1 else 0.0
                axis.errorbar(
                    place + 0.07, mean(values), error, fmt="D", markersize=4, capsize=3, label=label, **style
                )
                label = "_"
        axis.set_xticks(range(len(settings)), settings, fontsize=8, rotation=15)
        axis.set_title(words, fontsize=10)
    axes[1, 1].set_yscale("log")
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(figure, path)
