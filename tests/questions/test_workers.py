"""Parts that are worked on by other processes."""

from __future__ import annotations

import os
import time

import pytest

from milp_recourse.errors import MachineFailed
from milp_recourse.questions.workers import Workers

WAITS = [0.5, 0.0, 0.2, 0.0]


def late(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@pytest.mark.parametrize("jobs", [1, 2])
def test_answers_come_in_the_order_of_the_parts_if_asked_for(jobs):
    assert list(Workers(jobs).map(late, WAITS, in_order=True)) == WAITS
    assert sorted(Workers(jobs).map(late, WAITS)) == sorted(WAITS)


def test_a_process_that_dies_is_the_machines_failure():
    with pytest.raises(MachineFailed, match="a process of --jobs died"):
        list(Workers(2).map(os._exit, [9, 9], in_order=True))
