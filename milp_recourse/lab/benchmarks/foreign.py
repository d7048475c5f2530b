"""The second part of ``bench certificates``: what other solvers answer, checked and proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from milp_recourse.backends import Options
from milp_recourse.backends import backend as find_backend
from milp_recourse.compiled.nearby import near
from milp_recourse.domain.plausibility import excess_energy
from milp_recourse.formats import read_instance
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.lab.benchmarks.certificates import checked
from milp_recourse.lab.benchmarks.peers import RUNNERS
from milp_recourse.lab.run_table import grown, read_rows
from milp_recourse.prove import prove
from milp_recourse.solve import solve

SOLVERS = ("highs", "gurobi", "scip")

IDENTITY = ("time_limit",)

COLUMNS = (
    "instance",
    "solver",
    "status",
    "optimum",
    "raw_feasible",
    "logit_short",
    "energy_over",
    "other_faults",
    "raw_cost",
    "raw_distance",
    "proven",
    "cost",
    "distance",
    "claim",
    "verified",
    *IDENTITY,
)


def run(
    paths: Sequence[Path],
    solvers: Sequence[str],
    time_limit: float,
    folder: Path,
    advance: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Ask what ``folder/foreign.csv`` does not hold yet, writing each row as it comes; all rows.

    Parameters
    ----------
    solvers
        Back ends of this package, and those of :data:`~milp_recourse.lab.benchmarks.peers.RUNNERS`.
    advance
        Called after every answer with its name.
    """
    table = folder / "foreign.csv"
    with grown(table, COLUMNS, {"time_limit": time_limit}) as (rows, write), TemporaryDirectory() as scratch:
        done = {(row["instance"], row["solver"]) for row in rows}
        for path in paths:
            for solver in solvers:
                if (path.stem, solver) not in done:
                    row = examined(path, solver, time_limit, Path(scratch))
                    write({"instance": path.stem, "solver": solver, "time_limit": time_limit} | row)
                advance(f"{path.stem} {solver}")
    return read_rows(table)


def examined(path: Path, solver: str, time_limit: float, scratch: Path) -> dict[str, Any]:
    """One solver's answer: as it is, and proven as it is or, where it is not feasible, repaired."""
    instance = read_instance(path)
    best = solve(instance, time_limit=time_limit)
    status, action = answer(instance, solver, time_limit)
    row: dict[str, Any] = {"status": status, "optimum": _spelled(best.cost)}
    if action is None:
        return row
    row |= misses(instance, action) | _proven(path, instance, action, time_limit, scratch)
    if row["raw_feasible"]:
        return row | {"raw_distance": row["distance"], "proven": "as it is"}
    repaired = near(instance, action)
    if repaired is None:
        return row | {"proven": "not repaired"}
    return row | {"proven": "repaired"} | _proven(path, instance, repaired, time_limit, scratch)


def answer(instance: Instance, solver: str, time_limit: float) -> tuple[str, Mapping[str, float] | None]:
    """What a solver says and the action it proposes, before anything of ours has touched it."""
    if solver in RUNNERS and solver != "highs":
        outcome = RUNNERS[solver][0](instance, time_limit)
        return outcome.status, outcome.action
    proposal = find_backend(solver).solve(instance, Options(time_limit))
    if proposal.action is None:
        return ("infeasible" if proposal.lower_bound == np.inf else "limit"), None
    return ("limit" if proposal.message else "optimal"), proposal.action


def misses(instance: Instance, action: Mapping[str, float]) -> dict[str, Any]:
    """Whether an action is exactly feasible, by how much it misses the logit and the ball, its exact cost."""
    verdict = judge(instance, action)
    exact = instance.scm.counterfactual_exact(instance.factual, action)
    accept = instance.accept
    short = over = Fraction(0)
    if verdict.logit is not None:
        short = Fraction(accept.threshold) + Fraction(accept.margin) - verdict.logit.lower
    if instance.plausible:
        excess = excess_energy(instance.scm, instance.factual, exact, frozenset(action))
        over = Fraction(10**9) if excess is None else excess.upper
    known = ("does not accept", "less plausible")
    others = [fault for fault in verdict.faults if not any(words in fault for words in known)]
    return {
        "raw_feasible": verdict.feasible,
        "logit_short": _spelled(float(max(short, Fraction(0)))),
        "energy_over": _spelled(float(max(over, Fraction(0)))),
        "other_faults": "; ".join(others),
        "raw_cost": _spelled(float(verdict.cost)),
    }


def _proven(
    path: Path, instance: Instance, action: Mapping[str, float], time_limit: float, scratch: Path
) -> dict[str, Any]:
    """What ``prove`` and the checker say of an action; empty where it is not feasible."""
    result = prove(instance, action, time_limit).result
    if result is None:
        return {}
    row = {"cost": _spelled(result.cost), "distance": _spelled(result.gap)}
    if result.evidence is None:
        return row
    outcome, _ = checked(result.evidence, path, scratch)
    return row | {"claim": outcome.claim, "verified": outcome.claim is not None}


def _spelled(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per solver: answers, raw points exactly feasible, by how much the others miss, proofs, distances."""
    summary = []
    for solver in dict.fromkeys(row["solver"] for row in rows):
        mine = [row for row in rows if row["solver"] == solver]
        given = [row for row in mine if row["raw_cost"]]
        proven = [row for row in mine if row["verified"] == "True"]
        summary.append(
            {
                "solver": solver,
                "instances": len(mine),
                "actions": len(given),
                "raw exactly feasible": sum(row["raw_feasible"] == "True" for row in given),
                "largest logit short": _largest(given, "logit_short"),
                "largest energy over": _largest(given, "energy_over"),
                "other faults": sum(bool(row["other_faults"]) for row in given),
                "raw cheaper than possible": sum(_too_cheap(row) for row in given),
                "repaired": sum(row["proven"] == "repaired" for row in given),
                "of these cost moved": sum(_moved(row) for row in given),
                "verified optimal": sum(row["claim"] == "optimal" for row in proven),
                "verified bounds": sum(row["claim"] == "bounds" for row in proven),
                "largest relative distance": max(
                    (float(row["distance"]) / float(row["cost"]) for row in proven if float(row["cost"])),
                    default=None,
                ),
            }
        )
    return summary


def _moved(row: dict[str, Any]) -> bool:
    """Whether repair, which optimises within the linear region, gave an action of another cost."""
    if row["proven"] != "repaired" or not row["cost"]:
        return False
    return abs(float(row["cost"]) - float(row["raw_cost"])) > 1e-4 * float(row["raw_cost"])


def _largest(rows: Sequence[dict[str, Any]], column: str) -> float | None:
    return max((float(row[column]) for row in rows), default=None)


def _too_cheap(row: dict[str, Any]) -> bool:
    """Whether the raw action costs less than any feasible one can, by more than the gap allowed."""
    best = float(row["optimum"])
    return float(row["raw_cost"]) < best - 1e-6 * best
