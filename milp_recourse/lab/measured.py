"""Processor seconds of results that are solved together."""

from __future__ import annotations

import time
from collections.abc import Iterable

from milp_recourse.result import Result


def measured(solved: Iterable[Result]) -> list[tuple[Result, float]]:
    """The results, each with its share of the processor seconds that all of them take in this process.

    A result's share is that of its wall time.
    """
    start = time.process_time()
    results = list(solved)
    busy = (time.process_time() - start) / max(1e-9, sum(result.seconds for result in results))
    return [(result, busy * result.seconds) for result in results]
