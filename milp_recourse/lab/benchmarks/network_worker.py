"""One solver of networks in a process: ``python -m milp_recourse.lab.benchmarks.network_worker SOLVER``.

The peers get the whole program as one model, with big-M bounds from the stated intervals alone, one thread
and a relative gap of 1e-6; building it counts, importing the solver does not. See
:mod:`milp_recourse.lab.benchmarks.tree_worker` for what goes in and out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from milp_recourse.encodings import MixedInteger
from milp_recourse.instance import Acceptance, Instance
from milp_recourse.judge import judge
from milp_recourse.lab.benchmarks.peers import (
    MIP_GAP,
    gurobi_program,
    raw_action,
    scip_program,
    whole_program,
)
from milp_recourse.lab.benchmarks.tree_worker import Answer, Events, answer_all, judged, ours

TOLERANCE = 1e-5
"""Logit; ten times by how much the peers may miss a row, as they come."""

Solve = Callable[[MixedInteger, float, Events], Answer]
"""Model, seconds and events to status, claimed cost, bound, nodes and the values of the columns."""


def peer(solve: Solve, instance: Instance, time_limit: float) -> Answer:
    """A peer's answer; its action as it is, whole where it must be."""
    events, wall = Events(), time.perf_counter()
    mip = whole_program(instance)
    found = {"status": "infeasible"} if mip is None else solve(mip, time_limit, events)
    spent, values, action = time.process_time() - events.start, found.pop("values", None), None
    if values is not None and mip is not None:
        action = raw_action(instance, mip, np.asarray(values))
    times = {"processor_seconds": spent, "seconds": time.perf_counter() - wall}
    near = replace(instance, accept=Acceptance(instance.accept.threshold - TOLERANCE))
    nearly = {"nearly": None if action is None else judge(near, action).feasible}
    return found | times | {"events": events.listed()} | judged(instance, action) | nearly


def gurobi(mip: MixedInteger, time_limit: float, events: Events) -> Answer:
    """Gurobi, as it comes."""
    import gurobipy as gp

    def watch(model: Any, where: int) -> None:
        if where == gp.GRB.Callback.MIP:
            best = model.cbGet(gp.GRB.Callback.MIP_OBJBST)
            bound = model.cbGet(gp.GRB.Callback.MIP_OBJBND)
            events(best if best < gp.GRB.INFINITY else math.inf, bound if abs(bound) < 1e100 else 0.0)

    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads, model.Params.TimeLimit = 1, time_limit
        model.Params.MIPGap, model.Params.MIPGapAbs = MIP_GAP, 0.0
        x, cost = gurobi_program(gp, model, mip)
        model.setObjective(cost)
        try:
            model.optimize(watch)
        except gp.GurobiError as problem:
            if problem.errno == gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
                return {"status": "refused", "message": "larger than the licence allows"}
            raise
        found: Answer = {"nodes": int(model.NodeCount)}
        if model.Status == gp.GRB.INFEASIBLE:
            return found | {"status": "infeasible"}
        found |= {"status": "optimal" if model.Status == gp.GRB.OPTIMAL else "limit"}
        found |= {"lower_bound": model.ObjBound if abs(model.ObjBound) < 1e100 else 0.0}
        if model.SolCount:
            found |= {"claimed_cost": model.ObjVal, "values": [v.X for v in x]}
        return found


def highs(mip: MixedInteger, time_limit: float, events: Events) -> Answer:
    """HiGHS, as it comes; linear costs only."""
    import highspy

    if mip.squares:
        return {"status": "refused", "message": "HiGHS has no mixed-integer quadratic solver"}
    model = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("time_limit", time_limit),
        ("mip_rel_gap", MIP_GAP),
        ("mip_abs_gap", 0.0),
    ):
        model.setOptionValue(option, value)
    for k in range(len(mip.names)):
        nothing = np.empty(0, np.int32), np.empty(0)
        model.addCol(mip.linear.get(k, 0.0), mip.lower[k], mip.upper[k], 0, *nothing)
        if mip.integer[k]:
            model.changeColIntegrality(k, highspy.HighsVarType.kInteger)
    for row in mip.rows:
        index = np.array(list(row.coefficients), dtype=np.int32)
        factors = np.array(list(row.coefficients.values()), dtype=np.float64)
        model.addRow(row.lower, row.upper, len(index), index, factors)
    model.changeObjectiveOffset(mip.offset)
    model.run()
    status, info = model.getModelStatus(), model.getInfo()
    found: Answer = {"nodes": int(info.mip_node_count)}
    if status == highspy.HighsModelStatus.kInfeasible:
        return found | {"status": "infeasible"}
    found |= {"status": "optimal" if status == highspy.HighsModelStatus.kOptimal else "limit"}
    found |= {"lower_bound": info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else 0.0}
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        cost = float(info.objective_function_value)
        events(cost, found["lower_bound"])
        found |= {"claimed_cost": cost, "values": list(model.getSolution().col_value)}
    return found


def scip(mip: MixedInteger, time_limit: float, events: Events) -> Answer:
    """SCIP, as it comes."""
    from pyscipopt import quicksum

    model, x = scip_program(mip, time_limit)
    cost: Any = quicksum(c * x[k] for k, c in mip.linear.items()) + mip.offset
    if mip.squares:
        theta = model.addVar(lb=0.0, ub=None)
        model.addCons(quicksum(c * x[k] * x[k] for k, c in mip.squares.items()) <= theta)
        cost = cost + theta
    model.setObjective(cost)
    model.optimize()
    said = model.getStatus()
    found: Answer = {"nodes": int(model.getNNodes())}
    if said == "infeasible":
        return found | {"status": "infeasible"}
    found |= {"status": "optimal" if said in ("optimal", "gaplimit") else "limit"}
    found |= {"lower_bound": max(0.0, float(model.getDualbound()))}
    if model.getNSols():
        events(model.getObjVal(), found["lower_bound"])
        found |= {"claimed_cost": model.getObjVal(), "values": [model.getVal(v) for v in x]}
    return found


PEERS: dict[str, tuple[Solve, str]] = {
    "gurobi": (gurobi, "gurobipy"),
    "highs-milp": (highs, "highspy"),
    "scip": (scip, "pyscipopt"),
}
"""Name -> (what solves, the module it needs)."""


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
