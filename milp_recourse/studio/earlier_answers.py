"""What an earlier answer says about narrower limits, without another search."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import replace

import numpy as np

from milp_recourse.judge import conclude
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.result import Result, Status

MOST = 32
"""Answers that are remembered."""


class EarlierAnswers:
    """The last proven answers, about anybody.

    Within limits that allow nothing that earlier ones did not, nothing is cheaper than before. So where the
    earlier cheapest action is still allowed, it is the cheapest, and where there was none, there is none.
    """

    def __init__(self) -> None:
        self._known: deque[tuple[Instance, Result]] = deque(maxlen=MOST)

    def keep(self, instance: Instance, result: Result) -> None:
        """Remember a result, if it is proven."""
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE):
            self._known.append((instance, result))

    def about(self, instance: Instance) -> Result | None:
        """The result within these limits, judged anew; None where earlier ones do not settle it."""
        start, own = time.perf_counter(), instance.preferences
        for before, result in reversed(self._known):
            if not same_person(instance, before) or not narrower(own, before.preferences):
                continue
            action = None if result.action is None else instance.numbers(result.action)
            bound = math.inf if action is None else result.lower_bound
            proposal = Proposal(action, bound, result.proof, rests_on=result.rests_on)
            found = conclude(instance, proposal, result.backend, time.perf_counter() - start)
            if found.status is result.status:
                return found
        return None


def same_person(instance: Instance, before: Instance) -> bool:
    """Whether two problems are of one population and about the same values, with the same margin."""
    same = np.array_equal(instance.factual_row, before.factual_row, equal_nan=True)
    same &= instance.classifier is before.classifier and instance.scm is before.scm
    return same and instance.accept == before.accept and instance.cost == before.cost


def narrower(own: Preferences, before: Preferences) -> bool:
    """Whether limits are earlier ones, or these with more locks, smaller ranges or further conditions."""
    same = replace(own, actionable=before.actionable, ranges=before.ranges, conditions=before.conditions)
    return (
        same == before
        and set(own.actionable) <= set(before.actionable)
        and own.conditions[: len(before.conditions)] == before.conditions
        and all(
            name in own.ranges and low <= own.ranges[name][0] and own.ranges[name][1] <= high
            for name, (low, high) in before.ranges.items()
        )
    )
