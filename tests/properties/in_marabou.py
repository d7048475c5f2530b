"""VNN-LIB files in Marabou: ``python -m tests.properties.in_marabou --cases 20`` (``pip install maraboupy``).

Each case is a person with cost l1, of a shipped Loan instance or a random problem with causes.
Marabou must find nothing at 0.99 of the optimum, and something at 1.01. With costs near 0.01 its tolerances
can hide the few actions at 1.01, so costs are at least 0.1. Run from the repository root.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instance_files
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve
from milp_recourse.solvers.vnnlib import export_vnnlib
from tests.helpers.generators import Style, supported_instance
from tests.properties.repeated import Checked, repeated

STYLE = Style(levers=3, curves=False, discrete=False, plausible=0.0, depth=2)
SECONDS = 120
LEAST = 0.1


def person(seed: int) -> Instance:
    """A Loan applicant or a random problem, with cost l1."""
    if seed % 2:
        files = instance_files("loan")
        found = replace(read_instance(files[seed * 7 % len(files)]), plausible=False)
    else:
        found = supported_instance(seed, STYLE)
    scale = dict.fromkeys((f.name for f in found.features if f.actionable), 1.0)
    return replace(found, cost=Cost.pure("l1", scale), reference=None)


def refused_person(seed: int) -> tuple[Instance, float]:
    """The first of seed, seed + 100, ... who has to pay at least :data:`LEAST`, and how much."""
    while True:
        instance = person(seed)
        cost = solve(instance).cost
        if cost is not None and cost >= LEAST:
            return instance, cost
        seed += 100


def check(seed: int) -> Checked:
    """One person's questions."""
    from maraboupy import Marabou, MarabouCore

    options: MarabouCore.Options = Marabou.createOptions(verbosity=0, timeoutInSeconds=SECONDS)
    instance, cost = refused_person(seed)
    counts, wrong = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for share, expected in ((0.99, {"unsat"}), (1.01, {"sat", "unsat"})):
            answers = set()
            for path in export_vnnlib(instance, Path(folder) / "question.vnnlib", share * cost):
                network = Marabou.read_onnx(f"{path}.onnx")
                found = network.solve(verbose=False, options=options, propertyFilename=str(path))
                answers.add(found[0])
                counts[f"files {found[0]} at {share}"] += 1
            if not answers <= expected or ("sat" in expected) != ("sat" in answers):
                wrong.append(f"seed {seed}, {instance.name}: {sorted(answers)} at {share} of {cost!r}")
    return counts, wrong


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 20))
