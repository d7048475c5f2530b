"""The back end: which of the two models an instance needs, and where it is solved."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from milp_recourse.engine.forests.axes import separable
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.bab import in_cells, why_not_trees
from milp_recourse.solvers.cases import solve_case_by_case
from milp_recourse.solvers.cell_choice import CellSearch
from milp_recourse.solvers.cpsat.causal_trees import RegionSearch
from milp_recourse.solvers.cpsat.leaves import SatCells
from milp_recourse.solvers.cpsat.process import ask
from milp_recourse.solvers.protocol import Options, Proposal
from milp_recourse.solvers.simpler_problems import cheapest_part, has_gaps


class CpsatBackend:
    """CP-SAT on cells and leaves, one thread.

    Parameters
    ----------
    in_process
        Import OR-Tools into this process, which then cannot import highspy, instead of asking a child
        process.
    """

    name = "cpsat"
    proves = True

    def __init__(self, in_process: bool = False) -> None:
        self.in_process = in_process

    def unavailable(self) -> str | None:
        """Why OR-Tools cannot be used here."""
        return None if find_spec("ortools") is not None else "OR-Tools is not installed: pip install ortools"

    def why_not(self, instance: Instance) -> str | None:
        """Why it cannot solve an instance, or None: a network; costs in percentiles or with two scales where
        actions move other features or plausibility is demanded; or what no search over trees takes."""
        if not isinstance(instance.classifier, TreeEnsemble):
            return "tree ensembles only"
        told = (name for name in instance.levers if name not in instance.missing)
        bent = not all(instance.lever_costs[name].even for name in told)
        if bent and not in_cells(instance):
            return (
                "costs in percentiles, or with two scales, where actions move other features, or under "
                "plausibility; use bab"
            )
        if has_gaps(instance):
            return "missing values beside conditions on sums or on holding a feature; use bab"
        return why_not_trees(instance)

    def keeps_lattices(self, instance: Instance) -> bool:
        """Whether the search itself sets only steps and listed values."""
        return in_cells(instance)

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Solve the integer model; forbid what does not hold exactly, and solve again."""
        if not self.in_process:
            plain = replace(options, watch=None, found=None)  # functions do not go through a pipe
            return ask(instance, plain)
        return solve_case_by_case(instance, options, _solve_parts)


def _solve_parts(instance: Instance, options: Options) -> Proposal:
    return cheapest_part(instance, options, _solve)


def _solve(instance: Instance, options: Options) -> Proposal:
    if separable(instance):
        return CellSearch(instance, options, SatCells).run()
    return RegionSearch(instance, options).run()
