"""The bar of long work: on a terminal, and nowhere else."""

import io
import sys
import time
from pathlib import Path

import pytest

from milp_recourse.cli.shared import at_work
from milp_recourse.engine.smallest_instance import smallest
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


@pytest.mark.parametrize(("stream", "bar"), [(Terminal, True), (io.StringIO, False)])
def test_one_problem_has_its_name_on_a_terminal(stream, bar, monkeypatch):
    told, problem = stream(), smallest()
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(terminal_bar, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with at_work(problem, Path("loan_007.json")):
        time.sleep(0.2)
    assert ("loan_007.json" in told.getvalue()) == bar


def test_there_may_be_no_stderr(monkeypatch):
    """As in a process without a console."""
    monkeypatch.setattr(sys, "stderr", None)
    with at_work(smallest(), Path("loan_007.json")):
        pass
    with progress_bar("people", 1) as steps:
        steps.advance()
        steps.say("nobody reads this")
