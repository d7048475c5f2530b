"""``bench peers``: the tools that README names, given the same people, model, levers, ranges and cost.

The model is XGBoost, 50 trees of depth 3, on German credit with every column a whole number. Six columns may
move, five of them in one direction, and a change by 1 costs 1, so that no tool has to weigh columns. Every
tool runs in a Python of its own, one after the other. What is true of a person is what ``bab`` proves with a
certificate that ``verify`` accepts; the deployed model's ``predict`` judges every action.
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Self

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import write_json
from milp_recourse.lab.benchmarks.child import Child, of_solver
from milp_recourse.lab.benchmarks.fitted import Fitted, fit_trees
from milp_recourse.lab.known import known
from milp_recourse.lab.recipe.real import Table, read_set
from milp_recourse.lab.run_table import Key, filled
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

MODEL = ("xgboost", 50, 3)
OURS = "bab"
TOOLS = {
    "treecf": "treecf",
    "ocean": "oceanpy",
    "dice": "dice-ml",
    "alibi": "alibi[tensorflow]",
    "reachml": "reachml",
}
"""The peers, as ``tool_worker.py`` knows them, and what each is installed as."""

CLAIMS = ("optimal", "infeasible", "exists", "found", "nothing")
"""What an answer may say: ``tool_worker.py`` explains each."""

NEAR = 1e-6
"""How far a claimed cost may be from the certified one, whose steps are whole."""

COLUMNS = (
    *("tool", "applicant", "kind", "version", "least", "status", "claimed_cost", "cost", "accepted"),
    *("within", "seconds", "message", "time_limit", "seed"),
)
KEYS = 3
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

    def line(self, time_limit: float) -> bytes:
        """The question as ``tool_worker.py`` reads it."""
        content = {"row": self.row, "low": self.low, "high": self.high, "limit": time_limit}
        return json.dumps(content).encode() + b"\n"


@dataclass(frozen=True)
class Plan:
    """Options of the benchmark.

    Attributes
    ----------
    pythons
        By name of a tool, a Python that has it; tools without one are left out.
    people, without
        How many have recourse, and how many have none because each column may move by one step only.
    time_limit
        Wall seconds per person and tool. A tool that does not keep to it is ended.
    """

    pythons: Mapping[str, str]
    people: int = 10
    without: int = 3
    time_limit: float = 120.0
    seed: int = 0
    data: Path | None = None

    def __len__(self) -> int:
        """The number of answers."""
        return (1 + len(self.pythons)) * (self.people + self.without)


def pythons(named: Sequence[str]) -> dict[str, str]:
    """The Pythons by tool, from texts like ``treecf=PYTHON``; raise BadInput for other texts."""
    found = {}
    for text in named:
        tool, separator, path = text.partition("=")
        if not (separator and path):
            raise BadInput("--python", text, "a tool and its Python, as treecf=PYTHON")
        found[known("--python", tool, TOOLS)] = path
    return found


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


def questions(fitted: Fitted, plan: Plan) -> list[Question]:
    """People drawn by seed from the half of the refused rows with the lower scores, and what is certified.

    Raises
    ------
    BadInput
        There are too few of them, or somebody's answer is not certified in the time.
    """
    rng = np.random.default_rng(plan.seed)
    rows = rng.permutation(fitted.refused[: len(fitted.refused) // 2]).tolist()
    found: dict[bool, list[Question]] = {False: [], True: []}
    wanted = {False: plan.people, True: plan.without}
    with of_solver(OURS, "trees") as ours:
        for row in rows:
            for narrow, kept in found.items():
                if len(kept) == wanted[narrow]:
                    continue
                one = asked(problem(fitted, row, narrow), row, partial(ours.ask, time_limit=plan.time_limit))
                if one is None:  # leaving people out whom only others answer would favour this package
                    raise BadInput("--time-limit", plan.time_limit, f"more: row {row} has no certificate")
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


class Worker:
    """A tool in a process of the Python that has it, started again after it was ended.

    Raises
    ------
    BadInput
        The Python cannot be started, or lacks the tool.
    """

    def __init__(self, tool: str, python: str, folder: Path, script: Path | None = None) -> None:
        self.script = script or Path(__file__).with_name("tool_worker.py")
        self.tool, self.python, self.folder = tool, python, folder
        self.child: Child | None = self._started()

    def _started(self) -> Child:
        allowed = f"a Python with xgboost, scikit-learn and {TOOLS[self.tool]}"
        try:
            child = Child([self.python, str(self.script), str(self.folder), self.tool])
        except OSError as error:
            raise BadInput("--python", f"{self.tool}: {error.strerror}", allowed) from None
        greeting = child.receive()
        refused = greeting.get("refused", greeting.get("message"))
        if refused is not None:
            child.__exit__()
            raise BadInput("--python", f"{self.tool}: {refused}", allowed)
        self.version = str(greeting["version"])
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child is not None:
            self.child.__exit__()

    def ask(self, question: Question, time_limit: float) -> dict[str, Any]:
        """The tool's answer; ``nothing`` if there is none in the time, a tenth and a second more for it."""
        child = self.child = self.child or self._started()
        ended = threading.Event()

        def end() -> None:
            ended.set()
            child.process.kill()

        timer = threading.Timer(1.1 * time_limit + 1.0, end)
        timer.start()
        try:
            answer = child.send(question.line(time_limit))
        finally:
            timer.cancel()
        if ended.is_set():
            answer = {"status": "nothing", "message": "ended after the time limit"}
        if "seconds" not in answer:  # the process ended
            child.__exit__()
            self.child = None
        return {"seconds": time_limit} | answer


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


