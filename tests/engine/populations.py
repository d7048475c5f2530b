"""Many people of Give Me Some Credit, by the command ``certify``, start-up and writing included.

    python -m tests.engine.populations --data DATA --model xgboost --json docs/results/engine/populations.json
    python -m tests.engine.populations --data DATA --model network --json docs/results/engine/populations.json

Every column is a lever. The people are drawn from all rows of the table that the model refuses; the boosted
model's threshold is raised until it refuses ``--people`` of them. The first ``--certified`` are answered
again with certificates, of which ``verify --sample`` checks some, and by two workers of a Dask cluster; the
first ``--alone`` one by one, by ``solve``. Seconds are processor time of one process; of Dask, wall time. A
million people are what the measured ones make of it, in proportion.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.formats.schema import read_population
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import population_to_dict
from milp_recourse.lab.benchmarks.fitted import Fitted, fit_network, fit_trees, read_table
from milp_recourse.problem.instance import Acceptance
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import solve
from tests.properties.repeated import options, told

CHECKED, MILLION = 20, 1_000_000


def refusing(model: Fitted, people: int) -> Fitted:
    """The model with all rows that it refuses and, if these are too few, a stricter threshold."""
    inputs = model.table.inputs
    if model.name.endswith("32x32"):
        return replace(model, refused=np.flatnonzero(model.classifier.evaluate(inputs)[:, 0] < 0))
    scores = model.classifier.scores(inputs)
    last = np.sort(scores)[people - 1]
    threshold = max(model.accept.threshold, float(0.5 * (last + scores[scores > last].min())))
    accept = Acceptance(threshold, 0.0, strict=True)
    return replace(model, accept=accept, refused=np.flatnonzero(scores <= threshold))


def run(*arguments: object) -> dict[str, Any]:
    """Processor and wall seconds, and the most memory, of one command in a process of its own."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "milp_recourse", *map(str, arguments)]
    process, ended, most = subprocess.Popen(command, stdout=subprocess.DEVNULL), 0, 0
    while not ended:  # what wait4 says of memory counts this process's own from before the command began
        held = Path(f"/proc/{process.pid}/status").read_text()
        most = max([most, *(int(line.split()[1]) for line in held.splitlines() if line.startswith("VmHWM"))])
        time.sleep(0.02)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return {
        "seconds": round(used.ru_utime + used.ru_stime, 1),
        "wall": round(time.perf_counter() - start, 1),
        "MB": round(most / 1024),
    }


def certified(file: Path, out: Path, people: int, *more: object) -> tuple[dict[str, Any], pd.DataFrame]:
    """What the command takes for the first so many people, and what it answers."""
    cost = run("certify", file, "--out", out, "--limit", people, *more)
    found = pd.read_csv(out / "results.csv").sort_values("index", ignore_index=True)
    proven = int(found["status"].isin(["optimal", "infeasible"]).sum())
    each = {"people": len(found), "proven": proven, "a second": round(len(found) / cost["seconds"])}
    return each | cost, found


def measured(model: Fitted, given: Any) -> dict[str, Any]:
    """All that is measured of one model."""
    from distributed import LocalCluster

    rows = np.random.default_rng(given.seed).permutation(model.refused)[: given.people]
    problems = [model.instance(row, "l1") for row in rows]
    asked = Population(problems[0], [one.factual for one in problems], tuple(p.preferences for p in problems))
    with tempfile.TemporaryDirectory() as name:
        file, out = Path(name) / "population.json", Path(name)
        write_json(population_to_dict(asked), file)
        whole, found = certified(file, out / "whole", given.people, "--no-certificates")
        part, again = certified(file, out / "part", given.certified)
        part["bytes each"] = sum(f.stat().st_size for f in (out / "part").rglob("*")) // len(again)
        check = run("verify", out / "part", file, "--sample", CHECKED, "--jobs", 1)
        read = read_population(file)
        alone = [solve(read[k]) for k in range(given.alone)]
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            dask = "--no-certificates", "--parallel", "dask", "--scheduler", cluster.scheduler_address
            spread, elsewhere = certified(file, out / "dask", given.certified, *dask)
    said = ["status", "cost", "lower_bound"]  # a certificate may prove another bound, within the gap
    same = [one[some].equals(found[some][: len(one)]) for one, some in ((again, said[:2]), (elsewhere, said))]
    one_by_one = [[one.status.value, one.cost, one.lower_bound] for one in alone]
    same.append(pd.DataFrame(one_by_one, columns=said).equals(found[said][: len(alone)]))
    hours = [MILLION / one["people"] * one["seconds"] / 3600 for one in (whole, part)]
    return {
        "refused": len(model.refused),
        "whole": whole,
        "certified": part,
        "check": check | {"certificates": CHECKED},
        "dask": {key: spread[key] for key in ("people", "proven", "wall")},
        "same answers": all(same),
        "a million": {
            "hours": round(hours[0], 1),
            "certified hours": round(hours[1], 1),
            "certified GB": round(MILLION * part["bytes each"] / 1e9, 1),
        },
    }


def main() -> None:
    """Measure a model, print, and write it into the results file."""
    names = {"people": 20000, "certified": 1000, "alone": 100, "seed": 0}
    given = options(__doc__, data=Path, model="network", **names)
    if given.model == "network":
        model = fit_network("gmsc", "32x32", given.data)
    else:
        model = fit_trees(read_table("gmsc", given.data), "xgboost", 100, 4)
    known = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    told(known | {model.name: measured(refusing(model, given.people), given)}, given.json)


if __name__ == "__main__":
    main()
