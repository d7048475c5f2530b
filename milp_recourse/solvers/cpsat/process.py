"""CP-SAT in a process of its own.

OR-Tools and highspy each bring a libhighs of the same name, and the dynamic linker takes whichever came first
for both, so the one that is imported second fails. So OR-Tools is only ever imported in a child process. It
is started for the first instance and kept; instances and answers are pickled through its pipes. A child that
does not keep the time limit is ended: CP-SAT does not look at the clock in all of its presolve."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import GRACE, LATE, Clock
from milp_recourse.solvers.processes import python
from milp_recourse.solvers.protocol import Options, Proposal


class Begun(NamedTuple):
    """The child has imported and compiled what it needs, and starts to search."""


class Found(NamedTuple):
    """An action that the child has judged to be feasible, the cheapest so far."""

    action: Mapping[str, float]


class Ended(NamedTuple):
    """The child has ended."""


class _Child:
    """A running child, and what it says."""

    def __init__(self) -> None:
        code = "from milp_recourse.solvers.cpsat.serve import serve; serve()"
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            python(code, "milp_recourse"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.said: SimpleQueue[Any] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            try:
                while True:
                    self.said.put(pickle.load(stream))
            except Exception:  # what a pickle that was cut off raises
                self.said.put(Ended())

    def ask(self, instance: Instance, options: Options) -> Any:
        """The child's answer: a proposal, what its back end raised, or that it has ended."""
        assert self.process.stdin is not None
        try:
            pickle.dump((instance, options), self.process.stdin)
            self.process.stdin.flush()
        except OSError:
            return Ended()
        begun, late, action = time.perf_counter(), Clock(), None
        while True:
            try:
                said = self.said.get(timeout=late.left(0.0))
            except Empty:
                self.end()
                return Proposal(action, 0.0, "solver", message=LATE, seconds=time.perf_counter() - begun)
            if isinstance(said, Begun):
                begun, limit = time.perf_counter(), options.time_limit
                late = Clock.start(None if limit is None else limit + max(GRACE, 0.1 * limit))
            elif isinstance(said, Found):
                action = said.action
            else:
                return said

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        if self.process.stdin is not None:
            with suppress(OSError):  # closing writes what it has not read
                self.process.stdin.close()
        self.process.wait()


_children: dict[int, _Child] = {}  # by the parent's id: a forked worker starts its own


def ask(instance: Instance, options: Options) -> Proposal:
    """The child's proposal. If the child dies, or does not keep the time limit, the proposal is a limit, and
    the next call starts another.

    Raises
    ------
    Exception
        What the child's back end raised.
    """
    child = _children.get(os.getpid())
    if child is None or child.process.poll() is not None:
        child = _children[os.getpid()] = _Child()
    try:
        answer = child.ask(instance, options)
    except BaseException:
        _stop()
        raise
    if isinstance(answer, Ended):
        _stop()
        return Proposal(None, 0.0, "solver", message="the CP-SAT process ended")
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, Proposal)
    return answer


def _stop() -> None:
    """End this process's child, if there is one."""
    child = _children.pop(os.getpid(), None)
    if child is not None:
        child.end()


atexit.register(_stop)
