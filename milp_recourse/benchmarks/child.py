"""A solver in a process of its own, asked one instance at a time."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

from milp_recourse.instance import Instance


class Child:
    """A module of this package that answers pickled (instance, time limit) pairs by JSON lines.

    Parameters
    ----------
    module
        Run as ``python -m module argument``.
    """

    def __init__(self, module: str, argument: str) -> None:
        command = [sys.executable, "-m", module, argument]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """The answer; of status ``error`` where the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            pickle.dump((instance, time_limit), self.process.stdin)
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = b""
        answer: dict[str, Any] = json.loads(line) if line else {}
        return answer or {"status": "error", "message": "the process ended"}
