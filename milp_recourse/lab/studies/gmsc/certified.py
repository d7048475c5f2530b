"""Certified optima of refused applicants under the learned causal model, kept in a file as they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.gap.paper_settings import Setting, draw, settings_of
from milp_recourse.lab.measured import with_seconds
from milp_recourse.lab.recipe.gmsc_data import LEVERS
from milp_recourse.lab.studies.kept_answers import Answer, AnswerFile
from milp_recourse.lab.studies.paper_cells import Problem
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import solve

SETTINGS = settings_of("gmsc")
"""The paper's rows about Give Me Some Credit, with the numbers that it reports."""


def answer_file(folder: Path) -> AnswerFile:
    """``certified.csv`` of a folder.

    Applicants are named by their position among the refused test rows; the file has no data of the owner's.
    """
    return AnswerFile(folder / "certified.csv", LEVERS, ("nodes", "time_limit"))


def solve_missing(
    file: AnswerFile,
    people: Population,
    problems: Sequence[Problem],
    time_limit: float,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Solve the problems that have no answer yet, one at a time, so that processor time can be measured.

    A problem that reached a shorter time limit before is solved again.
    """

    def solved(problem: Problem) -> Answer:
        instance = problem.instance(people.template, people.factuals[problem.applicant])
        return Answer.of(solve(instance, "bab", time_limit))

    todo = file.missing(problems, time_limit)
    if todo:  # compiling is not measured
        solved(todo[0])
    with file.writing() as keep:
        for problem in todo:
            answer, seconds = with_seconds(partial(solved, problem))
            keep(problem, replace(answer, seconds=seconds, time_limit=time_limit))
            advance()


def problems(setting: Setting, size: int, seed: int) -> list[Problem]:
    """The problems of a setting, one per applicant, in order."""
    return [
        Problem(k, one.actionable, tuple(one.weights[f] for f in one.actionable), True)
        for k, one in enumerate(draw(setting, size, seed).preferences(LEVERS))
    ]


def actions(table: Mapping[Problem, Answer], asked: Sequence[Problem]) -> FloatArray:
    """The optimal values of the levers, shape (n, 4); nan where a lever is not acted on."""
    found = np.full((len(asked), len(LEVERS)), np.nan)
    for k, problem in enumerate(asked):
        for f, value in (table[problem].action or {}).items():
            found[k, LEVERS.index(f)] = value
    return found
