"""The studio's side of a solving process: asks one question at a time, stops, kills and starts again."""

from __future__ import annotations

import asyncio
import pickle
import time
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from milp_recourse.errors import MachineFailed, RecourseError
from milp_recourse.problem.instance import Preferences
from milp_recourse.solvers.processes import python

PATIENCE = 3.0
"""Seconds in which a search that was told to stop has to end; then its process is killed."""

MOST_WAITING = 32
"""The most questions that wait for one process."""

LONGEST = 180.0
"""Seconds after which any question is given up."""


class Busy(Exception):
    """Too many questions wait."""


class Superseded(Exception):
    """Stopped before there was any answer."""


class Ended(MachineFailed):
    """The process ended before there was any answer."""


@dataclass
class Progress:
    """How far a question is. ``stop`` ends the search; ``pressed`` says that what is known is wanted."""

    begun: float = field(default_factory=time.monotonic)
    cost: float | None = None
    bound: float | None = None
    so_far: Any = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    pressed: bool = False

    @property
    def seconds(self) -> float:
        """Since the question was asked."""
        return time.monotonic() - self.begun


class SolverProcess:
    """One process that holds the population and answers questions about it, one after the other.

    Parameters
    ----------
    population
        Its pickle.
    """

    def __init__(self, population: bytes) -> None:
        self._population = population
        self._process: Process | None = None
        self._leaving: Process | None = None
        self._turn = asyncio.Lock()
        self.waiting, self._closed = 0, False

    @property
    def pid(self) -> int | None:
        """Of the process that runs, if one does."""
        return None if self._process is None else self._process.pid

    async def ask(
        self, progress: Progress, task: str, index: int, preferences: Preferences | None, **more: Any
    ) -> Any:
        """The answer to a question; where it is stopped, what is known by then.

        Raises
        ------
        Busy
            Too many questions wait.
        Superseded
            It was stopped before there was an answer.
        MachineFailed
            The process ended, or its search failed.
        RecourseError
            What the task raised.
        """
        if self.waiting >= MOST_WAITING:
            raise Busy
        self.waiting += 1
        turn = asyncio.ensure_future(self._turn.acquire())
        stopped = asyncio.ensure_future(progress.stop.wait())
        try:
            await asyncio.wait({turn, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if progress.stop.is_set():
                raise Superseded
            question = task, index, preferences, more
            try:
                return await self._one(progress, question)
            except Ended:  # perhaps before it was asked
                return await self._one(progress, question)
        finally:
            stopped.cancel()
            if turn.done() and not turn.cancelled():
                self._turn.release()
            turn.cancel()
            self.waiting -= 1

    async def _one(self, progress: Progress, question: Any) -> Any:
        process = await self._running()
        finished = False
        stopping = asyncio.ensure_future(progress.stop.wait())
        answering = asyncio.ensure_future(self._listen(process, progress, question))
        try:
            await asyncio.wait({answering, stopping}, timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self._send(process, "stop")
                await asyncio.wait({answering}, timeout=PATIENCE)
            finished = answering.done() and answering.exception() is None
        finally:
            stopping.cancel()
            if not finished:
                answering.cancel()
                await self.end()
        kind, value = answering.result() if finished else ("stopped", None)
        if kind == "done":
            return value
        if kind == "refused":
            assert isinstance(value, RecourseError)
            raise value
        if kind == "failed":
            raise MachineFailed(value)
        if progress.so_far is not None:
            return progress.so_far
        if progress.stop.is_set():
            raise Superseded
        raise Ended("the process that searched has ended; another one is there for the next question")

    async def _listen(self, process: Process, progress: Progress, question: Any) -> tuple[str, Any]:
        self._send(process, question)
        while True:
            kind, value = await self._receive(process)
            if kind == "bound":
                progress.cost, progress.bound = value
            elif kind == "so far":
                progress.so_far = value
            else:
                return kind, value

    @staticmethod
    async def _receive(process: Process) -> tuple[str, Any]:
        assert process.stdout is not None
        size = await process.stdout.readexactly(8)
        said: tuple[str, Any] = pickle.loads(await process.stdout.readexactly(int.from_bytes(size, "big")))
        return said

    def _send(self, process: Process, message: Any) -> None:
        assert process.stdin is not None
        content = message if isinstance(message, bytes) else pickle.dumps(message)
        with suppress(OSError, RuntimeError):
            process.stdin.write(len(content).to_bytes(8, "big") + content)

    async def _running(self) -> Process:
        if self._closed:  # a question that is asked again because its process was ended starts none
            raise Ended("the studio has ended")
        if self._process is None or self._process.returncode is not None:
            starting = asyncio.ensure_future(self._start())
            try:
                self._process = await asyncio.shield(starting)
            except asyncio.CancelledError:  # nobody else knows of the process
                self._process = await starting
                await self.end()
                raise
            if self._closed:
                await self.end()
                raise Ended("the studio has ended")
            self._send(self._process, self._population)
        return self._process

    @staticmethod
    async def _start() -> Process:
        command = python("from milp_recourse.studio.solver_loop import run; run()", "milp_recourse")
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C is the studio's alone
        )

    async def end(self, for_good: bool = False) -> None:
        """End the process; the next question starts another, unless this is ``for_good``."""
        self._closed |= for_good
        process, self._process = self._process, None
        if process is not None:
            self._leaving = process
            with suppress(ProcessLookupError):
                process.kill()
        if self._leaving is not None:  # perhaps killed by somebody else, who may be cancelled while waiting
            await self._leaving.wait()


class Solvers:
    """Several processes, started as they are needed, so that nobody waits for another's long search.

    Parameters
    ----------
    most
        The most processes.
    """

    def __init__(self, population: bytes, most: int) -> None:
        self.processes = [SolverProcess(population) for _ in range(most)]

    async def ask(self, progress: Progress, *question: Any, **more: Any) -> Any:
        """As :meth:`SolverProcess.ask`, of the process that has least to do; of these, one that runs."""
        first = min(self.processes, key=lambda one: (one.waiting, one.pid is None))
        return await first.ask(progress, *question, **more)

    async def end(self) -> None:
        """End all of them."""
        for process in self.processes:
            await process.end(for_good=True)
