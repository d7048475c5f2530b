"""Any solver that Pyomo reaches, on the same program as the other back ends.

Each configuration is one model: bounds back-substituted on a box that plausibility and the
incumbent's cost have shrunk, quadratics native where the solver takes them and by tangents where
it does not. The question is the same as for ``highs``: is there anything cheaper than the
incumbent by more than the gap? The bound is the solver's (``proof: solver``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.incumbent import Incumbent
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.backends.pyomo_model import add_tangents, build_model
from milp_recourse.bounds.program import program_bounds
from milp_recourse.bounds.shave import shave
from milp_recourse.bounds.split import Box, at_kink, widest
from milp_recourse.bounds.tape import Tape
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.encodings import MixedInteger, encode
from milp_recourse.instance import Instance
from milp_recourse.program import lower
from milp_recourse.result import gap_tolerance
from milp_recourse.search.local import descend
from milp_recourse.search.sample import first_incumbent

Array = NDArray[np.float64]

LINEAR_ONLY = frozenset({"highs", "appsi_highs", "glpk", "cbc"})
"""Solvers without mixed-integer quadratics; they get tangents."""

ROUNDS = 60  # tangent rounds and improvements per configuration
PIECES = 32
MANY_UNSTABLE = 30  # more open ReLUs than this and the box is halved before a solver sees it

# Feasibility a hundredth of the default where the solver allows it; HiGHS' presolve was seen to call a
# feasible model infeasible (see the highs back end).
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "highs": {"presolve": "off", "mip_feasibility_tolerance": 1e-7, "primal_feasibility_tolerance": 1e-7},
    "scip_direct": {"numerics/feastol": 1e-8, "limits/gap": 1e-8},
    "gurobi_direct_minlp": {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": 1e-8, "MIPGapAbs": 1e-9},
}


@dataclass(frozen=True)
class Answer:
    """What a solver said: ``infeasible``, ``point`` or ``stopped``, a bound on its objective, values."""

    kind: str
    bound: float | None
    values: Array | None


class PyomoBackend:
    """One Pyomo solver interface, e.g. ``pyomo:scip_direct``."""

    proves = True

    def __init__(self, solver: str) -> None:
        self.solver = solver
        self.name = f"pyomo:{solver}"

    def unavailable(self) -> str | None:
        """Why Pyomo cannot reach the solver, and what to install."""
        hints = {"highs": "highspy", "scip_direct": "pyscipopt", "gurobi_direct_minlp": "gurobipy"}
        try:
            if _interface(self.solver) is not None:
                return None
        except Exception as problem:  # Pyomo raises many kinds while probing
            return f"Pyomo could not load solver {self.solver!r}: {problem}"
        hint = hints.get(self.solver)
        return f"Pyomo finds no solver {self.solver!r}" + (f"; pip install {hint}" if hint else "")

    def why_not(self, instance: Instance) -> str | None:
        """Networks only."""
        if not isinstance(instance.classifier, ReluNetwork):
            return f"{self.name} solves ReLU networks; this classifier is a tree ensemble"
        return None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Every configuration in turn; see the module's docstring."""
        return _Run(self.solver, instance, options).run()


class _Run:
    def __init__(self, solver: str, instance: Instance, options: Options) -> None:
        self.solver, self.instance = solver, instance
        self.deadline = None if options.time_limit is None else time.perf_counter() + options.time_limit
        self.incumbent = Incumbent(instance)
        self.message: str | None = None

    def run(self) -> Proposal:
        program = lower(self.instance)
        tapes = [
            tape for acted in program.configurations() if len((tape := Tape(program.fix(acted))).actions)
        ]
        start = first_incumbent(tapes)
        if start is not None:
            self.incumbent.offer(*start)
        bounds = [self._configuration(tape) for tape in tapes]
        target = self.incumbent.target
        least = min([min(b, target) for b in bounds], default=target)
        message = self.message if least < target else None
        return Proposal(self.incumbent.action, least, "solver", message=message)

    def _configuration(self, tape: Tape) -> float:
        """A lower bound on every cost in one configuration (``inf``: nothing cheaper than the target)."""
        boxes: list[Box] = [(tape.lower, tape.upper)]
        proven = np.inf
        while boxes:
            low, high = shave(tape, *boxes.pop(), self.incumbent.target)
            if (low > high).any():
                continue
            known = tape.bounds(low[None], high[None])
            if known.logit_high[0] < tape.threshold:
                continue
            halves = at_kink(tape, low, high)
            if halves is None and known.unstable()[0] > MANY_UNSTABLE:
                halves = widest(tape, low, high)
            bound = tape.fixed_cost
            if halves is None and not self._late():
                bound = max(bound, self._box(tape, low, high))
                if bound <= self.incumbent.target:  # open: the answer could not be made feasible
                    halves = widest(tape, low, high)
            if halves is not None and not self._late():
                boxes += halves
            else:
                proven = min(proven, bound)
        return proven

    def _box(self, tape: Tape, low: Array, high: Array) -> float:
        """A lower bound on every cost in one box, asking again while answers improve the incumbent."""
        proven = 0.0
        for _ in range(ROUNDS):
            known = tape.bounds(low[None], high[None])
            mip = encode(tape.program, program_bounds(tape, known), PIECES)
            before = self.incumbent.cost
            bound = self._ask(tape, mip)
            proven = max(proven, bound)
            if proven > self.incumbent.target or self._late():
                return proven
            if self.incumbent.cost >= before - 0.1 * gap_tolerance(self.incumbent.cost):
                self.message = self.message or f"{self.solver} left the gap open"
                return proven
        return proven

    def _ask(self, tape: Tape, mip: MixedInteger) -> float:
        """Solve one model; improve the incumbent with what comes back; the proven bound on the cost."""
        import pyomo.environ as pyo

        cutoff = self.incumbent.cutoff
        scale = cutoff or 1.0
        native = self.solver not in LINEAR_ONLY
        model = build_model(mip, scale, quadratic=native)
        columns = [model.component(name) for name in mip.names]
        if cutoff is not None:
            model.cutoff = pyo.Constraint(expr=model.cost.expr <= 1.0)
        if not native:
            for values in _spread(mip, scale):
                add_tangents(model, mip, values, scale)
        proven = 0.0
        for _ in range(1 if native else ROUNDS):
            answer = _solve(self.solver, model, columns, self._left())
            if answer.kind == "infeasible":
                return np.inf if cutoff is None else cutoff
            if answer.bound is not None:
                proven = max(proven, (answer.bound - 1e-9) * scale)
            if answer.values is None:
                self.message = (
                    "the time limit was reached" if self._late() else f"{self.solver} stopped early"
                )
                return proven
            a = np.array([answer.values[mip.actions[x.feature]] for x in tape.program.actions])
            a[tape.integral] = np.round(a[tape.integral])
            before = self.incumbent.cost
            self.incumbent.offer(tape, descend(tape, np.clip(a, tape.lower, tape.upper), hops=24))
            if native or proven > self.incumbent.target:
                return proven
            if self.incumbent.cost < before - 0.1 * gap_tolerance(self.incumbent.cost):
                return proven
            add_tangents(model, mip, answer.values, scale)
        return proven

    def _left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - time.perf_counter(), 0.05)

    def _late(self) -> bool:
        return self.deadline is not None and time.perf_counter() > self.deadline


