"""A progress bar on a terminal."""

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
class Bar:
    """A progress bar, and the functions that move it: :class:`~milp_recourse.reports.progress.Steps`."""

    bar: Progress
    task: TaskID

    def advance(self, label: str | None = None) -> None:
        """Count one finished step; a ``label`` replaces the bar's."""
        self.bar.update(self.task, advance=1, description=label)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.bar.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def expect(self, total: int) -> None:
        """Set the number of steps."""
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
def shown(label: str, total: int, done: int, rate: bool) -> Iterator[Bar]:
    """The bar of :func:`~milp_recourse.reports.progress.progress_bar`."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *((RateColumn(), TimeRemainingColumn()) if rate else ()),
        console=Console(stderr=True),
        speed_estimate_period=600,
        transient=True,
    )
    task = bar.add_task(label, total=total, completed=done)
    timer = threading.Timer(SECONDS_BEFORE_SHOWN, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield Bar(bar, task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
