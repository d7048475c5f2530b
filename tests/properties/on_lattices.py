"""Steps and listed values against enumeration: ``python -m tests.properties.on_lattices --cases 300``.

Each case is a small random problem in the file format: trees or a network, labels, causes, conditions, two
scales; its levers take steps or listed values, and the factual value may lie between them. The optimum of all
actions, listed from the definition and judged exactly, must be each back end's answer, and ``verify`` must
accept each certificate. Run from the repository root.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from fractions import Fraction
from pathlib import Path
from typing import Any

from milp_recourse.certificates import certificates_for, encode
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import solve
from tests.helpers.lattices import enumerated, random_problem
from tests.properties.repeated import Checked, repeated
from verify.files.check import examine

BACKENDS = "bab", "highs", "cpsat", "ask"


Draw = Callable[[random.Random, bool, bool], dict[str, Any]]
"""A random problem, from whether its classifier is one of trees, and whether it has causes."""


def drawn(rng: random.Random, trees: bool, causes: bool) -> dict[str, Any]:
    """A problem with conditions or without."""
    return random_problem(rng, trees, causes, rng.random() < 0.4)


def check(
    seed: int, draw: Draw = drawn, seconds: float = 60.0, stops: Collection[str] = BACKENDS[1:]
) -> Checked:
    """One case: its counts, and a line for each wrong answer or rejected certificate.

    Back ends in ``stops`` may reach the limit of ``seconds``, but with a bound that holds.
    """
    rng, trees, causes = random.Random(seed), seed % 2 == 0, seed % 4 >= 2
    kind = ("trees" if trees else "networks") + (" with causes" if causes else "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        path.write_text(json.dumps(draw(rng, trees, causes)))
        counts, wrong = _compared(path, seconds, stops)
    return counts + Counter({kind: 1}), [f"seed {seed}: {line}" for line in wrong]


def _compared(path: Path, seconds: float, stops: Collection[str]) -> Checked:
    """Every back end's answer to a written problem beside the enumerated one."""
    counts, wrong = Counter[str](), list[str]()
    instance = read_instance(path)
    best = enumerated(instance)
    for name in BACKENDS:
        try:
            result = solve(instance, name, seconds)
        except Unsupported:
            counts[f"{name}: refused"] += 1
            continue
        counts[f"{name}: {result.status.value}"] += 1
        limit = name in stops and result.status is Status.LIMIT  # says so; its bound has to hold all the same
        if limit and (best is None or (result.lower_bound or 0.0) <= float(best) * (1 + 1e-12)):
            continue
        if not _right(instance, result, best):
            wrong.append(f"{name}: {result!r}, enumerated {best and float(best)}")
        if name == "bab":
            line = _verified(instance, result, path)
            counts[f"certificate: {line.split(' cost')[0] if line else 'none'}"] += 1
            if line and not line.startswith("VERIFIED"):
                wrong.append(line)
    return counts, wrong


def _right(instance: Instance, result: Result, best: Fraction | None) -> bool:
    """Whether a result is the enumerated optimum, up to the gap that optimal allows."""
    if best is None:
        return result.status is Status.INFEASIBLE
    if result.status is not Status.OPTIMAL or result.cost is None or result.lower_bound is None:
        return False
    least = float(best)
    below = result.lower_bound <= least * (1 + 1e-12)
    return below and abs(result.cost - least) <= instance.gap_tolerance(least)


def _verified(instance: Instance, result: Result, path: Path) -> str | None:
    """What the checker says of the result's certificate; None without one."""
    [certificate] = certificates_for([instance], [result], 60.0)
    if certificate is None:
        return None
    file = path.with_name("certificate.json.gz")
    file.write_bytes(encode(certificate))
    return examine(file, path, 60.0).line


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 300))
