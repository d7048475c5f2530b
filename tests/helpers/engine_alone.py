"""The compiled engine by itself, without the cases, directions and units of the back end ``bab``."""

from __future__ import annotations

from milp_recourse.engine.networks.engine import Closed, judged, searched
from milp_recourse.engine.networks.problem_arrays import alone, lower
from milp_recourse.judge import judge
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Options


def solve_alone(instance: Instance, options: Options) -> Proposal:
    """The engine's proposal for an instance that it covers."""
    [[found]] = searched([instance], alone(lower(instance)), [options])
    if not isinstance(found, Closed):
        return found
    return judged(found, None if found.action is None else judge(instance, found.action), 1.0, options)
