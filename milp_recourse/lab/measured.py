"""Processor seconds: of anything, and of results without those of loading the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import solve

Made = TypeVar("Made")


def with_seconds(make: Callable[[], Made]) -> tuple[Made, float]:
    """What a function returns, and the processor seconds that it takes in this process."""
    start = time.process_time()
    made = make()
    return made, time.process_time() - start


@cache
def load_engine() -> None:
    """Load the compiled search into this process: half a second, or half a minute where no cache has it.

    It is called before a clock is started, so that the first applicant does not pay for it.
    """
    solve(read_instance(instances_path() / "loan" / "loan_001.json"))


def measured(solved: Iterable[Result]) -> list[tuple[Result, float]]:
    """The results, each with its share of the processor seconds that all of them take in this process.

    A result's share is that of its wall time.
    """
    load_engine()
    results, spent = with_seconds(lambda: list(solved))
    busy = spent / max(1e-9, sum(result.seconds for result in results))
    return [(result, busy * result.seconds) for result in results]
