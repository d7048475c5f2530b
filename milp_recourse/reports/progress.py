"""A progress bar on stderr for what takes more than a second; silent when nobody watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

SECONDS_BEFORE_SHOWN = 1.0


@dataclass(frozen=True)
class Steps:
    """A bar to move on."""

    bar: Progress
    task: TaskID

    def advance(self, label: str | None = None) -> None:
        """One step is finished; ``label``, if given, says which."""
        self.bar.update(self.task, advance=1, description=label)

    def expect(self, total: int) -> None:
        """So many steps in all, where that was not known at first."""
        self.bar.update(self.task, total=total)

    def expect_more(self, steps: int) -> None:
        """So many steps more than were expected so far."""
        self.expect(int(self.bar.tasks[self.task].total or 0) + steps)


class RateColumn(ProgressColumn):
    """Steps per second since the start."""

    def render(self, task: Task) -> Text:
        """As ``123/s``."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g}/s")


@contextmanager
def progress_bar(label: str, total: int, done: int = 0, rate: bool = False) -> Iterator[Steps]:
    """Yields what to call after each finished step; ``rate`` shows steps per second and the time left."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *((RateColumn(), TimeRemainingColumn()) if rate else ()),
        console=console,
        speed_estimate_period=600,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(label, total=total, completed=done)
    timer = threading.Timer(SECONDS_BEFORE_SHOWN, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield Steps(bar, task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
