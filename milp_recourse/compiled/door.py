"""From an instance to a proposal: lower, search in compiled code slice by slice, judge exactly."""

from __future__ import annotations

import math
import sys
import threading
import time
from functools import cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.compiled import descent, search
from milp_recourse.compiled.layout import (
    ANCHOR,
    BEST,
    BEST_COST,
    COST,
    FIXED,
    HAIR,
    LABEL,
    LARGEST,
    LINEAR,
    SQUARE,
    STUCK_BOUND,
    TOP,
)
from milp_recourse.compiled.network import logit_size
from milp_recourse.compiled.problem import Problem, coordinates, decode, impossible, lower
from milp_recourse.compiled.work import Work, workspace
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.expression import Constant
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.instance import Instance, Preferences
from milp_recourse.judge import judge

SLICE = 0.05
"""Seconds that compiled code may take before Python looks at the clock."""

MOST_BYTES = 4e9
"""Memory that one applicant's open nodes may take."""


STUCK = "a box became too small to split"
"""The message where rounding, or the deployed model, keeps an exact engine from a proof."""


@cache
def ready() -> None:
    """Compile what this process has not compiled yet, or load it from disk; what takes longer than a
    second says so.
    """
    timer = threading.Timer(1.0, _say)
    timer.daemon = True
    timer.start()
    try:
        instance = _smallest()
        p = lower(instance)
        w = workspace(p)
        logit_size(p, p.box[1], w.layer)
        descent.descend(p, w, np.zeros((0, 1)), 1, 1, 0)
        search.run(p, w, search.pool(p, 128), math.inf, 1, 1, 1, True)
    finally:
        timer.cancel()


def _say() -> None:
    if sys.stderr.isatty():
        print("compiling the search (once for this version) ...", file=sys.stderr)


def _smallest() -> Instance:
    """A problem of one lever."""
    scm = StructuralCausalModel(("x",), {"x": Mechanism(Constant(0.0), Link(), None)})
    feature = Feature("x", "continuous", True, (0.0, 1.0))
    network = ReluNetwork.from_layers([([[1.0]], [-0.5]), ([[1.0]], [-0.25])])
    return Instance((feature,), scm, network, {"x": 0.0}, Preferences(("x",)), Cost.pure("l1", {"x": 1.0}))


class Run:
    """One applicant's search.

    Attributes
    ----------
    action, cost
        The cheapest action that was judged feasible, and its cost rounded up; None and inf without one.
    """

    def __init__(self, instance: Instance, starts: NDArray[np.float64] | None = None) -> None:
        self.instance = instance
        self.problem: Problem = lower(instance)
        self.work: Work = workspace(self.problem)
        rows = np.zeros((0, len(instance.features))) if starts is None else np.asarray(starts, dtype=float)
        self.starts = coordinates(instance, self.problem, rows)
        self.action: dict[str, float] | None = None
        self.cost = math.inf
        self.unconfirmed = False
        self.ceiling = ceiling(self.problem)
        corner = np.abs(self.problem.box[:2]).max(axis=0)
        size = float(logit_size(self.problem, corner, self.work.layer))
        self.work.scalar[HAIR] = 3.0 * self.problem.line * size

    @property
    def target(self) -> float:
        """Bounds that reach it need no proof: what nothing costs, or half the gap below the action in
        hand.
        """
        if self.action is None:
            return self.ceiling
        return self.cost - 0.5 * self.instance.gap_tolerance(self.cost)

    def confirm(self) -> bool:
        """Judge the search's best action exactly; without its consent the search goes back to the one
        before.
        """
        found = float(self.work.scalar[BEST_COST])
        if not found < self.cost:
            return True
        if self.consider(self.work.at[BEST]):
            return True
        self.work.scalar[BEST_COST] = self.cost  # as if never found
        self.unconfirmed = True
        return False

    def consider(self, values: NDArray[np.float64]) -> bool:
        """Judge an action; keep it if it is feasible and cheaper."""
        action = decode(self.instance, self.problem, values)
        verdict = judge(self.instance, action)
        if not verdict.feasible:
            return False
        cost = float(verdict.cost)
        if cost < self.cost:
            self.action, self.cost = action, cost
            self.work.scalar[BEST_COST] = cost
        return True


def ceiling(p: Problem) -> float:
    """More than any point of the root box costs."""
    numeric, labels = p.lever[LABEL] == 0, np.diff(p.start) * 0.0
    far = np.abs(p.box[:2]).max(axis=0)
    largest = p.lever[LARGEST] * far
    total = float(((p.lever[FIXED] + p.lever[LINEAR] * far + p.lever[SQUARE] * far**2) * numeric).sum())
    for i in np.flatnonzero(~numeric):
        here = slice(p.start[i], p.start[i + 1])
        labels[i], largest[i] = p.column[COST, here].max(), p.column[TOP, here].max()
    total += float(labels.sum() + largest.max(initial=0.0))
    return total * (1.0 + 4.0 * p.cost) + p.tiny


def solve(instance: Instance, options: Options) -> Proposal:
    """The proposal of the compiled engine, for an instance that it covers."""
    begun = time.perf_counter()
    if impossible(instance):
        return Proposal(None, math.inf, "rigorous", 0)
    state = Run(instance, options.starts)
    p, w = state.problem, state.work
    late = math.inf if options.time_limit is None else begun + options.time_limit
    descent.descend(p, w, state.starts, 500, 12, 60)
    state.confirm()
    bytes_each = 24 * (p.lever.shape[1] + w.unit[0].size + 1) + len(p.allowed)
    tree = search.pool(p, 256)
    share, message, bound, asked = 8, None, 0.0, math.inf
    while True:
        if time.perf_counter() > late:
            message = "the time limit was reached"
            break
        start = time.perf_counter()
        why = search.run(p, w, tree, state.target, share, 3, 40, not state.unconfirmed)
        took = time.perf_counter() - start
        if why == search.DONE:
            break
        if why == search.FOUND:
            state.confirm()
        elif why == search.ASK:
            state.consider(w.at[ANCHOR])
        elif why == search.ASK_LAST:
            if not state.consider(w.at[ANCHOR]):
                verdict = judge(instance, decode(instance, p, w.at[ANCHOR]))
                if verdict.accepted_exact and not verdict.faults:  # only the deployed model refuses
                    asked = min(asked, float(w.scalar[STUCK_BOUND]))
        elif why == search.FULL:
            if 2 * len(tree.heap) * bytes_each > MOST_BYTES:
                message = "the open nodes fill the memory"
                break
            tree = search.larger(tree, 2 * len(tree.heap))
        elif took < 0.5 * SLICE:
            share = min(2 * share, 1 << 20)
        elif took > 2 * SLICE:
            share = max(share // 2, 1)
    bound = float(tree.bound[tree.heap[0]]) if tree.state[0] else math.inf
    stuck = min(float(tree.stuck[0]), asked)
    if stuck < state.target and message is None:
        message = STUCK
    bound = min(bound, stuck)
    if state.action is not None:
        bound = min(bound, state.target)
    return Proposal(
        state.action, max(0.0, bound), "rigorous", int(tree.state[2]), message, time.perf_counter() - begun
    )
