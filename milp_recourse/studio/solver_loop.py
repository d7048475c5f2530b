"""The loop of a process that solves for the studio: questions come in, answers go out, as pickles."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, BinaryIO

from milp_recourse.errors import RecourseError
from milp_recourse.problem.population import Population
from milp_recourse.studio.studio_tasks import TASKS, Stopped

MEMORY = 6 * 2**30
"""The most bytes of data that the process may have, where the system can hold it to that."""


def run() -> None:
    """Answer questions from stdin on what was stdout until the parent closes it or says ``None``."""
    said, heard = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
    os.dup2(2, 1)  # what a library prints is no answer
    _limit_memory()
    try:
        population: Population = pickle.loads(receive(heard))
    except EOFError:  # the studio has ended already
        return
    stop, asked = Event(), SimpleQueue[Any]()
    Thread(target=_listen, args=(heard, stop, asked), daemon=True).start()
    while (question := asked.get()) is not None:
        stop.clear()
        send(said, _answered(population, question, stop, said))


def _listen(heard: BinaryIO, stop: Event, asked: SimpleQueue[Any]) -> None:
    with suppress(EOFError):
        while True:
            message = pickle.loads(receive(heard))
            if message == "stop":
                stop.set()
            else:
                asked.put(message)
    stop.set()
    asked.put(None)
    os._exit(0)  # the parent has ended: a search in hand is for nobody


def _answered(population: Population, question: Any, stop: Event, said: BinaryIO) -> tuple[str, Any]:
    task, index, preferences, more = question

    def tell(kind: str, value: Any) -> bool:
        send(said, (kind, value))
        return not stop.is_set()

    try:
        instance = population[index]
        if preferences is not None:
            instance = replace(instance, preferences=preferences, reference=None)
        return "done", TASKS[task](instance, tell, **more)
    except Stopped:
        return "stopped", None
    except RecourseError as error:
        return "refused", error
    except MemoryError:
        return "failed", "the search needed more memory than it may have"
    except Exception as error:  # one question's fault ends neither the process nor the page
        return "failed", f"{type(error).__name__}: {error}"


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message: its length, then its pickle."""
    content = pickle.dumps(message)
    stream.write(len(content).to_bytes(8, "big") + content)
    stream.flush()


def receive(stream: BinaryIO) -> bytes:
    """The pickle of the next message.

    Raises
    ------
    EOFError
        There is none.
    """
    size = stream.read(8)
    content = stream.read(int.from_bytes(size, "big")) if len(size) == 8 else b""
    if len(size) < 8 or len(content) < int.from_bytes(size, "big"):
        raise EOFError
    return content


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
