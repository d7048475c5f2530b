"""Nodes of searches and of their proofs, on problems drawn by the tests.

    python -m tests.engine.networks.nodes amounts --cost l2-squared --problems 60
    python -m tests.engine.networks.nodes wide --problems 14
    python -m tests.engine.networks.nodes labels --problems 14
    python -m tests.engine.networks.nodes logits --problems 600 --time-limit 2

A line per problem (status, nodes of the search, nodes of the certificate or none), then the sums. Limits are
10 s for a search, if no other is given, and 20 s for a proof. Seeds without a problem are left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from rich.progress import track

from milp_recourse.certificates import certificates_for
from milp_recourse.errors import Unsupported
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from tests.helpers.amounts import amounts
from tests.helpers.at_a_logit import at_a_logit
from tests.helpers.wide import wide


def main() -> None:
    """Solve and prove one problem after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=["amounts", "wide", "labels", "logits"])
    parser.add_argument("--cost", default="l2-squared", help="of amounts; wide and labels have l1")
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--problems", type=int, default=60, help="seeds")
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args()
    drawn: dict[str, Callable[[int], Instance | None]] = {
        "amounts": lambda seed: amounts(seed, options.cost),
        "wide": lambda seed: wide(seed, False),
        "labels": lambda seed: wide(seed, True),
        "logits": at_a_logit,
    }
    count, searches, proofs, proven = 0, 0, list[int](), 0
    seeds = range(options.first, options.first + options.problems)
    for seed in track(seeds, description=options.kind):
        instance = drawn[options.kind](seed)
        if instance is None:
            continue
        try:
            result = solve(instance, "bab", options.time_limit)
        except Unsupported:
            continue
        count += 1
        (found,) = certificates_for([instance], [result], 20.0)
        size = None if found is None else sum(len(one["tree"]) for one in found["configurations"])
        print(seed, result.status.value, result.nodes, size, result.message or "")
        searches += result.nodes or 0
        if result.status is not Status.LIMIT:
            proven += 1
            proofs += [] if size is None else [size]
    mean = math.exp(sum(map(math.log, proofs)) / len(proofs)) if proofs else math.nan
    print(
        f"{proven} of {count} proven, {searches} nodes; {len(proofs)} certificates of them, ",
        end="",
    )
    print(f"{sum(proofs)} nodes, geometric mean {mean:.0f}")


if __name__ == "__main__":
    main()
