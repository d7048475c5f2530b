"""Exit codes of the command line, and what several commands need to choose one."""

from __future__ import annotations

from collections.abc import Iterable

from milp_recourse.result import Result, Status

DONE, MACHINE_FAILED, BAD_INPUT, LIMIT, FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Interrupted(Exception):
    """Ctrl-C, and what was kept."""


def limit_or_done(results: Iterable[Result | None]) -> int:
    """3 where one of the results stopped at a limit, else 0."""
    return LIMIT if any(r is not None and r.status is Status.LIMIT for r in results) else DONE
