"""One applicant's search: slices in compiled code, and what it finds judged exactly in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from functools import cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import announced
from milp_recourse.engine.networks import moments, search
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.problem_arrays import Problems, alone, coordinates, decode, lower
from milp_recourse.engine.networks.search import FEW, SPARE, Taken, slice_and
from milp_recourse.engine.networks.work import larger
from milp_recourse.engine.smallest_instance import smallest
from milp_recourse.judge import Action
from milp_recourse.judge.best_first import Incumbent
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import NEVER
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.program.largest import best_of_box
from milp_recourse.program.lower import lower as neutral
from milp_recourse.program.on_rows import onto_rows

MOST_BYTES = 4e9
"""Most bytes that one applicant's open nodes may take."""

BEHIND = 0.5
"""A search whose bound is below this part of what those beside it have proven is behind."""


@cache
def ready() -> None:
    """Compile the engine, or load it from disk, once per process. Compiling is announced."""
    with announced("the search"):
        instance = smallest()
        with closing(Run(instance, lower(instance))) as state:
            state.examine(1, 0)
        moments.ready()


class Run:
    """One applicant's search. It is for the cheapest action that is accepted exactly; whether the deployed
    model, which rounds, accepts it too is asked of what is found.

    Parameters
    ----------
    begun
        The memory of this search if it has begun.
    aside
        Whether it is a short search in the middle of another.

    Attributes
    ----------
    problem, work, tree
        What compiled code sees.
    best
        The cheapest action that was judged feasible.
    least
        The cost of the cheapest action that was judged to be feasible but for the deployed model; inf
        without one.
    refused
        That action if the deployed model refuses it, else None.
    clock
        When to end.
    confirmed
        What the search's best action cost by compiled code's own numbers when it was judged; inf without one.
    threads
        How many work on it.
    """

    threads = 1

    def __init__(
        self,
        instance: Instance,
        problem: Problems | None = None,
        starts: NDArray[np.float64] | None = None,
        begun: Taken | None = None,
        aside: bool = False,
    ) -> None:
        self.instance, self.problem = instance, lower(instance) if problem is None else problem
        self.aside, self._taken = aside, begun is None
        self.work, self.tree = self._memory = begun or SPARE.take(self.problem)
        given = np.zeros((0, len(instance.features))) if starts is None else np.asarray(starts, dtype=float)
        # another layout would be compiled anew
        self.starts = np.ascontiguousarray(coordinates(instance, self.problem, given))
        self._fixed = cache(lambda acted: neutral(instance).fix(acted, prune=False))
        self.few = len(self.problem.lever) <= FEW and not len(self.starts)
        self.best = Incumbent(instance)
        self.refused: Action | None = None
        self.least, self.confirmed, self.clock = math.inf, math.inf, NEVER
        if begun is None:
            search.begin(self.problem, self.work, self.tree)

    def close(self) -> None:
        """Give its memory to later searches, after which nothing can be asked of this one."""
        if self._taken:
            SPARE.give(self.problem, self._memory)
        del self.work, self.tree, self._memory

    @property
    def bound(self) -> float:
        """The least bound of an open node; inf where none is open."""
        return float(self.tree.bound[self.tree.heap[0]]) if self.tree.now.open else math.inf

    @property
    def proven(self) -> float:
        """The same, or less where a node could neither be closed nor split."""
        return min(self.bound, float(self.tree.stuck[0]))

    @property
    def target(self) -> float:
        """A sufficient bound: half the gap below ``least``, and no more than what nodes are closed against;
        without an action, more than any costs."""
        if self.least == math.inf:
            return float(self.problem.ceiling)
        cost = min(self.least, float(self.work.now.best_cost))
        return cost - 0.5 * max(0.0, gap_tolerance(cost, float(self.work.now.allowance)))

    def examine(self, share: int, around: int = -1) -> int:
        """Examine at most so many nodes, for at most :data:`SLICE`, after a search for good actions in one
        configuration; see :func:`~milp_recourse.engine.networks.search.run`.
        """
        answers = np.zeros((1, len(self.problem.lever))), np.zeros(1, search.FOUND)
        settings = slice_and(self.clock.left(0.0)), share, self.few, around, self.starts
        return int(search.run(alone(self.problem), 0, False, self.work, self.tree, *answers, *settings)[1])

    def react(self, why: int) -> str | None:
        """Do what the search has returned for; why it cannot go on, or None."""
        if why in (search.ASK, search.EDGE):
            self.answer()
            if why == search.EDGE and not self.instance.scenarios:
                self.close_below()
        elif why == search.FULL:
            if 2 * sum(array.nbytes for array in self.tree) > MOST_BYTES:
                return "the open nodes fill the memory"
            self.tree = larger(self.tree, 2 * len(self.tree.heap))
        return None

    def seek(self, cases: Sequence[int], count: int) -> None:
        """Without an action, search for good ones so many times, in these configurations in turn; once there
        is one, no configuration has another turn."""
        for k in range(count if self.least == math.inf else 0):
            if self.clock.over or (k >= len(cases) and self.least < math.inf):
                break
            self.examine(0, cases[k % len(cases)])
            self.confirm()

    def confirm(self) -> None:
        """Judge the search's best action exactly. Should it not pass, beyond what rounding can do, it is
        refused, too: nodes were closed against its cost, which no bound may exceed then."""
        cost, case = float(self.work.now.best_cost), int(self.work.now.best_case)
        if cost < self.confirmed:
            self.confirmed = cost
            action = self._action(self.work.points.best, case)
            if not self.offer(action, own=True):
                self.least, self.refused = cost, action

    def _action(self, point: NDArray[np.float64], case: int) -> dict[str, float]:
        """The action that a point stands for."""
        p = self.problem
        return decode(self.instance, p.lever, p.acts[case], p.ends, point)

    def answer(self) -> None:
        """Judge exactly the point w.points.anchor, of which rounding leaves open whether it is feasible, and
        then points next to it that meet the rows exactly."""
        case = int(self.work.now.case)
        action = self._action(self.work.points.anchor, case)
        if not self.offer(action) and self.problem.row.shape[2] and action:
            for near in onto_rows(self._fixed(frozenset(action)), action):
                if self.offer(near):
                    break

    def close_below(self) -> None:
        """Close the node in w, on which no unit of the network is open, if its largest logit, which rounding
        does not tell from what is needed, is less; else judge the action of the largest logit."""
        p, w, case = self.problem, self.work, int(self.work.now.case)
        factual, unit, grid, label = (p.lever[name] for name in ("factual", "unit", "grid", "label"))
        ends = np.clip(factual + unit * np.array([w.box["lo"], w.box["hi"]]), *p.ends)
        values = {}
        for i, name in enumerate(self.instance.levers):
            if p.box[case, i].mode != IDLE:
                labels, mode = w.allowed[p.start[i] : p.start[i + 1]], w.box[i].mode
                lattice = self.instance.by_name[name].lattice
                spots = lattice.nearests(ends[:, i]) if grid[i] and lattice else ends[:, i]
                # the ends where it may be acted on, the factual where it may rest
                own = np.append(spots, factual[i])[2 if mode == IDLE else 0 : 2 if mode == ACTED else 3]
                values[name] = (np.flatnonzero(labels) if label[i] else own).tolist()
        active = [w.unit.low[k, :n] >= 0.0 for k, n in enumerate(p.widths.tolist())][1:]
        best = best_of_box(self._fixed(frozenset(values)), active, values, self.instance.accept.needed)
        if best is None:
            self.tree.asked[self.tree.free[self.tree.now.free]] = search.CLOSED
        elif best:
            self.offer(best)

    def due(self, low: float, share: float, most: float) -> float:
        """How many nodes are due in all to searches beside this one that have proven ``low``: a share of its
        own number, ``most`` where it is behind."""
        return (most if self.proven < BEHIND * low else share) * int(self.tree.now.examined)

    def beside(self, problem: Problems) -> Run:
        """A new search of the same kind."""
        return Run(self.instance, problem)

    def another(self, cost: float, problem: Problems | None = None) -> Run:
        """A search beside this one, for actions that cost less than ``cost``."""
        made = self.beside(self.problem if problem is None else problem)
        made.work.now.allowance = self.work.now.allowance
        made.work.now.best_cost = made.least = made.confirmed = cost
        made.clock = self.clock
        return made

    def learn(self, other: Run, cost: float) -> None:
        """Take over what another search (:meth:`another`) has found that costs less than ``cost``."""
        action = other.best.action if other.refused is None else other.refused
        if action is not None and other.least < min(cost, self.least) and self.offer(action):
            # nodes were closed against compiled code's own cost, which rounding may put lower
            own = min(float(one.work.now.best_cost) for one in (other, self))
            self.work.now.best_cost = self.confirmed = own

    def offer(self, action: Action, own: bool = False) -> bool:
        """Judge an action exactly, and keep it if it is cheaper; whether it is feasible but for the deployed
        model. The compiled search is not told of its own, so that nothing depends on when a slice ends."""
        verdict = self.best.take(action)
        cost, w = float(verdict.cost), self.work
        if not verdict.faults and cost < self.least:
            self.least, self.refused = cost, None if verdict.feasible else action
            if not own:
                row = [action.get(f.name, self.instance.factual[f.name]) for f in self.instance.features]
                # coordinates may be rounded; the action counts
                w.points.best[:] = coordinates(self.instance, self.problem, np.array([row]))[0]
                w.now.best_cost = self.confirmed = cost
        return not verdict.faults
