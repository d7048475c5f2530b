"""Searches: in compiled code, slice by slice, with what one applicant's finds judged exactly in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import announced
from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.problem_arrays import Problems, alone, coordinates, decode, lower
from milp_recourse.engine.networks.search import FEW, SLICE, SPARE, Taken, first_slice, slice_and
from milp_recourse.engine.networks.work import larger
from milp_recourse.engine.smallest_instance import smallest
from milp_recourse.judge import Action
from milp_recourse.judge.best_first import Incumbent
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, NEVER, Clock
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.program.largest import best_of_box
from milp_recourse.program.lower import lower as neutral
from milp_recourse.program.on_rows import onto_rows

MOST_BYTES = 4e9
"""Most bytes that one applicant's open nodes may take."""

LONGER_BY = 4
"""The longer search is repeated whenever the number of nodes has become so many times as large."""

NODES_EACH, NODES_AGAIN = 64, 256
"""While there is no action, longer searches go round the open configurations: the first round takes one more
of these in for each ``NODES_EACH`` nodes, later ones make one more search for each ``NODES_AGAIN``."""

STAGES_FROM, STAGES_AGAIN, STAGE_SHARE = 4, 1.25, 0.25
"""Stages (:class:`_Stages`) begin after so many times the nodes of the first slice, go on whenever the number
of nodes has become so many times as large, and get this share of nodes."""

STAGE_BEHIND, STAGE_MOST = 0.5, 4.0
"""Where the search's own bound is below this part of what stages have proven, they get this share instead."""

FIRST_STAGE, STAGE_STEPS, STAGE_GROWS = 0.0625, (0.1, 0.5), 4.0
"""The first stage's share of the best action's cost; the least and the largest share of the rest that a stage
adds to the one before, which it at most doubles; how many times as many nodes it is to take, about."""

NEARLY, PATIENCE = 8.0, 2.0
"""Where the search is thought to take at most so many times the nodes of the last stage, no stage goes on
until it has had so many times what it is thought to take: a stage for the rest would be the same search."""

NO_MORE = 2**62
"""Nodes that no search examines."""

LAST_TURNS = 16
"""How many longer searches each configuration gets, within at most a second, before a search ends without an
action."""

STUCK = "a box became too small to split"
"""The message where rounding keeps an exact engine from a proof."""


@cache
def ready() -> None:
    """Compile the engine, or load it from disk, once per process. Compiling is announced."""
    with announced("the search"):
        instance = smallest()
        with closing(Run(instance, lower(instance))) as state:
            state.examine(1, 0)


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
    """

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
        step, first = np.where(grid > 0.0, unit * grid, 1.0), factual + unit * p.lever["shift"]
        steps = first + np.round((ends - first) / step) * step
        spots, values = np.vstack([np.where(grid > 0.0, steps, ends), factual]), {}
        for i, name in enumerate(self.instance.levers):
            if p.box[case, i].mode != IDLE:
                labels, mode = w.allowed[p.start[i] : p.start[i + 1]], w.box[i].mode
                # the ends where it may be acted on, the factual where it may rest
                own = spots[2 if mode == IDLE else 0 : 2 if mode == ACTED else 3, i]
                values[name] = (np.flatnonzero(labels) if label[i] else own).tolist()
        active = [w.unit.low[k, :n] >= 0.0 for k, n in enumerate(p.widths.tolist())][1:]
        best = best_of_box(self._fixed(frozenset(values)), active, values, self.instance.accept.needed)
        if best is None:
            self.tree.asked[self.tree.free[self.tree.now.free]] = search.CLOSED
        elif best:
            self.offer(best)

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


class _Stages:
    """Searches beside one that takes long, for what costs less than a part of its best action: these prove a
    bound where its own stays near 0.

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
        alone = int(self.state.tree.now.examined)
        behind = min(self.state.bound, float(self.state.tree.stuck[0])) < STAGE_BEHIND * self.low
        least = 0 if alone < self.wait else int((STAGE_MOST if behind else STAGE_SHARE) * alone)
        while self.given < least and self.low < self.state.target and not self.state.clock.over:
            now = self.now = self.now or self._next()
            examined = int(now.tree.now.examined)
            why = now.examine(least - self.given)
            self.given += max(int(now.tree.now.examined) - examined, 1)
            now.confirm()
            if now.react(why) is not None:
                self.given = NO_MORE
            action, dear = now.refused or now.best.action, min(self.budget, self.state.least)
            if action is not None and now.least < dear and self.state.offer(action):
                # nodes were closed against compiled code's own cost, which rounding may put lower
                own = min(float(one.work.now.best_cost) for one in (now, self.state))
                self.state.work.now.best_cost = self.state.confirmed = own
            if why == search.DONE:
                before, self.now = self.low, None
                self.low = max(self.low, min(now.bound, float(now.tree.stuck[0]), now.target))
                if not self.low > before:  # it got stuck, or the allowed gap is larger than its budget
                    self.given = NO_MORE
                else:
                    self._plan(self.low - before, max(int(now.tree.now.examined), 1))
                    least = 0 if alone < self.wait else least
                now.close()

    def _plan(self, step: float, took: int) -> None:
        """The next stage's step, from what the last took, and how long the search goes on alone."""
        rate, rest = max(math.log(took / self.took), 0.0) / step, self.state.target - self.low
        self.took, self.step = took, math.log(STAGE_GROWS) / rate if rate > 0.0 else math.inf
        if rate * rest <= math.log(NEARLY):
            self.wait = PATIENCE * took * math.exp(rate * rest)

    def _next(self) -> Run:
        """The next stage's search."""
        state, low = self.state, self.low
        least, most = (share * (state.target - low) for share in STAGE_STEPS)
        self.budget = budget = max(low + min(max(self.step, least), most, low), FIRST_STAGE * state.target)
        stage = Run(state.instance, state.problem)
        stage.work.now.allowance = state.work.now.allowance
        stage.work.now.best_cost = stage.least = stage.confirmed = budget
        stage.clock = state.clock
        return stage


