"""How long a search of a large network takes, and when it has its first action.

    python -m tests.engine.networks.large_networks --units 256 --levers 5
    python -m tests.engine.networks.large_networks --units 512 --levers 6 --time-limit 0.05

A line per problem: status, seconds, seconds to the first action that a slice has ended with (inf: none; in
a search of its own), cost, nodes.
"""

from __future__ import annotations

import argparse
import math
import time

from milp_recourse.engine.networks.propose import ready
from milp_recourse.questions.solve import solve
from milp_recourse.solvers import Options, backend
from tests.helpers.large import large


def main() -> None:
    """Solve one problem after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--levers", type=int, default=5)
    parser.add_argument("--problems", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=25.0)
    asked = parser.parse_args()
    ready()
    for seed in range(asked.problems):
        instance, first = large(seed, asked.units, asked.layers, asked.levers), [math.inf]
        begun = time.perf_counter()

        def watch(cost: float, _bound: float, begun: float = begun, first: list[float] = first) -> None:
            if cost < math.inf:
                first[0] = min(first[0], time.perf_counter() - begun)

        backend("bab").solve(instance, Options(asked.time_limit, watch=watch))
        begun = time.perf_counter()
        result = solve(instance, "bab", asked.time_limit)
        seconds = time.perf_counter() - begun
        print(f"{result.status.value} {seconds:.2f} {first[0]:.2f} {result.cost} {result.nodes}", flush=True)


if __name__ == "__main__":
    main()
