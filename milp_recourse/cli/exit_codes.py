"""Exit codes of the command line."""

from __future__ import annotations

from collections.abc import Iterable

from milp_recourse.problem.result import Result, Status

DONE, MACHINE_FAILED, BAD_INPUT, LIMIT, FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Interrupted(Exception):
    """Raised on Ctrl-C, with a message about the results that were kept."""


def limit_or_done(results: Iterable[Result | None]) -> int:
    """The code 3 if one of the results is a limit, else 0."""
    return LIMIT if any(r is not None and r.status is Status.LIMIT for r in results) else DONE
