"""The peers: commercial and academic MIQCP solvers on the same program, one thread, as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from milp_recourse.bounds.contract import contract
from milp_recourse.bounds.program import hull
from milp_recourse.bounds.shave import shave
from milp_recourse.bounds.tape import Tape
from milp_recourse.encodings import MixedInteger, encode
from milp_recourse.encodings.mixed_integer import Form, QuadraticRow, combine
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.program import lower
from milp_recourse.solve import solve, solve_together

MIP_GAP = 1e-6
COST_UNIT = 0.01
"""Peers minimise cost / COST_UNIT, so that their absolute gaps are small against typical costs."""


@dataclass(frozen=True)
class Outcome:
    """One solver on one instance.

    Attributes
    ----------
    status
        ``optimal``, ``infeasible`` or ``limit``, as the solver says; ``too large`` for its licence.
    cost
        As the solver says; None without a solution.
    seconds, cpu_seconds
        Wall and processor time.
    exactly_feasible
        Whether the raw action passes the exact judgement; None without one.
    action
        The raw action, whole where it must be; None without one.
    """

    status: str
    cost: float | None
    seconds: float
    cpu_seconds: float
    nodes: int | None
    exactly_feasible: bool | None
    action: dict[str, float] | None = None


Times = tuple[float, float]
"""Wall and processor seconds."""


def _now() -> Times:
    return time.perf_counter(), time.process_time()


def _since(start: Times) -> Times:
    wall, cpu = _now()
    return wall - start[0], cpu - start[1]


Runner = Callable[[Instance, float], Outcome]


def run_highs(instance: Instance, time_limit: float) -> Outcome:
    """This package's ``highs`` back end, judgement included in its time."""
    return _ours("highs", [instance], time_limit)[0]


def run_bab_single(instance: Instance, time_limit: float) -> Outcome:
    """This package's ``bab`` back end on one instance, judgement included in its time."""
    return _ours("bab", [instance], time_limit)[0]


def run_bab(
    instances: Sequence[Instance], time_limit: float, company: Sequence[Instance] = ()
) -> list[Outcome]:
    """This package's ``bab`` back end on all instances together; each its share of the time.

    Parameters
    ----------
    company
        Solved in the same batch, and left out of the outcomes.
    """
    return _ours("bab", instances, time_limit, company)


def _ours(
    name: str, instances: Sequence[Instance], time_limit: float, company: Sequence[Instance] = ()
) -> list[Outcome]:
    """Results as outcomes; processor time is shared out as wall time is."""
    start = time.process_time()
    results = list(solve_together([*instances, *company], backend=name, time_limit=time_limit))
    cpu = (time.process_time() - start) / sum(r.seconds for r in results)
    return [
        Outcome(
            r.status.value, r.cost, r.seconds, cpu * r.seconds, r.nodes, None if r.action is None else True
        )
        for r in results[: len(instances)]
    ]


def run_gurobi_plain(instance: Instance, time_limit: float) -> Outcome:
    """Gurobi's MIQCP on the whole program, bounds from the stated action boxes alone."""
    return _gurobi(instance, time_limit, tightened=False)


def run_gurobi_bounds(instance: Instance, time_limit: float) -> Outcome:
    """The same on boxes shaved by plausibility and the optimal cost, found by ``highs`` (not timed)."""
    return _gurobi(instance, time_limit, tightened=True)


def run_scip_plain(instance: Instance, time_limit: float) -> Outcome:
    """SCIP's MIQCP on the whole program, bounds from the stated action boxes alone."""
    return _scip(instance, time_limit)


RUNNERS: dict[str, tuple[Runner, str | None]] = {
    "bab-single": (run_bab_single, None),
    "highs": (run_highs, None),
    "gurobi": (run_gurobi_plain, "gurobipy"),
    "gurobi-our-bounds": (run_gurobi_bounds, "gurobipy"),
    "scip": (run_scip_plain, "pyscipopt"),
}
"""Name -> (runner, the module it needs)."""

Together = Callable[[Sequence[Instance], float, Sequence[Instance]], list[Outcome]]

TOGETHER: dict[str, Together] = {"bab": run_bab}
"""Those that solve all instances in one batch, and company with them."""


def missing(name: str) -> str | None:
    """What to install before a peer can run, or None."""
    module = None if name in TOGETHER else RUNNERS[name][1]
    return None if module is None or find_spec(module) is not None else f"pip install {module}"


def whole_program(instance: Instance, cutoff: float | None = None) -> MixedInteger | None:
    """The open-switch program; with a cutoff, on boxes that hold every cheaper action. None: empty."""
    program = lower(instance)
    boxes = {}
    for acted in program.configurations():
        tape = Tape(program.fix(acted))
        low, high = tape.lower, tape.upper
        if cutoff is not None:
            if len(tape.actions) == 0:
                low, high = np.ones(0), np.zeros(0)
            else:
                shaved_low, shaved_high = contract(tape, low[None], high[None], cutoff)
                low, high = shave(tape, shaved_low[0], shaved_high[0], cutoff)
        boxes[acted] = low, high
    bounds = hull(program, boxes)
    return None if bounds is None else without_sums(encode(program, bounds))


