"""Best-first search over action boxes: what every MILP back end does before a solver is asked.

The compiled engine contracts and bounds a box, and may close it (:mod:`milp_recourse.solvers.rows.bounds`). A
box is split where a structural ReLU turns; what is left goes to :meth:`BoxSearch.decide`, which a back end
supplies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.box_bounds import ready
from milp_recourse.errors import Unsupported
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, Clock
from milp_recourse.program import lower
from milp_recourse.program.neutral_program import Program
from milp_recourse.solvers.protocol import Options, Proposal
from milp_recourse.solvers.rows.bounds import Configuration, ProgramBounds

Array = NDArray[np.float64]
Box = tuple[Array, Array]

CANCELLING = 1e9
"""How many times larger than its own size a constraint's terms may be; MILP back ends refuse larger ones."""

SHAVES, SLABS = 4, 6
"""How often a box of a program with curves is shaved, and into how many slabs an interval is thought to be
cut."""


@dataclass
class Node:
    """A box of one configuration.

    Attributes
    ----------
    lower_bound
        No action in the box costs less.
    part, low, high
        The configuration and the box of its actions, shape (d,).
    known
        Bounds proven for a box around it, or None.
    """

    lower_bound: float
    part: Configuration
    low: Array
    high: Array
    known: ProgramBounds | None = None


class BoxSearch(BestFirst[Node], ABC):
    """The search over the boxes of all configurations. A back end supplies :meth:`decide`; its caller calls
    :meth:`run`.

    Parameters
    ----------
    many_unstable
        Boxes with more open ReLUs are halved before they are handed to :meth:`decide`.
    """

    def __init__(self, instance: Instance, options: Options, many_unstable: int) -> None:
        ready()
        super().__init__(instance, Clock.start(options.time_limit), "solver")
        self.instance, self.many_unstable = instance, many_unstable
        self.message = "a box became too small to split"

    @abstractmethod
    def decide(self, node: Node, bounds: ProgramBounds) -> None:
        """Prove that nothing in a box costs less than the target, or call :meth:`open`, :meth:`halve` or
        :meth:`close` with what is left of it."""

    def run(self) -> Proposal:
        """Search until every box is closed, or the deadline.

        Raises
        ------
        Unsupported
            Weights of a configuration cancel (:func:`refuse_cancelling`); only those made before the deadline
            are looked at.
        """
        from milp_recourse.engine.networks.nearby import first_action

        start = first_action(self.instance, self.clock)
        if start is not None:
            self.offer(start)
        program = lower(self.instance)
        for acted in program.configurations():
            if self.clock.over:  # there may be very many
                self.close(0.0)
                self.stop(LATE)
                break
            fixed = program.fix(acted)
            if fixed.actions and not fails(fixed):
                part = Configuration(self.instance, fixed)
                refuse_cancelling(part)
                self.open(part, (part.lower, part.upper), part.fixed_cost)
        while taken := self.next():
            self._process(taken[0][1])
        self.close()  # what boxes were closed against
        return self.outcome()

    # -- for decide ----------------------------------------------------------------------

    def open(self, part: Configuration, box: Box, bound: float, known: ProgramBounds | None = None) -> None:
        """Put a box on the queue."""
        self.nodes += 1
        self.push(bound, Node(bound, part, *box, known))

    def halve(self, node: Node) -> None:
        """Split a box that could not be decided; judge one that is a point, and give up on one that is too
        small to split."""
        if (node.low == node.high).all():
            self._judge_point(node.part, node.low, node.lower_bound)
            return
        halves = widest(node.part, node.low, node.high)
        if halves is None:
            self.close(node.lower_bound)
        for half in halves or ():
            self.open(node.part, half, node.lower_bound, node.known)

    def improve(self, part: Configuration, a: Array) -> bool:
        """Look for a feasible action next to a solver's point; returns whether that made the incumbent
        cheaper by more than a tenth of its tolerance."""
        from milp_recourse.engine.networks.nearby import near

        before = self.best.cost
        found = near(self.instance, part.program.decode(a))
        if found is not None:
            self.offer(found)
        return self.best.cost < before - 0.1 * self.best.tolerance

    def bounded(self, node: Node) -> tuple[Node, ProgramBounds] | None:
        """A node with what is proven of its box, and the bounds there; None if nothing in it is cheaper than
        the target."""
        found = node.part.bound(node.low, node.high, self.best.target, node.known)
        if found is None or found.least > self.best.target:
            return None
        least = max(node.lower_bound, found.least)
        made = replace(node, lower_bound=least, low=found.low, high=found.high, known=found.bounds)
        return made, found.bounds

    # -- inside --------------------------------------------------------------------------

    def _judge_point(self, part: Configuration, a: Array, bound: float) -> None:
        """Decide a box that is one point by judging it exactly."""
        verdict = self.offer(part.program.decode(a))
        if not (verdict.feasible or verdict.faults):
            self.message = "an action is accepted exactly but not as deployed: set accept.margin"
            self.close(bound)

    def _shaved(self, node: Node) -> Node:
        """Cut slabs off the sides of a box as long as nothing in them is cheaper than the target."""
        part, low, high = node.part, node.low.copy(), node.high.copy()
        for _ in range(SHAVES):
            before = high - low
            for k in np.flatnonzero(~part.integral & (before > 0)):
                for end, slab in ((low, 1), (high, -1)):
                    for _slab in range(SLABS - 1):
                        inner, ends = end[k] + slab * (high[k] - low[k]) / SLABS, (low.copy(), high.copy())
                        ends[slab > 0][k] = inner
                        if not part.closes(*ends, self.best.target, node.known):
                            break
                        end[k] = inner
            if ((high - low) > 0.8 * before).all() or self.clock.over:
                break
        return replace(node, low=low, high=high)

    def _process(self, node: Node) -> None:
        """Bound a box, then split it or hand it to :meth:`decide` if that has not closed it."""
        found = self.bounded(node)
        if found is not None and node.part.curved:  # solvers get a curve in pieces: a smaller box helps
            found = self.bounded(self._shaved(found[0]))
        if found is None:
            return
        tight, bounds = found
        halves = at_kink(tight.part, tight.low, tight.high)
        if halves is not None:
            for half in halves:
                self.open(tight.part, half, tight.lower_bound)
        elif (tight.low == tight.high).all() or self._is_large(tight, bounds):
            self.halve(tight)
        else:
            self.decide(tight, bounds)

    def _is_large(self, node: Node, bounds: ProgramBounds) -> bool:
        """Whether a box is to be halved before a solver is asked."""
        return bounds.unstable > self.many_unstable and widest(node.part, node.low, node.high) is not None


