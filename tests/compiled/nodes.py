"""Nodes of searches and of their proofs, on problems drawn by the tests.

    python -m tests.compiled.nodes amounts --cost l2-squared --problems 60
    python -m tests.compiled.nodes wide --problems 14
    python -m tests.compiled.nodes labels --problems 14

A line per problem (status, nodes of the search, nodes of the certificate or none), then the sums. Limits are
10 s for a search and 20 s for a proof.
"""

from __future__ import annotations

import argparse
import math

from rich.progress import track

from milp_recourse.backends import Options, backend
from milp_recourse.certificates import certificates_for
from milp_recourse.judge import conclude
from milp_recourse.result import Status
from tests.helpers.amounts import amounts
from tests.helpers.wide import wide


def main() -> None:
    """Solve and prove one problem after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=["amounts", "wide", "labels"])
    parser.add_argument("--cost", default="l2-squared", help="of amounts; the others have l1")
    parser.add_argument("--problems", type=int, default=60)
    options = parser.parse_args()
    bab, searches, proofs, proven = backend("bab"), 0, list[int](), 0
    for seed in track(range(options.problems), description=options.kind):
        if options.kind == "amounts":
            instance = amounts(seed, options.cost)
        else:
            instance = wide(seed, options.kind == "labels")
        result = conclude(instance, bab.solve(instance, Options(time_limit=10.0)), "bab", 0.0)
        (found,) = certificates_for([instance], [result], 20.0)
        size = None if found is None else sum(len(one["tree"]) for one in found["configurations"])
        print(seed, result.status.value, result.nodes, size)
        searches += result.nodes or 0
        if result.status is not Status.LIMIT:
            proven += 1
            proofs += [] if size is None else [size]
    mean = math.exp(sum(map(math.log, proofs)) / len(proofs)) if proofs else math.nan
    print(
        f"{proven} of {options.problems} proven, {searches} nodes; {len(proofs)} certificates of them, ",
        end="",
    )
    print(f"{sum(proofs)} nodes, geometric mean {mean:.0f}")


if __name__ == "__main__":
    main()
