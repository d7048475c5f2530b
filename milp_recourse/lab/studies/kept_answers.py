"""Answers kept in files: each problem is solved once per method; an interrupted run is continued."""

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

from milp_recourse.lab.measured import measured
from milp_recourse.lab.run_table import grown
from milp_recourse.lab.studies.grid_together import SharedGrid
from milp_recourse.lab.studies.paper_cells import Problem
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import solve_together
from milp_recourse.questions.workers import Workers

METHODS = ("grid", "certified")
TOGETHER = 512
"""The most problems of one mask in a batch; after each batch its answers are written."""
APPLICANTS_TOGETHER = 32
"""How many applicants' grids are evaluated between two writes."""

Posed = tuple[Problem, Mapping[str, float]]
"""A problem and its applicant's factual values."""


@dataclass(frozen=True)
class Answer:
    """A method's answer to a problem.

    Attributes
    ----------
    cost
        The cost that was minimised, with the problem's weights; None without an action.
    lower_bound
        The proven lower bound; None from the grid, and where infeasible.
    action
        Value per feature acted on.
    seconds
        Processor seconds: the problem's share of its batch, or of its applicant's grid.
    nodes
        Boxes examined; 0 if that is not kept.
    time_limit
        The limit in wall seconds; infinity if that is not kept.
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
        """The answer that is kept of a result."""
        action = None
        if result.action is not None:
            action = {name: float(value) for name, value in result.action.items()}
        return Answer(
            result.status.value, result.cost, result.lower_bound, action, result.seconds, result.nodes or 0
        )


class AnswerFile:
    """A CSV file of answers, to which rows are added. If a problem has several rows, the last one counts.

    Parameters
    ----------
    features
        The features that actions may set; each has a column.
    more
        Further attributes of answers that have columns.

    Attributes
    ----------
    known
        The answers in the file, by problem.
    """

    def __init__(self, path: Path, features: Sequence[str], more: Sequence[str] = ()) -> None:
        self.path, self.features, self.more = path, tuple(features), tuple(more)
        self.known: dict[Problem, Answer] = {}
        with self._open() as (rows, _):
            for row in rows:
                self.known[self._problem(row)] = self._answer(row)

    def missing(self, problems: Iterable[Problem], time_limit: float = 0.0) -> list[Problem]:
        """The problems that have no answer yet, or only one that reached a shorter time limit; each once, in
        order."""

        def settled(known: Answer) -> bool:
            return known.status != "limit" or known.time_limit >= time_limit

        return [p for p in dict.fromkeys(problems) if p not in self.known or not settled(self.known[p])]

    @contextmanager
    def writing(self) -> Iterator[Callable[[Problem, Answer], None]]:
        """Open the file: yields a function that writes an answer and adds it to :attr:`known`."""
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
            tuple(filter(None, row["mask"].split("+"))),  # empty if the applicant can act on nothing
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

    def solve_grid(
        self, population: Population, problems: Sequence[Problem], jobs: int, advance: Callable[[], None]
    ) -> None:
        """Answer the problems by the grid; the points of an applicant are evaluated once for all of them."""
        of: dict[int, list[Posed]] = defaultdict(list)
        for problem in problems:
            of[problem.applicant].append((problem, population.factuals[problem.applicant]))
        groups = [posed for _, posed in sorted(of.items())]
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
        """Answer the problems by the default back end, in batches of one mask, which is fastest."""
        of: dict[tuple[tuple[str, ...], bool], list[Posed]] = defaultdict(list)
        for problem in problems:
            posed = problem, population.factuals[problem.applicant]
            of[problem.mask, problem.plausible].append(posed)
        batches = [
            group[k : k + TOGETHER]
            for _, group in sorted(of.items(), key=lambda item: (-len(item[0][0]), item[0]))
            for k in range(0, len(group), TOGETHER)
        ]
        work = partial(_certified_part, population.template, time_limit)
        self._gather("certified", Workers(jobs).map(work, batches), advance)

    def _gather(
        self, method: str, solved: Iterator[list[tuple[Problem, Answer]]], advance: Callable[[], None]
    ) -> None:
        with self.files[method].writing() as keep:
            for part in solved:
                for problem, answer in part:
                    keep(problem, answer)
                    advance()


def _grid_part(template: Instance, groups: Sequence[Sequence[Posed]]) -> list[tuple[Problem, Answer]]:
    """Solve some applicants' problems by one grid each, over all features that any of the problems allows."""
    answers = []
    for posed in groups:
        start = time.process_time()
        instances = [problem.instance(template, factual) for problem, factual in posed]
        allowed = {name for problem, _ in posed for name in problem.mask}
        every = tuple(f.name for f in template.features if f.actionable)
        widest = tuple(name for name in every if name in allowed) or every  # a grid has axes
        grid = SharedGrid(replace(instances[0], preferences=Preferences(widest)))
        found = [Answer.of(grid.solve(instance)) for instance in instances]
        share = (time.process_time() - start) / len(posed)
        answers += [
            (problem, replace(answer, seconds=share))
            for (problem, _), answer in zip(posed, found, strict=True)
        ]
    return answers


def _certified_part(
    template: Instance, time_limit: float, posed: Sequence[Posed]
) -> list[tuple[Problem, Answer]]:
    """Solve a batch by the default back end."""
    instances = [problem.instance(template, factual) for problem, factual in posed]
    found = measured(solve_together(instances, time_limit=time_limit))
    return [
        (problem, replace(Answer.of(result), seconds=seconds))
        for (problem, _), (result, seconds) in zip(posed, found, strict=True)
    ]
