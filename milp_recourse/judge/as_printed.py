"""The values to say: the shortest decimals that are accepted when they are set together.

The cheapest action mostly lies on the edge of what is accepted, so its doubles have seventeen digits, and the
same numbers rounded as people print them may be refused. Here an action's numbers are shortened one after the
other, each to the fewest decimals at which the action as a whole is still judged feasible.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

from milp_recourse.judge.judgement import Action, Judgement, judged_together
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.scm import independent

DEARER = Fraction(1, 1000)
"""By how much of its cost an action may become dearer by being shortened, where its digits allow it."""

_Question = tuple[Instance, Action]
_Asking = Generator[_Question, Judgement, "AsPrinted"]


@dataclass(frozen=True)
class AsPrinted:
    """An action to say.

    Attributes
    ----------
    action
        The value of each feature acted on, a double whose shortest decimal is what is said.
    counterfactual
        The same of every feature that differs afterwards, effects included. The model accepts the row with
        these values, too.
    cost
        What the action costs.
    """

    action: Action
    counterfactual: Mapping[str, float]
    cost: Fraction


def as_printed(pairs: Sequence[tuple[Instance, Action]]) -> list[AsPrinted]:
    """Each of several feasible actions with its shortest decimals, judged together.

    A number is first tried with one significant digit, then with more, rounded down and up. The first that
    keeps the action feasible is taken, if the action then costs at most :data:`DEARER` more for all of its
    numbers together; the double itself always qualifies. Whole numbers, labels, steps and listed values
    stay. The values of effects are shortened so that the row as it is said is accepted, and are off by at
    most :data:`DEARER` of what they move.

    Parameters
    ----------
    pairs
        Instances and feasible actions.
    """
    found: dict[int, AsPrinted] = {}
    asking = {k: _shortened(*pair) for k, pair in enumerate(pairs)}
    asked: dict[int, _Question] = {}
    answers: dict[int, Judgement | None] = dict.fromkeys(asking)
    while asking:
        for k, answer in answers.items():
            try:
                asked[k] = next(asking[k]) if answer is None else asking[k].send(answer)
            except StopIteration as end:
                found[k] = end.value
                del asking[k]
                asked.pop(k, None)
        answers = dict(zip(asked, judged_together(list(asked.values())), strict=True))
    return [found[k] for k in range(len(pairs))]


def nobody(instance: Instance, row: Mapping[str, float]) -> Instance:
    """The classifier alone: whether doing nothing is feasible is whether it accepts the row."""
    return replace(
        instance,
        scm=independent([f.name for f in instance.features]),
        factual=dict(row),
        preferences=Preferences(),
        cost=Cost.pure("l0", {}),
        plausible=False,
        conditions=(),
        reference=None,
    )


def _shortened(instance: Instance, action: Action) -> _Asking:
    judgement = yield instance, action
    x, cost = instance.factual, judgement.cost
    long = [n for n in action if _fractional(instance.by_name[n], action[n])]
    for k, name in enumerate(long, 1):
        most = cost * (1 + DEARER * Fraction(k, len(long)))
        low, high = instance.levers[name]
        for value in _decimals(judgement.action[name]):
            tried = {**judgement.action, name: value}
            if not low <= value <= high or value == x[name]:
                continue
            verdict = yield instance, tried
            if verdict.feasible and verdict.cost <= most:
                judgement = verdict
                break
    after = {
        n: v for n, v in judgement.counterfactual.items() if n in action or (v != x[n] and not math.isnan(v))
    }
    row = dict(judgement.counterfactual) | {n: judgement.action[n] for n in action}
    for name in (n for n in after if n not in action):  # in order: one value's digits depend on the others'
        exact = row[name]
        if not _fractional(instance.by_name[name], exact):
            continue
        for value in _decimals(exact):
            if value == exact:
                break
            if abs(value - exact) > float(DEARER) * abs(exact - x[name]):
                continue
            verdict = yield nobody(instance, row | {name: value}), {}
            if verdict.accepted_exact and verdict.accepted_deployed:
                row[name] = value
                break
    return AsPrinted(judgement.action, {n: row[n] for n in after}, judgement.cost)


def _fractional(feature: Feature, value: float) -> bool:
    return not feature.integral and not float(value).is_integer()


def _decimals(value: float) -> Iterator[float]:
    """A double rounded to one significant digit, two, and so on, the nearer neighbour first; then itself."""
    number, seen = Decimal(repr(value)), {value}
    for digits in range(1, len(number.as_tuple().digits)):
        unit = Decimal(1).scaleb(number.adjusted() - digits + 1)
        ends = [number.quantize(unit, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING)]
        for end in sorted(ends, key=lambda one: abs(one - number)):
            if float(end) not in seen:
                seen.add(float(end))
                yield float(end)
    yield value
