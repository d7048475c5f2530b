"""The compiled engine by itself, without the cases, directions and units of the back end ``bab``."""

from __future__ import annotations

from milp_recourse.engine.networks.engine import Closed, judged, searched
from milp_recourse.engine.networks.problem_arrays import alone, lower
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Options
from milp_recourse.problem.result import Proposal


def solve_alone(instance: Instance, options: Options) -> Proposal:
    """The engine's proposal for an instance that it covers."""
    [[found]] = searched([instance], alone(lower(instance)), [options])
    return judged(found, options) if isinstance(found, Closed) else found
