"""Best-first search over action boxes: what every MILP back end does before a solver is asked.

The compiled engine contracts and bounds a box, and may close it (:mod:`milp_recourse.encodings.bounds`). A
box is split where a structural ReLU turns; what is left goes to :meth:`BoxSearch.decide`, which a back end
supplies.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.encodings.bounds import Bounded, Configuration, ProgramBounds
from milp_recourse.errors import Unsupported
from milp_recourse.incumbent import Incumbent
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.options import Clock
from milp_recourse.program import lower
from milp_recourse.program.functions import CURVES
from milp_recourse.program.model import CostTerm, Elementary, Program

Array = NDArray[np.float64]
Box = tuple[Array, Array]

CANCELLING = 1e9
"""How many times larger than its own size a constraint's terms may be; MILP back ends refuse larger ones."""


SHAVES, SLABS = 4, 6
"""How often a box of a program with curves is shaved, and into how many slabs an interval is thought to be
cut."""


@dataclass(order=True)
class Node:
    """A box of one configuration; ordered by its lower bound.

    Attributes
    ----------
    lower_bound
        No action in the box costs less.
    order
        Breaks ties: older first.
    part, low, high
        The configuration and the box of its actions, shape (d,).
    known
        Bounds proven for a box around it, or None.
    """

    lower_bound: float
    order: int
    part: Configuration = field(compare=False)
    low: Array = field(compare=False)
    high: Array = field(compare=False)
    known: ProgramBounds | None = field(compare=False, default=None)


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
    def decide(self, node: Node, bounds: ProgramBounds) -> None:
        """Close a box, or call :meth:`push`, :meth:`halve` or :meth:`give_up` with what is left of it."""

    def run(self) -> Proposal:
        """Search until every box is closed, or the deadline."""
        program = lower(self.instance)
        fixed = [program.fix(acted) for acted in program.configurations()]
        parts = [Configuration(self.instance, one) for one in fixed if one.actions and not fails(one)]
        for part in parts:
            refuse_cancelling(part)
        from milp_recourse.compiled.nearby import first_action

        start = first_action(self.instance)
        if start is not None:
            self.incumbent.take(start)
        for part in parts:
            self.push(part, (part.lower, part.upper), part.fixed_cost)
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

    def push(self, part: Configuration, box: Box, bound: float, known: ProgramBounds | None = None) -> None:
        """Put a box on the queue."""
        self.nodes += 1
        heapq.heappush(self._queue, Node(bound, self.nodes, part, *box, known))

    def halve(self, node: Node) -> None:
        """Split a box that could not be decided; judge one that is a point, and give up on one that is too
        small to split."""
        if (node.low == node.high).all():
            self._judge_point(node.part, node.low, node.lower_bound)
            return
        halves = widest(node.part, node.low, node.high)
        if halves is None:
            self.give_up(node.lower_bound)
        for half in halves or ():
            self.push(node.part, half, node.lower_bound, node.known)

    def give_up(self, bound: float) -> None:
        """Leave a box undecided, with this bound, which limits the bound of the whole search."""
        self._stuck = min(self._stuck, bound)

    def improve(self, part: Configuration, a: Array) -> bool:
        """Look for a feasible action next to a solver's point; returns whether that made the incumbent
        cheaper by more than a tenth of its tolerance."""
        from milp_recourse.compiled.nearby import near

        before = self.incumbent.cost
        found = near(self.instance, part.program.decode(a))
        if found is not None:
            self.incumbent.take(found)
        return self.incumbent.cost < before - 0.1 * self.incumbent.tolerance

    # -- inside --------------------------------------------------------------------------

    def _judge_point(self, part: Configuration, a: Array, bound: float) -> None:
        """Decide a box that is one point by judging it exactly."""
        action = part.program.decode(a)
        verdict = judge(self.instance, action)
        if verdict.feasible:
            self.incumbent.take(action)
        elif not verdict.faults:
            self.reason = "an action is accepted exactly but not as deployed: set accept.margin"
            self.give_up(bound)

    def bounded(self, node: Node) -> Bounded | None:
        """What is proven of a node's box; None if nothing in it is cheaper than the target."""
        found = node.part.bound(node.low, node.high, self.incumbent.target, node.known)
        return None if found is None or found.least > self.incumbent.target else found

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
                        if part.bound(*ends, self.incumbent.target, node.known) is not None:
                            break
                        end[k] = inner
            if ((high - low) > 0.8 * before).all() or self.clock.over:
                break
        return replace(node, low=low, high=high)

    def _process(self, node: Node) -> None:
        """Bound a box, then split it or hand it to :meth:`decide` if that has not closed it."""
        part, found = node.part, self.bounded(node)
        if found is not None and curved(part):
            found = self.bounded(self._shaved(replace(node, low=found.low, high=found.high)))
        if found is None:
            return
        low, high, bounds = found.low, found.high, found.bounds
        bound = max(node.lower_bound, found.least)
        tight = Node(bound, node.order, part, low, high, bounds)
        if (low == high).all():
            self.halve(tight)
            return
        halves = at_kink(part, low, high)
        if halves is not None:
            for half in halves:
                self.push(part, half, bound)
            return
        if bounds.unstable > self.many_unstable and widest(part, low, high) is not None:
            self.halve(tight)
        else:
            self.decide(tight, bounds)


def curved(part: Configuration) -> bool:
    """Whether a row, the ball or the network depends on a curve. Solvers see it cut into pieces, so that a
    smaller box is worth more than elsewhere."""
    program = part.program
    used = program.behind(program.constrained())
    return any(isinstance(a, Elementary) and a.function in CURVES for a in (program.atoms[k] for k in used))


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
    program = part.program
    used = program.behind(program.constrained())
    for k, unit in enumerate(program.atoms):
        if k not in used or not (isinstance(unit, Elementary) and unit.function == "relu"):
            continue
        form = unit.argument
        if len(form.terms) != 1 or next(iter(form.terms)) not in part.actions:
            continue
        [(place, slope)] = form.terms.items()
        i, kink = part.actions.index(place), float(-form.constant / slope)
        if low[i] < kink < high[i] and not part.integral[i]:
            return _halves(low, high, i, kink, kink)
    return None


def widest(part: Configuration, low: Array, high: Array) -> tuple[Box, Box] | None:
    """Two halves of the box along its widest side, measured in cost; None when it is a point."""
    splittable = high - low > 1e-9 * (1 + np.abs(low))
    if not splittable.any():
        return None
    terms = {term.feature: term for term in part.program.cost_terms}
    lengths = [_in_cost(terms[action.feature]) for action in part.program.actions]
    k = int(np.argmax(np.where(splittable, (high - low) * lengths, -1.0)))
    middle = (low[k] + high[k]) / 2
    if part.integral[k]:
        return _halves(low, high, k, np.floor(middle), np.floor(middle) + 1)
    return _halves(low, high, k, middle, middle)


def _in_cost(term: CostTerm) -> float:
    """How much a change of 1 counts: its weight's root, in scales, or from the lowest percentile to the
    highest."""
    length = float(term.scale)
    if term.quantiles is not None:
        length = term.quantiles.values[-1] - term.quantiles.values[0]
    return math.sqrt(float(term.weight)) / length


def _halves(low: Array, high: Array, k: int, left_end: float, right_start: float) -> tuple[Box, Box]:
    """The box with side k up to one value, and from another on."""
    left, right = high.copy(), low.copy()
    left[k], right[k] = left_end, right_start
    return (low, left), (right, high)
