"""Other solvers (*peers*) on the same program, with one thread and their default settings.

These are Gurobi and SCIP for mixed-integer quadratic programs, and HiGHS for linear costs.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from milp_recourse.judge import judge
from milp_recourse.lab.benchmarks.timed import Answer
from milp_recourse.lab.known import known, parts
from milp_recourse.lab.measured import measured
from milp_recourse.problem.instance import Instance
from milp_recourse.program import lower
from milp_recourse.questions.solve import solve, solve_together
from milp_recourse.solvers.rows import MixedInteger, encode
from milp_recourse.solvers.rows.bounds import hull
from milp_recourse.solvers.rows.mixed_integer import Form, QuadraticRow, combine

MIP_GAP = 1e-6
"""The relative gap at which peers stop."""

TOO_LARGE = "larger than the licence allows"
"""The message of an answer ``refused`` because of the program's size."""

COST_UNIT = 0.01
"""Peers minimise cost / COST_UNIT, so that their absolute gaps are small against typical costs."""


@dataclass(frozen=True)
class Outcome:
    """A solver's answer to one instance.

    Attributes
    ----------
    status
        As the solver states it: ``optimal``, ``infeasible`` or ``limit``; ``too large`` if its licence does
        not take the program, ``refused`` if it takes none of this kind.
    cost
        Of the action as the solver returns it (a peer's is not repaired); None without one.
    seconds, cpu_seconds
        Wall and processor time.
    nodes
        Nodes of the solver's search; None if it does not report them.
    exactly_feasible
        Whether the solver's action, unchanged, is exactly feasible; None without an action.
    """

    status: str
    cost: float | None
    seconds: float
    cpu_seconds: float
    nodes: int | None
    exactly_feasible: bool | None


Watch = Callable[[float, float], object]
"""Called with the best cost (infinity without one) and the bound whenever a solver reports them."""

Solve = Callable[[MixedInteger, float, Watch | None], Answer]
"""From a program, a limit in wall seconds and a watch to ``status``, ``claimed_cost``, ``lower_bound``,
``nodes`` and ``values`` (of the columns), as far as there are any."""


def gurobi(mip: MixedInteger, time_limit: float, watch: Watch | None = None) -> Answer:
    """Solve by Gurobi: default settings, but one thread, and a relative gap without an absolute one."""
    import gurobipy as gp

    def tell(model: Any, where: int) -> None:
        if watch is not None and where == gp.GRB.Callback.MIP:
            best = model.cbGet(gp.GRB.Callback.MIP_OBJBST)
            bound = model.cbGet(gp.GRB.Callback.MIP_OBJBND)
            watch(best if best < gp.GRB.INFINITY else math.inf, bound if abs(bound) < 1e100 else 0.0)

    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads, model.Params.TimeLimit = 1, time_limit
        model.Params.MIPGap, model.Params.MIPGapAbs = MIP_GAP, 0.0
        try:
            x = put_program(mip, model, gp.quicksum, model.addConstr)
            squares = gp.quicksum(c * x[k] * x[k] for k, c in mip.squares.items())
            linear = gp.quicksum(c * x[k] for k, c in mip.linear.items())
            model.setObjective(squares + linear + mip.offset)
            model.optimize(tell if watch is not None else None)
        except gp.GurobiError as problem:
            if problem.errno == gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
                return {"status": "refused", "message": TOO_LARGE}
            raise
        found: Answer = {"nodes": int(model.NodeCount)}
        if model.Status == gp.GRB.INFEASIBLE:
            return found | {"status": "infeasible"}
        found |= {"status": "optimal" if model.Status == gp.GRB.OPTIMAL else "limit"}
        found |= {"lower_bound": model.ObjBound if abs(model.ObjBound) < 1e100 else 0.0}
        if model.SolCount:
            found |= {"claimed_cost": model.ObjVal, "values": [v.X for v in x]}
        return found


def highs(mip: MixedInteger, time_limit: float, watch: Watch | None = None) -> Answer:
    """Solve by HiGHS: default settings, but one thread, and a relative gap without an absolute one.

    Programs with squared costs are refused.
    """
    import highspy

    from milp_recourse.solvers.highs.ensemble_milp import watched
    from milp_recourse.solvers.highs.highs_model import highs_lp
    from milp_recourse.solvers.highs.silent import silent_highs

    if mip.squares:
        return {"status": "refused", "message": "HiGHS has no mixed-integer quadratic solver"}
    model = silent_highs(threads=1, time_limit=time_limit, mip_rel_gap=MIP_GAP, mip_abs_gap=0.0)
    program = highs_lp(np.array(mip.lower), np.array(mip.upper), mip.rows, mip.integer)
    program.offset_ = mip.offset
    program.col_cost_ = np.array([mip.linear.get(k, 0.0) for k in range(len(mip.names))])
    model.passModel(program)
    if watch is not None:
        watched(model, watch)
    model.run()
    status, info = model.getModelStatus(), model.getInfo()
    found: Answer = {"nodes": int(info.mip_node_count)}
    if status == highspy.HighsModelStatus.kInfeasible:
        return found | {"status": "infeasible"}
    found |= {"status": "optimal" if status == highspy.HighsModelStatus.kOptimal else "limit"}
    found |= {"lower_bound": max(0.0, info.mip_dual_bound) if math.isfinite(info.mip_dual_bound) else 0.0}
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        cost = float(info.objective_function_value)
        if watch is not None:
            watch(cost, found["lower_bound"])
        found |= {"claimed_cost": cost, "values": list(model.getSolution().col_value)}
    return found


