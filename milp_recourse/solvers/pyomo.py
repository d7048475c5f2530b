"""Any solver that Pyomo reaches, on the same program as the other back ends.

Each box that the box search leaves is one model: bounds back-substituted on a box that
plausibility and the incumbent's cost have shrunk, quadratics native where the solver takes them
and by tangents where it does not. The question is the same as for ``highs``: is there anything
cheaper than the incumbent by more than the gap? The bound is the solver's (``proof: solver``).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.magnitude import in_cost_units
from milp_recourse.solvers.boxes import BoxSearch, Node
from milp_recourse.solvers.protocol import Options, Proposal
from milp_recourse.solvers.pyomo_model import add_tangents, build_model
from milp_recourse.solvers.rows import MixedInteger, encode, equal_parts
from milp_recourse.solvers.rows.bounds import ProgramBounds
from milp_recourse.solvers.rows.tangent_rows import seeds

Array = NDArray[np.float64]

LINEAR_ONLY = frozenset(
    {"highs", "appsi_highs", "glpk", "cbc", "appsi_cbc", "gurobi_direct", "gurobi_direct_v2"}
)
"""Solvers (or interfaces to them) without mixed-integer quadratics; they get tangents at once."""

PROVES_NOTHING = ("ipopt", "cyipopt", "appsi_ipopt", "conopt", "minos", "snopt", "multistart", "trustregion",
                  "path", "mpec_", "scipy.")  # fmt: skip
"""Solvers of other problems, by the beginning of their names: they ignore whole numbers, or search
locally, and what they call infeasible or optimal is neither."""

ROUNDS = 60  # tangent rounds and improvements per configuration
PIECES = 32
MANY_UNSTABLE = 30  # more open ReLUs than this and the box is halved before a solver sees it
PATIENCE = 3  # errors in a row before another way is tried: first tangents, then giving up

# Feasibility tolerances below the defaults, where the solver works with them: SCIP's LP solver hung at 1e-8.
# HiGHS' presolve was seen to call a feasible model infeasible (see the highs back end). SCIP is silent, for
# it prints while it holds Python's lock: once its log filled the pipe that Pyomo reads, both waited for ever.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "highs": {"presolve": "off", "mip_feasibility_tolerance": 1e-7, "primal_feasibility_tolerance": 1e-7},
    "scip": {"numerics/feastol": 1e-7, "limits/gap": 1e-8, "display/verblevel": 0},
    "gurobi": {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": 1e-8, "MIPGapAbs": 1e-9},
}
"""By family: the name up to its first underscore."""


@dataclass(frozen=True)
class Answer:
    """What a solver said: ``infeasible``, ``point``, ``stopped`` or ``failed`` (it raised).

    Attributes
    ----------
    bound
        On its objective; None where it stated none.
    values
        Of the columns asked for; None without a point.
    problem
        What it raised.
    """

    kind: str
    bound: float | None = None
    values: Array | None = None
    problem: str | None = None


class PyomoBackend:
    """One Pyomo solver interface, e.g. ``pyomo:scip_direct``."""

    proves = True

    def __init__(self, solver: str) -> None:
        self.solver = solver
        self.name = f"pyomo:{solver}"

    def unavailable(self) -> str | None:
        """Why Pyomo cannot reach the solver, and what to install."""
        if self.solver.startswith(PROVES_NOTHING):
            return f"{self.solver} proves nothing about problems with whole numbers"
        try:
            if _interface(self.solver) is not None:
                return None
        except Exception as problem:  # Pyomo raises many kinds while probing
            return f"Pyomo could not load solver {self.solver!r}: {problem}"
        hints = {"highs": "highspy", "scip": "pyscipopt", "gurobi": "gurobipy"}
        hint = hints.get(_family(self.solver))
        return f"Pyomo finds no solver {self.solver!r}" + (f"; pip install {hint}" if hint else "")

    def why_not(self, instance: Instance) -> str | None:
        """Networks only."""
        if not isinstance(instance.classifier, ReluNetwork):
            return f"{self.name} solves ReLU networks; this classifier is a tree ensemble"
        return None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Every configuration in turn; see the module's docstring."""
        return in_cost_units(lambda own: PyomoSearch(self.solver, own, options).run(), instance)


