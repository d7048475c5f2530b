"""Where the processor time of the Loan population goes, one applicant after another.

    python -m tests.engine.networks.phases --people 2417 --json docs/results/engine/loan.json python -m
    tests.engine.networks.phases --repeats 3           # on a shared machine: the least of three runs
    NUMBA_CACHE_DIR=$(mktemp -d) python -m tests.engine.networks.phases --people 0      # what compiling takes
    python -m tests.engine.networks.phases --certified 6 --json docs/results/engine/certified.json

The last one runs the command for populations so many times and reads what it says of each applicant; its
clocks are fewer, so its times are shorter.

Answers are written too (``--answers FILE``), so that two versions can be compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.engine.networks import engine, propose, search
from milp_recourse.engine.networks.engine import Closed, searched
from milp_recourse.engine.networks.nearby import near
from milp_recourse.engine.networks.problem_arrays import impossible, lowered
from milp_recourse.formats.schema import read_population
from milp_recourse.judge import at_rest, conclude, judge
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.program.magnitude import cost_units, in_own_units
from milp_recourse.questions.solve import sharing
from milp_recourse.solvers.bab import TOGETHER
from milp_recourse.solvers.protocol import Options

POPULATION = Path(__file__).parents[3] / "instances" / "loan" / "population.json"
PHASES = ("shared", "arrays", "compiled", "around it", "judging")
"""Lowering and checks, an equal share for each; an equal share of the arrays of several; compiled code;
Python around it, an equal share, with the exact judgement of the action found; the result. ``judgement`` is
one such judgement by itself, of those who have an action."""


CHUNK = 256
"""Applicants lowered together, as in populations."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor milliseconds, and what came out."""
    start = time.process_time()
    made = work()
    return 1e3 * (time.process_time() - start), made


class Watch:
    """Compiled code with a clock: ``each`` gets what every applicant takes, in order."""

    def __init__(self, code: Any) -> None:
        self.code = code
        self.each: list[float] = []

    def __call__(self, people: Any, first: int, fresh: bool, *rest: Any) -> Any:
        took, (k, why) = timed(lambda: self.code(people, first, fresh, *rest))
        if fresh:
            ticks = rest[3]["ticks"][first : k + (why != search.DONE)]
            self.each += (took * ticks / max(1.0, ticks.sum())).tolist()
        else:
            self.each[-1] += took
        return k, why


def measure(people: int, repeats: int) -> tuple[dict[str, Any], list[list[Any]]]:
    """Processor milliseconds by phase, each person's least of so many runs, and the answers."""
    loading, _ = timed(propose.ready)
    made: dict[str, Any] = {"ready": loading, "people": people, "repeats": repeats}
    if not people:
        return made, []
    watch = Watch(search.run)
    search.run = watch
    runs = [once(people, watch) for _ in range(repeats)]
    spent, judged = (np.min([run[k] for run in runs], axis=0) for k in range(2))
    _, _, nodes, answers = runs[0]
    shares = (50, 90, 99, 99.9, 100)
    columns = dict(zip(PHASES, spent.T, strict=True)) | {"all": spent.sum(axis=1)}
    for name, column in (columns | {"judgement": judged[judged > 0.0], "nodes": nodes}).items():
        made[name] = {"mean": round(float(column.mean()), 4)}
        for share, value in zip(shares, np.percentile(column, shares), strict=True):
            made[name][f"p{share:g}"] = round(float(value), 4)
    return made, answers


def with_judgement(found: Closed, instance: Instance, factor: float) -> Proposal:
    """The proposal of a search that has closed, its action judged alone."""
    verdict = None if found.action is None else judge(instance, found.action)
    return engine.judged(found, verdict, factor, Options())


def once(people: int, watch: Watch) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[list[Any]]]:
    """Milliseconds by person and phase, and of a judgement by itself; nodes; the answers."""
    population = read_population(POPULATION)
    instances = sharing([population[k] for k in range(people)])
    one, _ = timed(lambda: at_rest(instances))
    two, scaled = timed(lambda: [cost_units(instance) for instance in instances])
    three, groups = timed(
        lambda: [
            ([first + k for k in members], group)
            for first in range(0, people, CHUNK)
            for members, group in lowered([instance for instance, _ in scaled[first : first + CHUNK]])
        ]
    )
    spent, nodes = np.zeros((people, len(PHASES))), np.zeros(people)
    spent[:, 0] = (one + two + three) / people
    judged = np.zeros(people)
    answers: list[list[Any]] = [[] for _ in range(people)]
    actions: dict[int, Any] = {}
    for members, group in groups:
        for first in range(0, len(members), TOGETHER):  # as the back end does
            chosen = [
                (k, person)
                for k, person in list(enumerate(members))[first : first + TOGETHER]
                if not impossible(scaled[person][0], group.moved)
            ]
            persons = [person for _, person in chosen]
            own = [scaled[person][0] for person in persons]
            lowering, arrays = timed(lambda g=group, c=chosen: g.people([k for k, _ in c]))
            watch.each = []
            whole, proposals = timed(
                lambda o=own, a=arrays: [one for part in searched(o, a, [Options()] * len(o)) for one in part]
            )
            spent[persons, 1], spent[persons, 2] = lowering / len(persons), watch.each
            spent[persons, 3] = (whole - sum(watch.each)) / len(persons)
            found = dict(zip(persons, proposals, strict=True))
            for person, one in found.items():
                if isinstance(one, Closed):
                    whole, found[person] = timed(
                        lambda f=one, p=person: with_judgement(f, instances[p], scaled[p][1])
                    )
                    spent[person, 3] += whole
                made = in_own_units(found[person], scaled[person][1])
                spent[person, 4], result = timed(
                    lambda i=instances[person], p=made: conclude(i, p, "bab", 0.0, repair=near)
                )
                nodes[person] = made.nodes or 0
                answers[person] = [result.status.value, result.cost, result.lower_bound, made.nodes]
                if made.action is not None:
                    actions[person] = made.action
    for person, action in actions.items():
        judged[person], _ = timed(lambda i=instances[person], a=action: judge(i, a))
    return spent, judged, nodes, answers


def certified(runs: int) -> dict[str, Any]:
    """Milliseconds per applicant, as the command for populations states them, of each run."""
    made: dict[str, Any] = {"runs": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "milp_recourse", "certify", str(POPULATION), "--no-certificates"]
            subprocess.run([*command, "--out", folder], check=True, capture_output=True)
            spent = 1e3 * pd.read_csv(Path(folder) / "results.csv")["seconds"]
        shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
        one = {name: round(float(spent.quantile(share)), 3) for name, share in shares.items()}
        made["runs"].append({"people": len(spent), "mean": round(float(spent.mean()), 3)} | one)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=2417)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--certified", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--answers", type=Path)
    given = parser.parse_args()
    made, answers = (
        (certified(given.certified), []) if given.certified else measure(given.people, given.repeats)
    )
    for name, value in made.items():
        print(f"{name:10} {value}")
    if given.json:
        given.json.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    if given.answers:
        given.answers.write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
