"""People, questions and judgements of ``bench peers``: what every tool is asked, and what is true of it.

Six columns of German credit may move, five of them in one direction, and a change by 1 costs 1, so that no
tool has to weigh columns. What is true of a person is what ``bab`` proves with a certificate that ``verify``
accepts; the deployed model's ``predict`` judges every action.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.lab.benchmarks.child import of_solver
from milp_recourse.lab.benchmarks.fitted import Fitted
from milp_recourse.lab.recipe.real import Table
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature, Monotone
from milp_recourse.problem.instance import Instance, Preferences

LEVERS: dict[str, Monotone | None] = {
    "duration": "decrease",
    "amount": "decrease",
    "savings": "increase",
    "employment": "increase",
    "rate": None,
    "guarantors": "increase",
}
"""The columns of German credit that may move, and in which direction; None: both."""

AMOUNT = 250.0
"""Marks per step of the amount. Duration is in months, labels are numbered in the order of their codes."""

OURS = "bab"

CLAIMS = ("optimal", "infeasible", "exists", "found", "nothing")
"""What an answer may say: ``tool_worker.py`` explains each."""

NEAR = 1e-6
"""How far a claimed cost may be from the certified one, whose steps are whole."""

WITH, WITHOUT = "recourse", "none"


@dataclass(frozen=True)
class Question:
    """What every tool is asked of one person, and what is certified.

    Attributes
    ----------
    low, high
        The ends of every column; a column that is fixed has its value twice.
    least
        The certified least cost; None where it is certified that no recourse exists.
    answer
        The answer of ``bab``, as any tool's.
    """

    applicant: int
    row: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    least: float | None
    answer: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """The applicant and the kind, as the table has them."""
        return str(self.applicant), WITHOUT if self.least is None else WITH

    def put(self, time_limit: float) -> dict[str, Any]:
        """The question as ``tool_worker.py`` reads it."""
        return {"row": self.row, "low": self.low, "high": self.high, "limit": time_limit}


def whole(table: Table) -> Table:
    """German credit in whole numbers, with the columns of :data:`LEVERS` to act on."""
    values, features = table.values.copy(), []
    for k, feature in enumerate(table.features):
        if feature.name == "amount":
            values[:, k] = np.floor(values[:, k] / AMOUNT)
        ends = float(values[:, k].min()), float(values[:, k].max())
        moves = feature.name in LEVERS
        features.append(Feature(feature.name, "integer", moves, ends, monotone=LEVERS.get(feature.name)))
    return replace(table, name=f"{table.name}:whole", features=tuple(features), values=values)


def problem(fitted: Fitted, row: int, narrow: bool = False) -> Instance:
    """The problem of a row: the sum of the steps; ``narrow``: each column moves by one step at most."""
    names = tuple(f.name for f in fitted.table.levers)
    instance = replace(fitted.instance(row, "l1"), cost=Cost.pure("l1", dict.fromkeys(names, 1.0)))
    if not narrow:
        return instance
    steps = {
        name: (max(low, instance.factual[name] - 1.0), min(high, instance.factual[name] + 1.0))
        for name, (low, high) in instance.levers.items()
    }
    return replace(instance, preferences=Preferences(names, ranges=steps))


def questions(fitted: Fitted, people: int, without: int, time_limit: float, seed: int = 0) -> list[Question]:
    """People drawn by seed from the half of the refused rows with the lower scores, and what is certified.

    Parameters
    ----------
    people, without
        How many have recourse, and how many have none because each column may move by one step only.

    Raises
    ------
    BadInput
        There are too few of them, or somebody's answer is not certified in the time.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(fitted.refused[: len(fitted.refused) // 2]).tolist()
    found: dict[bool, list[Question]] = {False: [], True: []}
    wanted = {False: people, True: without}
    with of_solver(OURS, "trees") as ours:
        for row in rows:
            for narrow, kept in found.items():
                if len(kept) == wanted[narrow]:
                    continue
                one = asked(problem(fitted, row, narrow), row, partial(ours.ask, time_limit=time_limit))
                if one is None:  # leaving people out whom only others answer would favour this package
                    raise BadInput("--time-limit", time_limit, f"more: row {row} has no certificate")
                if (one.least is None) == narrow:
                    kept.append(one)
                    break
    for narrow, option in ((False, "--people"), (True, "--without")):
        if len(found[narrow]) < wanted[narrow]:
            raise BadInput(option, wanted[narrow], f"at most {len(found[narrow])}, of {len(rows)} people")
    return [*found[False], *found[True]]


def asked(instance: Instance, row: int, solve: Callable[[Instance], dict[str, Any]]) -> Question | None:
    """The question of an instance; None if what ``bab`` says has no certificate that ``verify`` accepts."""
    answer = solve(instance)
    if not answer.get("verified"):
        return None
    values = tuple(instance.factual[f.name] for f in instance.features)
    fixed = {f.name: (value, value) for f, value in zip(instance.features, values, strict=True)}
    low, high = zip(*(fixed | dict(instance.levers)).values(), strict=True)
    action = answer.get("action")
    after = None if action is None else [float(action.get(name, value)) for name, (value, _) in fixed.items()]
    least = answer["cost"] if answer["status"] == "optimal" else None
    return Question(row, values, low, high, least, answer | {"row": after})


def judged(fitted: Fitted, question: Question, answer: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's answer with the cost of its action, whether ``predict`` accepts it, and whether it is allowed.

    ``limit`` becomes ``found`` or ``nothing``, as there is an action or none.
    """
    after = answer.get("row")
    status = answer["status"]
    if status not in CLAIMS:
        status = "nothing" if after is None else "found"
    told = {**answer, "status": status, "least": question.least, "cost": None, "accepted": None}
    if after is None:
        return told | {"within": None}
    ends = zip(question.low, after, question.high, strict=True)
    return told | {
        "cost": math.fsum(abs(new - old) for new, old in zip(after, question.row, strict=True)),
        "accepted": bool(fitted.estimator.predict(np.array([after], dtype=np.float64))[0] == 1),
        "within": all(low <= value <= high and value.is_integer() for low, value, high in ends),
    }


def wrong(row: Mapping[str, str]) -> str | None:
    """What is wrong about a claim of a row of the table; None where nothing is.

    An action for somebody who has no recourse is a wrong claim, too; an action that is not valid for somebody
    who has is counted elsewhere, unless it is called optimal.
    """
    status, least = row["status"], row["least"]
    if status in ("optimal", "found", "exists") and not least:
        return f"says {status}, none exists"
    if status == "infeasible" and least:
        return "says that none exists"
    if status == "optimal":
        if not valid(row):
            return "calls an action optimal that is not valid"
        if (
            abs(float(row["cost"]) - float(least)) > NEAR
            or abs(float(row["claimed_cost"]) - float(least)) > NEAR
        ):
            return f"says optimal at {row['claimed_cost']}, {least} is"
    return None


def valid(row: Mapping[str, str]) -> bool:
    """Whether the row's action is accepted by ``predict``, whole and within the ranges."""
    return row["accepted"] == row["within"] == "True"
