"""A solver in a process of its own, asked one instance at a time."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal, Protocol, Self

from milp_recourse.instance import Instance


class Child:
    """A process that answers every question on its standard input by a line of JSON.

    Parameters
    ----------
    command
        What is run.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what was not read any more
                    pipe.close()

    def send(self, question: bytes) -> dict[str, Any]:
        """The answer to a question; of status ``error`` where the process has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(question)
            self.process.stdin.flush()
        except BrokenPipeError:
            return _ended()
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """The next line that the process writes; of status ``error`` where it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else _ended()
        return answer

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """The answer to a pickled (instance, time limit)."""
        return self.send(pickle.dumps((instance, time_limit)))


def of_solver(solver: str, models: Literal["networks", "trees"]) -> Child:
    """The process of a solver, as :mod:`milp_recourse.lab.benchmarks.solver_worker` answers."""
    return Child([sys.executable, "-m", "milp_recourse.lab.benchmarks.solver_worker", solver, models])


def answer_row(answer: Mapping[str, Any], columns: Sequence[str], key: Sequence[str]) -> dict[str, Any]:
    """A table's row of an answer: the key in the first columns, and when the first action was found."""
    events = answer.get("events") or []
    first = next((seconds for seconds, cost, _ in events if cost is not None), None)
    known = {**answer, "events": json.dumps(events), "first_seconds": first}
    return {column: known.get(column) for column in columns} | dict(zip(columns, key, strict=False))


class Solver(Protocol):
    """What is asked one instance at a time, until it is left."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """The answer to an instance."""
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
    """A row for every problem of a model and every solver; None for one that is done.

    Parameters
    ----------
    problems
        Cost's kind, applicant and instance.
    solvers
        What starts each. It answers all problems, but after an answer of status ``error`` another takes its
        place: a process that has ended answers nothing else.
    done
        Model, cost, applicant and solver of what is not to be asked.
    finish
        What is added to an answer.
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
