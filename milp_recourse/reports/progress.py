"""A progress bar on stderr for what takes more than a second; silent when nobody watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

SECONDS_BEFORE_SHOWN = 1.0


@contextmanager
def progress_bar(label: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """Yields the function to call after each finished step."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(label, total=total, completed=done)
    timer = threading.Timer(SECONDS_BEFORE_SHOWN, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
