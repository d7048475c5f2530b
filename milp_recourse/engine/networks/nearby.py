"""Short searches: for a first action, one next to a given one, or one inside the edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from milp_recourse.engine.networks.causes import Effects, NotCovered
from milp_recourse.engine.networks.problem_arrays import (
    Lowered,
    Problems,
    between,
    impossible,
    lowered,
    why_not,
)
from milp_recourse.engine.networks.propose import Run, ready
from milp_recourse.engine.networks.search_on import search_on
from milp_recourse.errors import Unsupported
from milp_recourse.judge import Action, judge
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import NEVER, Clock
from milp_recourse.program.lower import lower
from milp_recourse.program.neutral_program import Program

NODES, SECONDS = 1000, 2.0
"""Most nodes and seconds of such a search."""

STEPS, STEPS_EACH = 96, 8
"""How many points are tried between an action inside the edge and one that the deployed model refuses, and
after how many of them the distance to the latter has halved."""

REACHES = 2.0**-24, 2.0**-8
"""Of a lever's width, how far from a given action a feasible one is looked for: next to it, then farther."""

PARTS = tuple(2.0**-k for k in (40, 30, 20, *range(10, -1, -1)))
"""Of the most that rounding can do to a deployed logit, how far above what is needed an action is looked
for."""


def first_action(instance: Instance, clock: Clock = NEVER) -> Action | None:
    """A good feasible action of a network's problem, or None if a short search finds none in time."""
    for _, group in lowered([instance]):
        if not impossible(instance, group.moved):
            with closing(Run(instance, group.problems(0))) as state:
                return _found(state, clock)
    # with too many sets of acted features, one on all levers
    ends = {n: min(max(instance.factual[n], low), high) for n, (low, high) in instance.levers.items()}
    return near(instance, ends, clock, (math.inf,)) if why_not(instance) else None


def near(
    instance: Instance, action: Action, clock: Clock = NEVER, far: Sequence[float] = REACHES
) -> Action | None:
    """The cheapest feasible action next to a given one, on the same features; None if none is found, or if
    the classifier is no network.

    What solvers with tolerances return often misses feasibility by rounding. Where conditions have
    alternatives, the one that the given action meets best is kept. If only the deployed model refuses what is
    found, the exact logit has to be higher (:func:`_inward`).

    Parameters
    ----------
    far
        Of a lever's width, how far from the given action; inf for any on the same features.
    """
    covered = isinstance(instance.classifier, ReluNetwork) and action.keys() <= instance.levers.keys()
    if not covered or not action:
        return None
    program = lower(instance).fix(frozenset(action))
    if program.demand != TRUE:
        program = program.at_point([float(value.midpoint) for value in program.enclose(action)])
    restricted, made = acted_on(instance, program)
    if made is None:
        return None
    problem = made.problems(0)
    for reach in far:
        with closing(Run(restricted, _around(restricted, problem, action, reach), aside=True)) as state:
            state.few = True
            if (found := _found(state, clock)) is not None:
                return found
    return None if state.refused is None else _inward(state, PARTS, clock)


def acted_on(instance: Instance, program: Program) -> tuple[Instance, Lowered | None]:
    """An instance with no other levers than those that a fixed program acts on, and its arrays for that
    program; None where the engine has none."""
    names, acted = instance.preferences.actionable, {action.feature for action in program.actions}
    kept = replace(instance.preferences, actionable=tuple(name for name in names if name in acted))
    own = replace(instance, preferences=kept)
    try:
        return own, Lowered([own], Effects([own], program))
    except (NotCovered, Unsupported):
        return own, None


def inside_the_edge(state: Run, clock: Clock) -> None:
    """Where the deployed model refuses a search's best action: offer the search one whose exact logit is
    higher, if one is found, and points between the two, cheaper and cheaper.

    It is searched for next to the refused action, and, while no action is in hand, anywhere; if none is
    found, it is that action with changes twice as large. Whether the deployed model accepts a point between
    the two depends on its rounding there, so there are many of them.
    """
    refused, instance = state.refused, state.instance
    assert refused is not None
    found = near(instance, refused, clock)
    if found is None and state.best.action is None:
        found = _inward(state, PARTS[1::4], clock)
    kept = {name for name in found or refused if name not in refused or instance.by_name[name].lattice}
    if found is None:
        far = {n: a if n in kept else 2.0 * a - instance.factual[n] for n, a in refused.items()}
        found = {n: min(max(a, instance.levers[n][0]), instance.levers[n][1]) for n, a in far.items()}
    for part in (2.0 ** (-np.arange(STEPS) / STEPS_EACH)).tolist():
        state.offer({n: a if n in kept else refused[n] + part * (a - refused[n]) for n, a in found.items()})


def _inward(state: Run, parts: Sequence[float], clock: Clock) -> Action | None:
    """A feasible action in a search's box with a higher exact logit than the last one that only the deployed
    model refused; None if none is found within :data:`SECONDS`.

    The logit that is asked for is raised by ``parts`` of the rounding error that the deployed logit can have
    there, the smallest part first.
    """
    instance, problem = state.instance, state.problem
    assert isinstance(instance.classifier, ReluNetwork)
    assert state.refused is not None
    after = judge(instance, state.refused).counterfactual
    row = np.array([after[f.name] for f in instance.features])
    [nearly] = instance.classifier.nearly(instance.model_rows(row)[None])
    if nearly is None:
        return None
    clock = clock.within(SECONDS)
    for part in parts:
        room = part * nearly[1]
        raised = problem._replace(need_low=problem.need_low + room, need_high=problem.need_high + room)
        accept = replace(instance.accept, margin=instance.accept.margin + room)
        with closing(Run(replace(instance, accept=accept), raised, aside=True)) as higher:
            found = _found(higher, clock)
        if found is not None or clock.over:
            return found
    return None


def _around(instance: Instance, problem: Problems, action: Action, reach: float) -> Problems:
    """The problem on a small box around an action; levers that cannot take every value keep theirs."""
    low, high = np.array(list(instance.levers.values())).T
    if reach < math.inf:
        here = np.clip([action[name] for name in instance.levers], low, high)
        held = np.array([instance.by_name[name].lattice is not None for name in instance.levers])
        room = np.where(held, 0.0, reach * (high - low))
        low, high = np.maximum(low, here - room), np.minimum(high, here + room)
    return between(problem, low, high)


def _found(state: Run, clock: Clock) -> Action | None:
    """What a short search finds."""
    ready()
    search_on(state, clock.within(SECONDS), enough=lambda: int(state.tree.now.examined) >= NODES)
    return state.best.action
