"""Run a solver in a process of its own and give it one instance after the other."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.processes import python

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1"
)
"""What keeps a process's libraries of linear algebra to one thread."""


class Child:
    """A process, on one thread, that answers every question on its standard input with a line of JSON.

    Parameters
    ----------
    command
        The command that starts it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        environment = os.environ | ONE_THREAD
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # closing flushes, and the process no longer reads
                    pipe.close()

    def send(self, question: bytes) -> dict[str, Any]:
        """Send a question and return the answer; its status is ``error`` if the process has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(question)
            self.process.stdin.flush()
        except BrokenPipeError:
            return _ended()
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Return the next line that the process writes; its status is ``error`` if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else _ended()
        return answer

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """Send a pickled (instance, time limit) and return the answer."""
        return self.send(pickle.dumps((instance, time_limit)))


class Peer(Child):
    """A script beside this one in a process of another Python: ``peer_worker.py`` says how it is asked.

    Parameters
    ----------
    python
        The Python that has the peer.
    script, arguments
        The script's name, and what it is started with.

    Attributes
    ----------
    about
        What it said first.
    refused
        Why nothing can be asked of it, or None.
    """

    def __init__(self, python: str, script: str, *arguments: str) -> None:
        super().__init__([python, str(Path(__file__).parent / script), *arguments])
        self.about = self.receive()
        self.refused: str | None = self.about.get("refused", self.about.get("message"))

    def put(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send a question, and return the answer."""
        return self.send(json.dumps(question).encode() + b"\n")


def of_solver(solver: str, models: Literal["networks", "trees"], certify: bool = True) -> Child:
    """Start a process that runs a solver (:mod:`milp_recourse.lab.benchmarks.solver_worker`)."""
    code = "from milp_recourse.lab.benchmarks.solver_worker import main; main()"
    return Child([*python(code, "milp_recourse"), solver, models, *(() if certify else ("bare",))])


def answer_row(answer: Mapping[str, Any], columns: Sequence[str], key: Sequence[str]) -> dict[str, Any]:
    """The table's row for an answer: the key in the first columns; ``events`` as JSON; ``first_seconds``.

    The last are the processor seconds after which the solver had its first action.
    """
    events = answer.get("events") or []
    first = next((seconds for seconds, cost, _ in events if cost is not None), None)
    known = {**answer, "events": json.dumps(events), "first_seconds": first}
    return {column: known.get(column) for column in columns} | dict(zip(columns, key, strict=False))


class Solver(Protocol):
    """A started solver, as a context manager; leaving it ends the solver."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """Solve an instance within a time limit in wall seconds; the answer has at least ``status``."""
        ...


def answered(
    model: str,
    problems: Iterable[tuple[str, int, Instance]],
    solvers: Mapping[str, Callable[[], Solver]],
    time_limit: float,
    columns: Sequence[str],
    done: Container[tuple[str, ...]],
    finish: Callable[[Instance, dict[str, Any]], dict[str, Any]] = lambda _, answer: answer,
) -> Iterator[dict[str, Any] | None]:
    """Yield a row for each problem of a model and each solver; None for one that is done.

    Parameters
    ----------
    problems
        (kind of cost, applicant's row, instance) of each problem.
    solvers
        By name, a function that starts the solver. One process answers all problems; after an answer with
        status ``error``, when the process has ended, the next problem starts another.
    done
        (model, cost, applicant, solver) of the rows that are not to be computed.
    finish
        Returns the answer to an instance with what a benchmark adds to it.
    """
    with ExitStack() as stack:
        started: dict[str, Solver] = {}
        for cost, applicant, instance in problems:
            for name, start in solvers.items():
                key = model, cost, str(applicant), name
                if key in done:
                    yield None
                    continue
                if name not in started:
                    started[name] = stack.enter_context(start())
                answer = started[name].ask(instance, time_limit)
                if answer["status"] == "error":
                    del started[name]
                yield answer_row(finish(instance, answer), columns, key)


def _ended() -> dict[str, Any]:
    return {"status": "error", "message": "the process ended"}
