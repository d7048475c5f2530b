"""The report of ``bench trees`` and ``bench real``: a table per model and solver, false claims, and plots."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.reports.drawing import panels, save

FAILED = ("refused", "error")
"""Statuses: the solver cannot express the model, or its process failed."""
RELATIVE, ABSOLUTE = 2e-6, 2e-6
"""How far a claimed cost may be from what is known. Gaps are 1e-6, and OceanPy cuts costs off at 1e-8 per
feature."""

AIMED = ("100x6", "300x6")
"""Sizes of models for which ``bab`` should be three times as fast as the best of the other solvers."""

NEARLY = 1e-4
"""An action that misses the threshold within a solver's tolerance may be cheaper than the optimum by this
share."""

PROBLEM = ["model", "cost_kind", "applicant"]
"""Columns that together name a problem."""

NUMBERS = (
    *("claimed_cost", "cost", "lower_bound", "first_seconds", "processor_seconds"),
    *("certificate_seconds", "check_seconds"),
)


def table_of(rows: Sequence[Mapping[str, str]], time_limit: float) -> pd.DataFrame:
    """The rows of the file, with numbers as numbers (nan where empty) and these columns more:

    - ``size``: the kind and size of the model, without its data set;
    - ``asked``: whether the solver did not fail;
    - ``best``: the cost of the cheapest exactly feasible action of any solver to this problem, else infinity;
    - ``bound``: the largest rigorous lower bound of its cost;
    - ``usable``: whether the returned action is accepted, exactly or within the solver's tolerance;
    - ``holds``: whether the answer is optimal or infeasible, and not false;
    - ``spent``: the processor seconds of the answer; the time limit if its claim is false. The limit is one
      of wall time, so on a busy machine a solver that reaches it has had fewer processor seconds. Only these
      count.
    """
    table = pd.DataFrame(rows)
    if "nearly" not in table:
        table["nearly"] = ""
    for name in NUMBERS:
        table[name] = pd.to_numeric(table[name])
    table["size"] = table["model"].str.partition("/")[2]
    table["asked"] = ~table["status"].isin(FAILED)
    infeasible, feasible = table["status"] == "infeasible", table["feasible"] == "True"
    groups = [table[name] for name in PROBLEM]
    table["best"] = table["cost"].where(feasible, math.inf).groupby(groups).transform("min")
    own = table["solver"].str.startswith("bab")
    rigorous = table["lower_bound"].mask(infeasible, math.inf).where(own, 0.0)
    table["bound"] = rigorous.fillna(0.0).groupby(groups).transform("max")
    table["usable"] = feasible | (table["nearly"] == "True")
    cheap = table["claimed_cost"] <= table["best"] * (1 + RELATIVE) + ABSOLUTE
    optimal = (table["status"] == "optimal") & table["usable"] & cheap
    table["holds"] = optimal.mask(infeasible, ~np.isfinite(table["best"]))
    false = table["status"].isin(("optimal", "infeasible")) & ~table["holds"]
    table["spent"] = table["processor_seconds"].mask(false).fillna(time_limit)
    return table


def false_claims(table: pd.DataFrame) -> list[str]:
    """A sentence for each returned action that is not accepted, and for each claim that is false."""
    found = []
    row: Any
    for row in table.itertuples():
        best, claimed = row.best, row.claimed_cost
        name = f"{row.model} {row.cost_kind} {row.applicant} {row.solver}"
        allowed = ABSOLUTE + RELATIVE * (best if math.isfinite(best) else 0.0)
        if (row.feasible == "False" and not row.usable) or row.flips == "False":
            found.append(f"{name}: the returned action is not accepted")
        if row.status == "infeasible" and math.isfinite(best):
            found.append(f"{name}: said to be infeasible, and there is an action at cost {best:.8g}")
        if row.status == "optimal" and claimed > best + allowed:
            found.append(f"{name}: said to be optimal at {claimed:.8g}, and {best:.8g} is feasible")
        least = min(row.bound, best)
        if row.status == "optimal" and claimed < least * (1 - NEARLY * (row.nearly == "True")) - allowed:
            found.append(f"{name}: said to cost {claimed:.8g}, and {least:.8g} is proven")
        if row.status == "limit" and row.lower_bound > best + allowed:
            found.append(f"{name}: a bound of {row.lower_bound:.8g}, and {best:.8g} is feasible")
    return found


def summarise(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A line per size of model and solver; problems that are not proven count with the seconds spent."""
    lines = []
    for (size, solver), mine in table.groupby(["size", "solver"], sort=False):
        asked = mine[mine["asked"]]
        line: dict[str, Any] = {"model": size, "solver": solver, "problems": len(mine)}
        line["refused"] = len(mine) - len(asked)
        if len(asked):
            without = asked["cost"].isna() & (asked["status"] != "infeasible")
            line |= {
                "proven": int(asked["holds"].sum()),
                "median_s": asked["spent"].median(),
                "max_s": asked["spent"].max(),
                "first_median_s": _known(asked["first_seconds"].median()),
                "first_max_s": _known(asked["first_seconds"].max()),
                "without_action": int(without.sum()),
            }
        if asked["check_seconds"].notna().any():
            line |= {
                "verified": int((asked["verified"] == "True").sum()),
                "check_max_s": asked["check_seconds"].max(),
                "certificate_max_s": asked["certificate_seconds"].max(),
            }
        lines.append(line)
    return lines


