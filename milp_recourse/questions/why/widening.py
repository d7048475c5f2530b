"""The least widening of a restriction that makes recourse possible, by bisection with proofs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from milp_recourse.problem.conditions import Condition, Sum, factors, value_of
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.enclosure import Enclosure, round_down, round_up
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.program.lower import reachable
from milp_recourse.questions.why.restrictions import lift

SHARE = 1e-6
"""The widening that is reported exceeds the least one by at most this part of the width (:func:`_span`)."""

_WITHIN = 0.9 * SHARE  # where bisection ends
_STEPS = 60
_FAINT = 1e-7  # weight of the other levers in the problem that minimises one lever's change


@dataclass(frozen=True)
class Widened:
    """A restriction with one end moved.

    Attributes
    ----------
    id, end
        The restriction's id, and its ``low`` or ``high`` end.
    start, to
        The value of the end, and the value to which it must be moved.
    result
        The optimum with the moved end.
    """

    id: str
    end: str
    start: float
    to: float
    result: Result


def ends_of(instance: Instance, id: str) -> list[tuple[str, float]]:
    """The ends of a restriction that can be moved, with their values; only ranges, domains and one-sided sums
    have such ends."""
    kind, _, name = id.partition(":")
    if kind in ("range", "domain"):
        ends = instance.preferences.ranges[name] if kind == "range" else instance.by_name[name].domain
        return [] if ends is None else [("low", ends[0]), ("high", ends[1])]
    if kind == "condition":
        condition = instance.all_conditions[int(name)]
        if isinstance(condition, Sum) and (condition.at_least is None) != (condition.at_most is None):
            if condition.at_least is not None:
                return [("low", condition.at_least)]
            assert condition.at_most is not None
            return [("high", condition.at_most)]
    return []


def widen(instance: Instance, id: str, end: str, to: float) -> Instance:
    """The problem with one end of a restriction moved."""
    kind, _, name = id.partition(":")
    if kind == "range":
        low, high = instance.preferences.ranges[name]
        moved = (to, high) if end == "low" else (low, to)
        ranges = {**instance.preferences.ranges, name: moved}
        return replace(instance, preferences=replace(instance.preferences, ranges=ranges), reference=None)
    if kind == "domain":
        low, high = instance.by_name[name].domain or (-math.inf, math.inf)
        moved = (to, high) if end == "low" else (low, to)
        features = tuple(replace(f, domain=moved) if f.name == name else f for f in instance.features)
        return replace(instance, features=features, reference=None)
    k, shared = int(name), len(instance.conditions)

    def moved_at(conditions: tuple[Condition, ...], first: int) -> tuple[Condition, ...]:
        changed = list(conditions)
        if first <= k < first + len(conditions):
            one = changed[k - first]
            assert isinstance(one, Sum)
            changed[k - first] = replace(one, at_least=to) if end == "low" else replace(one, at_most=to)
        return tuple(changed)

    own = replace(instance.preferences, conditions=moved_at(instance.preferences.conditions, shared))
    return replace(instance, conditions=moved_at(instance.conditions, 0), preferences=own, reference=None)


class Unsettled(Exception):
    """Whether an action exists was not decided."""


def least_widening(
    instance: Instance, id: str, end: str, start: float, solve: Callable[[Instance], Result]
) -> Widened | None:
    """The least movement of an end that suffices, up to :data:`SHARE` of the width; None if none suffices.

    Bisection keeps two values of the end: with one there is an action, and with the one nearer to ``start``
    it is proven that there is none. Ends of what takes whole values are whole, and the least one is found
    exactly.

    Parameters
    ----------
    instance
        Proven to have no action as it stands.
    id
        The restriction's name (:mod:`milp_recourse.questions.why.restrictions`).
    end
        Which end moves outward, ``low`` or ``high``.
    start
        Where it is now.
    solve
        A function that solves an instance within the time that is left.

    Raises
    ------
    Unsettled
        A problem on the way was not decided, or 60 steps were not enough.
    """
    width, far, whole = _span(instance, id)
    sign = -1.0 if end == "low" else 1.0
    limit = far[0] if end == "low" else far[1]
    if whole:
        limit = float(math.ceil(limit) if end == "low" else math.floor(limit))
    if sign * (limit - start) <= 0:
        return None

    def attempt(to: float) -> Result | None:
        return _attempt(widen(instance, id, end, to), solve)

    best, near = limit, start
    result = attempt(limit)
    if result is None:
        return None
    guess = _guess(instance, id, end, start, limit, solve)
    if guess is not None and 0 < sign * (guess - start) < sign * (limit - start):
        tried = attempt(guess)
        best, near, result = (best, guess, result) if tried is None else (guess, near, tried)
    close = 1.0 if whole else _WITHIN * width
    aim = True  # test whether the value in hand is already the least, up to the tolerance: first, and after
    # every success; in between, bisect
    for _ in range(_STEPS):
        if sign * (best - near) <= close:
            return Widened(id, end, start, best, result)
        middle = best - sign * 0.99 * close if aim else near + 0.5 * (best - near)
        if whole:
            middle = float(math.ceil(middle) if sign < 0 else math.floor(middle))
        tried = attempt(middle)
        if tried is None:
            near, aim = middle, False
        else:
            best, result, aim = middle, tried, not aim
    raise Unsettled(id)


def _attempt(instance: Instance, solve: Callable[[Instance], Result]) -> Result | None:
    """A result with an action; None if it is proven that there is none.

    Raises
    ------
    Unsettled
        Neither is known.
    """
    result = solve(instance)
    if result.action is None and result.status is not Status.INFEASIBLE:
        raise Unsettled
    return result if result.action is not None else None


def _guess(
    instance: Instance, id: str, end: str, start: float, limit: float, solve: Callable[[Instance], Result]
) -> float | None:
    """A good first value of the end, from the problem in which the lever's own change is minimised.

    None if the restriction is a condition, or the lever's least change is not the least widening.
    """
    kind, _, name = id.partition(":")
    if kind == "condition" or name not in instance.preferences.actionable:
        return None
    x, feature = instance.factual[name], instance.by_name[name]
    if math.isnan(x) or feature.kind == "categorical" or (x < start if end == "low" else x > start):
        return None
    levers = instance.preferences.actionable
    scale = {other: instance.cost.lengths.get(other, 1.0) for other in levers}
    weights = {other: 1.0 if other == name else _FAINT for other in levers}
    problem = replace(widen(instance, id, end, limit), cost=Cost.pure("l1", scale))
    found = solve(replace(problem, preferences=replace(problem.preferences, weights=weights)))
    if found.action is None or found.counterfactual is None:
        return None
    return feature.number(found.counterfactual[name] or 0.0)


def _span(instance: Instance, id: str) -> tuple[float, tuple[float, float], bool]:
    """The width to which tolerances are relative, the farthest useful ends, and whether ends are whole."""
    kind, _, name = id.partition(":")
    free = lift(instance, [id])
    reach = reachable(free)
    if kind in ("range", "domain"):
        feature = instance.by_name[name]
        far = _outward(reach[name])
        if feature.actionable:
            bounds = feature.action_bounds
            far = bounds if kind == "range" else (min(far[0], bounds[0]), max(far[1], bounds[1]))
            width = bounds[1] - bounds[0]
        else:
            width = far[1] - far[0]
        imputed = kind == "domain" and instance.factual[name] % 1 > 0  # it may be left a fraction
        return width or 1.0, far, feature.integral and not imputed
    condition = instance.all_conditions[int(name)]
    assert isinstance(condition, Sum)
    total, spanned, whole = Enclosure.of(0), Fraction(0), condition.of != "relative-change"
    for of, c in condition.terms:
        value, factor = value_of(of, reach), Fraction(c)
        x = Fraction(math.prod(Fraction(instance.factual[f]) for f in factors(of)))
        if condition.of == "factual":
            value = Enclosure.of(x)
        elif condition.of != "counterfactual":
            value = value - Enclosure.of(x)
        if condition.of == "relative-change":
            factor = factor / abs(x)
        total = total + Enclosure.of(factor) * value
        named = [instance.by_name[f] for f in factors(of)]
        numbers = float(c).is_integer() and float(x).is_integer()
        whole = whole and numbers and all(f.integral for f in named)
        if len(named) > 1:
            spanned += abs(factor) * (value.upper - value.lower)
        elif named[0].actionable:
            ends = named[0].action_bounds
            spanned += abs(factor) * (Fraction(ends[1]) - Fraction(ends[0]))
    far = _outward(total)
    return float(spanned) or (far[1] - far[0]) or 1.0, far, whole


def _outward(value: Enclosure) -> tuple[float, float]:
    return round_down(value.lower), round_up(value.upper)
