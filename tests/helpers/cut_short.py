"""Running a command in a child process that is killed at a chosen moment of its writing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"}


def killed(work: Callable[[], int], folder: Path, at: int | None) -> int | None:
    """Fork, and kill -9 the child just before its change number ``at`` (from 1 on) of what is in a folder.

    A change is a file opened for writing, or one made, renamed or removed, or a folder.

    Returns
    -------
    int or None
        How many changes the child made that ended by itself, with exit code 0; None if it was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        made = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal made
            opened = (
                event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            )
            if not (opened or event in CHANGES) or str(folder) not in str(arguments[0]):
                return
            made += 1
            if made == at:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 99
        try:
            sys.addaudithook(hook)
            code = work()
            os.write(writing, str(made).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = stream.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) == 0
    return int(said)
