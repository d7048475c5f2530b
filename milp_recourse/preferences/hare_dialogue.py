"""The tournaments of HARE: candidates, winner stays, then "will the winner do?", in one round or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from milp_recourse.errors import BadInput, nearest
from milp_recourse.preferences.base_recourse import growing_spheres, wachter
from milp_recourse.preferences.candidates import in_direction, spread
from milp_recourse.preferences.dialogues import Dialogue
from milp_recourse.preferences.hare import FloatArray, boundary_points, directions
from milp_recourse.preferences.knowledge import OUTER, Knowledge
from milp_recourse.preferences.lever_space import LeverSpace
from milp_recourse.preferences.question import ONE, Option, Question, option
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve

BASES = ("growing-spheres", "wachter", "exact")

TRIES = 4
"""Draws of directions in a round, as long as too few lead to a recourse."""

Action = Mapping[str, float]


def base_recourse(instance: Instance, base: str, rng: np.random.Generator) -> dict[str, float] | None:
    """A recourse of a generator of :data:`BASES`, labels rounded and judged again; None if it finds none.

    Raises
    ------
    BadInput
        There is no such generator.
    """
    if base not in BASES:
        close = nearest(base, BASES)
        raise BadInput("base", base, ", ".join(BASES) + (f" (is {close!r} meant?)" if close else ""))
    if base == "exact":
        result = solve(instance)
        return dict(instance.numbers(result.action)) if result.action else None
    space = LeverSpace(instance)
    if not space.size:
        return None
    found = growing_spheres(space, rng) if base == "growing-spheres" else wachter(space)
    return None if found is None else space.settled(found, found + (found - space.start))


def by_hare(known: Knowledge, budget: int, rounds: int, base: str) -> Dialogue:
    """HARE (one round) or Multi-HARE, around a base recourse."""
    rng = np.random.default_rng([known.seed, 7])
    begin = base_recourse(known.problem(OUTER), base, rng)

    def around(best: Action, count: int, number: int) -> list[Action]:
        return sampled(known.problem(OUTER), best, count, rng)

    return (yield from _tournament(known, budget, rounds, begin, around))


def by_exact_hare(known: Knowledge, budget: int, rounds: int) -> Dialogue:
    """The same tournament among exact candidates: first in directions that are far apart, then, each time
    half as far around the winner's direction."""
    rng = np.random.default_rng([known.seed, 8])
    result = solve(known.problem(OUTER), known.backend, known.time_limit)
    begin = dict(known.instance.numbers(result.action)) if result.action else None

    def around(best: Action, count: int, number: int) -> list[Action]:
        problem = known.problem(OUTER)
        ways = spread(rng, count, problem)
        if number:
            way = direction_of(problem, best)
            ways = way + 0.5**number * np.abs(ways) * np.where(rng.random(ways.shape) < 0.5, 1, -1)
            ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        found = [in_direction(problem, way, known.backend, known.time_limit) for way in ways]
        return [one.action for one in found if one is not None]

    return (yield from _tournament(known, budget, rounds, begin, around))


def direction_of(instance: Instance, action: Action) -> FloatArray:
    """Where an action goes, a unit vector with one coordinate per lever, in units of the bounds' distance."""
    way = []
    for name in instance.levers:
        feature, x = instance.feature(name), instance.factual[name]
        value = action.get(name, x)
        if feature.kind == "categorical" or name in instance.missing:
            way.append(float(name in action and value != x))
        else:
            low, high = feature.action_bounds
            way.append((value - x) / (high - low or 1.0))
    found = np.array(way)
    return found / max(float(np.linalg.norm(found)), 1e-12)


def sampled(instance: Instance, best: Action, count: int, rng: np.random.Generator) -> list[Action]:
    """HARE's candidates around a recourse as actions that the exact judge accepts, at most ``count``."""
    space, found = LeverSpace(instance), dict[tuple[tuple[str, float], ...], Action]()
    for _ in range(TRIES):
        missing = count - len(found)
        if missing <= 0 or not space.size:
            break
        base = space.at(best)
        ends = space.inside(base + directions(space, base, count, rng))
        ends = ends[space.score(ends) > 0]
        for point, end in zip(boundary_points(space, ends, 1e-6), ends, strict=True):
            action = space.settled(point, end)
            if action is not None:
                found.setdefault(tuple(sorted(action.items())), action)
    return list(found.values())[:count]


def _tournament(
    known: Knowledge,
    budget: int,
    rounds: int,
    begin: Action | None,
    around: Callable[[Action, int, int], Sequence[Action]],
) -> Dialogue:
    """Rounds of candidates around the best recourse so far; of each round's winner it is asked whether
    it will do."""
    if begin is None or not begin:
        return
    best: Action = begin
    known.chosen = dict(best)
    number, each = 0, budget // rounds
    for turn in range(rounds if each else 0):
        shown = list(_shown(known, around(best, each, turn)))
        if not shown:
            continue
        winner = shown[0]
        for other in shown[1:]:
            question = Question("pair", winner, other)
            answer = yield question
            known.tell(number, question, answer)
            number += 1
            if answer in ("right", "only-right"):
                winner = other
        best = winner.numbers
        known.chosen = dict(best)
        if number >= budget:
            return
        if (yield Question("one", winner, answers=ONE, final=True)) == "yes":
            return
        number += 1


def _shown(known: Knowledge, actions: Sequence[Action]) -> Iterator[Option]:
    """The actions as options: those that the judge and the model itself accept, and no limit forbids."""
    problem = known.problem(OUTER)
    options = [o for action in actions if known.limits.allows(action) and (o := option(problem, action))]
    yield from (o for o, yes in zip(options, known.confirms(options), strict=True) if yes)