def scip(mip: MixedInteger, time_limit: float, watch: Watch | None = None) -> Answer:
    """Solve by SCIP: default settings, but for the gap."""
    from pyscipopt import Model, quicksum

    model = Model()
    model.hideOutput()
    model.setParam("limits/time", time_limit)
    model.setParam("limits/gap", MIP_GAP)
    x = put_program(mip, model, quicksum, model.addCons)
    cost: Any = quicksum(c * x[k] for k, c in mip.linear.items()) + mip.offset
    if mip.squares:
        theta = model.addVar(lb=0.0, ub=None)
        model.addCons(quicksum(c * x[k] * x[k] for k, c in mip.squares.items()) <= theta)
        cost = cost + theta
    model.setObjective(cost)
    model.optimize()
    status = model.getStatus()
    found: Answer = {"nodes": int(model.getNNodes())}
    if status == "infeasible":
        return found | {"status": "infeasible"}
    found |= {"status": "optimal" if status in ("optimal", "gaplimit") else "limit"}
    found |= {"lower_bound": max(0.0, float(model.getDualbound()))}
    if model.getNSols():
        if watch is not None:
            watch(model.getObjVal(), found["lower_bound"])
        found |= {"claimed_cost": model.getObjVal(), "values": [model.getVal(v) for v in x]}
    return found


PEERS: dict[str, tuple[Solve, str]] = {
    "gurobi": (gurobi, "gurobipy"),
    "highs-milp": (highs, "highspy"),
    "scip": (scip, "pyscipopt"),
}
"""By name, (the function that solves, the module that it needs)."""


def run_together(
    backend: str, instances: Sequence[Instance], time_limit: float, company: Sequence[Instance] = ()
) -> list[Outcome]:
    """Solve all instances together by a back end of this package; the time includes the judgement.

    Each instance's share of the processor time is that of its wall time.

    Parameters
    ----------
    company
        More instances, solved in the same batch but not part of the outcomes.
    """
    found = measured(solve_together([*instances, *company], backend=backend, time_limit=time_limit))
    return [
        Outcome(r.status.value, r.cost, r.seconds, cpu, r.nodes, None if r.action is None else True)
        for r, cpu in found[: len(instances)]
    ]


def run_peer(
    name: str, tightened: bool, instances: Sequence[Instance], time_limit: float, company: object = ()
) -> list[Outcome]:
    """Solve each problem as one program by a peer; its action is judged without any repair.

    Parameters
    ----------
    tightened
        Whether the boxes of the actions are first cut to what plausibility and the optimal cost allow. The
        cost is found by ``highs``; neither is timed. Otherwise bounds follow from the stated intervals.
    """
    solve_program, module = PEERS[name]
    import_module(module)
    return [_peer_outcome(solve_program, tightened, one, time_limit) for one in instances]


def _peer_outcome(solve_program: Solve, tightened: bool, instance: Instance, time_limit: float) -> Outcome:
    cutoff = math.inf
    if tightened:
        cost = solve(instance, backend="highs").cost
        cutoff = math.inf if cost is None else cost * (1 + 1e-6) + 1e-9
    mip = whole_program(instance, cutoff)
    if mip is None:
        return Outcome("infeasible", None, 0.0, 0.0, 0, None)
    linear, squares = ({k: c / COST_UNIT for k, c in part.items()} for part in (mip.linear, mip.squares))
    scaled = replace(mip, linear=linear, squares=squares, offset=mip.offset / COST_UNIT)
    wall, processor = time.perf_counter(), time.process_time()
    found = solve_program(scaled, time_limit, None)
    seconds = time.perf_counter() - wall, time.process_time() - processor
    status = "too large" if found.get("message") == TOO_LARGE else found["status"]
    if "values" not in found:
        return Outcome(status, None, *seconds, found.get("nodes"), None)
    action = raw_action(instance, mip, found["values"])
    cost = mip.objective(found["values"])
    return Outcome(status, cost, *seconds, found["nodes"], judge(instance, action).feasible)


Runner = Callable[[Sequence[Instance], float, Sequence[Instance]], list[Outcome]]
"""From instances, a limit in wall seconds for each, and ``company`` to the outcomes."""