def run(
    plan: Plan, folder: Path, advance: Callable[[str], object] = lambda name: None
) -> list[dict[str, Any]]:
    """Ask what ``folder/peers.csv`` does not hold yet, and write each answer as it comes; all rows.

    Raises
    ------
    BadInput
        The table is of a run with other options, the data's file is missing, there are too few people, or a
        Python lacks its tool.
    """
    fitted = fit_trees(whole(read_set("german", plan.data, plan.seed, "--data")), *MODEL, plan.seed)
    return answered(fitted, plan, folder, advance)


def answered(
    fitted: Fitted,
    plan: Plan,
    folder: Path,
    advance: Callable[[str], object] = lambda name: None,
    script: Path | None = None,
) -> list[dict[str, Any]]:
    """:func:`run` for a fitted model; ``script``: another than ``tool_worker.py``."""
    with ExitStack() as stack:
        shared = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _hand_over(fitted, shared)
        tools: dict[str, Worker | None] = {OURS: None}
        for tool, python in plan.pythons.items():  # all, so that a Python that lacks its tool is told at once
            tools[tool] = stack.enter_context(Worker(tool, python, shared, script))
        people = questions(fitted, plan)
        groups = {tool: (tool, worker) for tool, worker in tools.items()}
        identity = {"time_limit": plan.time_limit, "seed": plan.seed}

        def solved(group: tuple[str, Worker | None], done: set[Key]) -> Iterator[dict[str, Any] | None]:
            tool, worker = group
            for question in people:
                key = (tool, *question.key)
                if key in done:
                    yield None
                    continue
                answer = question.answer if worker is None else worker.ask(question, plan.time_limit)
                told = judged(fitted, question, answer) | dict(zip(COLUMNS, key, strict=False))
                told["version"] = _own_version() if worker is None else worker.version
                yield {name: told.get(name) for name in COLUMNS}

        return filled(folder / "peers.csv", COLUMNS, identity, KEYS, groups, solved, 1, advance)


def _own_version() -> str:
    from importlib.metadata import version

    return version("milp-recourse").partition("+")[0]


