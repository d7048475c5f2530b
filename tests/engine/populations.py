"""People a second on Give Me Some Credit, start-up and writing included.

    python -m tests.engine.populations --data DATA --people 1000 --json docs/results/engine/populations.json

Every column is a lever; a model's refused people are drawn once each. Seconds are processor time of the whole
command ``certify`` in one process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.formats.write import population_to_dict
from milp_recourse.lab.benchmarks.fitted import Fitted, fit_network, fit_trees, read_table
from milp_recourse.lab.recipe.files import write_json
from milp_recourse.problem.population import Population
from tests.properties.repeated import options, told


def measured(model: Fitted, people: int) -> dict[str, Any]:
    """How many are answered and proven, and the processor seconds they take."""
    rows = np.random.default_rng(0).permutation(model.refused)[:people]
    problems = [model.instance(row, "l1") for row in rows]
    asked = Population(problems[0], [one.factual for one in problems], tuple(p.preferences for p in problems))
    with tempfile.TemporaryDirectory() as name:
        file, out = Path(name) / "population.json", Path(name) / "out"
        write_json(file, population_to_dict(asked))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "milp_recourse", "certify", str(file), "--out", str(out)]
        subprocess.run([*command, "--no-certificates"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = pd.read_csv(out / "results.csv")
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {
        "people": len(found),
        "proven": int(found["status"].isin(["optimal", "infeasible"]).sum()),
        "seconds": round(seconds, 1),
        "a second": round(len(found) / seconds),
    }


def main() -> None:
    """Measure both models, print, and write the results file."""
    given = options(__doc__, data=Path, people=1000)
    trees = fit_trees(read_table("gmsc", given.data), "xgboost", 100, 4)
    models = [trees, fit_network("gmsc", "32x32", given.data)]
    told({model.name: measured(model, given.people) for model in models}, given.json)


if __name__ == "__main__":
    main()
