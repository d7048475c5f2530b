"""``bench peers``: the tools that README names, given the same people, model, levers, ranges and cost.

The model is XGBoost, 50 trees of depth 3, on German credit with every column a whole number. Every tool runs
in a Python of its own, one after the other.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Self

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import write_json
from milp_recourse.lab.benchmarks.child import Peer, answer_row
from milp_recourse.lab.benchmarks.fitted import Fitted, fit_trees
from milp_recourse.lab.benchmarks.peer_questions import (
    OURS,
    WITH,
    WITHOUT,
    Question,
    judged,
    questions,
    valid,
    whole,
    wrong,
)
from milp_recourse.lab.known import known
from milp_recourse.lab.recipe.real import read_set
from milp_recourse.lab.run_table import Key, filled

MODEL = ("xgboost", 50, 3)
TOOLS = {
    "treecf": "treecf",
    "ocean": "oceanpy",
    "dice": "dice-ml",
    "alibi": "alibi[tensorflow]",
    "reachml": "reachml",
}
"""The peers, as ``tool_worker.py`` knows them, and what each is installed as."""

COLUMNS = (
    *("tool", "applicant", "kind", "version", "least", "status", "claimed_cost", "cost", "accepted"),
    *("within", "seconds", "message", "time_limit", "seed"),
)
KEYS = 3


@dataclass(frozen=True)
class Plan:
    """Options of the benchmark.

    Attributes
    ----------
    pythons
        By name of a tool, a Python that has it; tools without one are left out.
    people, without
        As in :func:`~milp_recourse.lab.benchmarks.peer_questions.questions`.
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


class Worker:
    """A tool in a process of the Python that has it, started again after it was ended.

    Raises
    ------
    BadInput
        The Python cannot be started, or lacks the tool.
    """

    def __init__(self, tool: str, python: str, folder: Path, script: str = "tool_worker.py") -> None:
        self.tool, self.start = tool, partial(Peer, python, script, str(folder), tool)
        self.child: Peer | None = self._started()

    def _started(self) -> Peer:
        allowed = f"a Python with xgboost, scikit-learn and {TOOLS[self.tool]}"
        try:
            child = self.start()
        except OSError as error:
            raise BadInput("--python", f"{self.tool}: {error.strerror}", allowed) from None
        if child.refused is not None:
            child.__exit__()
            raise BadInput("--python", f"{self.tool}: {child.refused}", allowed)
        self.version = str(child.about["version"])
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
            answer = child.put(question.put(time_limit))
        finally:
            timer.cancel()
        if ended.is_set():
            answer = {"status": "nothing", "message": "ended after the time limit"}
        if "seconds" not in answer:  # the process ended
            child.__exit__()
            self.child = None
        return {"seconds": time_limit} | answer


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
    script: str = "tool_worker.py",
) -> list[dict[str, Any]]:
    """:func:`run` for a fitted model; ``script``: another than ``tool_worker.py``."""
    with ExitStack() as stack:
        shared = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _hand_over(fitted, shared)
        tools: dict[str, Worker | None] = {OURS: None}
        for tool, python in plan.pythons.items():  # all, so that a Python that lacks its tool is told at once
            tools[tool] = stack.enter_context(Worker(tool, python, shared, script))
        people = questions(fitted, plan.people, plan.without, plan.time_limit, plan.seed)
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
                version = _own_version() if worker is None else worker.version
                yield answer_row(judged(fitted, question, answer) | {"version": version}, COLUMNS, key)

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
