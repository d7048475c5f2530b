"""Moving an action that fails by a hair back inside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from milp_recourse.bounds.tape import Tape
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance
from milp_recourse.program import equilibrate, lower
from milp_recourse.search.local import descend, feasible


def repair(instance: Instance, action: Mapping[str, float]) -> dict[str, float] | None:
    """A feasible action (in float arithmetic) in the same linear region, or None.

    Solver tolerances leave an action outside by 1e-9 or so; the interior-point solution of the
    same region is inside by construction and costs the same to about 1e-9.
    """
    if not isinstance(instance.classifier, ReluNetwork) or not action:
        return None
    program = equilibrate(lower(instance)).fix(frozenset(action))
    tape = Tape(program)
    start = np.array(program.values(action))
    found = descend(tape, np.clip(start, tape.lower, tape.upper), hops=3)
    if found is None or not feasible(tape, found[None])[0]:
        return None
    return program.decode(found)
