"""Answers on disk: each distinct problem solved once per method, gone on with after an interruption."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from milp_recourse.backends.grid_together import SharedGrid
from milp_recourse.instance import Instance, Population, Preferences
from milp_recourse.lab.run_table import grown
from milp_recourse.lab.studies.cells import Problem
from milp_recourse.result import Result
from milp_recourse.solve import solve_together
from milp_recourse.workers import Workers

METHODS = ("grid", "certified")
TOGETHER = 512
"""Problems of one mask solved in one batch; after each, everything is on disk."""
APPLICANTS_TOGETHER = 32
"""Applicants whose grids are evaluated before the next write."""

Asked = tuple[Problem, Mapping[str, float]]
"""A problem and its applicant's factual."""


@dataclass(frozen=True)
class Answer:
    """What a method said to a problem.

    Attributes
    ----------
    cost
        With the problem's weights: what was optimised. None without an action.
    lower_bound
        Proven; None from the grid, or where infeasible.
    action
        Value per feature acted on.
    seconds
        Processor seconds: the problem's share of its batch, or of its applicant's grid.
    """

    status: str
    cost: float | None
    lower_bound: float | None
    action: Mapping[str, float] | None
    seconds: float

    @staticmethod
    def of(result: Result) -> Answer:
        """What is kept of a result."""
        action = None
        if result.action is not None:
            action = {name: float(value) for name, value in result.action.items()}
        return Answer(result.status.value, result.cost, result.lower_bound, action, result.seconds)


class Answers:
    """The answers of both methods in one folder.

    Parameters
    ----------
    folder
        Holds ``answers_grid.csv`` and ``answers_certified.csv``.
    """

    def __init__(self, folder: Path, features: Sequence[str]) -> None:
        self.folder, self.features = folder, tuple(features)
        self.known: dict[str, dict[Problem, Answer]] = {method: {} for method in METHODS}
        for method in METHODS:
            with self._open(method) as (rows, _):
                for row in rows:
                    self.known[method][self._problem(row)] = self._answer(row)

    def open_problems(self, method: str, problems: Iterable[Problem]) -> list[Problem]:
        """What is not answered yet, each once, in order."""
        return [p for p in dict.fromkeys(problems) if p not in self.known[method]]

    def solve_grid(
        self, population: Population, problems: Sequence[Problem], jobs: int, advance: Callable[[], None]
    ) -> None:
        """Answer the problems with the grid: one evaluation per applicant."""
        of: dict[int, list[Asked]] = defaultdict(list)
        for problem in problems:
            of[problem.applicant].append((problem, population.factuals[problem.applicant]))
        groups = [asked for _, asked in sorted(of.items())]
        parts = (groups[k : k + APPLICANTS_TOGETHER] for k in range(0, len(groups), APPLICANTS_TOGETHER))
        work = partial(_grid_part, population.template)
        self._gather("grid", Workers(jobs).map(work, parts), advance)

    def solve_certified(
        self,
        population: Population,
        problems: Sequence[Problem],
        time_limit: float,
        jobs: int,
        advance: Callable[[], None],
    ) -> None:
        """Answer the problems with the default back end: batches of one mask, which go fastest."""
        of: dict[tuple[tuple[str, ...], bool], list[Asked]] = defaultdict(list)
        for problem in problems:
            asked = problem, population.factuals[problem.applicant]
            of[problem.mask, problem.plausible].append(asked)
        batches = [
            group[k : k + TOGETHER]
            for _, group in sorted(of.items(), key=lambda item: (-len(item[0][0]), item[0]))
            for k in range(0, len(group), TOGETHER)
        ]
        work = partial(_certified_part, population.template, time_limit)
        self._gather("certified", Workers(jobs).map(work, batches), advance)

    def _gather(
        self,
        method: str,
        solved: Iterator[list[tuple[Problem, Answer]]],
        advance: Callable[[], None],
    ) -> None:
        with self._open(method) as (_, write):
            for part in solved:
                for problem, answer in part:
                    write(self._row(problem, answer))
                    self.known[method][problem] = answer
                    advance()

    def _open(self, method: str) -> Any:
        columns = ("applicant", "mask", "weights", "plausible", "status", "cost", "lower_bound", "seconds")
        return grown(
            self.folder / f"answers_{method}.csv", (*columns, *(f"action_{f}" for f in self.features)), {}
        )

    def _row(self, problem: Problem, answer: Answer) -> dict[str, Any]:
        row: dict[str, Any] = {
            "applicant": problem.applicant,
            "mask": "+".join(problem.mask),
            "weights": "+".join(map(repr, problem.weights)),
            "plausible": int(problem.plausible),
            "status": answer.status,
            "cost": _text(answer.cost),
            "lower_bound": _text(answer.lower_bound),
            "seconds": f"{answer.seconds:.6g}",
        }
        for name in self.features:
            row[f"action_{name}"] = _text((answer.action or {}).get(name))
        return row

    @staticmethod
    def _problem(row: Mapping[str, str]) -> Problem:
        return Problem(
            int(row["applicant"]),
            tuple(filter(None, row["mask"].split("+"))),  # nobody's: who scores every feature out
            tuple(map(float, filter(None, row["weights"].split("+")))),
            row["plausible"] == "1",
        )

    def _answer(self, row: Mapping[str, str]) -> Answer:
        cost = _number(row["cost"])
        action = {f: float(row[f"action_{f}"]) for f in self.features if row[f"action_{f}"]}
        return Answer(
            row["status"],
            cost,
            _number(row["lower_bound"]),
            None if cost is None else action,
            float(row["seconds"]),
        )


def _grid_part(template: Instance, groups: Sequence[Sequence[Asked]]) -> list[tuple[Problem, Answer]]:
    """Per applicant one grid over every feature that any of the problems allows."""
    answers = []
    for asked in groups:
        start = time.process_time()
        instances = [problem.instance(template, factual) for problem, factual in asked]
        allowed = {name for problem, _ in asked for name in problem.mask}
        every = tuple(f.name for f in template.features if f.actionable)
        widest = tuple(name for name in every if name in allowed) or every  # a grid has axes
        grid = SharedGrid(replace(instances[0], preferences=Preferences(widest)))
        found = [Answer.of(grid.solve(instance)) for instance in instances]
        share = (time.process_time() - start) / len(asked)
        answers += [
            (problem, replace(answer, seconds=share))
            for (problem, _), answer in zip(asked, found, strict=True)
        ]
    return answers


def _certified_part(
    template: Instance, time_limit: float, asked: Sequence[Asked]
) -> list[tuple[Problem, Answer]]:
    instances = [problem.instance(template, factual) for problem, factual in asked]
    start = time.process_time()
    answers = [Answer.of(result) for result in solve_together(instances, time_limit=time_limit)]
    # wall seconds measure the neighbours on a shared machine: keep their proportions only
    busy = (time.process_time() - start) / max(1e-9, sum(answer.seconds for answer in answers))
    return [
        (problem, replace(answer, seconds=answer.seconds * busy))
        for (problem, _), answer in zip(asked, answers, strict=True)
    ]


def _text(value: float | None) -> str:
    return "" if value is None else repr(value)


def _number(text: str) -> float | None:
    return float(text) if text else None
