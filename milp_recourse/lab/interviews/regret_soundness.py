"""Is the true regret of random people always inside the proven one, and does the proof verify?

A third of the people have limits, a third cannot tell costs apart that differ by less than 5%. They answer as
they mean, up to that. True and proven regret are compared in rational numbers, without a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from milp_recourse.formats import read_instance, write_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import write_json
from milp_recourse.lab.interviews.random_problems import random_problem
from milp_recourse.lab.interviews.simulated_people import Person, random_weights
from milp_recourse.lab.run_table import Row, grown
from milp_recourse.preferences import Interview
from milp_recourse.preferences.cost_parts import levers
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve

COLUMNS = ("person", "problem", "levers", "answers", "kind", "status", "proven", "true", "inside", "verified")

MOST_QUESTIONS, MOST_SOLVED = 6, 40
"""Of an interview, and searches for the regret after it; what is proven by then must hold, too."""


def problem_of(person: int) -> tuple[str, Instance]:
    """A random network, or a shipped instance of the Loan networks or the credit trees."""
    source = ("random network", "loan", "credit trees")[person % 3]
    if source == "random network":
        kind = ("l1", "l2-squared", "l2")[person // 3 % 3]
        return f"{source}, {kind}", random_problem(2 + person // 9 % 4, person, kind=kind)
    folder = "loan" if source == "loan" else "credit_trees"
    files = sorted((instances_path() / folder).glob(f"{folder.removesuffix('_trees')}_*.json"))
    return source, read_instance(files[person // 3 % len(files)])


def one_person(person: int, verify_it: bool) -> Row:
    """An interview of random length, and what it proves beside what is true."""
    rng = np.random.default_rng([person, 2000])
    source, instance = problem_of(person)
    kind = ("plain", "limits", "ties")[int(rng.integers(3))]
    limits = {}
    if kind == "limits":
        for name in levers(instance):
            low, high = instance.levers[name]
            if instance.by_name[name].kind != "categorical":
                limits[name] = float((high - low) * rng.uniform(0.1, 1.0))
    weights = random_weights(instance, rng)
    someone = Person(instance, weights, limits, tie=0.05 if kind == "ties" else 0.0)
    budget = int(rng.integers(MOST_QUESTIONS + 1))
    interview = someone.interviewed(Interview(instance, budget=budget, seed=person))
    row: Row = dict.fromkeys(COLUMNS, "") | {
        "person": person, "problem": source, "levers": len(weights), "answers": len(interview.answers),
        "kind": kind,
    }  # fmt: skip
    result, best = interview.recommend(), solve(someone.problem())
    row["status"] = result.status.value
    if not result.action or best.action is None:
        return row
    regret = interview.regret(result, MOST_SOLVED)
    costs = [someone.cost(instance.numbers(r.action or {})) for r in (result, best)]
    power = 2 if instance.cost.is_root else 1
    sound = costs[0] <= (1 + Fraction(regret.most)) ** power * costs[1] if np.isfinite(regret.most) else True
    true = float(costs[0] / costs[1]) ** (1 / power) - 1
    row |= {"proven": f"{regret.most:.6g}", "true": f"{true:.6g}", "inside": int(sound)}
    if verify_it and np.isfinite(regret.most):
        row["verified"] = int(_verifies(interview))
    return row


def _verifies(interview: Interview) -> bool:
    from verify.files.check import examine

    document, problem = interview.proof()
    with TemporaryDirectory() as folder:
        proof, instance = Path(folder) / "regret.json", Path(folder) / "instance.json"
        write_json(document, proof)
        write_instance(problem, instance)
        return examine(proof, instance).claim == "regret"


def run(out: Path, people: int, each: int, advance: Callable[[], None] = lambda: None) -> list[Row]:
    """Interview people 0 to ``people``; of every ``each``-th the proof is verified."""
    with grown(out / "soundness.csv", COLUMNS, {}) as (rows, write):
        for person in range(len(rows), people):
            row = one_person(person, person % each == 0)
            write(row)
            rows.append(row)
            advance()
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """How many people of each kind, with how many true regrets inside the proven one, and proofs verified."""
    found = []
    for kind in ("plain", "limits", "ties"):
        own = [row for row in rows if row["kind"] == kind]
        judged = [row for row in own if row["inside"] != ""]
        checked = [row for row in own if row["verified"] != ""]
        found.append(
            {
                "kind": kind,
                "people": len(own),
                "with recourse": len(judged),
                "inside": sum(int(row["inside"]) for row in judged),
                "proofs": len(checked),
                "verified": sum(int(row["verified"]) for row in checked),
            }
        )
    return found
