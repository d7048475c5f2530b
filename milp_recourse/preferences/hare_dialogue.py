"""The tournaments of HARE: candidates, winner stays, then "will the winner do?", in one round or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from milp_recourse.errors import BadInput, nearest
from milp_recourse.judge import judge
from milp_recourse.preferences.candidates import nearest_to
from milp_recourse.preferences.dialogues import Dialogue
from milp_recourse.preferences.hare import boundary_points, directions, far_apart, growing_spheres, wachter
from milp_recourse.preferences.knowledge import OUTER, Knowledge
from milp_recourse.preferences.lever_space import OUTWARD, LeverSpace
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
    """The same tournament among exact candidates, in which a round's winner stays: around it are aims in
    directions that are far apart, each time half as far. An accepted aim moves towards the person until it is
    refused; the candidate is the recourse nearest to it."""
    rng = np.random.default_rng([known.seed, 8])
    backend, limit = known.backend, known.time_limit
    result = solve(known.problem(OUTER), backend, limit)
    begin = dict(known.instance.numbers(result.action)) if result.action else None

    def around(best: Action, count: int, number: int) -> list[Action]:
        problem = known.problem(OUTER)
        space, found = LeverSpace(problem), [best] if number else []
        ways = far_apart(rng, count - len(found), space.free)
        for aim in space.inside(space.at(best) + 0.5**number * ways):
            way = (space.action(space.start + t * (aim - space.start)) for t in np.linspace(1, 0, OUTWARD))
            refused = next(action for action in way if not judge(problem, action).feasible)
            one = nearest_to(problem, refused, backend, limit)
            found += [one.action] if one is not None else []
        return found

    return (yield from _tournament(known, budget, rounds, begin, around))


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
