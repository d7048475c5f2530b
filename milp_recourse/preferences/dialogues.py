"""The order of questions of each method: generators that yield questions and are sent answers.

A dialogue depends on the answers alone, so that an interview is resumed by giving the same answers again.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from milp_recourse.elicitation.schemes import CostProfile, Scores, group, likert, named_weights, rank
from milp_recourse.elicitation.weight_samples import FloatArray
from milp_recourse.preferences.cost_parts import Parts
from milp_recourse.preferences.knowledge import SOLVED_FIRST, SOLVED_NEXT, Knowledge
from milp_recourse.preferences.known_optima import Optima
from milp_recourse.preferences.next_pair import ALIKE, Pair, Strategy, chosen_by, next_pair
from milp_recourse.preferences.question import ONE, Option, Question, part_of

Dialogue = Generator[Question, str, None]
"""Yields questions, is sent the answer to each, and adds it to what is known."""

POOL = 40
"""The most recourses that pairs are made of."""

SHARPENED = 4
"""How often the strategy ``regret`` replaces a pair by the optima for those who would choose each."""

SEARCHES = 64
"""The most optima that are searched for to find these weights."""

PROVEN = 1e-6
"""Where the largest regret is proven to be no more than this, nothing is left to ask about weights."""


def by_choices(known: Knowledge, budget: int, strategy: Strategy = "regret") -> Dialogue:
    """Pairs of certified optima, the next one by a strategy of :mod:`.next_pair`; where the person called
    something out of the question, the rest of the budget is for :func:`_is_it_possible`."""
    number = yield from _pairs(known, budget, strategy)
    if known.limits.refused:
        yield from _is_it_possible(known, number, budget)


def by_awp(known: Knowledge, budget: int, strategy: Strategy = "regret") -> Dialogue:
    """Pairs for two thirds of the budget; the rest is for :func:`_is_it_possible`."""
    number = yield from _pairs(known, math.ceil(2 * budget / 3), strategy)
    yield from _is_it_possible(known, number, budget)


def _pairs(known: Knowledge, budget: int, strategy: Strategy) -> Generator[Question, str, int]:
    """Ask about pairs until nothing is in doubt; return the number of questions."""
    asked: set[frozenset[Parts]] = set()
    number = 0
    while number < budget and (pair := _pair(known, number, strategy, asked)) is not None:
        asked.add(frozenset(parts for _, parts in pair))
        question = Question("pair", pair[0][0], pair[1][0])
        answer = yield question
        known.tell(number, question, answer)
        number += 1
        if answer == "neither":
            for refused in (pair[0][0], pair[1][0]):
                number = yield from _which_lever(known, refused, number, budget)
    return number


def _is_it_possible(known: Knowledge, number: int, budget: int) -> Dialogue:
    """Show the recommended recourse until the person calls it possible.

    Each refusal is a limit, and the next recommended recourse goes half as far beyond what is known to be
    possible.
    """
    while number < budget:
        optima = known.feasible()
        if optima is None:
            return
        shown = known.options(optima.at([known.weights]))
        if not shown or not known.limits.in_question(shown[0][0].numbers):
            return
        question = Question("one", shown[0][0], answers=ONE)
        answer = yield question
        known.tell(number, question, answer)
        number += 1
        if answer == "no":
            number = yield from _which_lever(known, shown[0][0], number, budget)


def _which_lever(
    known: Knowledge, refused: Option, number: int, budget: int
) -> Generator[Question, str, int]:
    """Of a refused recourse ask lever by lever, the largest change first, whether this much is possible,
    until it is known which one goes too far; return the number of questions so far.

    Without this, each next recourse would trade a little of one lever for a little of another.
    """
    numbers = refused.numbers
    doubtful = known.limits.in_question(numbers)
    for name in sorted(doubtful, key=lambda name: -known.part_of_range(name, numbers[name])):
        settled = known.limits.explained(numbers) or len(known.limits.in_question(numbers)) < 2
        if settled or number >= budget:
            break
        question = Question("lever", part_of(refused, name), levers=(name,), answers=ONE)
        known.tell(number, question, (yield question))
        number += 1
    return number


def _pair(
    known: Knowledge, number: int, strategy: Strategy, asked: set[frozenset[Parts]]
) -> list[tuple[Option, Parts]] | None:
    """The next two recourses; None if there is nothing left to ask."""
    optima = known.feasible()
    if optima is None or len(optima.levers) < 2:
        return None
    if strategy == "minimax":
        return _against_worst(known, optima, asked)
    weights = known.draws
    solved = SOLVED_NEXT if number else SOLVED_FIRST
    known.look_at(optima, [known.weights, *(tuple(w) for w in weights[:solved].tolist())])
    pool = _pool(known, optima, weights)
    if len(pool) > 1:
        shown = np.array([parts for _, parts in pool], dtype=np.float64)
        costs = weights @ shown.T
        doubt = (costs / np.maximum(costs.min(axis=1), 1e-300)[:, None]).max(axis=0).min() - 1
        if doubt <= ALIKE and (worst := _against_worst(known, optima, asked)) is not None:
            return worst
        noise = known.belief.noise * float(known.unit)
        rng = np.random.default_rng([known.seed, number, 1])
        found = next_pair(strategy, weights, shown, noise, _places(asked, pool), rng)
        if found is not None and strategy == "regret":
            pool += _sharpened(known, optima, pool, found, noise)
            shown = np.array([parts for _, parts in pool], dtype=np.float64)
            found = next_pair(strategy, weights, shown, noise, _places(asked, pool), rng)
        if found is not None:
            return [pool[k] for k in found]
    return _against_worst(known, optima, asked)


def _places(asked: set[frozenset[Parts]], pool: list[tuple[Option, Parts]]) -> set[tuple[int, int]]:
    """Where in the pool the pairs are that were asked."""
    numbers = {parts: k for k, (_, parts) in enumerate(pool)}
    found = set[tuple[int, int]]()
    for two in asked:
        if all(parts in numbers for parts in two):
            first, second = sorted(numbers[parts] for parts in two)
            found.add((first, second))
    return found


def _sharpened(
    known: Knowledge, optima: Optima, pool: list[tuple[Option, Parts]], pair: Pair, noise: float
) -> list[tuple[Option, Parts]]:
    """The optima for those who would choose one of a pair, for those who would choose one of these, and so
    on; without what the pool has."""
    shown = np.array([parts for _, parts in pool], dtype=np.float64)
    two, found = shown[list(pair)], dict[Parts, Option]()
    for _ in range(SHARPENED):
        weights = chosen_by(known.draws, shown, two, noise)
        if weights is None:
            break
        new = known.options(known.look_at(optima, [tuple(w) for w in weights.tolist()]))
        found |= {parts: o for o, parts in new}
        two = np.array([parts for _, parts in new], dtype=np.float64)
        if len(new) < 2:
            break
    there = {parts for _, parts in pool}
    return [(o, parts) for parts, o in found.items() if parts not in there]


def _pool(known: Knowledge, optima: Optima, weights: FloatArray) -> list[tuple[Option, Parts]]:
    """The recourses that are the cheapest, or nearly, under some of the weights."""
    found = known.pool(optima)
    if not found:
        return []
    costs = weights @ np.array([one.phi for one in found]).T
    least = np.maximum(costs.min(axis=1, keepdims=True), 1e-300)
    order = np.argsort((costs / least).min(axis=0), kind="stable")
    return known.options([found[k] for k in order[:POOL]])


def _against_worst(
    known: Knowledge, optima: Optima, asked: set[frozenset[Parts]]
) -> list[tuple[Option, Parts]] | None:
    """The recommended recourse, and the one that is cheapest under the weights of its largest regret."""
    [best] = optima.at([known.weights])
    regret = known.regret(best.result, SEARCHES)
    if regret.most <= PROVEN:
        return None
    pair = known.options([best, *known.look_at(optima, [regret.worst])])
    return pair if len(pair) == 2 and frozenset(p for _, p in pair) not in asked else None


def by_groups(known: Knowledge, budget: int, profile: CostProfile) -> Dialogue:
    """Of each lever: can you change it at all? (iCARMA's groups)"""
    names, able = known.levers, []
    for name in names[:budget]:
        if (yield Question("lever", levers=(name,), answers=ONE)) == "yes":
            able.append(name)
    _state(known, group(names, [*able, *names[budget:]]), profile)


def by_ratings(known: Knowledge, budget: int, profile: CostProfile, categories: int = 5) -> Dialogue:
    """Of each lever: how hard is it to change, from 1 (easiest) to ``categories`` (not for me)?"""
    names, ratings = known.levers, {}
    answers = tuple(str(k) for k in range(1, categories + 1))
    for name in names:
        middle = (categories + 1) // 2
        ratings[name] = int((yield Question("lever", levers=(name,), answers=answers))) if budget else middle
        budget -= budget > 0
    _state(known, likert(names, ratings, categories), profile)


def by_ranks(known: Knowledge, budget: int, profile: CostProfile) -> Dialogue:
    """Which of two levers is easier to change? Levers are inserted into their order one after the other, each
    by bisection; when the budget ends, those that are left are the hardest. "Neither" rules both out."""
    order: list[str] = []
    cannot: set[str] = set()
    for name in known.levers:
        low, high = 0, len(order)
        while low < high and budget and name not in cannot:
            middle = (low + high) // 2
            question = Question("levers", levers=(name, order[middle]), answers=("left", "right", "neither"))
            answer = yield question
            budget -= 1
            if answer == "neither":
                cannot |= {name, order.pop(middle)}
            low, high = (low, middle) if answer == "left" else (middle + 1, high)
        if name not in cannot:
            order.insert(low, name)
    _state(known, rank(known.levers, order), profile)


def _state(known: Knowledge, scores: Scores, profile: CostProfile) -> None:
    """Take the mask, the weights and the order of weights that follow from scores."""
    [weights] = named_weights(scores, profile.weights(scores))
    known.cannot = tuple(name for name in known.levers if name not in weights)
    rated = {name: int(score) for name, score in zip(scores.features, scores.values, strict=True)}
    known.state(weights, [(a, b) for a in weights for b in weights if rated[a] < rated[b]])
