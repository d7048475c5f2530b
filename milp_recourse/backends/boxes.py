"""Best-first search over action boxes: what every MILP back end does before a solver is asked.

A box is shaved, split where a structural ReLU turns, and closed by its bounds if they suffice;
what is left goes to :meth:`BoxSearch.decide`, which a back end supplies.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.bounds.contract import atom_ranges, least_cost
from milp_recourse.bounds.lagrangian import least_cost_where
from milp_recourse.bounds.shave import shave
from milp_recourse.bounds.split import Box, at_kink, widest
from milp_recourse.bounds.tape import Bounds, Tape
from milp_recourse.errors import Unsupported
from milp_recourse.incumbent import Incumbent
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.options import Clock
from milp_recourse.program import equilibrate, lower

Array = NDArray[np.float64]

CANCELLING = 1e9
"""How many times larger than its own size a constraint's terms may be; MILP back ends refuse larger ones."""


@dataclass(order=True)
class Node:
    """A box of one configuration; ordered by its lower bound.

    Attributes
    ----------
    lower_bound
        No action in the box costs less.
    order
        Breaks ties: older first.
    tape, low, high
        The configuration and the box of its actions, shape (d,).
    known
        Bounds proven for a box around it, or None.
    """

    lower_bound: float
    order: int
    tape: Tape = field(compare=False)
    low: Array = field(compare=False)
    high: Array = field(compare=False)
    known: Bounds | None = field(compare=False, default=None)


class BoxSearch(ABC):
    """The search over the boxes of all configurations. A back end supplies :meth:`decide`; its caller calls
    :meth:`run`.

    Parameters
    ----------
    many_unstable
        Boxes with more open ReLUs are halved before they are handed to :meth:`decide`.
    """

    def __init__(self, instance: Instance, options: Options, many_unstable: int) -> None:
        self.clock = Clock.start(options.time_limit)
        self.incumbent = Incumbent(instance)
        self.instance = instance
        self.many_unstable = many_unstable
        self.nodes = 0
        self.reason = "a box became too small to split"
        self._queue: list[Node] = []
        self._stuck = np.inf  # least lower bound among boxes given up

    @abstractmethod
    def decide(self, node: Node, bounds: Bounds) -> None:
        """Close a box, or call :meth:`push`, :meth:`halve` or :meth:`give_up` with what is left of it."""

    def run(self) -> Proposal:
        """Search until every box is closed, or the deadline."""
        program = equilibrate(lower(self.instance))
        tapes = [Tape(program.fix(acted)) for acted in program.configurations()]
        for tape in tapes:
            refuse_cancelling(tape)
        from milp_recourse.compiled.nearby import first_action

        start = first_action(self.instance)
        if start is not None:
            self.incumbent.take(start)
        for tape in tapes:
            if len(tape.actions):
                self.push(tape, (tape.lower, tape.upper), tape.fixed_cost)
        while self._queue and not self.clock.over:
            node = heapq.heappop(self._queue)
            if node.lower_bound <= self.incumbent.target:
                self._process(node)
        target = self.incumbent.target
        bound = min([target, self._stuck, *(n.lower_bound for n in self._queue)])
        message = None
        if bound < target:
            message = "the time limit was reached" if self.clock.over else self.reason
        return Proposal(self.incumbent.action, max(0.0, bound), "solver", self.nodes, message)

    # -- for decide ----------------------------------------------------------------------

    def push(self, tape: Tape, box: Box, bound: float, known: Bounds | None = None) -> None:
        """Put a box on the queue."""
        self.nodes += 1
        heapq.heappush(self._queue, Node(bound, self.nodes, tape, *box, known))

    def halve(self, node: Node) -> None:
        """Split a box that could not be decided; give up on one that is a point."""
        halves = widest(node.tape, node.low, node.high)
        if halves is None:
            self.give_up(node.lower_bound)
        for half in halves or ():
            self.push(node.tape, half, node.lower_bound, node.known)

    def give_up(self, bound: float) -> None:
        """Leave a box undecided, with this bound, which limits the bound of the whole search."""
        self._stuck = min(self._stuck, bound)

    def improve(self, tape: Tape, a: Array) -> bool:
        """Look for a feasible action next to a solver's point; returns whether that made the incumbent
        cheaper by more than a tenth of its tolerance."""
        from milp_recourse.compiled.nearby import near

        before = self.incumbent.cost
        found = near(self.instance, tape.program.decode(a))
        if found is not None:
            self.incumbent.take(found)
        return self.incumbent.cost < before - 0.1 * self.incumbent.tolerance

    # -- inside --------------------------------------------------------------------------

    def _judge_point(self, tape: Tape, a: Array, bound: float) -> None:
        """Decide a box that is one point by judging it exactly."""
        verdict = judge(self.instance, tape.program.decode(a))
        if verdict.feasible:
            self.incumbent.take(tape.program.decode(a))
        elif not verdict.faults:
            self.reason = "an action is accepted exactly but not as deployed: set accept.margin"
            self.give_up(bound)

    def _process(self, node: Node) -> None:
        """Shave a box, then close it by its bounds, split it, or hand it to :meth:`decide`."""
        tape, target = node.tape, self.incumbent.target
        low, high = shave(tape, node.low, node.high, target)
        if (low > high).any():
            return
        bound = max(node.lower_bound, float(least_cost(tape, low[None], high[None])[0]))
        if bound > target:
            return
        if (low == high).all():
            self._judge_point(tape, low, bound)
            return
        halves = at_kink(tape, low, high)
        if halves is not None:
            for half in halves:
                self.push(tape, half, bound)
            return
        bounds = tape.bounds(low[None], high[None], node.known)
        if bounds.logit_high[0] < tape.threshold:
            return
        limit = tape.threshold - bounds.offset
        bound = max(bound, float(least_cost_where(tape, low[None], high[None], bounds.slope, limit)[0]))
        if bound > target:
            return
        tight = Node(bound, node.order, tape, low, high, bounds)
        if bounds.unstable()[0] > self.many_unstable and widest(tape, low, high) is not None:
            self.halve(tight)
        else:
            self.decide(tight, bounds)


def refuse_cancelling(tape: Tape) -> None:
    """Refuse domains and balls whose terms are :data:`CANCELLING` times what they are compared with.

    In a MILP such terms are in one row of floats, and the solver's relative tolerance on them is larger than
    the room that the row leaves. (The engine adds a slack for cancellation and needs no such rule.)

    Raises
    ------
    Unsupported
        The message names the constraint and a back end that can.
    """
    low, high = atom_ranges(tape, tape.lower[None], tape.upper[None])
    reach = np.maximum(np.abs(low), np.abs(high))[0]
    span = tape.row_high - tape.row_low
    rows = np.abs(tape.row_forms) @ reach + np.abs(tape.row_offset)
    with np.errstate(invalid="ignore", divide="ignore"):
        radius = np.sqrt(np.maximum(-tape.ball_offset, 0.0) / tape.ball_weights)
        ball = np.abs(tape.residuals) @ reach + np.abs(tape.residual_offset)
        lost = [
            (r.name, bool(bad))
            for r, bad in zip(tape.program.rows, (span > 0) & (rows > CANCELLING * span), strict=True)
        ]
        lost += [("plausibility", bool(bad)) for bad in (ball > CANCELLING * radius) & (radius > 0)]
    for name, bad in lost:
        if bad:
            raise Unsupported(
                f"{name}: its terms nearly cancel, which mixed-integer rows cannot say; use bab"
            )
