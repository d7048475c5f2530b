"""One applicant's search: in compiled code, slice by slice, with what it finds judged exactly in between."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled import layout as at
from milp_recourse.compiled import search
from milp_recourse.compiled.corners import onto_rows
from milp_recourse.compiled.problem import MOST_LINES, Problems, coordinates, decode, lower
from milp_recourse.compiled.work import Work, workspace
from milp_recourse.compiling import announced
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.expression import Constant
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.instance import Instance, Preferences
from milp_recourse.judge import Judgement, judge
from milp_recourse.program.lower import lower as neutral
from milp_recourse.program.model import Program

SLICE = 0.05
"""Seconds that compiled code may take before Python looks at the clock."""

MOST_BYTES = 4e9
"""Most bytes that one applicant's open nodes may take."""


STUCK = "a box became too small to split"
"""The message where rounding keeps an exact engine from a proof."""


@cache
def ready() -> None:
    """Compile the engine, or load it from disk, once per process. Compiling is announced."""
    with announced():
        instance = smallest()
        state = Run(instance, lower(instance))
        state.examine(1, 0)


def smallest() -> Instance:
    """A problem of one lever."""
    scm = StructuralCausalModel(("x",), {"x": Mechanism(Constant(0.0), Link(), None)})
    feature = Feature("x", "continuous", True, (0.0, 1.0))
    network = ReluNetwork.from_layers([([[1.0]], [-0.5]), ([[1.0]], [-0.25])])
    return Instance((feature,), scm, network, {"x": 0.0}, Preferences(("x",)), Cost.pure("l1", {"x": 1.0}))


_SHAPES = threading.local()
"""Memory of earlier searches by shape: making it takes longer than many searches do."""


def memory(p: Problems) -> tuple[Work, search.Pool]:
    """Memory for a problem, which problems of the same shape share;
    :func:`~milp_recourse.compiled.search.run` clears it."""
    sizes = (
        p.lever.shape[1],
        p.allowed.shape[-1],
        p.kind.tobytes(),
        p.weights.shape,
        p.widths.tobytes(),
        p.row.shape,
        p.residual.shape,
    )
    known = _SHAPES.__dict__.setdefault("known", {})
    if sizes not in known:
        if len(known) > 8:
            known.clear()
        known[sizes] = workspace(p), search.pool(p, 256)
    return known[sizes]


class Run:
    """One applicant's search.

    Attributes
    ----------
    problem, work, tree
        What compiled code sees.
    careful
        Whether every cheaper action is judged exactly before it bounds the search; else the last one is, and
        a search whose last one fails (the deployed model may refuse what is accepted exactly) is made again.
    action, cost
        The cheapest action that was judged feasible, and its cost rounded up; None and inf without one.
    refused, refusals
        The last cheaper action that nothing but the deployed model refuses, or None; how many there were.
    refused_bound
        The least bound of nodes that held one point, which only the deployed model refuses.
    """

    def __init__(
        self,
        instance: Instance,
        problem: Problems | None = None,
        starts: NDArray[np.float64] | None = None,
    ) -> None:
        problem = lower(instance) if problem is None else problem
        self.instance, self.problem = instance, problem
        self.work, self.tree = memory(problem)
        self.starts = np.zeros((0, problem.lever.shape[1]))
        if starts is not None:
            given = coordinates(instance, problem, np.asarray(starts, dtype=float))
            self.starts = np.ascontiguousarray(given)  # another layout would be compiled anew
        self._fixed: dict[frozenset[str], Program] = {}
        self.few = problem.lever.shape[1] <= FEW and not len(self.starts)
        self.begin(careful=False)

    def begin(self, careful: bool) -> None:
        """Forget what was found, and begin the search at the roots."""
        self.careful, self.unconfirmed = careful, False
        self.action: dict[str, float] | None = None
        self.refused: dict[str, float] | None = None
        self.refusals = 0
        self.cost, self.refused_bound = math.inf, math.inf
        search.begin(self.work, self.tree, self.instance.gap_allowance, self.problem.ceiling)

    @property
    def target(self) -> float:
        """A sufficient bound: half the gap below the best action; without one, more than any action costs."""
        if self.action is None:
            return self.problem.ceiling
        return sufficient(self.instance, self.cost)

    def examine(self, share: int, around: int = -1) -> int:
        """Examine so many nodes, after a search for good actions in one configuration; see
        :func:`~milp_recourse.compiled.search.run`.
        """
        memory = self.problem, self.work, self.tree
        dives = 2 if self.few else 1
        how = MOST_LINES, 40, dives, not self.unconfirmed, self.careful
        return int(search.run(*memory, share, *how, around, self.starts))

    def confirm(self) -> bool:
        """Judge the search's best action exactly. If it is not feasible: False, and the search goes back
        to the last one that was.
        """
        w = self.work
        if not float(w.scalar[at.BEST_COST]) < self.cost:
            return True
        if self._offer_point(w.at[at.BEST], int(w.scalar[at.BEST_CASE]))[1].feasible:
            return True
        w.scalar[at.BEST_COST] = self.cost  # as if never found
        self.unconfirmed = True
        return False

    def answer(self, last: bool) -> None:
        """Judge exactly the point w.at[ANCHOR], of which rounding leaves open whether it is feasible, and
        then points next to it that meet the rows exactly.

        ``last``: the point was all that its node held, so that the node is neither split nor opened again.
        """
        w, p, c = self.work, self.problem, int(self.work.scalar[at.CASE])
        action, verdict = self._offer_point(w.at[at.ANCHOR], c)
        if verdict.feasible:
            return
        if p.row.shape[2] and action:
            acted = frozenset(action)
            if acted not in self._fixed:
                self._fixed[acted] = neutral(self.instance).fix(acted, prune=False)
            if any(self.offer(near).feasible for near in onto_rows(self._fixed[acted], action)):
                return
        if last and verdict.accepted_exact and not verdict.faults:  # only the deployed model refuses
            self.refused_bound = min(self.refused_bound, float(w.scalar[at.STUCK_BOUND]))

    def offer(self, action: dict[str, float], values: NDArray[np.float64] | None = None) -> Judgement:
        """Judge an action exactly. Keep it if it is feasible and cheaper, and remember it if it is cheaper
        and only the deployed model refuses it.

        Parameters
        ----------
        values
            Its coordinates, where they are at hand.
        """
        verdict = judge(self.instance, action)
        if not float(verdict.cost) < self.cost:
            return verdict
        if verdict.feasible:
            w = self.work
            if values is None:  # coordinates may be rounded; the action counts
                row = np.array(
                    [action.get(f.name, self.instance.factual[f.name]) for f in self.instance.features]
                )
                values = coordinates(self.instance, self.problem, row[None])[0]
            self.action, self.cost = action, float(verdict.cost)
            w.at[at.BEST], w.scalar[at.BEST_COST] = values, self.cost
        elif not (verdict.faults or verdict.accepted_deployed):
            self.refused, self.refusals = action, self.refusals + 1
        return verdict

    def _offer_point(self, values: NDArray[np.float64], c: int) -> tuple[dict[str, float], Judgement]:
        """Judge the action that coordinates stand for, as :meth:`offer` does; returns it with the verdict."""
        action = decode(self.instance, self.problem, values, c)
        return action, self.offer(action, values)


