"""What ``bench trees`` and ``bench real`` come to: a table per model and solver, false claims, and plots."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

Row = dict[str, Any]

FAILED = ("refused", "error")
"""The model cannot be expressed, or the solver's process failed."""
RELATIVE, ABSOLUTE = 2e-6, 2e-6
"""How far claims may be from what is known: gaps of 1e-6, and OceanPy's costs, cut off at 1e-8 a feature."""

AIMED = ("100x6", "300x6")
"""Sizes of which ``bab`` is to be three times as fast as the best of the others."""

NEARLY = 1e-4
"""By how much of the cost an action may be too cheap that misses the threshold by a solver's tolerance."""


def usable(row: Row) -> bool:
    """Whether a returned action is accepted, exactly or within its solver's tolerance."""
    return row["feasible"] == "True" or row.get("nearly") == "True"


def problem_of(row: Row) -> tuple[str, str, str]:
    """What tells problems apart."""
    return row["model"], row["cost_kind"], row["applicant"]


def size_of(row: Row) -> str:
    """A model's kind and size, whatever its data set."""
    return str(row["model"].partition("/")[2])


def number(row: Row, column: str) -> float | None:
    """A cell as a number, None where it is empty."""
    return float(row[column]) if row[column] not in ("", None) else None


def right(rows: Sequence[Row]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Per problem, the cheapest exactly feasible action of any solver and the largest rigorous bound."""
    known: dict[tuple[str, str, str], tuple[float, float]] = {}
    for row in rows:
        cost, bound = known.get(problem_of(row), (math.inf, 0.0))
        if row["feasible"] == "True":
            cost = min(cost, number(row, "cost") or 0.0)
        if row["solver"] == "bab":
            bound = max(
                bound, math.inf if row["status"] == "infeasible" else number(row, "lower_bound") or 0.0
            )
        known[problem_of(row)] = cost, bound
    return known


def false_claims(rows: Sequence[Row]) -> list[str]:
    """Returned actions that the exact judge or the model refuses, and claims that are not so."""
    known, found = right(rows), []
    for row in rows:
        best, bound = known[problem_of(row)]
        name = " ".join((*problem_of(row), row["solver"]))
        allowed = ABSOLUTE + RELATIVE * (best if math.isfinite(best) else 0.0)
        if (row["feasible"] == "False" and not usable(row)) or row["flips"] == "False":
            found.append(f"{name}: the returned action is not accepted")
        if row["status"] == "infeasible" and math.isfinite(best):
            found.append(f"{name}: said to be infeasible, and there is an action at cost {best:.8g}")
        claimed = number(row, "claimed_cost")
        if row["status"] == "optimal" and claimed is not None:
            if claimed > best + allowed:
                found.append(f"{name}: said to be optimal at {claimed:.8g}, and {best:.8g} is feasible")
            if claimed < min(bound, best) * (1 - NEARLY * (row.get("nearly") == "True")) - allowed:
                found.append(f"{name}: said to cost {claimed:.8g}, and {min(bound, best):.8g} is proven")
        own = number(row, "lower_bound")
        if row["status"] == "limit" and own is not None and own > best + allowed:
            found.append(f"{name}: a bound of {own:.8g}, and {best:.8g} is feasible")
    return found


def holds(row: Row, known: dict[tuple[str, str, str], tuple[float, float]]) -> bool:
    """Whether a row is a proven answer that is not false."""
    best, _ = known[problem_of(row)]
    if row["status"] == "infeasible":
        return not math.isfinite(best)
    claimed = number(row, "claimed_cost")
    return (
        row["status"] == "optimal"
        and usable(row)
        and claimed is not None
        and claimed <= best + ABSOLUTE + RELATIVE * best
    )


def summarise(rows: Sequence[Row], time_limit: float) -> list[Row]:
    """One line per model size and solver; what is not proven counts at the processor seconds it had."""
    known, said = right(rows), []
    for size, solver in dict.fromkeys((size_of(r), r["solver"]) for r in rows):
        mine = [r for r in rows if (size_of(r), r["solver"]) == (size, solver)]
        asked = [r for r in mine if r["status"] not in FAILED]
        line: Row = {
            "model": size,
            "solver": solver,
            "problems": len(mine),
            "refused": len(mine) - len(asked),
        }
        if asked:
            times = sorted(seconds(r, known, time_limit) for r in asked)
            firsts = [s for r in asked if (s := number(r, "first_seconds")) is not None]
            line |= {
                "proven": sum(holds(r, known) for r in asked),
                "median_s": median(times),
                "max_s": times[-1],
                "first_median_s": median(firsts) if firsts else None,
                "first_max_s": max(firsts, default=None),
                "without_action": sum(not r["cost"] and r["status"] != "infeasible" for r in asked),
            }
            checked = [s for r in asked if (s := number(r, "check_seconds")) is not None]
            if checked:
                line |= {
                    "verified": sum(r["verified"] == "True" for r in asked),
                    "check_max_s": max(checked),
                    "certificate_max_s": max(number(r, "certificate_seconds") or 0.0 for r in asked),
                }
        said.append(line)
    return said


def seconds(row: Row, known: dict[tuple[str, str, str], tuple[float, float]], time_limit: float) -> float:
    """Processor seconds spent: of a proven answer, or at least needed for one; the limit where it is false.

    The time limit is one of wall time. On a machine with other work a solver has had fewer processor seconds
    when it ends, and no more than these can be held against it.
    """
    spent = number(row, "processor_seconds")
    if spent is None or (row["status"] in ("optimal", "infeasible") and not holds(row, known)):
        return time_limit
    return spent


def compared(rows: Sequence[Row], time_limit: float) -> list[Row]:
    """Per model: the median over problems of the best peer's seconds over ``bab``'s, and who was best."""
    known = right(rows)
    by_problem: dict[tuple[str, str, str], dict[str, Row]] = {}
    for r in rows:
        if r["status"] not in FAILED:
            by_problem.setdefault(problem_of(r), {})[r["solver"]] = r
    ratios: dict[str, list[tuple[float, str]]] = {}
    for answers in by_problem.values():
        others = {s: seconds(r, known, time_limit) for s, r in answers.items() if s != "bab"}
        if "bab" in answers and others:
            name = min(others, key=lambda s: others[s])
            own = seconds(answers["bab"], known, time_limit)
            ratios.setdefault(size_of(answers["bab"]), []).append((others[name] / own, name))
    return [
        {
            "model": size,
            "problems": len(found),
            "best_peer_over_bab_median": median(ratio for ratio, _ in found),
            "least": min(ratio for ratio, _ in found),
            "slower_than_the_best_peer": sum(ratio < 1 for ratio, _ in found),
            "best_peers": {n: sum(n == name for _, name in found) for n in sorted({n for _, n in found})},
        }
        for size, found in ratios.items()
    ]


def against(rows: Sequence[Row], time_limit: float) -> list[Row]:
    """``bab`` and every other solver, problem by problem, for each kind of cost and for all.

    Where neither has proven anything the ratio of times says nothing; such problems are counted alone.
    ``median_ratio`` is the peer's seconds over ``bab``'s; ``p90_slower`` the 90th percentile of ``bab``'s
    over the peer's. ``action_elsewhere`` counts problems where the peer has an action and ``bab`` none.
    """
    known, said = right(rows), []
    own = {problem_of(r): r for r in rows if r["solver"] == "bab" and r["status"] not in FAILED}
    kinds = [*dict.fromkeys(r["cost_kind"] for r in rows), "all"]
    for solver in dict.fromkeys(r["solver"] for r in rows if r["solver"] != "bab"):
        for kind in kinds:
            pairs = [
                (own[problem_of(r)], r)
                for r in rows
                if r["solver"] == solver
                and r["status"] not in FAILED
                and kind in (r["cost_kind"], "all")
                and problem_of(r) in own
            ]
            if not pairs:
                continue
            proven = [(holds(mine, known), holds(peer, known)) for mine, peer in pairs]
            told = [pair for pair, one in zip(pairs, proven, strict=True) if any(one)]
            ratios = [seconds(p, known, time_limit) / seconds(m, known, time_limit) for m, p in told]
            said.append(
                {
                    "peer": solver,
                    "cost_kind": kind,
                    "problems": len(pairs),
                    "both_open": sum(not any(one) for one in proven),
                    "bab_alone_proves": sum(one == (True, False) for one in proven),
                    "peer_alone_proves": sum(one == (False, True) for one in proven),
                    "median_ratio": median(ratios) if ratios else None,
                    "p90_slower": float(np.quantile(1.0 / np.array(ratios), 0.9)) if ratios else None,
                    "action_elsewhere": sum(
                        bool(peer["cost"]) and usable(peer) and not mine["cost"] for mine, peer in pairs
                    ),
                }
            )
    return said


def write(rows: Sequence[Row], folder: Path, time_limit: float, name: str = "trees") -> Row:
    """``name``.json, ``name``.md and, with matplotlib, ``name``.png; what the first holds."""
    content: Row = {
        "time_limit": time_limit,
        "summary": summarise(rows, time_limit),
        "compared": compared(rows, time_limit),
        "against": against(rows, time_limit),
        "false_claims": false_claims(rows),
        "refused": sorted(
            {f"{size_of(r)} {r['solver']}: {r['message']}" for r in rows if r["status"] in FAILED}
        ),
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(rows, time_limit), encoding="utf-8")
    try:
        import matplotlib
    except ImportError:
        return content
    matplotlib.use("agg")
    draw(rows, folder / f"{name}.png", time_limit)
    return content


def markdown(rows: Sequence[Row], time_limit: float) -> str:
    """A line per model size: what each solver proves, ``bab`` against the best of the others, certificates.

    Below it, what is asked of ``bab`` over all problems.
    """
    said = {(line["model"], line["solver"]): line for line in summarise(rows, time_limit)}
    ratios = {line["model"]: line for line in compared(rows, time_limit)}
    solvers = list(dict.fromkeys(solver for _, solver in said))
    head = ["model", "problems"]
    for solver in solvers:
        head += [f"`{solver}` proven", "median s"]
    head += ["best of them / `bab`, median", "least", "slowest first action s", "certificates verified"]
    table = [[*head, "slowest check s"]]
    for size in dict.fromkeys(size for size, _ in said):
        own = said.get((size, "bab"), {})
        line = [size, str(own.get("problems", ""))]
        for solver in solvers:
            one = said.get((size, solver), {})
            proven = one.get("proven")
            asked = one.get("problems", 0) - one.get("refused", 0)
            line += ["" if proven is None else f"{proven} of {asked}", _short(one.get("median_s"))]
        ratio = ratios.get(size, {})
        line += [_short(ratio.get(key)) for key in ("best_peer_over_bab_median", "least")]
        line += [_short(own.get("first_max_s")), str(own.get("verified", "")), _short(own.get("check_max_s"))]
        table.append(line)
    table.insert(1, ["---"] * len(table[0]))
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    return "\n".join([*lines, "", *(f"- {line}" for line in asked_of_bab(rows, time_limit))]) + "\n"


def asked_of_bab(rows: Sequence[Row], time_limit: float) -> list[str]:
    """Sentences: what others prove and ``bab`` does not, speed, first actions, false claims, certificates."""
    known = right(rows)
    mine = {problem_of(r): r for r in rows if r["solver"] == "bab"}
    proven = {key for key, r in mine.items() if holds(r, known)}
    others = {problem_of(r) for r in rows if r["solver"] != "bab" and holds(r, known)}
    found = [
        f"`bab` proves {len(proven)} of {len(mine)} problems; {len(others & mine.keys() - proven)} that it "
        "does not prove are proven by another solver."
    ]
    ratios = compared(rows, time_limit)
    if ratios:
        count, slower = (sum(r[key] for r in ratios) for key in ("problems", "slower_than_the_best_peer"))
        named = [r for r in ratios if r["model"].endswith(AIMED)]
        said = ", ".join(f"{_short(r['best_peer_over_bab_median'])} on {r['model']}" for r in named)
        found.append(f"On {slower} of {count} problems the best of the others needs less time than `bab`.")
        found += [f"Best of the others over `bab`, median per model, where 3 is the aim: {said}."] * bool(
            said
        )
    firsts = [s for r in mine.values() if (s := number(r, "first_seconds")) is not None]
    checks = [s for r in mine.values() if (s := number(r, "check_seconds")) is not None]
    if firsts:
        found.append(f"Slowest first action {_short(max(firsts))} s; {len(firsts)} problems have one.")
    if checks:
        verified = sum(r["verified"] == "True" for r in mine.values())
        found.append(f"{verified} certificates verify; the slowest check takes {_short(max(checks))} s.")
    found.append(f"False claims and refused actions, all solvers: {len(false_claims(rows))}.")
    return found


def _short(value: float | None) -> str:
    """Two digits; nothing for None."""
    return "" if value is None else f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}"


def gaps(row: Row, best: float, times: np.ndarray, time_limit: float, known: Any) -> np.ndarray:
    """(cost in hand - bound) / best known cost at some times; 1 without an action, 0 once it is proven."""
    gap, left = np.ones(len(times)), seconds(row, known, time_limit) if holds(row, known) else math.inf
    for at, cost, bound in json.loads(row["events"] or "[]"):
        if cost is not None and best > 0:
            gap[times >= at] = min(1.0, max(0.0, (cost - min(bound, best)) / best))
    gap[times >= left] = 0.0
    return gap


def draw(rows: Sequence[Row], path: Path, time_limit: float) -> None:
    """Three panels over processor seconds: actions in hand, the mean gap, and answers proven."""
    import matplotlib.pyplot as plt

    known = right(rows)
    times = np.logspace(-2.3, math.log10(time_limit), 200)
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    solvers = [s for s in dict.fromkeys(r["solver"] for r in rows)]
    for k, solver in enumerate(solvers):
        mine = [r for r in rows if r["solver"] == solver and r["status"] not in FAILED]
        if not mine:
            continue
        label, style = f"{solver} ({len(mine)})", {"color": f"C{k}", "lw": 1.6}
        firsts = np.array([number(r, "first_seconds") if r["first_seconds"] else math.inf for r in mine])
        axes[0].plot(times, [(firsts <= t).mean() for t in times], label=label, **style)
        mean = np.mean([gaps(r, known[problem_of(r)][0], times, time_limit, known) for r in mine], axis=0)
        axes[1].plot(times, mean, label=label, **style)
        ends = np.array([seconds(r, known, time_limit) if holds(r, known) else math.inf for r in mine])
        axes[2].plot(times, [(ends <= t).mean() for t in times], label=label, **style)
    titles = ("share of problems with an action", "mean gap (no action: 1)", "share of problems proven")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(xscale="log", xlabel="processor seconds", title=title, ylim=(-0.02, 1.02))
        axis.grid(alpha=0.3)
    axes[0].legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
