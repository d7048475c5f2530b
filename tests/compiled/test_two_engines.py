"""Neither engine's lower bound is above the cost of an action that the other found.

Problems that once gave the compiled engine a false bound are among them: 1001 and 73, where a lever of whole
values was cut by the least cost between whole values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from generators import Style, random_instance
from test_other_units import drawn

from milp_recourse.backends.bab import BabBackend
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.compiled.door import solve
from milp_recourse.compiled.problem import why_not
from milp_recourse.instance import Instance
from milp_recourse.judge import already_good, judge

MAKERS: dict[str, Callable[[int], Instance]] = {
    "other units": drawn,
    "small": random_instance,
    "six levers": lambda seed: random_instance(seed, Style(levers=6, depth=3, width=8)),
}
SECONDS = Options(time_limit=5)


def cost_of(instance: Instance, proposal: Proposal) -> float:
    """The exact cost of a proposed action; inf without a feasible one."""
    verdict = None if proposal.action is None else judge(instance, proposal.action)
    return float(verdict.cost) if verdict is not None and verdict.feasible else math.inf


@pytest.mark.parametrize("maker", MAKERS)
def test_no_bound_above_the_others_cost(maker: str) -> None:
    compared = 0
    for seed in (*range(40), 73, 1001):
        instance = MAKERS[maker](seed)
        if not instance.levers or already_good(instance) or why_not(instance) is not None:
            continue
        compared += 1
        new, old = solve(instance, SECONDS), dict(BabBackend()._solve_networks([instance], SECONDS))[0]
        for one, other in ((new, old), (old, new)):
            assert one.lower_bound is not None
            assert one.lower_bound <= cost_of(instance, other) * (1 + 1e-12), (maker, seed)
    assert compared >= 10