def _spread(mip: MixedInteger, scale: float) -> list[Array]:
    """Points around the surface of cost and ball, on the axes of each."""
    points = [np.zeros(len(mip.names))]
    for squares, room in (
        (mip.squares, scale - mip.offset),
        (mip.ball.squares if mip.ball else {}, mip.ball.upper if mip.ball else 0.0),
    ):
        for k, w in squares.items():
            for sign in (1.0, -1.0):
                values = np.zeros(len(mip.names))
                values[k] = sign * np.sqrt(max(room, 1e-12) / w)
                points.append(values)
    return points


def _interface(solver: str) -> Any:
    """Pyomo's interface: the new ones first, then the classic factory; None where not usable."""
    import pyomo.contrib.solver.plugins
    import pyomo.environ as pyo
    from pyomo.contrib.solver.common.base import Availability
    from pyomo.contrib.solver.common.factory import SolverFactory

    pyomo.contrib.solver.plugins.load()
    if solver in SolverFactory:
        made = SolverFactory(solver)
        return made if made.available() in (Availability.FullLicense, Availability.LimitedLicense) else None
    with np.errstate(all="ignore"):
        logging.getLogger("pyomo").setLevel(logging.ERROR)
        classic = pyo.SolverFactory(solver)
    return classic if classic.available(exception_flag=False) else None


def _solve(solver: str, model: Any, columns: list[Any], seconds: float | None) -> Answer:
    """One solve through whichever interface Pyomo has; never raises for a limit."""
    made = _interface(solver)
    if hasattr(made, "config") and hasattr(made.config, "raise_exception_on_nonoptimal_result"):
        return _solve_new(solver, made, model, columns, seconds)
    return _solve_classic(made, model, columns, seconds)


def _solve_new(solver: str, made: Any, model: Any, columns: list[Any], seconds: float | None) -> Answer:
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    # With both off a run that hits its limit still returns its bound (Pyomo's defaults raise first).
    made.config.raise_exception_on_nonoptimal_result = False
    made.config.load_solutions = False
    made.config.threads = 1 if solver != "scip_direct" else None
    made.config.time_limit = seconds
    made.config.solver_options = dict(SETTINGS.get(solver, {}))
    results = made.solve(model)
    if results.termination_condition == TerminationCondition.provenInfeasible:
        return Answer("infeasible", None, None)
    bound = results.objective_bound
    bound = float(bound) if bound is not None and np.isfinite(bound) else None
    if results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal):
        found = results.solution_loader.get_vars(columns)
        return Answer("point", bound, np.array([found[c] for c in columns]))
    return Answer("stopped", bound, None)


def _solve_classic(made: Any, model: Any, columns: list[Any], seconds: float | None) -> Answer:
    from pyomo.opt import TerminationCondition

    options = {"timelimit": seconds} if seconds is not None else {}
    results = made.solve(model, load_solutions=False, **options)
    condition = results.solver.termination_condition
    if condition == TerminationCondition.infeasible:
        return Answer("infeasible", None, None)
    bound = results.problem.lower_bound
    bound = float(bound) if bound is not None and np.isfinite(float(bound)) else None
    if len(results.solution) > 0:
        model.solutions.load_from(results)
        return Answer("point", bound, np.array([c.value or 0.0 for c in columns]))
    return Answer("stopped", bound, None)