def sufficient(instance: Instance, cost: float) -> float:
    """A lower bound that proves an action of this cost optimal, with half the allowed gap to spare."""
    return cost - 0.5 * instance.gap_tolerance(cost)


FIRST, FIRST_OF_MANY = 1000, 250
"""Nodes of the first slice, with few levers and with many. If a search with many levers is not finished then,
another search for good actions follows."""

LOOKS = 4
"""The longer search is repeated whenever the number of nodes has become so many times as large."""

MOST_REFUSED = 100
"""How often an action may be refused while the open nodes stay as they are."""


FEW_REFUSED = 30
"""How often nothing but the deployed model may refuse an action before one inside the edge is looked for."""


def search_on(
    state: Run,
    ended: Callable[[], str | None],
    watch: Callable[[float, float], object] = lambda cost, bound: None,
    postponed: bool = False,
) -> tuple[float, str | None] | None:
    """Search until the best action, or that there is none, is proven.

    Parameters
    ----------
    ended
        Gives a reason to end now, or None; it is called before every slice.
    watch
        Gets the cost in hand and the bound after every slice.
    postponed
        Whether an action that the first slice proves is to be judged by the caller.

    Returns
    -------
    (bound, message)
        The proven bound, and why the search ended before its proof, or None; None instead of both where
        judging is postponed.
    """
    p, w, tree = state.problem, state.work, state.tree
    first = FIRST if state.few else FIRST_OF_MANY
    look, around = first, -1 if state.few else 0
    bytes_each = 24 * (p.lever.shape[1] + w.unit[0].size + 1) + p.allowed.shape[-1]
    share, refused = first, Counter[tuple[int, float, int]]()
    while (message := ended()) is None:
        start = time.perf_counter()
        until = max(look - int(tree.state[2]), 1)  # whatever the clock says
        why = state.examine(min(share, until), around)
        around, took = -1, time.perf_counter() - start
        if postponed and why == search.DONE and math.isinf(tree.stuck[0]):
            return None
        postponed, confirmed = False, state.confirm()
        if not confirmed and not state.careful:  # the caller begins again, with every action judged
            break
        bound = float(tree.bound[tree.heap[0]]) if tree.state[0] else 0.0
        watch(state.cost, min(bound, float(tree.stuck[0]), state.refused_bound, state.cost))
        if why == search.DONE:
            break
        if why == search.FOUND:
            if confirmed:
                refused.clear()
            elif tree.state[0]:
                refused[int(tree.heap[0]), float(tree.bound[tree.heap[0]]), int(tree.state[0])] += 1
                if max(refused.values()) > MOST_REFUSED:  # the same leaf offers the same action for ever
                    message = STUCK
                    break
        elif why in (search.ASK, search.ASK_LAST):
            state.answer(why == search.ASK_LAST)
            if (
                state.refusals > FEW_REFUSED and not state.careful
            ):  # begin again with an action inside the edge
                state.unconfirmed = True
                break
        elif why == search.FULL:
            if 2 * len(tree.heap) * bytes_each > MOST_BYTES:
                message = "the open nodes fill the memory"
                break
            tree = state.tree = search.larger(tree, 2 * len(tree.heap))
        elif int(tree.state[2]) >= look:
            look, around = LOOKS * int(tree.state[2]), int(tree.case[tree.heap[0]])
        elif took < 0.5 * SLICE:
            share = min(2 * share, 1 << 20)
        elif took > 2 * SLICE:
            share = max(share // 2, 1)
    bound = float(tree.bound[tree.heap[0]]) if tree.state[0] else math.inf
    stuck = min(float(tree.stuck[0]), state.refused_bound)
    if stuck < state.target and message is None:
        message = STUCK
    bound = min(bound, stuck)
    if state.action is not None:
        bound = min(bound, state.target)
    return max(0.0, bound), message


FEW = 6
"""With at most so many levers, and no ``starts``, no good action is searched for before the first nodes."""
