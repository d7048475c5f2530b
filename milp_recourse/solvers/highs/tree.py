"""What HiGHS does with a box: tighten it by linear programs, then ask one MILP."""

from __future__ import annotations

import numpy as np

from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.boxes import BoxSearch, Node
from milp_recourse.solvers.highs.first_tangents import copy_tangents, seed_tangents
from milp_recourse.solvers.highs.highs_model import HighsModel
from milp_recourse.solvers.highs.relaxation import Relaxation
from milp_recourse.solvers.protocol import Options
from milp_recourse.solvers.rows import encode, equal_parts
from milp_recourse.solvers.rows.bounds import ProgramBounds

LP_UNSTABLE = 24  # more open ReLUs than this and the box is split before linear programs tighten it
MANY_UNSTABLE = 20  # more than this after tightening and it is split before a MILP is tried
FEW_UNSTABLE = 6  # no more than this and tightening stops
PASSES = 3
ROUNDS = 40  # tangent rounds per MILP
PIECES = 8  # parts a curve is cut into; splitting the box refines it further


class HighsSearch(BoxSearch):
    """Boxes decided by HiGHS."""

    def __init__(self, instance: Instance, options: Options) -> None:
        super().__init__(instance, options, LP_UNSTABLE)

    def decide(self, node: Node, bounds: ProgramBounds) -> None:
        """Tighten while it pays; then split what is still large, and ask a MILP about the rest."""
        part, target, tight = node.part, self.best.target, node
        for _ in range(PASSES):
            low, high = tight.low, tight.high
            before = bounds.unstable  # tighten narrows these bounds in place
            relaxation = Relaxation(part, bounds, low, high, target, self.best.action, PIECES)
            if not relaxation.tighten(self.clock) or relaxation.bound > target:
                return
            bound = max(tight.lower_bound, relaxation.bound)
            shrunk = float(np.prod((relaxation.high - relaxation.low + 1e-12) / (high - low + 1e-12)))
            found = self.bounded(Node(bound, part, relaxation.low, relaxation.high, bounds))
            if found is None:
                return
            tight, bounds = found
            after = bounds.unstable
            if after <= FEW_UNSTABLE or (shrunk > 0.7 and after > 0.8 * before) or self.clock.over:
                break
        if bounds.unstable > MANY_UNSTABLE:
            self.halve(tight)
        else:
            self._milp(tight, bounds, relaxation)

    def _milp(self, node: Node, bounds: ProgramBounds, relaxation: Relaxation) -> None:
        """Ask for a cheaper action in the box until there is none; what cannot be decided is split."""
        part = node.part
        model = encode(part.program, bounds, equal_parts(PIECES))
        highs = HighsModel(model, self.best.cutoff, relaxed=False)
        seed_tangents(highs, part.program, model, self.best.action)
        for point in relaxation.tangent_points:
            copy_tangents(highs, relaxation.highs, point)
        for _ in range(ROUNDS):
            outcome = highs.solve(self.clock.left(0.01))
            self.nodes += outcome.nodes
            if outcome.kind == "infeasible":
                return
            values = outcome.values
            if values is None:
                break
            if self.improve(part, np.array([values[model.actions[a.feature]] for a in part.program.actions])):
                self.open(part, (node.low, node.high), node.lower_bound, bounds)  # under the new cutoff
                return
            excess = highs.cost_excess(values) if self.best.action is not None else -np.inf
            if max(highs.ball_excess(values), excess) < 1e-8:
                break
            highs.cost_tangent(values)
            highs.ball_tangent(values)
        self.halve(node)
