"""What HiGHS does with a box: tighten it by linear programs, then ask one MILP."""

from __future__ import annotations

import numpy as np

from milp_recourse.backends.boxes import BoxSearch, Node
from milp_recourse.backends.highs.model import HighsModel
from milp_recourse.backends.highs.relaxation import Relaxation
from milp_recourse.backends.highs.tangents import copy_tangents, seed_tangents
from milp_recourse.backends.protocol import Options
from milp_recourse.bounds.program import program_bounds
from milp_recourse.bounds.tape import Bounds
from milp_recourse.encodings import encode
from milp_recourse.instance import Instance

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

    def decide(self, node: Node, bounds: Bounds) -> None:
        """Tighten while it pays; then split what is still large, and ask a MILP about the rest."""
        tape, target = node.tape, self.incumbent.target
        low, high, bound = node.low, node.high, node.lower_bound
        for _ in range(PASSES):
            before = int(bounds.unstable()[0])  # tighten narrows these bounds in place
            relaxation = Relaxation(tape, bounds, low, high, target, self.incumbent.action, PIECES)
            tightened = relaxation.tighten(self.clock)
            bound = max(bound, relaxation.bound)
            if tightened is None or bound > target:
                return
            shrunk = float(np.prod((relaxation.high - relaxation.low + 1e-12) / (high - low + 1e-12)))
            low, high = relaxation.low, relaxation.high
            bounds = tape.bounds(low[None], high[None], tightened)
            if bounds.logit_high[0] < tape.threshold:
                return
            after = int(bounds.unstable()[0])
            if after <= FEW_UNSTABLE or (shrunk > 0.7 and after > 0.8 * before) or self.clock.over:
                break
        tight = Node(bound, node.order, tape, low, high, bounds)
        if bounds.unstable()[0] > MANY_UNSTABLE:
            self.halve(tight)
        else:
            self._milp(tight, bounds, relaxation)

    def _milp(self, node: Node, bounds: Bounds, relaxation: Relaxation) -> None:
        """Ask for a cheaper action in the box until there is none; what cannot be decided is split."""
        tape = node.tape
        model = encode(tape.program, program_bounds(tape, bounds), PIECES)
        highs = HighsModel(model, self.incumbent.cutoff, relaxed=False)
        seed_tangents(highs, tape, model, self.incumbent.action)
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
            if self.improve(tape, np.array([values[model.actions[a.feature]] for a in tape.program.actions])):
                self.push(tape, (node.low, node.high), node.lower_bound, bounds)  # under the new cutoff
                return
            excess = highs.cost_excess(values) if self.incumbent.action is not None else -np.inf
            if max(highs.ball_excess(values), excess) < 1e-8:
                break
            highs.cost_tangent(values)
            highs.ball_tangent(values)
        self.halve(node)
