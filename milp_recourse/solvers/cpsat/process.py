"""CP-SAT in a process of its own.

OR-Tools and highspy each bring a libhighs of the same name, and the dynamic linker takes whichever came first
for both, so the one that is imported second fails. So OR-Tools is only ever imported in a child process. It
is started for the first instance and kept; instances and proposals are pickled through its pipes."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from typing import Any

from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.protocol import Options, Proposal

_children: dict[int, subprocess.Popen[bytes]] = {}  # by the parent's id: a forked worker starts its own


def ask(instance: Instance, options: Options) -> Proposal:
    """The child's proposal. If the child dies, the proposal is a limit, and the next call starts another.

    Raises
    ------
    Exception
        What the child's back end raised.
    """
    try:
        child = _child()
        assert child.stdin is not None and child.stdout is not None
        pickle.dump((instance, options), child.stdin)
        child.stdin.flush()
        answer = pickle.load(child.stdout)
    except BaseException as problem:
        _stop()
        if not isinstance(problem, OSError | EOFError | pickle.UnpicklingError):
            raise
        return Proposal(None, 0.0, "solver", message="the CP-SAT process ended")
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, Proposal)
    return answer


def _child() -> subprocess.Popen[bytes]:
    """This process's running child; it is started if there is none."""
    child = _children.get(os.getpid())
    if child is None or child.poll() is not None:
        code = "from milp_recourse.solvers.cpsat.process import serve; serve()"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        _children[os.getpid()] = child
    return child


def _stop() -> None:
    """End this process's child, if there is one."""
    child = _children.pop(os.getpid(), None)
    if child is not None:
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        child.wait()


atexit.register(_stop)


def serve() -> None:
    """The child's loop: answer until the parent closes the pipe."""
    from milp_recourse.solvers.cpsat.backend import CpsatBackend

    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a solver prints must not mix with answers
    backend = CpsatBackend(in_process=True)
    while True:
        try:
            instance, options = pickle.load(questions)
        except (EOFError, KeyboardInterrupt):
            return
        answer: Any
        try:
            answer = backend.solve(instance, options)
        except Exception as problem:
            answer = problem
        pickle.dump(answer, answers)
        answers.flush()