def without_sums(mip: MixedInteger) -> MixedInteger:
    """The program with every pre-activation column replaced by its sum.

    Gurobi's built-in licence takes 200 columns where quadratics are present.
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


def _program_for(instance: Instance, tightened: bool) -> MixedInteger | None:
    if not tightened:
        return whole_program(instance)
    known = solve(instance, backend="highs")
    return whole_program(instance, np.inf if known.cost is None else known.cost * (1 + 1e-6) + 1e-9)


def _gurobi(instance: Instance, time_limit: float, tightened: bool) -> Outcome:
    import gurobipy as gp

    mip = _program_for(instance, tightened)
    if mip is None:
        return Outcome("infeasible", None, 0.0, 0.0, 0, None)
    try:
        return _gurobi_solve(gp, instance, mip, time_limit)
    except gp.GurobiError as problem:
        if problem.errno != gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
            raise
        return Outcome("too large", None, 0.0, 0.0, None, None)


def _gurobi_solve(gp: Any, instance: Instance, mip: MixedInteger, time_limit: float) -> Outcome:
    start = _now()
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads, model.Params.TimeLimit = 1, time_limit
        model.Params.MIPGap, model.Params.MIPGapAbs = MIP_GAP, 1e-9 / COST_UNIT
        x, cost = gurobi_program(gp, model, mip)
        model.setObjective(cost / COST_UNIT)
        model.optimize()
        seconds = _since(start)
        nodes = int(model.NodeCount)
        if model.Status == gp.GRB.INFEASIBLE:
            return Outcome("infeasible", None, *seconds, nodes, None)
        status = "optimal" if model.Status == gp.GRB.OPTIMAL else "limit"
        if model.SolCount == 0:
            return Outcome(status, None, *seconds, nodes, None)
        return _found(instance, mip, status, np.array([v.X for v in x]), seconds, nodes)


def gurobi_program(gp: Any, model: Any, mip: MixedInteger) -> tuple[list[Any], Any]:
    """Columns, rows and ball in a Gurobi model; its variables, and the cost as an expression."""
    x = [
        model.addVar(lb=low, ub=high, vtype="I" if integer else "C")
        for low, high, integer in zip(mip.lower, mip.upper, mip.integer, strict=True)
    ]
    for row in mip.rows:
        body = gp.LinExpr([(c, x[k]) for k, c in row.coefficients.items()])
        if row.lower == row.upper:
            model.addConstr(body == row.lower)
            continue
        if np.isfinite(row.lower):
            model.addConstr(body >= row.lower)
        if np.isfinite(row.upper):
            model.addConstr(body <= row.upper)
    if mip.ball is not None:
        left = gp.quicksum(w * x[k] * x[k] for k, w in mip.ball.squares.items())
        left += gp.LinExpr([(c, x[k]) for k, c in mip.ball.linear.items()])
        model.addConstr(left <= mip.ball.upper)
    cost = gp.quicksum(c * x[k] * x[k] for k, c in mip.squares.items())
    cost += gp.LinExpr([(c, x[k]) for k, c in mip.linear.items()]) + mip.offset
    return x, cost


def scip_program(mip: MixedInteger, time_limit: float) -> tuple[Any, list[Any]]:
    """A SCIP model with columns, rows and ball, as it comes but for limit and gap; its variables."""
    from pyscipopt import Model, quicksum

    model = Model()
    model.hideOutput()
    model.setParam("limits/time", time_limit)
    model.setParam("limits/gap", MIP_GAP)
    x = [
        model.addVar(lb=low, ub=high, vtype="I" if integer else "C")
        for low, high, integer in zip(mip.lower, mip.upper, mip.integer, strict=True)
    ]
    for row in mip.rows:
        body = quicksum(c * x[k] for k, c in row.coefficients.items())
        if np.isfinite(row.lower):
            model.addCons(body >= row.lower)
        if np.isfinite(row.upper):
            model.addCons(body <= row.upper)
    if mip.ball is not None:
        left = quicksum(w * x[k] * x[k] for k, w in mip.ball.squares.items())
        left += quicksum(c * x[k] for k, c in mip.ball.linear.items())
        model.addCons(left <= mip.ball.upper)
    return model, x


def _scip(instance: Instance, time_limit: float) -> Outcome:
    from pyscipopt import quicksum

    mip = whole_program(instance)
    if mip is None:
        return Outcome("infeasible", None, 0.0, 0.0, 0, None)
    start = _now()
    model, x = scip_program(mip, time_limit)
    theta = model.addVar(lb=0.0, ub=None, obj=1.0)
    cost: Any = quicksum(c * x[k] * x[k] for k, c in mip.squares.items())
    cost += quicksum(c * x[k] for k, c in mip.linear.items()) + mip.offset
    model.addCons(cost / COST_UNIT <= theta)
    model.optimize()
    seconds, nodes, said = _since(start), int(model.getNNodes()), model.getStatus()
    if said == "infeasible":
        return Outcome("infeasible", None, *seconds, nodes, None)
    status = "optimal" if said in ("optimal", "gaplimit") else "limit"
    if model.getNSols() == 0:
        return Outcome(status, None, *seconds, nodes, None)
    return _found(instance, mip, status, np.array([model.getVal(v) for v in x]), seconds, nodes)


def _found(
    instance: Instance, mip: MixedInteger, status: str, values: np.ndarray, seconds: Times, nodes: int
) -> Outcome:
    """The raw answer, judged as it is: no repair."""
    action = raw_action(instance, mip, values)
    feasible = judge(instance, action).feasible
    return Outcome(status, mip.objective(values), *seconds, nodes, feasible, action)


def raw_action(instance: Instance, mip: MixedInteger, values: np.ndarray) -> dict[str, float]:
    """The action that the columns' values say, whole where it must be."""
    return {
        n: float(round(v)) if instance.feature(n).integral else float(v)
        for n, v in mip.decode(values).items()
    }
