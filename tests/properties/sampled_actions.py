"""Does sampling find an action where there is none yet? ``python -m tests.properties.sampled_actions``.

For every problem of ``bench real`` (with ``--data``) and for random problems of every kind: ``bab`` within a
time limit, beside 10 000 sampled actions. A third is uniform over the levers' intervals, two thirds lie
between the factual and an accepted row; each acts on a random share of the levers. Accepted rows are the
table's where there is one, else those that uniform samples led to. The nearest are judged exactly. Wrong is
an action where ``bab`` says ``infeasible`` or has none at its limit, and one below what it calls proven.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.errors import Unsupported
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from milp_recourse.reports.progress import progress_bar
from tests.helpers.certificate_kinds import KINDS
from tests.helpers.random_actions import COUNT, Array, actions, cheapest
from tests.properties.repeated import options, told


def row_of(name: str, instance: Instance, rows: Array | None, time_limit: float, seed: int) -> dict[str, Any]:
    """What ``bab`` says and what sampling finds."""
    rng = np.random.default_rng(seed)
    found, cheap = cheapest(instance, actions(instance, rows, COUNT, rng))
    best = None if cheap is None else cheap.cost
    result = solve(instance, "bab", time_limit)
    said = {"status": result.status.value, "cost": result.cost, "lower_bound": result.lower_bound}
    missed = best is not None and result.status is Status.LIMIT and result.cost is None
    false = best is not None and (
        result.status is Status.INFEASIBLE or (result.lower_bound or 0.0) > best * (1 + 1e-12)
    )
    return {"problem": name, **said, "sampled": found, "cheapest": best, "missed": missed, "false": false}


def real_problems(data: Path) -> Iterator[tuple[str, Instance, Array]]:
    """The 40 problems of `bench real` with seed 0, and the rows that each network accepts."""
    from milp_recourse.lab.benchmarks import bench_real as real
    from milp_recourse.lab.benchmarks.fitted import fit_network

    sets, networks = (
        ("german", "adult", "compas", "gmsc", "gmsc:graph"),
        ("16x16", "32x32", "64x64", "32x32x32"),
    )
    plan = real.Plan(sets, networks, ("l1", "l2-squared"), 1, ("bab",), 30.0, 0, data)
    for name in plan.sets:
        for widths in plan.models:
            network = fit_network(name, widths, data, plan.seed)
            logits = network.classifier.evaluate(network.table.inputs)[:, 0]
            for row in real.chosen(network, plan):
                for cost in plan.costs:
                    instance = network.instance(row, cost)
                    yield f"{instance.name}/{cost}", instance, network.table.values[logits >= 0]


def random_problems(count: int, seed: int) -> Iterator[tuple[str, Instance, None]]:
    """Random problems that ``bab`` takes, the kinds in turn."""
    for k in range(count):
        kind = list(KINDS)[k % len(KINDS)]
        instance = KINDS[kind](seed + k)
        if instance is not None:
            yield f"{kind}/{seed + k}", instance, None


def main() -> int:
    """Run it (without ``--data``: random problems only) and tell what came out; 1 if anything is wrong."""
    asked = options(__doc__, data=Path, random=500, time_limit=2.0, seed=0)
    kinds = {
        "real": lambda: real_problems(asked.data) if asked.data else iter(()),
        "random": lambda: random_problems(asked.random, asked.seed),
    }
    summary: dict[str, Any] = {"time_limit": asked.time_limit, "seed": asked.seed, "sampled": COUNT}
    wrong = []
    with progress_bar("sampled", asked.random + 40 * bool(asked.data)) as bar:
        for kind, problems in kinds.items():
            rows = []
            for name, instance, accepted in problems():
                try:
                    rows.append(row_of(name, instance, accepted, asked.time_limit, asked.seed))
                except Unsupported:
                    continue
                finally:
                    bar.advance(name)
            wrong += [row for row in rows if row["missed"] or row["false"]]
            summary[kind] = {
                "problems": len(rows),
                "statuses": dict(Counter(row["status"] for row in rows)),
                "with a sampled action": sum(row["cheapest"] is not None for row in rows),
                "limit without an action": sum(
                    row["status"] == "limit" and row["cost"] is None for row in rows
                ),
                "of these sampling has one": sum(row["missed"] for row in rows),
                "contradicted": sum(row["false"] for row in rows),
            }
    summary["wrong"] = wrong
    told(summary, asked.json)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
