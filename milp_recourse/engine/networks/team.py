"""Threads that examine the open nodes of one search at once.

In turns: the best nodes are dealt out, one to each thread by turns, which examines so many of these and of
their children, best first, in memory of its own; then what is open goes back. How many does not depend on the
clock, so that the same threads find the same, but for limits of time.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.problem_arrays import Problems
from milp_recourse.engine.networks.search import SPARE, Taken
from milp_recourse.engine.networks.work import MOST_BYTES, RESERVE, Pool, Work, bytes_of, roomy
from milp_recourse.problem.options import Clock

TURN, PART = 64, 16
"""In a turn a thread examines at most so many nodes, or the number of open ones over the second if that is
more: putting these in order takes long where they are many."""

CROWD = 32
"""A turn is worth it where each thread has so many nodes to examine, and so many are open for each."""

NEVER = 2**40
"""Of nodes: only the search's own thread dives."""


class OneSearch(Protocol):
    """What a team needs of a search (:class:`~milp_recourse.engine.networks.propose.Run`)."""

    work: Work
    tree: Pool
    problem: Problems
    least: float
    clock: Clock

    def slice(self, work: Work, tree: Pool, share: int, around: int = -1) -> int:
        """Examine nodes by one thread, in whose memory this is."""

    def confirm(self) -> None:
        """Judge the best action."""

    def question(self, why: int, w: Work, tree: Pool) -> None:
        """Answer what a thread has returned for."""


class Team:
    """The threads of a search.

    Parameters
    ----------
    count
        How many there are, with the search's own.
    """

    def __init__(self, state: OneSearch, count: int) -> None:
        self.state, self.count = state, count
        self.helpers: list[Taken] = []
        self._lent: list[Taken] = []

    def close(self) -> None:
        """Give the memory to later searches."""
        for memory in self._lent:
            SPARE.give(self.state.problem, memory)

    def turn(self, share: int, around: int) -> int:
        """As :meth:`~.propose.Run.examine`, by one thread where few nodes are open or there is no action. Why
        the search's own thread has returned; what several ask is answered."""
        state, count, stop = self.state, self.count, Event()
        if around >= 0:
            state.slice(state.work, state.tree, 0, around)
        if min(share, int(state.tree.now.open)) < CROWD * count or state.least == math.inf:
            return self._examine(state.work, state.tree, min(share, TURN), stop)
        if not self.helpers:
            self._lent = [SPARE.take(state.problem) for _ in range(count - 1)]
            self.helpers = list(self._lent)
        each = min(max(TURN, int(state.tree.now.open) // PART), share // count)
        gained = [part.copy() for part in _gains(state.work)]
        self._deal(each)
        every = [(state.work, state.tree), *self.helpers]
        try:
            with ThreadPoolExecutor(len(self.helpers)) as threads:
                others = [threads.submit(self._examine, *one, each, stop) for one in self.helpers]
                try:
                    whys = [self._examine(*every[0], each, stop)]
                except BaseException:
                    stop.set()
                    raise
            whys += [other.result() for other in others]
            self._take_best()
            for why, memory in zip(whys, every, strict=True):
                if why in (search.ASK, search.EDGE):
                    state.question(why, *memory)
        finally:
            self._gather(gained)
        if bytes_of(state.tree) > MOST_BYTES or whys[0] == search.FULL:
            return search.FULL
        return search.DONE if set(whys) == {search.DONE} else search.MORE

    def _deal(self, each: int) -> None:
        """Give each helper its share of the best nodes, and what its thread starts with."""
        state, work, tree, count = self.state, self.state.work, self.state.tree, self.count
        slots = _by_bound(tree, tree.heap[: tree.now.open])
        near, rest = slots[: count * each], slots[count * each :]
        for k, (own, before) in enumerate(self.helpers, 1):
            dealt = near[k::count]
            before.now.open = before.now.free = 0
            its = roomy(before, len(dealt) + 2 * each + RESERVE)
            search.begin(state.problem, own, its)
            search.clear(own)
            its.free[:], its.now.free = np.arange(len(its.free))[::-1], len(its.free)
            its.now.open, its.now.rootless, its.now.dived = 0, 0, NEVER
            for name in ("best_cost", "allowance", "ceiling"):
                own.now[name] = work.now[name]
            for part, whole in zip(_gains(own), _gains(work), strict=True):
                part[:] = whole
            _open(its, _moved(tree, dealt, its))
            self.helpers[k - 1] = own, its
        tree.now.young = 0
        _open(tree, np.concatenate([near[::count], rest]))

    def _take_best(self) -> None:
        """Make the cheapest action that a thread has found the search's own, and judge it."""
        work = self.state.work
        for own, _ in self.helpers:
            if own.now.best_cost < work.now.best_cost:
                work.now.best_cost, work.now.best_case = own.now.best_cost, own.now.best_case
                work.points.best[:] = own.points.best
        self.state.confirm()

    def _gather(self, gained: list[NDArray[np.float64]]) -> None:
        """Take back what is open, and what splits have gained since there was ``gained``."""
        state = self.state
        for own, its in self.helpers:
            tree = state.tree = roomy(state.tree, int(state.tree.now.open + its.now.open) + RESERVE)
            back = _moved(its, its.heap[: its.now.open], tree)
            _open(tree, np.concatenate([tree.heap[: tree.now.open], back]))
            tree.now.examined += its.now.examined
            tree.stuck[0] = min(tree.stuck[0], its.stuck[0])
            for whole, part, before in zip(_gains(state.work), _gains(own), gained, strict=True):
                whole[:] += part - before

    def _examine(self, work: Work, tree: Pool, count: int, stop: Event) -> int:
        """Examine so many nodes; why it ends."""
        goal, why, ends = int(tree.now.examined) + count, search.MORE, False
        while why == search.MORE and not ends:
            why = self.state.slice(work, tree, max(goal - int(tree.now.examined), 0))
            ends = int(tree.now.examined) >= goal or stop.is_set() or self.state.clock.over
        return why


def _gains(work: Work) -> tuple[NDArray[np.float64], ...]:
    """What splits have gained and had promised."""
    return work.learned, work.gained, work.promised


def _by_bound(tree: Pool, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slots in the order of their bounds, which is a heap, too."""
    return slots[np.argsort(tree.bound[slots], kind="stable")]


def _open(tree: Pool, slots: NDArray[np.int64]) -> None:
    """Make these the open nodes."""
    tree.heap[: len(slots)], tree.now.open = _by_bound(tree, slots), len(slots)


def _moved(source: Pool, slots: NDArray[np.int64], target: Pool) -> NDArray[np.int64]:
    """Copy nodes to another pool, and free their slots; where they are there."""
    count, left, free = len(slots), int(target.now.free) - len(slots), int(source.now.free)
    places = target.free[left : left + count].copy()
    for name, array in source._asdict().items():
        if name not in ("heap", "free", "stuck", "now"):
            getattr(target, name)[places] = array[slots]
    source.free[free : free + count], source.now.free, target.now.free = slots, free + count, left
    return places