class PyomoSearch(BoxSearch):
    """Boxes decided by a solver behind Pyomo."""

    def __init__(self, solver: str, instance: Instance, options: Options) -> None:
        super().__init__(instance, options, MANY_UNSTABLE)
        self.solver = solver
        self.native = solver not in LINEAR_ONLY
        self.failures = 0  # in a row

    def decide(self, node: Node, bounds: ProgramBounds) -> None:
        """Ask for a cheaper action in the box until there is none; what cannot be decided is split."""
        part = node.part
        mip = encode(part.program, bounds, equal_parts(PIECES))
        cutoff = self.best.cutoff
        scale = cutoff or 1.0
        model = self._model(mip, cutoff, scale)
        columns = [model.component(name) for name in mip.names]
        for _ in range(1 if self.native else ROUNDS):
            answer = solve_model(self.solver, model, columns, self.clock.left(0.01))
            if answer.kind == "failed":
                self._failed(node, answer.problem)
                return
            self.failures = 0
            if answer.kind == "infeasible":
                return
            if answer.bound is not None:
                node.lower_bound = max(node.lower_bound, (answer.bound - 1e-9) * scale)
            if node.lower_bound > self.best.target:
                return
            values = answer.values
            if values is None:
                self.message = f"{self.solver} stopped early"
                break
            if self.improve(part, np.array([values[mip.actions[a.feature]] for a in part.program.actions])):
                if node.lower_bound <= self.best.target:
                    self.open(part, (node.low, node.high), node.lower_bound, bounds)
                return
            if not self.native:
                add_tangents(model, mip, values, scale)
        self.halve(node)

    def _failed(self, node: Node, problem: str | None) -> None:
        """After a solver's error halve the box; after several in a row go on without quadratics; after more,
        leave boxes open.

        SCIP's LP solver fails on a box now and then. An interface that takes no quadratics, or a licence that
        is too small, fails on every box.
        """
        self.failures += 1
        self.message = f"{self.solver} failed: {problem}"
        if self.failures <= PATIENCE:
            self.halve(node)
        elif self.native:
            self.native, self.failures = False, 0
            self.open(node.part, (node.low, node.high), node.lower_bound, node.known)
        else:
            self.close(node.lower_bound)

    def _model(self, mip: MixedInteger, cutoff: float | None, scale: float) -> Any:
        """The box's model, with what costs the cutoff or more excluded."""
        import pyomo.environ as pyo

        model = build_model(mip, scale, quadratic=self.native)
        if cutoff is not None and (mip.linear or mip.squares or not self.native):
            model.cutoff = pyo.Constraint(expr=model.cost.expr <= 1.0)
        if not self.native:
            add_tangents(model, mip, np.zeros(len(mip.names)), scale)
            for kind, values in seeds(mip, scale):
                add_tangents(model, mip, values, scale, (kind,))
        return model


def _family(solver: str) -> str:
    """The solver's name up to its first underscore."""
    return solver.partition("_")[0]


def _interface(solver: str) -> Any:
    """Pyomo's interface: the new ones first, then the classic factory; None where not usable."""
    make = _maker(solver)
    return None if make is None else make()


@contextmanager
def _not_from_the_current_folder() -> Iterator[None]:
    """Pyomo looks for a solver's program in the current folder first; inside, only where PATH says."""
    from pyomo.common import fileutils

    find = fileutils.find_file
    fileutils.find_file = lambda name, **how: find(name, **how | {"cwd": False})
    try:
        yield
    finally:
        fileutils.find_file = find


@functools.cache
def _maker(solver: str) -> Callable[[], Any] | None:
    """A function that makes a solver's interface, None where it is not usable; found once, because a licence
    check takes its time."""
    import pyomo.contrib.solver.plugins
    import pyomo.environ as pyo
    from pyomo.contrib.solver.common.base import Availability
    from pyomo.contrib.solver.common.factory import SolverFactory

    pyomo.contrib.solver.plugins.load()
    log = logging.getLogger("pyomo")
    level = log.level
    log.setLevel(logging.CRITICAL)  # Pyomo warns of every solver it does not find
    try:
        with _not_from_the_current_folder():
            if solver in SolverFactory:
                usable = SolverFactory(solver).available() in (
                    Availability.FullLicense,
                    Availability.LimitedLicense,
                )
                return functools.partial(SolverFactory, solver) if usable else None
            if pyo.SolverFactory(solver).available(exception_flag=False):
                return functools.partial(pyo.SolverFactory, solver)
            return None
    finally:
        log.setLevel(level)


def solve_model(solver: str, model: Any, columns: list[Any], seconds: float | None) -> Answer:
    """Solve a model once, through whichever interface Pyomo has; errors become an :class:`Answer`."""
    try:
        with _not_from_the_current_folder():
            made = _interface(solver)
            if hasattr(made, "config") and hasattr(made.config, "raise_exception_on_nonoptimal_result"):
                return _solve_new(solver, made, model, columns, seconds)
            return _solve_classic(made, model, columns, seconds)
    except Exception as problem:  # SCIP raises "error in LP solver!", others their own kinds
        line = " ".join(str(problem).split())
        logging.getLogger(__name__).info("%s: %s", solver, line)
        return Answer("failed", problem=line[:200] or type(problem).__name__)


def _solve_new(solver: str, made: Any, model: Any, columns: list[Any], seconds: float | None) -> Answer:
    """Solve through one of Pyomo's new interfaces."""
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    # With both off a run that hits its limit still returns its bound (Pyomo's defaults raise first).
    made.config.raise_exception_on_nonoptimal_result = False
    made.config.load_solutions = False
    made.config.threads = None if _family(solver) == "scip" else 1  # SCIP uses one and has no such option
    made.config.time_limit = seconds
    made.config.solver_options = dict(SETTINGS.get(_family(solver), {}))
    results = made.solve(model)
    if results.termination_condition == TerminationCondition.provenInfeasible:
        return Answer("infeasible")
    bound = _finite(results.objective_bound)
    if results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal):
        found = results.solution_loader.get_vars(columns)
        return Answer("point", bound, np.array([found[c] for c in columns]))
    return Answer("stopped", bound)


def _solve_classic(made: Any, model: Any, columns: list[Any], seconds: float | None) -> Answer:
    """Solve through one of Pyomo's classic interfaces."""
    from pyomo.opt import TerminationCondition

    options = {"timelimit": seconds} if seconds is not None else {}
    results = made.solve(model, load_solutions=False, **options)
    if results.solver.termination_condition == TerminationCondition.infeasible:
        return Answer("infeasible")
    bound = _finite(results.problem.lower_bound)
    if len(results.solution) > 0:
        model.solutions.load_from(results)
        return Answer("point", bound, np.array([c.value or 0.0 for c in columns]))
    return Answer("stopped", bound)


def _finite(bound: Any) -> float | None:
    return float(bound) if bound is not None and np.isfinite(float(bound)) else None
