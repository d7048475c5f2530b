"""From an instance to a proposal: search, judge the action exactly, and search again if it does not pass."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled import layout as at
from milp_recourse.compiled.nearby import inside_the_edge
from milp_recourse.compiled.problem import Problems, decode
from milp_recourse.compiled.propose import STUCK, Run, search_on, sufficient
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.options import Options
from milp_recourse.result import Proposal

REFUSED = "the deployed model refuses cheaper actions by its rounding: set accept.margin to cover it"
"""The message where the deployed model keeps an exact engine from a proof."""


class Closed(NamedTuple):
    """A search that closed with its first nodes and whose action has not been judged yet.

    Attributes
    ----------
    values, case
        Coordinates of its best action, None without one, and the configuration.
    bound, nodes, seconds
        What it proves, how many nodes it examined, and in what time.
    """

    instance: Instance
    problem: Problems
    values: NDArray[np.float64] | None
    case: int
    bound: float
    nodes: int
    seconds: float


def searched(
    instance: Instance,
    options: Options,
    problem: Problems | None = None,
    careful: dict[str, float] | None = None,
) -> Closed | Proposal:
    """A search. If its first nodes close it, its action is still to be judged (:func:`judged`).

    With many applicants it pays to judge after several searches: right after compiled code, whose
    instructions then fill the processor's caches, Python needs twice the time.

    Parameters
    ----------
    problem
        The instance's arrays; None lowers it.
    careful
        The action of an earlier search, if that was refused. Then every cheaper action is judged as soon as
        it is found (:class:`Run`).
    """
    begun = time.perf_counter()
    late = math.inf if options.time_limit is None else begun + options.time_limit

    def ended() -> str | None:
        return "the time limit was reached" if time.perf_counter() > late else None

    state = Run(instance, problem, options.starts)
    watch = options.watch or (lambda cost, bound: None)
    made = None
    if careful is None:
        made = search_on(state, ended, watch, postponed=options.watch is None)
        if made is None:
            return _closed(state, time.perf_counter() - begun)
    else:
        state.offer(careful)
    if made is None or state.unconfirmed:
        known = [] if state.action is None else [state.action]
        found = inside_the_edge(state, late)
        state.begin(careful=True)
        for one in known + found:
            state.offer(one)
        made = search_on(state, ended, watch)
        assert made is not None
    (bound, message), nodes = made, int(state.tree.state[2])
    if bound < state.target:
        message = REFUSED if message == STUCK and state.refused is not None else message
        for one in inside_the_edge(state, late):
            state.offer(one)
            bound = min(bound, max(0.0, state.target))
    seconds = time.perf_counter() - begun
    return Proposal(state.action, bound, "rigorous", nodes, message, seconds)


def judged(found: Closed, options: Options) -> Proposal:
    """The proposal of a search that has closed; it is made again where its action does not pass."""
    begun, action, bound = time.perf_counter(), None, found.bound
    if found.values is not None:
        action = decode(found.instance, found.problem, found.values, found.case)
        verdict = judge(found.instance, action)
        if not verdict.feasible:
            again = searched(found.instance, options, found.problem, careful=action)
            assert isinstance(again, Proposal)
            return again
        bound = min(bound, sufficient(found.instance, float(verdict.cost)))
    seconds = found.seconds + time.perf_counter() - begun
    return Proposal(action, max(0.0, bound), "rigorous", found.nodes, seconds=seconds)


def _closed(state: Run, seconds: float) -> Closed:
    """What the search has found, copied out of the memory, which other searches may use from now on."""
    w, t = state.work, state.tree
    values = w.at[at.BEST].copy() if float(w.scalar[at.BEST_COST]) < math.inf else None
    bound = float(t.bound[t.heap[0]]) if t.state[0] else math.inf
    case = int(w.scalar[at.BEST_CASE])
    return Closed(state.instance, state.problem, values, case, bound, int(t.state[2]), seconds)
