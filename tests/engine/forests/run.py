"""The long runs behind docs/results/trees: ``python -m tests.engine.forests.run WHAT --out FILE``.

``agreement``: back ends bab, highs and cpsat against brute force over every combination of candidate values,
and bab against a plain cell MILP through HiGHS. ``sums``: the same back ends against brute force where all or
one of several sums must be accepted, and bab's certificates checked. ``causal``: bab and cpsat against
region-by-region solves of the network engine, and each other, and the certificates of bab's results checked.
``flips``: returned actions handed to the deployed models of every library installed here; ``frames``: the
same through DataFrames, gaps and categories included. ``loan``: trained trees over the Loan causal model,
with plausibility: seconds, agreement, certificates.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections import Counter
from pathlib import Path

from milp_recourse.engine.forests.axes import separable
from milp_recourse.judge import already_good
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.questions.solve import solve
from milp_recourse.solvers import backend
from tests.engine.forests import frame_flips
from tests.engine.forests.flips import run as run_flips
from tests.helpers import loan_forests
from tests.helpers.cell_milp import TOLERANCE, between_scores, solve_cells
from tests.helpers.tree_checks import checked
from tests.helpers.tree_regions import judged, regions
from tests.helpers.tree_samples import (
    brute_force,
    random_causal_instance,
    random_tree_instance,
    several_sums,
    size_of,
)


def same(result, known: float | None, slack: float = 1.0) -> bool:
    """Whether a result says what a judge knows."""
    if known is None:
        return result.status is Status.INFEASIBLE
    return result.status is Status.OPTIMAL and abs(result.cost - known) <= slack * gap_tolerance(known)


def agreement(count: int, first: int = 0) -> dict[str, int]:
    """Random trees and forests without causes; every disagreement is printed."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        instance = random_tree_instance(seed, 1 if seed % 3 == 0 else None)
        if not instance.levers or already_good(instance) or size_of(instance) > 20000:
            seen["left out"] += 1
            continue
        best = brute_force(instance)
        known = None if best is None else float(best)
        seen["single trees" if len(instance.classifier.trees) == 1 else "forests"] += 1
        seen["infeasible" if best is None else "optimal"] += 1
        seen["with a maximum in the cost"] += bool(instance.cost.linf)
        for name in ("bab", "highs", "cpsat"):
            agrees = same(solve(instance, name), known)
            seen[f"{name} agrees with brute force"] += agrees
            if not agrees:
                print("disagreement", seed, name, known)
        apart = between_scores(instance)
        milp = solve_cells(apart)
        if milp is not None:
            found = solve(apart, "bab").cost
            agrees = found is None if math.isinf(milp) else abs(found - milp) <= TOLERANCE * (1 + milp)
            seen["cell MILP: clear cases"] += 1
            seen["cell MILP: agrees"] += agrees
            if not agrees:
                print("disagreement", seed, "cell MILP", milp, known)
    return dict(seen)


def sums(count: int) -> dict[str, int]:
    """Ensembles of two sums, all or one of which must be accepted; every disagreement is printed."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        instance = several_sums(seed, "largest" if seed % 3 == 0 else "smallest")
        if already_good(instance):
            seen["left out"] += 1
            continue
        best = brute_force(instance)
        known = None if best is None else float(best)
        seen["infeasible" if best is None else "optimal"] += 1
        for name in ("bab", "highs", "cpsat"):
            result = solve(instance, name)
            agrees = same(result, known)
            seen[f"{name} agrees with brute force"] += agrees
            if not agrees:
                print("disagreement", seed, name, known)
            if name == "bab":
                line = checked(instance, result)
                seen[f"certificates {line.split()[0]}"] += 1
                if not line.startswith("VERIFIED"):
                    print("certificate", seed, line)
    return dict(seen)


def causal(count: int) -> dict[str, int]:
    """Random piecewise affine causal models; every disagreement is printed."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        instance = random_causal_instance(seed)
        if instance is None or already_good(instance) or len(regions(instance)) > 200:
            seen["left out"] += 1
            continue
        if backend("bab").why_not(instance) is not None:
            seen["refused"] += 1
            continue
        known = judged(instance)
        if known is not None and math.isnan(known):
            seen["judge undecided"] += 1
            continue
        kind = "infeasible" if known is None else "optimal"
        seen[f"{kind}{', plausible' if instance.plausible else ''}"] += 1
        for name in ("bab", "cpsat"):
            if backend(name).why_not(instance) is not None:
                seen[f"{name} refuses"] += 1
                continue
            result = solve(instance, name, 60)
            agrees = same(result, known, 2.0)
            seen[f"{name} agrees"] += agrees
            if not agrees:
                print("disagreement", seed, name, known, result.status.value, result.cost, result.lower_bound)
            if name == "bab" and not separable(instance):
                line = checked(instance, result)
                seen[f"certificates {line.split()[0]}"] += 1
                if not line.startswith("VERIFIED"):
                    print("certificate", seed, line)
    return dict(seen) | labels(count)


def labels(count: int) -> dict[str, int]:
    """The same with labels in a column each, which the region judge does not know: cpsat against bab."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        instance = random_causal_instance(seed, one_hot=True)
        if instance is None or already_good(instance) or separable(instance):
            continue
        if any(backend(name).why_not(instance) is not None for name in ("bab", "cpsat")):
            continue
        result, other = (solve(instance, name, 60) for name in ("bab", "cpsat"))
        seen[f"labels: {result.status.value}"] += 1
        known = result.cost if result.status is Status.OPTIMAL else None
        agrees = same(other, known, 2.0) and result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        seen["labels: cpsat agrees with bab"] += agrees
        if not agrees:
            print("disagreement", seed, result.status.value, result.cost, other.status.value, other.cost)
    return dict(seen)


def flips(count: int) -> dict[str, dict[str, int]]:
    """``count`` applicants per library's family."""
    with tempfile.TemporaryDirectory() as folder:
        return run_flips(count, Path(folder))


def main() -> None:
    """Run one of the five and write its tally."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("agreement", "causal", "flips", "frames", "loan", "sums"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    start = time.perf_counter()
    runs = {
        "agreement": agreement,
        "causal": causal,
        "sums": sums,
        "flips": flips,
        "frames": frame_flips.run,
        "loan": loan_forests.run,
    }
    tally = runs[given.what](given.count)
    said = {"run": given.what, "count": given.count, "tally": tally}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    if given.what == "loan":
        loan_forests.draw(tally, given.out.with_suffix(".png"))
    print(json.dumps(said, indent=1), f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
