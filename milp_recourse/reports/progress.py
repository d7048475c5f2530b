"""A progress bar on stderr, shown after a second, and only if stderr is a terminal."""

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
    """A progress bar, and the functions that move it."""

    bar: Progress
    task: TaskID

    def advance(self, label: str | None = None) -> None:
        """Count one finished step; a ``label`` replaces the bar's."""
        self.bar.update(self.task, advance=1, description=label)

    def say(self, text: str) -> None:
        """Print a line above the bar, also where there is none because stderr is no terminal."""
        self.bar.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def expect(self, total: int) -> None:
        """Set the number of steps, if it was not known at first."""
        self.bar.update(self.task, total=total)

    def expect_more(self, steps: int) -> None:
        """Raise the number of steps by ``steps``."""
        self.expect(int(self.bar.tasks[self.task].total or 0) + steps)


class RateColumn(ProgressColumn):
    """Steps per second since the start."""

    def render(self, task: Task) -> Text:
        """The rate, in the form ``123/s``."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g}/s")


@contextmanager
def progress_bar(label: str, total: int, done: int = 0, rate: bool = False) -> Iterator[Steps]:
    """Show a bar while the context lasts; yields the object to call after each finished step.

    Parameters
    ----------
    done
        Steps that were finished before.
    rate
        Whether to show steps per second and the time left.
    """
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
