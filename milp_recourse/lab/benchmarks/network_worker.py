"""One solver of networks in a process: ``python -m milp_recourse.lab.benchmarks.network_worker SOLVER``.

The peers get the whole program as one model, with big-M bounds from the stated intervals alone, one thread
and a relative gap of 1e-6; building it counts, importing the solver does not. See
:mod:`milp_recourse.lab.benchmarks.tree_worker` for what goes in and out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from milp_recourse.instance import Acceptance, Instance
from milp_recourse.judge import judge
from milp_recourse.lab.benchmarks.peers import PEERS, Solve, raw_action, whole_program
from milp_recourse.lab.benchmarks.timed import Answer, Events, clocked
from milp_recourse.lab.benchmarks.tree_worker import answer_all, ours

TOLERANCE = 1e-5
"""Logit; ten times by how much the peers may miss a row, as they come."""


def peer(solve: Solve, instance: Instance, time_limit: float) -> Answer:
    """A peer's answer; its action as it is, whole where it must be."""

    def solved(events: Events) -> Answer:
        mip = whole_program(instance)
        if mip is None:
            return {"status": "infeasible"}
        found = solve(mip, time_limit, events)
        values = found.pop("values", None)
        return found | {"action": None if values is None else raw_action(instance, mip, values)}

    answer = clocked(instance, solved)
    near = replace(instance, accept=Acceptance(instance.accept.threshold - TOLERANCE))
    action = answer["action"]
    return answer | {"nearly": None if action is None else judge(near, action).feasible}


def ready(solver: str) -> Callable[[Instance, float], Answer]:
    """What answers, all that is loaded once being loaded."""
    if solver in PEERS:
        solve, module = PEERS[solver]
        __import__(module)
        return partial(peer, solve)
    if solver == "bab":
        from milp_recourse.certificates.engine_proofs import ready as compile_proofs
        from milp_recourse.compiled.propose import ready as compile_search

        compile_search()
        compile_proofs()
    return partial(ours, solver, False)


if __name__ == "__main__":
    answer_all(ready)