def compared(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A line per size of model: the best peer's seconds divided by those of ``bab``, problem by problem.

    ``best_peers`` counts how often each peer was the best one.
    """
    lines = []
    for size, mine in table[table["asked"]].groupby("size", sort=False):
        seconds = mine.pivot(index=PROBLEM, columns="solver", values="spent")[mine["solver"].unique()]
        if "bab" not in seconds:
            continue
        both = seconds[seconds["bab"].notna() & (seconds.notna().sum(axis=1) > 1)]
        others = both.drop(columns="bab")
        if both.empty:
            continue
        ratio, names = others.min(axis=1) / both["bab"], others.idxmin(axis=1).value_counts()
        lines.append(
            {
                "model": size,
                "problems": len(both),
                "best_peer_over_bab_median": ratio.median(),
                "least": ratio.min(),
                "slower_than_the_best_peer": int((ratio < 1).sum()),
                "best_peers": {name: int(names[name]) for name in sorted(names.index)},
            }
        )
    return lines


def against(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A line per other solver and kind of cost (and "all"), that compares it with ``bab`` problem by problem.

    ``both_open`` counts the problems that neither has proven; they are in no ratio. ``median_ratio`` is the
    median of the peer's seconds over those of ``bab``, ``p90_slower`` the 90th percentile of the inverse.
    ``action_elsewhere`` counts problems for which the peer has an action and ``bab`` has none.
    """
    lines, asked = [], table[table["asked"]]
    own = asked[asked["solver"] == "bab"]
    for solver, theirs in asked[asked["solver"] != "bab"].groupby("solver", sort=False):
        pairs = theirs.merge(own, on=PROBLEM, suffixes=("", "_bab"))
        for kind in (*table["cost_kind"].unique(), "all"):
            mine = pairs if kind == "all" else pairs[pairs["cost_kind"] == kind]
            if mine.empty:
                continue
            proven = mine[mine["holds"] | mine["holds_bab"]]
            ratio = proven["spent"] / proven["spent_bab"]
            elsewhere = mine["cost"].notna() & mine["usable"] & mine["cost_bab"].isna()
            lines.append(
                {
                    "peer": solver,
                    "cost_kind": kind,
                    "problems": len(mine),
                    "both_open": len(mine) - len(proven),
                    "bab_alone_proves": int((~proven["holds"]).sum()),
                    "peer_alone_proves": int((~proven["holds_bab"]).sum()),
                    "median_ratio": _known(ratio.median()),
                    "p90_slower": _known((1 / ratio).quantile(0.9)),
                    "action_elsewhere": int(elsewhere.sum()),
                }
            )
    return lines


def write(
    rows: Sequence[Mapping[str, str]], folder: Path, time_limit: float, name: str = "trees"
) -> dict[str, Any]:
    """Write ``name``.json, ``name``.md and, with matplotlib, ``name``.png; return the first's content."""
    table = table_of(rows, time_limit)
    failed = table[~table["asked"]]
    content = {
        "time_limit": time_limit,
        "summary": summarise(table),
        "compared": compared(table),
        "against": against(table),
        "false_claims": false_claims(table),
        "refused": sorted(set(failed["size"] + " " + failed["solver"] + ": " + failed["message"])),
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(table), encoding="utf-8")
    with suppress(ImportError):  # without matplotlib there is no picture
        draw(table, folder / f"{name}.png", time_limit)
    return content


def markdown(table: pd.DataFrame) -> str:
    """A table with a line per size of model, and below it :func:`asked_of_bab` as a list."""
    lines_of = {(line["model"], line["solver"]): line for line in summarise(table)}
    ratios = {line["model"]: line for line in compared(table)}
    solvers = list(dict.fromkeys(solver for _, solver in lines_of))
    peers = [solver for solver in solvers if solver != "bab"]
    head = ["model", "problems"]
    for solver in solvers:
        head += [f"`{solver}` proven", "median s"]
    head += ["fastest other / `bab`, median", "least"] if peers else []
    lines = [[*head, "slowest first action s", "certificates verified", "slowest check s"]]
    lines.append(["---"] * len(lines[0]))
    for size in dict.fromkeys(size for size, _ in lines_of):
        own = lines_of.get((size, "bab"), {})
        line = [size, str(own.get("problems", ""))]
        for solver in solvers:
            one = lines_of.get((size, solver), {})
            proven = one.get("proven")
            asked = one.get("problems", 0) - one.get("refused", 0)
            line += ["" if proven is None else f"{proven} of {asked}", _short(one.get("median_s"))]
        ratio = ratios.get(size, {})
        line += [_short(ratio.get(key)) for key in ("best_peer_over_bab_median", "least") if peers]
        line += [_short(own.get("first_max_s")), str(own.get("verified", "")), _short(own.get("check_max_s"))]
        lines.append(line)
    shown = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join([*shown, "", *(f"- {line}" for line in asked_of_bab(table))]) + "\n"


def asked_of_bab(table: pd.DataFrame) -> list[str]:
    """Sentences about ``bab`` over all problems: proofs, speed, first actions, certificates, false claims."""
    mine, others = table[table["solver"] == "bab"], table[table["solver"] != "bab"]
    elsewhere = others.loc[others["holds"], PROBLEM].drop_duplicates()
    open_here = mine.loc[~mine["holds"], PROBLEM].merge(elsewhere)
    found = [
        f"`bab` proves {mine['holds'].sum()} of {len(mine)} problems"
        + (f"; {len(open_here)} that it does not prove are proven by another solver." if len(others) else ".")
    ]
    ratios = compared(table)
    if ratios:
        count, slower = (sum(r[key] for r in ratios) for key in ("problems", "slower_than_the_best_peer"))
        aimed = [r for r in ratios if r["model"].endswith(AIMED)]
        medians = ", ".join(f"{_short(r['best_peer_over_bab_median'])} on {r['model']}" for r in aimed)
        found.append(f"On {slower} of {count} problems the best of the others needs less time than `bab`.")
        if medians:
            found.append(f"Best of the others over `bab`, median per model, where 3 is the aim: {medians}.")
    firsts, checks = mine["first_seconds"].dropna(), mine["check_seconds"].dropna()
    if len(firsts):
        found.append(f"Slowest first action {_short(firsts.max())} s; {len(firsts)} problems have one.")
    if len(checks):
        verified = (mine["verified"] == "True").sum()
        found.append(f"{verified} certificates verify; the slowest check takes {_short(checks.max())} s.")
    found.append(f"False claims and refused actions, all solvers: {len(false_claims(table))}.")
    return found


def gaps(row: Any, times: np.ndarray) -> np.ndarray:
    """The gap at each of some times: (best cost found - bound) / best known cost.

    It is 1 before the first action, and 0 once the answer is proven.
    """
    gap = np.ones(len(times))
    for at, cost, bound in json.loads(row.events or "[]"):
        if cost is not None and row.best > 0:
            gap[times >= at] = min(1.0, max(0.0, (cost - min(bound, row.best)) / row.best))
    if row.holds:
        gap[times >= row.spent] = 0.0
    return gap


def draw(table: pd.DataFrame, path: Path, time_limit: float) -> None:
    """Draw over processor seconds: problems with an action, the mean gap, and problems proven."""
    figure, axes = panels((13, 4), 1, 3, grid="both")
    times = np.logspace(-2.3, math.log10(time_limit), 200)
    for k, solver in enumerate(table["solver"].unique()):
        mine = table[(table["solver"] == solver) & table["asked"]]
        if mine.empty:
            continue
        ends = mine["spent"].where(mine["holds"], math.inf).to_numpy()
        for axis, shares in (
            (axes[0], [(mine["first_seconds"] <= t).mean() for t in times]),
            (axes[1], np.mean([gaps(row, times) for row in mine.itertuples()], axis=0)),
            (axes[2], [(ends <= t).mean() for t in times]),
        ):
            axis.plot(times, shares, label=f"{solver} ({len(mine)})", color=f"C{k}", lw=1.6)
    titles = ("share of problems with an action", "mean gap (no action: 1)", "share of problems proven")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(xscale="log", xlabel="processor seconds", title=title, ylim=(-0.02, 1.02))
    axes[0].legend(loc="lower right", fontsize=8)
    save(figure, path)


def _known(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def _short(value: float | None) -> str:
    """Two digits; nothing for None."""
    return "" if value is None else f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}"
