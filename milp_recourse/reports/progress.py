"""What long work says on stderr: a progress bar after a second, and only if stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Steps(Protocol):
    """What counts the steps of some work."""

    def advance(self, label: str | None = None) -> None:
        """Count one finished step; a ``label`` replaces the bar's."""

    def say(self, text: str) -> None:
        """Print a line, above the bar if there is one."""

    def expect(self, total: int) -> None:
        """Set the number of steps, if it was not known at first."""

    def expect_more(self, steps: int) -> None:
        """Raise the number of steps by ``steps``."""


class Unseen:
    """:class:`Steps` that nobody watches."""

    def advance(self, label: str | None = None) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr)

    def expect(self, total: int) -> None:
        """Nothing."""

    def expect_more(self, steps: int) -> None:
        """Nothing."""


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
    if sys.stderr is None or not sys.stderr.isatty():
        yield Unseen()
        return
    from milp_recourse.reports.terminal_bar import shown

    with shown(label, total, done, rate) as bar:
        yield bar
