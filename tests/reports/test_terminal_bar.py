"""The bar of long work: on a terminal, and nowhere else."""

import io
import sys

import pytest

from milp_recourse.reports import terminal_bar
from milp_recourse.reports.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "bar"), [(Terminal, True), (io.StringIO, False)])
def test_a_bar_is_for_a_terminal(stream, bar, monkeypatch):
    told = stream()
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(terminal_bar, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("people", 1, rate=True) as steps:
        steps.expect_more(2)
        for k in range(3):
            steps.advance()
            steps.say(f"person {k} was read")
    text = told.getvalue()
    assert ("3/3" in text) == bar and ("people" in text) == bar
    assert all(f"person {k} was read" in text for k in range(3))


def test_there_may_be_no_stderr(monkeypatch):
    """As in a process without a console."""
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("people", 1) as steps:
        steps.advance()
        steps.say("nobody reads this")