def fails(program: Program) -> bool:
    """Whether a row fails whatever the actions are."""
    return any(r.form.is_constant and not r.lower <= r.form.constant <= r.upper for r in program.rows)


def refuse_cancelling(part: Configuration) -> None:
    """Refuse domains and balls whose terms are :data:`CANCELLING` times what they are compared with.

    In a MILP such terms are in one row of floats, and the solver's relative tolerance on them is larger than
    the room that the row leaves. (The engine adds a slack for cancellation and needs no such rule.)

    Raises
    ------
    Unsupported
        The message names the constraint and a back end that can.
    """
    program = part.program
    reach = np.abs(part.intervals().atoms).max(axis=1, initial=0.0)
    forms, offset = part.dense([row.form for row in program.rows])
    span = np.array([row.upper - row.lower for row in program.rows])
    rows = np.abs(forms) @ reach + np.abs(offset)
    lost = [
        (row.name, bad)
        for row, bad in zip(program.rows, (span > 0) & (rows > CANCELLING * span), strict=True)
    ]
    if program.ball is not None:
        forms, offset = part.dense([form for _, form in program.ball.squares])
        weights = np.array([float(weight) for weight, _ in program.ball.squares])
        with np.errstate(invalid="ignore", divide="ignore"):
            radius = np.sqrt(max(-float(program.ball.linear.constant), 0.0) / weights)
            ball = np.abs(forms) @ reach + np.abs(offset)
            lost += [("plausibility", bad) for bad in (ball > CANCELLING * radius) & (radius > 0)]
    for name, bad in lost:
        if bad:
            raise Unsupported(
                f"{name}: its terms nearly cancel, which mixed-integer rows cannot say; use bab"
            )


def at_kink(part: Configuration, low: Array, high: Array) -> tuple[Box, Box] | None:
    """Two parts of a box, cut at the kink of a ReLU that depends on one action alone; None if there is none.

    ReLUs that only the cost uses do not count: a distribution function has too many.
    """
    for i, kink in part.kinks:
        if low[i] < kink < high[i] and not part.integral[i]:
            return _halves(low, high, i, kink, kink)
    return None


def widest(part: Configuration, low: Array, high: Array) -> tuple[Box, Box] | None:
    """Two halves of the box along its widest side, measured in cost; None when it is a point."""
    splittable = high - low > 1e-9 * (1 + np.abs(low))
    if not splittable.any():
        return None
    k = int(np.argmax(np.where(splittable, (high - low) * part.weight, -1.0)))
    middle = (low[k] + high[k]) / 2
    if part.integral[k]:
        return _halves(low, high, k, np.floor(middle), np.floor(middle) + 1)
    return _halves(low, high, k, middle, middle)


def _halves(low: Array, high: Array, k: int, left_end: float, right_start: float) -> tuple[Box, Box]:
    """The box with side k up to one value, and from another on."""
    left, right = high.copy(), low.copy()
    left[k], right[k] = left_end, right_start
    return (low, left), (right, high)
