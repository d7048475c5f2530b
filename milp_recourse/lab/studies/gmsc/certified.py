"""Certified optima of refused applicants through the learned model, one by one, on disk as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.icarma.sampling import Wishes
from milp_recourse.instance import Population
from milp_recourse.lab.gap.tables import Setting, draw
from milp_recourse.lab.recipe.gmsc_data import LEVERS
from milp_recourse.lab.run_table import grown
from milp_recourse.lab.studies.answers import Answer
from milp_recourse.lab.studies.cells import Problem
from milp_recourse.result import Result
from milp_recourse.solve import solve

FloatArray = NDArray[np.float64]

SETTINGS: tuple[Setting, ...] = (
    Setting(1, "4", icarma=(0.88, 0.956, 0.579)),
    Setting(1, "random", actionable=None, icarma=(0.753, 0.886, 0.549)),
    Setting(2, "linear", "linear", icarma=(0.865, 0.879, 0.618, 0.30)),
    Setting(2, "hard (3), constant", actionable=3, icarma=(0.76, 0.88, 0.55, 0.40)),
    Setting(2, "hard (3), linear", "linear", actionable=3, icarma=(0.73, 0.86, 0.57, 0.34)),
)
"""The paper's rows about this data, with what it reports."""

COLUMNS = ("applicant", "mask", "weights", "status", "cost", "lower_bound", "nodes", "seconds")

LIMITED = "time_limit"
"""The column that says how long the engine was given (wall seconds)."""


@dataclass(frozen=True)
class Proven:
    """An answer and what it took: processor seconds, boxes examined, and the wall seconds it was given."""

    answer: Answer
    nodes: int
    time_limit: float

    def settled(self, time_limit: float) -> bool:
        """Whether more time changes nothing: it is proven, or had as much."""
        return self.answer.status != "limit" or self.time_limit >= time_limit


class Table:
    """``certified.csv`` of a folder: every distinct problem, a last time where it was given more time.

    Rows name an applicant by the position among the refused test rows, and hold nothing of the owner's file.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "certified.csv"
        self.known: dict[Problem, Proven] = {}
        with self._open() as (rows, _):
            for row in rows:
                self.known[_problem(row)] = _proven(row)

    def solve(
        self,
        people: Population,
        problems: Sequence[Problem],
        time_limit: float,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        """Solve what is not there yet, one problem at a time: each one's processor time is its own.

        What reached a shorter limit before is solved again.
        """
        todo = self.missing(problems, time_limit)
        if todo:  # what is compiled or looked up once is nobody's
            solve(_instance(people, todo[0]), "bab", time_limit)
        with self._open() as (_, write):
            for problem in todo:
                start = time.process_time()
                result = solve(_instance(people, problem), "bab", time_limit)
                seconds = time.process_time() - start
                row = _row(problem, result, seconds, time_limit)
                write(row)
                self.known[problem] = _proven({k: str(v) for k, v in row.items()})
                advance()

    def missing(self, problems: Sequence[Problem], time_limit: float) -> list[Problem]:
        """What :meth:`solve` has to do, each once, in order."""
        asked = dict.fromkeys(problems)
        return [p for p in asked if p not in self.known or not self.known[p].settled(time_limit)]

    def _open(self) -> Any:
        return grown(self.path, (*COLUMNS, LIMITED, *(f"action_{f}" for f in LEVERS)), {})


def wishes(setting: Setting, size: int, seed: int) -> Wishes:
    """The applicants' preferences: columns are the four levers, in order of the features."""
    return draw(setting, size, seed)


def problems(setting: Setting, size: int, seed: int) -> list[Problem]:
    """One per applicant, in order."""
    return [
        Problem(k, one.actionable, tuple(one.weights[f] for f in one.actionable), True)
        for k, one in enumerate(wishes(setting, size, seed).preferences(LEVERS))
    ]


def actions(table: Mapping[Problem, Proven], asked: Sequence[Problem]) -> FloatArray:
    """Optimal values of the levers, shape (n, 4), nan where not acted on."""
    made = np.full((len(asked), len(LEVERS)), np.nan)
    for k, problem in enumerate(asked):
        for f, value in (table[problem].answer.action or {}).items():
            made[k, LEVERS.index(f)] = value
    return made


def _instance(people: Population, problem: Problem) -> Any:
    return problem.instance(people.template, people.factuals[problem.applicant])


def _row(problem: Problem, result: Result, seconds: float, time_limit: float) -> dict[str, Any]:
    action = result.action or {}
    return {
        "applicant": problem.applicant,
        "mask": "+".join(problem.mask),
        "weights": "+".join(map(repr, problem.weights)),
        "status": result.status.value,
        "cost": _text(result.cost),
        "lower_bound": _text(result.lower_bound),
        "nodes": result.nodes or 0,
        "seconds": f"{seconds:.4g}",
        LIMITED: repr(time_limit),
        **{f"action_{f}": _text(action.get(f)) for f in LEVERS},
    }


def _problem(row: Mapping[str, str]) -> Problem:
    weights = tuple(map(float, row["weights"].split("+")))
    return Problem(int(row["applicant"]), tuple(row["mask"].split("+")), weights, True)


def _proven(row: Mapping[str, str]) -> Proven:
    cost = float(row["cost"]) if row["cost"] else None
    bound = float(row["lower_bound"]) if row["lower_bound"] else None
    action = {f: float(row[f"action_{f}"]) for f in LEVERS if row[f"action_{f}"]}
    answer = Answer(row["status"], cost, bound, None if cost is None else action, float(row["seconds"]))
    return Proven(answer, int(row["nodes"]), float(row[LIMITED]))


def _text(value: Any) -> str:
    return "" if value is None else repr(float(value))