def _hand_over(fitted: Fitted, folder: Path) -> None:
    """Write the model in XGBoost's format, and the rows that it was trained on, for ``tool_worker.py``."""
    fitted.estimator.save_model(folder / "model.json")
    rows = fitted.table.values[: int(0.8 * len(fitted.table.values))]
    content = {"names": [f.name for f in fitted.table.features], "rows": rows.tolist()}
    (folder / "people.json").write_text(json.dumps(content), encoding="utf-8")


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


def summarise(rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A line per tool, the wrong claims in words, and the tools that were left out."""
    lines, claims = [], []
    for tool in dict.fromkeys(row["tool"] for row in rows):
        mine = [row for row in rows if row["tool"] == tool]
        some, none = ([row for row in mine if row["kind"] == kind] for kind in (WITH, WITHOUT))
        told = [row for row in some if row["status"] in ("optimal", "found", "exists")]
        good = [row for row in told if valid(row)]
        ratios = [float(row["cost"]) / float(row["least"]) for row in good]
        acts = any(row["cost"] for row in mine)
        own = [f"{tool} {row['applicant']} {row['kind']}: {said}" for row in mine if (said := wrong(row))]
        claims += own
        lines.append(
            {
                "tool": tool,
                "version": mine[0]["version"],
                "with_recourse": len(some),
                "answered": len(told),
                "valid": len(good) if acts else None,
                "proven": sum(row["status"] == "optimal" and wrong(row) is None for row in told)
                if acts
                else None,
                "ratio_median": median(ratios) if ratios else None,
                "ratio_max": max(ratios, default=None),
                "without": len(none),
                "none_said": sum(row["status"] == "infeasible" for row in none),
                "wrong": len(own),
                "median_s": median(float(row["seconds"]) for row in mine),
            }
        )
    left_out = [tool for tool in TOOLS if tool not in {row["tool"] for row in rows}]
    return {"tools": lines, "wrong": claims, "left_out": left_out}


def write(rows: Sequence[Mapping[str, str]], folder: Path, plan: Plan) -> dict[str, Any]:
    """Write ``peers.json`` and return it."""
    report = {"time_limit": plan.time_limit, "seed": plan.seed} | summarise(rows)
    write_json(report, folder / "peers.json")
    return report


def plot(rows: Sequence[Mapping[str, str]], folder: Path) -> Path:
    """Draw ``folder/peers.png``: what each valid action costs over the certified least, and the seconds."""
    from milp_recourse.reports.drawing import panels, save

    tools = list(dict.fromkeys(row["tool"] for row in rows))
    figure, (ratios, seconds) = panels((9.0, 3.4), 1, 2)
    for place, tool in enumerate(tools):
        mine = [row for row in rows if row["tool"] == tool]
        costs = [float(row["cost"]) / float(row["least"]) for row in mine if row["least"] and valid(row)]
        spent = {
            kind: [float(row["seconds"]) for row in mine if row["kind"] == kind] for kind in (WITH, WITHOUT)
        }
        ratios.plot(_spread(place, len(costs)), costs, "o", alpha=0.6, color="C0", markersize=5)
        for kind, color in ((WITH, "C0"), (WITHOUT, "C1")):
            own = spent[kind]
            label = {WITH: "has recourse", WITHOUT: "has none"}[kind] if place == 0 else None
            seconds.plot(
                _spread(place, len(own)), own, "o", alpha=0.6, color=color, markersize=5, label=label
            )
    ratios.set(title="cost of valid actions over the certified least", yscale="log")
    seconds.set(title="seconds per person", yscale="log")
    for axes in (ratios, seconds):
        axes.set_xticks(range(len(tools)), tools)
        axes.set_xlim(-0.6, len(tools) - 0.4)
    seconds.legend(loc="upper left", frameon=False)
    return save(figure, folder / "peers.png")


def _spread(place: int, count: int) -> Any:
    """Places beside each other around a tool's own."""
    return place + np.linspace(-0.25, 0.25, count) if count > 1 else np.full(count, float(place))