RUNNERS: dict[str, tuple[Runner, str | None]] = {
    "bab": (partial(run_together, "bab"), None),
    "bab-single": (partial(run_together, "bab"), None),
    "highs": (partial(run_together, "highs"), None),
    "gurobi": (partial(run_peer, "gurobi", False), "gurobipy"),
    "gurobi-our-bounds": (partial(run_peer, "gurobi", True), "gurobipy"),
    "scip": (partial(run_peer, "scip", False), "pyscipopt"),
}
"""By name, (the function that solves instances, the module that it needs)."""

TOGETHER = ("bab",)
"""Solvers that are given all instances in one batch, together with more instances (``company``)."""


def available(names: str) -> list[str]:
    """The comma-separated solvers that are installed; stderr says how to install the others.

    Raises
    ------
    BadInput
        A name is none of :data:`RUNNERS`.
    """
    chosen = []
    for name in parts(names):
        module = RUNNERS[known("--solvers", name, RUNNERS)][1]
        if module is None or find_spec(module) is not None:
            chosen.append(name)
        else:
            print(f"{name}: not installed (pip install {module}); left out", file=sys.stderr)
    return chosen


def whole_program(instance: Instance, cutoff: float = math.inf) -> MixedInteger | None:
    """The program with all configurations (open switches), its constants from the engine's bounds; None if
    it is empty.

    With a cutoff, bounds are of actions that cost less.
    """
    program = lower(instance)
    bounds = hull(instance, program, cutoff)
    return None if bounds is None else without_sums(encode(program, bounds))


def without_sums(mip: MixedInteger) -> MixedInteger:
    """The program with every column for a ReLU's argument replaced by the sum that it stands for.

    Gurobi's built-in licence takes at most 200 columns if there are squares.
    """
    sums: dict[int, Form] = {}
    rows = []
    for row in mip.rows:
        if row.name.startswith("pre_") and row.name.endswith("_is"):
            k = mip.names.index(row.name.removesuffix("_is"))
            terms = [(sums.get(c, ({c: 1.0}, 0.0)), v) for c, v in row.coefficients.items() if c != k]
            sums[k] = combine(*terms, (({}, 1.0), -row.lower))  # the row says: sum - column = lower
        else:
            rows.append(row)
    kept = [k for k in range(len(mip.names)) if k not in sums]
    place = {k: new for new, k in enumerate(kept)}
    small = MixedInteger(
        names=[mip.names[k] for k in kept],
        lower=[mip.lower[k] for k in kept],
        upper=[mip.upper[k] for k in kept],
        integer=[mip.integer[k] for k in kept],
        linear={place[k]: c for k, c in mip.linear.items()},
        squares={place[k]: c for k, c in mip.squares.items()},
        offset=mip.offset,
        actions={f: place[k] for f, k in mip.actions.items()},
        flags={f: place[k] for f, k in mip.flags.items()},
    )
    if mip.ball is not None:
        moved = [{place[k]: c for k, c in part.items()} for part in (mip.ball.squares, mip.ball.linear)]
        small.ball = QuadraticRow(mip.ball.name, moved[0], moved[1], mip.ball.upper)
    for row in rows:
        parts = [(sums.get(k, ({k: 1.0}, 0.0)), c) for k, c in row.coefficients.items()]
        coefficients, constant = combine(*parts)
        small.row(row.name, ({place[k]: c for k, c in coefficients.items()}, constant), row.lower, row.upper)
    return small


def put_program(
    mip: MixedInteger, model: Any, total: Callable[[Any], Any], require: Callable[[Any], Any]
) -> list[Any]:
    """Put columns, rows and ball into a solver's model; return its variables.

    ``total`` is the solver's function that adds up terms, ``require`` the one that adds a constraint.
    """
    x = [
        model.addVar(lb=low, ub=high, vtype="I" if integer else "C")
        for low, high, integer in zip(mip.lower, mip.upper, mip.integer, strict=True)
    ]
    for row in mip.rows:
        body = total(c * x[k] for k, c in row.coefficients.items())
        if row.lower == row.upper:
            require(body == row.lower)
            continue
        if np.isfinite(row.lower):
            require(body >= row.lower)
        if np.isfinite(row.upper):
            require(body <= row.upper)
    if mip.ball is not None:
        left = total(w * x[k] * x[k] for k, w in mip.ball.squares.items())
        require(left + total(c * x[k] for k, c in mip.ball.linear.items()) <= mip.ball.upper)
    return x


def raw_action(instance: Instance, mip: MixedInteger, values: Sequence[float]) -> dict[str, float]:
    """The action that the columns' values stand for; values of whole-number features are rounded."""
    return {
        n: float(round(v)) if instance.by_name[n].integral else float(v)
        for n, v in mip.decode(values).items()
    }
