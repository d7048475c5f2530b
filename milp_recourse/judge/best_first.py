"""Best first: the loop that searches in Python share, with their clock and the best action in hand.

An action is judged exactly before it counts.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Generic, TypeVar

from milp_recourse.judge.conclude import Proposal
from milp_recourse.judge.judgement import Action, Judgement, judge
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, NEVER, Clock
from milp_recourse.problem.result import Proof


class Incumbent:
    """Keeps the cheapest action that is exactly feasible.

    Parameters
    ----------
    instance
        The problem.
    found
        Called with each action that is kept.

    Attributes
    ----------
    judgement
        Of the action; None while nothing is known.
    cost
        Its exact cost rounded to a double; ``inf`` without one.
    """

    def __init__(self, instance: Instance, found: Callable[[Action], object] | None = None) -> None:
        self.instance, self.found = instance, found
        self.judgement: Judgement | None = None
        self.cost = math.inf

    @property
    def action(self) -> Action | None:
        """Feature -> value, or None while nothing is known."""
        return None if self.judgement is None else self.judgement.action

    @property
    def target(self) -> float:
        """The incumbent's cost less half the allowed gap; ``inf`` without an incumbent.

        The search is complete once no node can cost less than this.
        """
        return math.inf if self.judgement is None else self.instance.target_below(self.cost)

    @property
    def proven(self) -> float:
        """The largest double that is not above its exact cost: no lower bound is higher; inf without one."""
        return math.inf if self.judgement is None else round_down(self.judgement.cost)

    @property
    def tolerance(self) -> float:
        """The gap up to which the cost counts as optimal."""
        return self.instance.gap_tolerance(self.cost)

    @property
    def cutoff(self) -> float | None:
        """The target, or None if there is no incumbent or the target is not above 0."""
        return self.target if 0 < self.target < math.inf else None

    def take(self, action: Action) -> Judgement:
        """Judge an action, and keep it if it is feasible and the cheapest."""
        verdict = judge(self.instance, action)
        if verdict.feasible and float(verdict.cost) < self.cost:
            self.judgement, self.cost = verdict, float(verdict.cost)
            if self.found is not None:
                self.found(verdict.action)
        return verdict


Node = TypeVar("Node")


class Queue(Generic[Node]):
    """Open nodes, the one of least bound first.

    Parameters
    ----------
    newest
        Whether among nodes of the same bound the newest comes first, not the oldest.
    """

    def __init__(self, newest: bool = False) -> None:
        self._queue: list[tuple[float, int, Node]] = []
        self._soon: list[tuple[float, Node]] = []
        self._pushed, self._turn = 0, -1 if newest else 1

    @property
    def count(self) -> int:
        """How many nodes are open."""
        return len(self._queue) + len(self._soon)

    @property
    def least(self) -> float:
        """The least bound of an open node; inf if there is none."""
        least = min((bound for bound, _ in self._soon), default=math.inf)
        return min(self._queue[0][0], least) if self._queue else least

    def push(self, bound: float, node: Node, soon: bool = False) -> None:
        """Open a node; with ``soon`` it comes before all others but those that are so pushed later, whatever
        its bound."""
        if soon:
            self._soon.append((bound, node))
            return
        self._pushed += self._turn
        heapq.heappush(self._queue, (bound, self._pushed, node))

    def pop(self, target: float, most: int = 1, spread: float = math.inf) -> list[tuple[float, Node]]:
        """Take out the nodes of least bounds, with their bounds.

        Parameters
        ----------
        target
            Above all of these bounds.
        most
            How many at most.
        spread
            By how much their bounds may differ.
        """
        if self._soon:
            return [self._soon.pop()]
        taken: list[tuple[float, Node]] = []
        last = self.least + spread
        while self._queue and len(taken) < most and self._queue[0][0] < target and self._queue[0][0] <= last:
            bound, _, node = heapq.heappop(self._queue)
            taken.append((bound, node))
        return taken


class BestFirst(Queue[Node]):
    """Open nodes, the best action, the clock, and what all of this proves.

    A search pushes its first nodes, then asks for the :meth:`next` ones until there are none. Of each it
    pushes the parts that stay open, and calls :meth:`close` with a bound of what it leaves for good. Nodes in
    hand count as open until the next ones are asked for.

    Parameters
    ----------
    proof
        What bounds rest on.
    watch
        Called with the cost of the best action (inf without one) and the lower bound when one improves.
    newest
        See :class:`Queue`.
    found
        Called with each action that is the cheapest so far.

    Attributes
    ----------
    best
        The best action.
    closed
        The least bound of what is closed; inf if nothing is.
    ceiling
        More than any action costs: a bound of this much proves that there is none.
    nodes
        How many there were, as the search counts them.
    message
        Why the search ended before its proof, if it did.
    """

    def __init__(
        self,
        instance: Instance,
        clock: Clock = NEVER,
        proof: Proof = "rigorous",
        watch: Callable[[float, float], object] | None = None,
        newest: bool = False,
        found: Callable[[Action], object] | None = None,
    ) -> None:
        super().__init__(newest)
        self.best, self.clock, self.watch = Incumbent(instance, found), clock, watch
        self.proof: Proof = proof
        self.closed = self.ceiling = math.inf
        self.nodes = 0
        self.message: str | None = None
        self._in_hand, self._stopped = 0.0, False  # at first the whole problem is in hand
        self._told = math.inf, 0.0

    @property
    def target(self) -> float:
        """The bound that every node must reach; see :attr:`Incumbent.target`."""
        return min(self.best.target, self.ceiling)

    @property
    def lower_bound(self) -> float:
        """No feasible action costs less; inf: there is none."""
        least = min(self.closed, self.least, self._in_hand)
        return min(math.inf if least >= self.ceiling else least, self.best.proven)

    def close(self, bound: float | None = None) -> None:
        """Leave a part for good in which nothing costs less than a bound; None: than the target."""
        self.closed = min(self.closed, self.target if bound is None else bound)

    def next(self, most: int = 1, spread: float = math.inf) -> list[tuple[float, Node]]:
        """The open nodes to be bounded next, none if the search has ended; as :meth:`Queue.pop`."""
        self._in_hand = math.inf
        if self._stopped or not self.least < self.target:
            return []
        if self.clock.over:
            self.stop(LATE)
            return []
        taken = self.pop(self.target, most, spread)
        self._in_hand = min(bound for bound, _ in taken)
        self._report()
        return taken

    def stop(self, message: str | None) -> None:
        """Let no more nodes come, and say why."""
        self._stopped, self.message = True, message

    def offer(self, action: Action) -> Judgement:
        """Judge an action, and keep it if it is feasible and the cheapest."""
        verdict = self.best.take(action)
        self._report()
        return verdict

    def outcome(self, seconds: float | None = None) -> Proposal:
        """The best action, what is proven, and the message unless that suffices."""
        bound, best = self.lower_bound, self.best
        message = self.message if bound < self.target else None
        made = self.proof, self.nodes, message, seconds, best.judgement
        return Proposal(best.action, max(bound, 0.0), *made)

    def _report(self) -> None:
        if self.watch is None:
            return
        cost, bound = self.best.cost, max(self.lower_bound, 0.0)
        if cost < self._told[0] or bound > self._told[1]:
            self._told = cost, bound
            self.watch(cost, bound)
