"""A search until its proof: slice by slice, with searches beside it where it takes long."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.search import SLICE, first_slice
from milp_recourse.engine.networks.stages import beside
from milp_recourse.problem.options import LATE, NEVER, Clock

LONGER_BY = 4
"""The longer search is repeated whenever the number of nodes has become so many times as large."""

NODES_EACH, NODES_AGAIN = 64, 256
"""While there is no action, longer searches go round the open configurations: the first round takes one more
of these in for each ``NODES_EACH`` nodes, later ones make one more search for each ``NODES_AGAIN``."""

STAGES_FROM, STAGES_AGAIN = 4, 1.25
"""Searches beside this one (:mod:`~milp_recourse.engine.networks.stages`) begin after so many times the nodes
of the first slice, and go on whenever the number of nodes has become so many times as large."""

LAST_TURNS = 16
"""How many longer searches each configuration gets, within at most a second, before a search ends without an
action."""

STUCK = "a box became too small to split"
"""The message where rounding keeps an exact engine from a proof."""


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
        Gets the cost in hand and the bound after every slice that does not end with a question.
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
    stages, pause = beside(state), STAGES_FROM * look if not state.aside else math.inf
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
        if why != search.ASK:  # a point that is asked about is in no open node
            watch(cost, min(max(state.proven, stages.low), state.target, cost))
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
    proven = max(state.proven, stages.low)
    return max(0.0, min(proven, state.target if state.least < math.inf else math.inf)), message
