"""A search of which several threads examine the open nodes.

In turns: the best nodes are dealt out; each thread examines so many of its own and of their children, best
first, as a search of its own; then what is open comes back, and what was found is judged. How many does not
depend on the clock, so that as many threads find the same, but for limits of time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.problem_arrays import Problems
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.work import RESERVE, Pool, larger, pool, workspace

TURN, PART = 64, 16
"""In a turn a thread examines so many nodes, or its share of the open ones over the second if that is more:
putting these in order takes long where they are many."""

CROWD = 32
"""A turn is worth it where each thread has so many nodes to examine, and so many are open for each."""


class Team(Run):
    """A search by several threads; those beside it (:meth:`~.propose.Run.another`) are such, too.

    Parameters
    ----------
    threads
        How many there are, 2 or more.
    given, named
        What a :class:`~.propose.Run` gets.
    """

    def __init__(self, threads: int, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.threads, self._helpers = threads, list[Run]()

    def beside(self, problem: Problems) -> Run:
        """A new search by as many threads."""
        return Team(self.threads, self.instance, problem)

    def examine(self, share: int, around: int = -1) -> int:
        """As for one thread, which examines nodes alone where few are open or there is no action."""
        if around >= 0 or share == 0:
            super().examine(0, around)
        count, opened = self.threads, int(self.tree.now.open)
        if min(share, opened) < CROWD * count or self.least == math.inf:
            return _examined(self, super().examine, min(share, TURN), Event())
        each = min(max(TURN, opened // (PART * count)), share // count)
        if int(self.tree.now.free) < count * each + RESERVE:  # each that is examined leaves one more at most
            return search.FULL
        return search.DONE if self._turn(each) == {search.DONE} else search.MORE

    def _turn(self, each: int) -> set[int]:
        """Let each thread examine so many nodes; why these ended. Where that is interrupted, the search
        is at its end, with the bound that it had."""
        helpers, self._helpers = self._helpers or [self._helper() for _ in range(self.threads - 1)], []
        had, least = [int(one.tree.now.examined) for one in helpers], self.bound
        try:
            self._deal(helpers, each)
            whys = self._together(helpers, each)
            for one, why in zip((self, *helpers), whys, strict=True):
                one.confirm()
                one.react(why)
            opened = [self.tree.heap[: self.tree.now.open]]
            for one, before in zip(helpers, had, strict=True):
                opened.append(self._take_over(one))
                self.tree.now.examined += int(one.tree.now.examined) - before
            _open(self.tree, _by_bound(self.tree, np.concatenate(opened)))
        except BaseException:
            # slots may be open and free at once: nothing is examined any more
            self.tree.stuck[0], self.tree.now.open = min(self.tree.stuck[0], least), 0
            raise
        self._helpers = helpers
        return set(whys)

    def _together(self, helpers: list[Run], each: int) -> list[int]:
        """Let each thread, this one first, examine so many of its nodes; why each ends."""
        stop = Event()
        with ThreadPoolExecutor(len(helpers)) as threads:
            try:
                others = [threads.submit(_examined, one, one.examine, each, stop) for one in helpers]
                own = _examined(self, super().examine, each, stop)
                return [own, *(other.result() for other in others)]
            finally:
                stop.set()

    def _helper(self) -> Run:
        """A search for another thread, without nodes. What compiled code writes to is its own: memory, and of
        the problem the levers (:func:`~.levers.relevel`)."""
        p = self.problem._replace(lever=self.problem.lever.copy())
        bends = len(self.work.columns.line) > p.start[-1]
        work, tree = workspace(p, bends), pool(p, 2 * TURN + RESERVE, bends)
        search.begin(p, work, tree)
        work.now.allowance, work.now.ceiling = self.work.now.allowance, self.work.now.ceiling
        for name in ("learned", "gained", "promised"):
            getattr(work, name)[:] = getattr(self.work, name)
        tree.free[:], tree.now.free = np.arange(len(tree.free))[::-1], len(tree.free)
        tree.now.open, tree.now.rootless = 0, 0
        tree.now.examined, tree.now.dived = self.tree.now.examined, self.tree.now.dived
        return Run(self.instance, p, begun=(work, tree))

    def _deal(self, helpers: list[Run], each: int) -> None:
        """Give each thread as many of the best nodes."""
        tree, count, most = self.tree, self.threads, self.threads * each
        slots = _by_bound(tree, tree.heap[: tree.now.open])
        for k, one in enumerate(helpers, 1):
            if len(one.tree.heap) < 2 * each + RESERVE:
                one.tree = larger(one.tree, 2 * each + RESERVE)
            one.clock, one.least, one.confirmed = self.clock, self.least, float(self.work.now.best_cost)
            one.work.now.best_cost = self.work.now.best_cost
            _open(one.tree, _moved(tree, slots[k:most:count], one.tree))
        _open(tree, np.concatenate([slots[:most:count], slots[most:]]))

    def _take_over(self, one: Run) -> NDArray[np.int64]:
        """Take over what another thread has found, and take back its open nodes; their slots."""
        back = _moved(one.tree, one.tree.heap[: one.tree.now.open], self.tree)
        one.tree.now.open = 0
        self.tree.stuck[0] = min(self.tree.stuck[0], one.tree.stuck[0])
        self.learn(one, math.inf)
        if one.least < self.least:  # it does not pass, but nodes were closed against its cost
            self.least, self.refused = one.least, one.refused
        if one.work.now.best_cost < self.work.now.best_cost:
            self.work.now.best_cost = self.confirmed = float(one.work.now.best_cost)
        return back


def _examined(run: Run, examine: Callable[[int], int], count: int, stop: Event) -> int:
    """Examine so many nodes, slice by slice; why it ends."""
    goal, why = int(run.tree.now.examined) + count, search.MORE
    while why == search.MORE and int(run.tree.now.examined) < goal and not (stop.is_set() or run.clock.over):
        why = examine(goal - int(run.tree.now.examined))
    return why


def _by_bound(tree: Pool, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slots in the order of their bounds, which is a heap, too."""
    return slots[np.argsort(tree.bound[slots], kind="stable")]


def _open(tree: Pool, slots: NDArray[np.int64]) -> None:
    """Make these the open nodes, which are in the order of their bounds."""
    tree.heap[: len(slots)], tree.now.open, tree.now.young = slots, len(slots), 0


def _moved(source: Pool, slots: NDArray[np.int64], target: Pool) -> NDArray[np.int64]:
    """Copy nodes to another pool, and free their slots; where they are there."""
    count, left, free = len(slots), int(target.now.free) - len(slots), int(source.now.free)
    places = target.free[left : left + count].copy()
    for name, array in source._asdict().items():
        if name not in ("heap", "free", "stuck", "now"):
            getattr(target, name)[places] = array[slots]
    source.free[free : free + count], source.now.free, target.now.free = slots, free + count, left
    return places
