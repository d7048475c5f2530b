"""From an instance to a proposal: search, judge the action exactly, and search again if it does not pass."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled import layout as at
from milp_recourse.compiled.nearby import inside_the_edge
from milp_recourse.compiled.problem import Problems, decode
from milp_recourse.compiled.propose import STUCK, Run, search_on, sufficient, until
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.options import Options
from milp_recourse.result import Proposal

REFUSED = "the deployed model refuses cheaper actions by its rounding: set accept.margin to cover it"
"""The message where the deployed model keeps an exact engine from a proof."""


FINER = 0.05
"""The share of the allowed gap that the second search (:func:`_finer`) leaves."""


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

    def action(self) -> dict[str, float] | None:
        """Its best action, None without one."""
        return None if self.values is None else decode(self.instance, self.problem, self.values, self.case)


def searched(instance: Instance, options: Options, problem: Problems | None = None) -> Closed | Proposal:
    """A search. If its first nodes close it, its action is still to be judged (:func:`judged`).

    With many applicants it pays to judge after several searches: right after compiled code, whose
    instructions then fill the processor's caches, Python needs twice the time.

    Parameters
    ----------
    problem
        The instance's arrays; None lowers it.
    """
    begun = time.perf_counter()
    late = math.inf if options.time_limit is None else begun + options.time_limit

    state = Run(instance, problem, options.starts)
    watch = options.watch or (lambda cost, bound: None)
    made = search_on(state, until(late), watch, options.watch is None, partial(inside_the_edge, late=late))
    if made is None:
        return _closed(state, time.perf_counter() - begun)
    return _proposal(state, *made, int(state.tree.state[2]), begun, late)


def judged(found: Closed, action: dict[str, float] | None, options: Options) -> Proposal:
    """The proposal of a search that has closed, with its action."""
    begun, bound = time.perf_counter() - found.seconds, found.bound
    if action is not None:
        verdict = judge(found.instance, action)
        bound = min(bound, sufficient(found.instance, float(verdict.cost)))
        if not verdict.feasible:
            state = Run(found.instance, found.problem)
            state.offer(action)
            late = math.inf if options.time_limit is None else begun + options.time_limit
            return _proposal(state, bound, None, found.nodes, begun, late)
    return Proposal(action, max(0.0, bound), "rigorous", found.nodes, seconds=time.perf_counter() - begun)


def _proposal(
    state: Run, bound: float, message: str | None, nodes: int, begun: float, late: float
) -> Proposal:
    """What a search has found and proven. If the deployed model refuses the cheapest action, one that it
    accepts is looked for next to that."""
    if state.refused is not None:
        inside_the_edge(state, late)
        if state.cost < math.inf and bound < sufficient(state.instance, state.cost):
            bound = max(bound, _finer(state, late))
        if state.action is None or bound < sufficient(state.instance, state.cost):
            message = REFUSED if message in (None, STUCK) else message
    if state.action is not None:
        bound = min(bound, max(0.0, sufficient(state.instance, state.cost)))
    return Proposal(state.action, bound, "rigorous", nodes, message, time.perf_counter() - begun)


def _finer(state: Run, late: float) -> float:
    """The bound of another search, which leaves only a part of the gap below the action that the deployed
    model refuses: the one that it accepts may cost more by up to the rest."""
    again = Run(state.instance, state.problem)
    again.offer(state.refused or {})
    again.work.scalar[at.ALLOWANCE] -= (1.0 - FINER) * state.instance.gap_tolerance(state.least)
    made = search_on(again, until(late))
    return 0.0 if made is None else made[0]


def _closed(state: Run, seconds: float) -> Closed:
    """What the search has found, copied out of the memory, which other searches may use from now on."""
    w, nodes = state.work, int(state.tree.state[2])
    values = w.at[at.BEST].copy() if float(w.scalar[at.BEST_COST]) < math.inf else None
    case = int(w.scalar[at.BEST_CASE])
    return Closed(state.instance, state.problem, values, case, state.bound, nodes, seconds)