def search_on(
    state: Run,
    clock: Clock = NEVER,
    watch: Callable[[float, float], object] = lambda cost, bound: None,
    inside: Callable[[Run], object] = lambda state: None,
    why: int | None = None,
    enough: Callable[[], object] = lambda: False,
) -> tuple[float, str | None]:
    """Search until the best action, or that there is none, is proven.

    Parameters
    ----------
    watch
        Gets the cost in hand and the bound after every slice.
    inside
        Called once if the deployed model refuses the first action: looks for one that it accepts.
    why
        Why the first slice has returned, if it has been searched.
    enough
        Whether to end now; it is called before every slice.

    Returns
    -------
    (bound, message)
        The proven bound, and why the search ended before its proof, or None.
    """
    tree, looked, message, state.clock = state.tree, False, None, clock
    look, around = first_slice(state.problem, state.few)
    stages, pause = _Stages(state), STAGES_FROM * look if not state.aside else math.inf
    while why is not None or not (enough() or clock.over):
        if why is None:
            why = state.examine(max(int(min(look, pause)) - int(tree.now.examined), 1), around)
        around = -1
        state.confirm()
        if state.refused and state.best.action is None and not looked:
            looked = True
            inside(state)
        cost = state.best.cost
        if int(tree.now.examined) >= pause and state.least < math.inf and why != search.DONE:
            stages.go_on()
            pause = STAGES_AGAIN * int(tree.now.examined)
            cost = state.best.cost
        watch(cost, min(max(min(state.bound, float(tree.stuck[0])), stages.low), state.target, cost))
        if why == search.DONE or stages.low >= state.target:
            break
        message, tree = state.react(why), state.tree
        if message is not None:
            break
        if why == search.MORE and int(tree.now.examined) >= look:
            look, around = LONGER_BY * int(tree.now.examined), int(tree.case[tree.heap[0]])
            cases, n = np.unique(tree.case[tree.heap[: tree.now.open]]).tolist(), int(tree.now.examined)
            state.seek(cases, max(min(n // NODES_EACH, len(cases)), n // NODES_AGAIN) if cases else 0)
        why = None
    else:
        message = LATE if clock.over else "it was a short search"
    stuck = float(tree.stuck[0])
    # an action should not be missed, however short the time
    if not state.aside and (message is not None or stuck < state.target):
        state.clock = clock.at_least(SLICE).within(1.0)
        state.seek(range(len(state.problem.box)), LAST_TURNS * len(state.problem.box))
    if max(stuck, stages.low) < state.target and message is None:
        message = STUCK
    proven = max(min(state.bound, stuck), stages.low)
    return max(0.0, min(proven, state.target if state.least < math.inf else math.inf)), message
