"""Answers on disk: each distinct problem solved once per method, gone on with after an interruption."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from milp_recourse.backends.grid_together import SharedGrid
from milp_recourse.instance import Instance, Population, Preferences
from milp_recourse.lab.run_table import grown
from milp_recourse.lab.studies.paper_cells import Problem
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
    nodes
        Boxes examined, where somebody counted.
    time_limit
        Wall seconds it was given, where that is kept.
    """

    status: str
    cost: float | None
    lower_bound: float | None
    action: Mapping[str, float] | None
    seconds: float
    nodes: float = 0.0
    time_limit: float = math.inf

    @staticmethod
    def of(result: Result) -> Answer:
        """What is kept of a result."""
        action = None
        if result.action is not None:
            action = {name: float(value) for name, value in result.action.items()}
        return Answer(
            result.status.value, result.cost, result.lower_bound, action, result.seconds, result.nodes or 0
        )


class AnswerFile:
    """Answers in a file that grows; where a problem stands twice, the last row counts.

    Parameters
    ----------
    features
        That actions may have values for.
    more
        Further attributes of answers that have columns.

    Attributes
    ----------
    known
        What the file holds.
    """

    def __init__(self, path: Path, features: Sequence[str], more: Sequence[str] = ()) -> None:
        self.path, self.features, self.more = path, tuple(features), tuple(more)
        self.known: dict[Problem, Answer] = {}
        with self._open() as (rows, _):
            for row in rows:
                self.known[self._problem(row)] = self._answer(row)

    @contextmanager
    def writing(self) -> Iterator[Callable[[Problem, Answer], None]]:
        """What writes an answer and keeps it."""
        with self._open() as (_, write):

            def keep(problem: Problem, answer: Answer) -> None:
                write(self._row(problem, answer))
                self.known[problem] = answer

            yield keep

    def _open(self) -> Any:
        columns = ("applicant", "mask", "weights", "plausible", "status", "cost", "lower_bound", "seconds")
        return grown(self.path, (*columns, *self.more, *(f"action_{f}" for f in self.features)), {})

    def _row(self, problem: Problem, answer: Answer) -> dict[str, Any]:
        return {
            "applicant": problem.applicant,
            "mask": "+".join(problem.mask),
            "weights": "+".join(map(repr, problem.weights)),
            "plausible": int(problem.plausible),
            "status": answer.status,
            "cost": answer.cost,
            "lower_bound": answer.lower_bound,
            "seconds": f"{answer.seconds:.6g}",
            **{name: getattr(answer, name) for name in self.more},
            **{f"action_{f}": (answer.action or {}).get(f) for f in self.features},
        }

    @staticmethod
    def _problem(row: Mapping[str, str]) -> Problem:
        return Problem(
            int(row["applicant"]),
            tuple(filter(None, row["mask"].split("+"))),  # empty where everything is scored out
            tuple(map(float, filter(None, row["weights"].split("+")))),
            row["plausible"] == "1",
        )

    def _answer(self, row: Mapping[str, str]) -> Answer:
        cost, bound = (float(row[name]) if row[name] else None for name in ("cost", "lower_bound"))
        action = {f: float(row[f"action_{f}"]) for f in self.features if row[f"action_{f}"]}
        more: dict[str, Any] = {name: float(row[name]) for name in self.more}
        seconds = float(row["seconds"])
        return Answer(row["status"], cost, bound, None if cost is None else action, seconds, **more)


class Answers:
    """The answers of both methods in one folder.

    Parameters
    ----------
    folder
        Holds ``answers_grid.csv`` and ``answers_certified.csv``.
    """

    def __init__(self, folder: Path, features: Sequence[str]) -> None:
        self.files = {m: AnswerFile(folder / f"answers_{m}.csv", features) for m in METHODS}
        self.known = {method: file.known for method, file in self.files.items()}

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
        with self.files[method].writing() as keep:
            for part in solved:
                for problem, answer in part:
                    keep(problem, answer)
                    advance()


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
