"""The MILP back end: HiGHS on one small problem per configuration and box.

HiGHS has no mixed-integer quadratic solver. So the question is not "which action is cheapest?" but "is there
an action cheaper than the incumbent?": cost and plausibility become tangents, the box shrinks to what the
incumbent's cost leaves, and bounds are back-substituted and then tightened by linear programs. What is left
is usually one MILP that is infeasible at once. If HiGHS returns a point, an action next to it may improve the
incumbent; else tangents are added at the point, or the box is split.

The bound rests on HiGHS' floating-point verdicts: ``proof: solver``.
"""

from __future__ import annotations

from milp_recourse.engine.forests.axes import separable
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.program.magnitude import in_cost_units
from milp_recourse.program.presolve import folds_away, without_conditions
from milp_recourse.solvers.bab import in_cells
from milp_recourse.solvers.cases import solve_case_by_case
from milp_recourse.solvers.cell_choice import CellSearch
from milp_recourse.solvers.highs.ensemble_milp import HighsCells
from milp_recourse.solvers.highs.tree import HighsSearch
from milp_recourse.solvers.protocol import Options, Proposal
from milp_recourse.solvers.simpler_problems import cheapest_part


class HighsBackend:
    """MILP through HiGHS: networks; trees whose levers move nothing else, without plausibility."""

    name = "highs"
    proves = True

    def unavailable(self) -> str | None:
        """Why HiGHS, a core dependency, cannot be used here, or None."""
        try:
            import highspy  # noqa: F401
        except ImportError:
            return "highspy is not installed; pip install highspy"
        return None

    def why_not(self, instance: Instance) -> str | None:
        """Why it cannot solve an instance: trees where an action moves other features, with plausibility, or
        under conditions that need rows of their own."""
        if not isinstance(instance.classifier, TreeEnsemble):
            return None
        if not separable(without_conditions(instance)):
            return "trees where an action moves other features, or with plausibility; use bab"
        if not folds_away(instance):
            return "trees under conditions on sums, or on holding a feature at a price; use bab or cpsat"
        return None

    def keeps_lattices(self, instance: Instance) -> bool:
        """Whether the search itself sets only steps and listed values."""
        return in_cells(instance)

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Search every configuration; see the module's docstring. Trees: MILPs of cells and leaves."""
        if isinstance(instance.classifier, TreeEnsemble):
            return solve_case_by_case(instance, options, _solve_trees)
        return in_cost_units(lambda own: HighsSearch(own, options).run(), instance)


def _solve_trees(instance: Instance, options: Options) -> Proposal:
    return cheapest_part(instance, options, lambda i, o: CellSearch(i, o, HighsCells).run())
