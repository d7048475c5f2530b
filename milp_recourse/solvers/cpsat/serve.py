"""What the process of CP-SAT runs: answers to instances, until the pipe is closed."""

from __future__ import annotations

import os
import pickle
import sys
import time
from dataclasses import replace
from typing import Any

from milp_recourse.engine.forests.axes import separable
from milp_recourse.engine.networks.propose import ready
from milp_recourse.solvers.cpsat.backend import CpsatBackend
from milp_recourse.solvers.cpsat.process import Begun, Found


def serve() -> None:
    """The child's loop: answer until the parent closes the pipe."""
    from ortools.sat.python import cp_model  # noqa: F401  # before anybody's time limit starts

    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a solver prints must not mix with answers

    def say(something: Any) -> None:
        pickle.dump(something, answers)
        answers.flush()

    backend = CpsatBackend(in_process=True)
    while True:
        try:
            instance, options = pickle.load(questions)
        except (EOFError, KeyboardInterrupt):
            return
        answer: Any
        try:
            _ = instance.classifier.every_leaf  # before anybody's time limit starts, as what is compiled
            if not separable(instance):
                ready()
            say(Begun())
            start = time.perf_counter()
            answer = backend.solve(instance, replace(options, found=lambda action: say(Found(action))))
            answer = replace(answer, seconds=time.perf_counter() - start)
        except Exception as problem:
            answer = problem
        say(answer)
