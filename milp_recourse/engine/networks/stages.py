"""Searches beside one that takes long: for what costs less than a part of its best action, or from signs that
semidefinite relaxations leave open."""

from __future__ import annotations

import math
from typing import Protocol

from milp_recourse.engine.networks import search, semidefinite
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.sign_tree import SignTree

SHARE, MOST = 0.25, 4.0
"""How many nodes stages get, as a share of the search's own (:meth:`~.propose.Run.due`)."""

FIRST_STAGE, STEPS, GROWS = 0.0625, (0.1, 0.5), 4.0
"""The first stage's share of the best action's cost; the least and the largest share of the rest that a stage
adds to the one before, which it at most doubles; how many times as many nodes it is to take, about."""

NEARLY, PATIENCE = 8.0, 2.0
"""Where the search is thought to take at most so many times the nodes of the last stage, no stage goes on
until it has had so many times what it is thought to take: a stage for the rest would be the same search."""

TELL = 4000
"""A tree over signs begins after stages have had so many nodes, and not while the search goes on alone."""

NO_MORE = 2**62
"""Nodes that no search examines."""


class Beside(Protocol):
    """Searches beside one."""

    @property
    def low(self) -> float:
        """The bound that is proven."""

    def go_on(self) -> None:
        """Examine the share of nodes that is theirs, less what they have had."""


def beside(state: Run) -> Beside:
    """Those that a search gets."""
    return Both(state) if semidefinite.covers(state.problem) else Stages(state)


class Stages:
    """Searches for what costs less than a part of the best action: these prove a bound where the search's own
    stays near 0.

    Within a smaller budget all lines are tighter, so that a stage takes a small share of the nodes of the
    next one: their number grows about exponentially with the budget, at a rate that the last two tell. Each
    stage that finds nothing proves its cost as a bound for all actions.

    Attributes
    ----------
    low
        The bound that is proven.
    wait
        Until the search has so many nodes, it goes on alone.
    """

    def __init__(self, state: Run) -> None:
        self.state, self.low, self.given, self.budget = state, 0.0, 0, 0.0
        self.now: Run | None = None
        self.wait, self.took, self.step = 0.0, 1, math.inf

    def go_on(self) -> None:
        """Examine the share of nodes that is theirs, less what they have had."""
        state, alone = self.state, int(self.state.tree.now.examined)
        least = 0 if alone < self.wait else int(state.due(self.low, SHARE, MOST))
        while self.given < least and self.low < state.target and not state.clock.over:
            now = self.now = self.now or self._next()
            examined = int(now.tree.now.examined)
            why = now.examine(least - self.given)
            self.given += max(int(now.tree.now.examined) - examined, 1)
            now.confirm()
            if now.react(why) is not None:
                self.given = NO_MORE
            state.learn(now, self.budget)
            if why == search.DONE:
                before, self.now = self.low, None
                self.low = max(self.low, min(now.proven, now.target))
                if not self.low > before:  # it got stuck, or the allowed gap is larger than its budget
                    self.given = NO_MORE
                else:
                    self._plan(self.low - before, max(int(now.tree.now.examined), 1))
                    least = 0 if alone < self.wait else least
                now.close()

    def _plan(self, step: float, took: int) -> None:
        """The next stage's step, from what the last took, and how long the search goes on alone."""
        rate, rest = max(math.log(took / self.took), 0.0) / step, self.state.target - self.low
        self.took, self.step = took, math.log(GROWS) / rate if rate > 0.0 else math.inf
        if rate * rest <= math.log(NEARLY):
            self.wait = PATIENCE * took * math.exp(rate * rest)

    def _next(self) -> Run:
        """The next stage's search."""
        target, low = self.state.target, self.low
        least, most = (share * (target - low) for share in STEPS)
        self.budget = max(low + min(max(self.step, least), most, low), FIRST_STAGE * target)
        return self.state.another(self.budget)


class Both:
    """Stages, which tell whether the search itself is about to end, and a tree over signs where it is not.
    Once the tree has proven more than the stages have, it goes on alone."""

    def __init__(self, state: Run) -> None:
        self.state, self.stages, self.tree = state, Stages(state), SignTree(state)

    @property
    def low(self) -> float:
        """The bound that is proven."""
        return max(self.stages.low, self.tree.low)

    def go_on(self) -> None:
        """Examine the share of nodes that is theirs, less what they have had."""
        stages, tree = self.stages, self.tree
        if tree.low <= stages.low:
            stages.go_on()
        if int(self.state.tree.now.examined) >= stages.wait and stages.given >= TELL:
            tree.low = self.low
            tree.go_on()
