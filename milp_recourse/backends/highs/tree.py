"""The search: boxes, what closes them, and when to split."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.highs.model import HighsModel
from milp_recourse.backends.highs.relaxation import Relaxation
from milp_recourse.backends.highs.tangents import copy_tangents, seed_tangents
from milp_recourse.backends.incumbent import Incumbent
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.bounds.contract import least_cost
from milp_recourse.bounds.lagrangian import ball_bound
from milp_recourse.bounds.program import program_bounds
from milp_recourse.bounds.shave import shave
from milp_recourse.bounds.split import Box, at_kink, widest
from milp_recourse.bounds.tape import Bounds, Tape
from milp_recourse.encodings import encode
from milp_recourse.instance import Instance
from milp_recourse.program import lower
from milp_recourse.result import gap_tolerance
from milp_recourse.search.local import descend
from milp_recourse.search.sample import first_incumbent

Array = NDArray[np.float64]

LP_UNSTABLE = 24  # more open ReLUs than this and the box is split before linear programs tighten it
MANY_UNSTABLE = 20  # more than this after tightening and it is split before a MILP is tried
FEW_UNSTABLE = 6  # no more than this and tightening stops
PASSES = 3
PIECES = 8  # parts a curve is cut into; splitting the box refines it further


@dataclass(order=True)
class _Node:
    """A box of one configuration; ordered by its lower bound."""

    lower_bound: float
    order: int
    tape: Tape = field(compare=False)
    low: Array = field(compare=False)
    high: Array = field(compare=False)
    known: Bounds | None = field(compare=False, default=None)


class Tree:
    """Best-first search over boxes of every configuration; :meth:`run` is its one entry."""

    def __init__(self, instance: Instance, options: Options) -> None:
        self.instance = instance
        self.deadline = None if options.time_limit is None else time.perf_counter() + options.time_limit
        self.incumbent = Incumbent(instance)
        self.queue: list[_Node] = []
        self.created = 0
        self.milp_nodes = 0
        self.stuck = np.inf  # least lower bound among boxes too small to split further

    def run(self) -> Proposal:
        """Search until every box is closed, or the deadline."""
        program = lower(self.instance)
        tapes = [Tape(program.fix(acted)) for acted in program.configurations()]
        start = first_incumbent(tapes)
        if start is not None:
            self.incumbent.offer(*start)
        for tape in tapes:
            if len(tape.actions):
                self._push(tape, tape.lower, tape.upper, tape.fixed_cost)
        while self.queue:
            if self._late():
                return self._stopped("the time limit was reached")
            node = heapq.heappop(self.queue)
            if node.lower_bound > self.incumbent.target:
                continue
            self._process(node)
        if self.stuck < self.incumbent.target:
            return Proposal(
                self.incumbent.action, self.stuck, "solver", self._nodes(), "a box became too small to split"
            )
        bound = np.inf if self.incumbent.action is None else self.incumbent.target
        return Proposal(self.incumbent.action, bound, "solver", self._nodes())

    # -- tree ----------------------------------------------------------------------------

    def _push(self, tape: Tape, low: Array, high: Array, bound: float, known: Bounds | None = None) -> None:
        self.created += 1
        heapq.heappush(self.queue, _Node(bound, self.created, tape, low, high, known))

    def _process(self, node: _Node) -> None:
        tape, target = node.tape, self.incumbent.target
        low, high = shave(tape, node.low, node.high, target)
        bound = node.lower_bound
        if (low > high).any():
            return
        bound = max(bound, float(least_cost(tape, low[None], high[None])[0]))
        if bound > target:
            return
        if self._split(tape, at_kink(tape, low, high), bound):
            return
        known = tape.bounds(low[None], high[None], node.known)
        if known.logit_high[0] < tape.threshold:
            return
        bound = max(bound, float(ball_bound(tape, low[None], high[None], known, target)[0]))
        if bound > target:
            return
        if known.unstable()[0] > LP_UNSTABLE and self._split(tape, widest(tape, low, high), bound, known):
            return
        for _ in range(PASSES):
            relaxation = Relaxation(tape, known, low, high, target, self.incumbent.action, PIECES)
            tightened = relaxation.tighten(self._late)
            if tightened is None:
                return
            before = int(known.unstable()[0])
            shrunk = float(np.prod((relaxation.high - relaxation.low + 1e-12) / (high - low + 1e-12)))
            low, high, known, bound = relaxation.low, relaxation.high, tightened, max(bound, relaxation.bound)
            if bound > target:
                return
            known = tape.bounds(low[None], high[None], known)
            if known.logit_high[0] < tape.threshold:
                return
            after = int(known.unstable()[0])
            if after <= FEW_UNSTABLE or (shrunk > 0.7 and after > 0.8 * before) or self._late():
                break
        if known.unstable()[0] > MANY_UNSTABLE and self._split(tape, widest(tape, low, high), bound, known):
            return
        self._milp(tape, low, high, bound, known, relaxation)

    def _milp(
        self, tape: Tape, low: Array, high: Array, bound: float, known: Bounds, relaxation: Relaxation
    ) -> None:
        """Ask for a cheaper action in the box until there is none; what cannot be decided is split."""
        model = encode(tape.program, program_bounds(tape, known), PIECES)
        highs = HighsModel(model, self.incumbent.cutoff, relaxed=False)
        seed_tangents(highs, tape, model, self.incumbent.action)
        for values in relaxation.tangent_points:
            copy_tangents(highs, relaxation.highs, values)
        for _ in range(40):
            seconds = None if self.deadline is None else self.deadline - time.perf_counter()
            outcome = highs.solve(seconds)
            self.milp_nodes += outcome.nodes
            if outcome.kind == "infeasible":
                return
            if outcome.values is None:
                if not self._late():
                    break
                self._push(tape, low, high, bound, known)  # its bound still counts
                return
            values = outcome.values
            a = np.array([values[model.actions[x.feature]] for x in tape.program.actions])
            a[tape.integral] = np.round(a[tape.integral])
            before = self.incumbent.cost
            self.incumbent.offer(tape, descend(tape, np.clip(a, tape.lower, tape.upper), hops=6))
            if self.incumbent.cost < before - 0.1 * gap_tolerance(self.incumbent.cost):
                self._push(tape, low, high, bound, known)  # again, under the new cutoff
                return
            violated = max(
                highs.ball_excess(values),
                highs.cost_excess(values) if self.incumbent.action is not None else -np.inf,
            )
            if violated < 1e-8:
                break
            highs.cost_tangent(values)
            highs.ball_tangent(values)
        if not self._split(tape, widest(tape, low, high), bound, known):
            self.stuck = min(self.stuck, bound)

    def _split(
        self, tape: Tape, halves: tuple[Box, Box] | None, bound: float, known: Bounds | None = None
    ) -> bool:
        """Push both halves; False when there are none."""
        for low, high in halves or ():
            self._push(tape, low, high, bound, known)
        return halves is not None

    # -- ending --------------------------------------------------------------------------

    def _late(self) -> bool:
        return self.deadline is not None and time.perf_counter() > self.deadline

    def _nodes(self) -> int:
        return self.created + self.milp_nodes

    def _stopped(self, why: str) -> Proposal:
        open_bounds = [n.lower_bound for n in self.queue]
        bound = min([self.stuck, self.incumbent.target, *open_bounds])
        return Proposal(self.incumbent.action, max(0.0, bound), "solver", self._nodes(), why)
