"""The compiled engine by itself, without the cases, directions and units of the back end ``bab``."""

from __future__ import annotations

from milp_recourse.compiled.engine import Closed, judged, searched
from milp_recourse.compiled.problem import alone, lower
from milp_recourse.instance import Instance
from milp_recourse.options import Options
from milp_recourse.result import Proposal


def solve_alone(instance: Instance, options: Options) -> Proposal:
    """The engine's proposal for an instance that it covers."""
    [[found]] = searched([instance], alone(lower(instance)), [options])
    return judged(found, options) if isinstance(found, Closed) else found
