"""Conditions with alternatives under a time limit, on a clock that only problems move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem import options as options_module
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Options
from milp_recourse.problem.scm import independent
from milp_recourse.solvers import cases
from tests.helpers.random_conditions import with_conditions


def with_alternatives() -> Instance:
    """Sixteen alternatives, each a row."""
    names = ("a", "b")
    network = ReluNetwork.from_layers([(np.eye(2), np.zeros(2)), (np.ones((1, 2)), [-1.5])])
    features = tuple(Feature(n, "continuous", True, (0.0, 1.0)) for n in names)
    cost = Cost.pure("l1", dict.fromkeys(names, 1.0))
    plain = Instance(
        features, independent(names), network, dict.fromkeys(names, 0.0), Preferences(names), cost
    )
    parts: list[dict[str, Any]] = [
        {"sum": {"a": 1.0, "b": -1.0 - k / 8}, "of": "counterfactual", "at_least": 0.1} for k in range(16)
    ]
    return with_conditions(plain, [{"any": parts}])


class Slow:
    """A back end that decides nothing, and takes all the time it is given, or a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.given: list[tuple[float, float | None]] = []

    def __call__(self, some: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        for k in range(len(some)):
            self.given.append((self.now, options.time_limit))
            self.now += 1.0 if options.time_limit is None else min(1.0, options.time_limit)
            yield k, Proposal({"a": 1.0, "b": 1.0}, 0.5, "rigorous", 1, "the time limit was reached")


@pytest.mark.parametrize("people", [1, 3])
def test_the_limit_is_each_applicants_own(people: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All problems of a round had the whole rest of the limit each, and of several applicants each was
    charged for the others: 3 s became 15, and somebody easy ended at the limit beside somebody hard."""
    slow = Slow()
    for module in (cases, options_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: slow.now))
    found = dict(cases.solve_cases([with_alternatives()] * people, Options(5.5), slow))
    assert len(found) == people
    assert all(one.seconds == pytest.approx(5.5) for one in found.values())
    assert slow.now == pytest.approx(5.5 * people)
    assert all(one.message == "the time limit was reached" for one in found.values())
    assert all(one.lower_bound == 0.5 for one in found.values())
    assert len(slow.given) == 6 * people
