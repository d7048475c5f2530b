r"""A choice of recourses: the cheapest ones that differ, each proven optimal given those before it.

Choice j is :math:`\min\{c(u) : u \text{ feasible and different from } u_1, \dots, u_{j-1}\}`. What differs
means is said by a condition per earlier choice, so every problem on the way is an ordinary one: whatever back
end solves conditions solves it, and a certificate can be had.

* ``features``: u leaves alone at least one feature that :math:`u_i` acts on. Acting on more besides is no
  other way: any optimum can be made to act on one more feature by a tiny amount, at a tiny cost. What is
  so listed is every set of features whose own optimum acts on all of them, cheapest first.
* ``distance``: after u some lever's value is at least d scales away from where it is after :math:`u_i`
  (a changed category counts as 1).
* ``effect``: the same of any feature, also of those that only follow.

One after the other is not the least in total where any two must differ by more than one feature: the cheapest
may be near everything else. ``together`` asks for the set whose total cost is least instead. All sets of
features are listed, cheapest first, until what is not listed yet is too dear for any better set.

References
----------
Mothilal et al. (2020), https://doi.org/10.1145/3351095.3372850 (diverse counterfactuals); Russell (2019),
https://doi.org/10.1145/3287560.3287569 (coherent, diverse ones by one integer program after the other).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

from milp_recourse.domain.conditions import Acted, Condition, LabelIn, Not, Sum
from milp_recourse.domain.conditions import Any as AnyOf
from milp_recourse.domain.enclosure import round_down, round_up
from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.formats.conditions_json import condition_to_dict
from milp_recourse.formats.write import result_part
from milp_recourse.instance import Instance, demanding
from milp_recourse.options import Clock
from milp_recourse.program.lower import reachable
from milp_recourse.result import Result, Status, is_closed
from milp_recourse.solve import as_instance, check_options, solve

Differ = Literal["features", "distance", "effect"]

CHOICES_FORMAT = "milp-recourse/choices-1"


@dataclass(frozen=True)
class Choice:
    """One of the recourses.

    Attributes
    ----------
    result
        Optimal among what differs from the choices before it, or a limit with both bounds.
    conditions
        The conditions that make it differ from the earlier choices. It is the answer for the instance with
        these added.
    """

    result: Result
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Choices:
    """Several recourses of one applicant.

    Attributes
    ----------
    choices
        Cheapest first, as long as each one was proven.
    differ, apart, scale
        How any two differ: by at least ``apart`` features acted on, or in some feature by at least ``apart``
        times its ``scale``.
    exhausted
        Whether it is proven that no further one differs.
    lower_bound
        Nothing that differs from all of them costs less; None where they are exhausted.
    message
        Why there are fewer than asked for; None where there are not, or where they are exhausted.
    total
        Where the least total was asked for: it, and its lower bound.
    """

    instance: Instance = field(repr=False)
    choices: tuple[Choice, ...]
    differ: Differ
    apart: float
    scale: Mapping[str, float]
    exhausted: bool
    lower_bound: float | None
    message: str | None = None
    total: tuple[float, float] | None = None

    @property
    def proven(self) -> bool:
        """Whether every choice is optimal given the earlier ones, and none is missing for want of time.

        Where the least total was asked for: given that it acts on these features.
        """
        return self.message is None and all(one.result.status is Status.OPTIMAL for one in self.choices)

    def problem(self, number: int) -> Instance:
        """The problem whose answer choice ``number`` is, from 0."""
        return demanding(self.instance, self.choices[number].conditions)

    def to_dict(self) -> dict[str, Any]:
        """As a ``choices-1`` document."""
        features = self.instance.features
        rows = [
            {
                **result_part(one.result, "cost", "lower_bound", "proof", "action", "counterfactual"),
                "conditions": [condition_to_dict(c, features) for c in one.conditions],
            }
            for one in self.choices
        ]
        return {
            "format": CHOICES_FORMAT,
            "differ": self.differ,
            "apart": self.apart,
            "scale": dict(self.scale),
            "choices": rows,
            "exhausted": self.exhausted,
            "lower_bound": self.lower_bound,
            "message": self.message,
            "total": None if self.total is None else {"cost": self.total[0], "lower_bound": self.total[1]},
        }


def choices(
    problem: Instance | Mapping[str, Any] | str | Path,
    count: int = 3,
    differ: Differ = "features",
    apart: float | None = None,
    scale: Mapping[str, float] | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    together: bool = False,
) -> Choices:
    """The ``count`` cheapest recourses that differ, each proven optimal given those before it.

    Parameters
    ----------
    problem
        An instance, the JSON value of one, or the path of its file.
    differ
        In the set of ``features`` acted on, in some lever's value (``distance``), or in any feature's value
        after the action (``effect``).
    apart
        By how much any two differ at least: the number of features that one acts on and the other does not
        (default 1), or the difference of some feature's values in units of ``scale`` (default 1).
    scale
        Feature -> what counts as 1, above 0, in the feature's unit, for ``distance`` and ``effect``. Where
        not named: the cost's scale, else what the feature can span.
    backend
        As for :func:`milp_recourse.solve`.
    time_limit
        Wall seconds for all of them together; None for no limit.
    together
        Instead of one choice after the other, the set of ``count`` choices (fewer if there are not so many)
        whose total cost is least; only for ``features``.

    Raises
    ------
    BadInput
        The file breaks the format, or an argument is not what is allowed.
    Unsupported, BackendUnavailable
        As for :func:`milp_recourse.solve`.
    """
    check_options(time_limit)
    instance = as_instance(problem)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadInput("count", count, "a whole number, 1 or more")
    if differ not in get_args(Differ):
        raise BadInput("differ", differ, ", ".join(get_args(Differ)))
    apart = _apart(differ, apart)
    scales = {} if differ == "features" else _scales(instance, differ, scale)
    clock = Clock.start(time_limit)
    if together:
        return _together(instance, count, differ, apart, backend, clock)
    kept: list[Choice] = []
    bound, message = 0.0, None
    for found in differing(instance, differ, apart, scales, backend, clock):
        result = found.result
        if result.status is Status.INFEASIBLE:
            return Choices(instance, tuple(kept), differ, apart, scales, True, None)
        bound = max(bound, result.lower_bound or 0.0)
        if result.action is None:
            message = result.message or result.status.sentence
            break
        if differ == "features" and not all(_features_apart(result, c.result) >= apart for c in kept):
            continue
        kept.append(found)
        if len(kept) == count:
            break
    done = bool(kept) and differ == "features" and not kept[-1].result.action
    return Choices(instance, tuple(kept), differ, apart, scales, done, None if done else bound, message)


def _together(
    instance: Instance, count: int, differ: Differ, apart: float, backend: str | None, clock: Clock
) -> Choices:
    """The set of ways of least total cost, any two of them so far apart."""
    if differ != "features":
        raise Unsupported(f"the least total of ways that differ in {differ}; allowed: one after the other")
    ways: list[Choice] = []
    unseen, message = 0.0, None
    best: list[int] = []
    for found in differing(instance, differ, apart, {}, backend, clock):
        if found.result.status is Status.INFEASIBLE or found.result.action == {}:
            ways += [found] if found.result.action == {} else []
            unseen = math.inf
            break
        unseen = max(unseen, found.result.lower_bound or 0.0)
        if found.result.action is None:
            message = found.result.message or found.result.status.sentence
            break
        ways.append(found)
        best = _least([one.result for one in ways], [one.result.cost or 0.0 for one in ways], count, apart)
        if len(best) == count:
            with_new = sum(sorted(one.result.lower_bound or 0.0 for one in ways)[: count - 1]) + unseen
            total = sum(ways[k].result.cost or 0.0 for k in best)
            if total <= with_new + instance.gap_tolerance(total):
                break
    results = [one.result for one in ways]
    costs, bounds = [r.cost or 0.0 for r in results], [r.lower_bound or 0.0 for r in results]
    best = _least(results, costs, count, apart)
    least = sum(bounds[k] for k in _least(results, bounds, count, apart))
    least = min(least, sum(sorted(bounds)[: count - 1]) + unseen)
    kept = tuple(ways[k] for k in best)
    exhausted = unseen == math.inf and len(kept) < count
    bound = None if exhausted else min(unseen, max(bounds, default=0.0))
    total_ = sum(costs[k] for k in best)
    return Choices(instance, kept, differ, apart, {}, exhausted, bound, message, (total_, min(least, total_)))


def _least(results: Sequence[Result], costs: Sequence[float], count: int, apart: float) -> list[int]:
    """Positions of the set of least total cost, any two so far apart, of as many as there can be.

    Parameters
    ----------
    count
        The most there may be.
    costs
        What is added up; the search leaves out what cannot be better.
    """
    order = sorted(range(len(results)), key=lambda k: costs[k])
    best: list[int] = []
    least = math.inf

    def extend(chosen: list[int], start: int, total: float) -> None:
        nonlocal best, least
        if (len(chosen), -total) > (len(best), -least):
            best, least = list(chosen), total
        if len(chosen) == count:
            return
        for place in range(start, len(order)):
            k, missing = order[place], count - len(chosen)
            if len(best) == count and total + missing * costs[k] >= least:
                return
            if all(_features_apart(results[k], results[other]) >= apart for other in chosen):
                extend([*chosen, k], place + 1, total + costs[k])

    extend([], 0, 0.0)
    return best


def differing(
    instance: Instance,
    differ: Differ,
    apart: float,
    scales: Mapping[str, float],
    backend: str | None,
    clock: Clock,
) -> Iterator[Choice]:
    """One recourse after the other, each the cheapest that is excluded by none before it.

    The last one has no action: nothing is left (``infeasible``), or it stayed open whether something is.
    """
    conditions: tuple[Condition, ...] = ()
    while True:
        result = solve(demanding(instance, conditions), backend, clock.left())
        if differ == "features" and result.status is Status.OPTIMAL:
            result = _on_fewer(demanding(instance, conditions), result, backend, clock)
        yield Choice(result, conditions)
        if result.action is None or (differ == "features" and not result.action):
            return
        if differ == "features":
            conditions += (other_features(result),)
        else:
            conditions += (far_from(instance, result, apart, scales),)


def _on_fewer(instance: Instance, result: Result, backend: str | None, clock: Clock) -> Result:
    """The optimum on as few of its features as it can be had on.

    An optimum may hold a feature, or move it by next to nothing: then it is the way without that feature, and
    counting that feature would make two ways out of one.
    """
    for name in list(result.action or {}):
        if name not in (result.action or {}):
            continue  # it went with another
        kept = tuple(other for other in instance.preferences.actionable if other != name)
        own = replace(instance.preferences, actionable=kept)
        found = solve(replace(instance, preferences=own, reference=None), backend, clock.left())
        if found.cost is None or result.lower_bound is None:
            continue
        if is_closed(found.cost, min(result.lower_bound, found.cost), instance.gap_allowance):
            bound = min(result.lower_bound, found.cost)
            result = replace(
                found, status=Status.OPTIMAL, lower_bound=bound, proof=result.proof, message=result.message
            )
    return result


def other_features(result: Result) -> Condition:
    """Some feature that this recourse acts on is left alone."""
    return AnyOf(tuple(Not(Acted(name)) for name in result.action or ()))


def far_from(instance: Instance, result: Result, apart: float, scales: Mapping[str, float]) -> Condition:
    """Some feature with a scale ends at least ``apart`` scales from where this recourse brings it.

    Ends are rounded away from it to doubles. Of a missing value only whether it is acted on can differ.
    """
    ways: list[Condition] = []
    after = result.counterfactual or {}
    for name, scale in scales.items():
        feature, distance = instance.feature(name), Fraction(apart) * Fraction(scale)
        if name in instance.missing:
            ways.append(Not(Acted(name)) if name in (result.action or {}) else Acted(name))
            continue
        here = feature.number(after[name] or 0.0)  # nothing but what was missing is None
        if feature.kind == "categorical":
            if distance <= 1:
                others = tuple(k for k in range(len(feature.categories or ())) if k != here)
                ways.append(LabelIn(name, "counterfactual", others))
        else:
            value, term = Fraction(here), ((name, 1.0),)
            ways.append(Sum(term, "counterfactual", at_least=round_up(value + distance)))
            ways.append(Sum(term, "counterfactual", at_most=round_down(value - distance)))
    return AnyOf(tuple(ways))


def _features_apart(one: Result, other: Result) -> int:
    return len((one.action or {}).keys() ^ (other.action or {}).keys())


def _apart(differ: Differ, apart: float | None) -> float:
    if apart is None:
        return 1
    if differ == "features":
        if not is_number(apart) or apart < 1 or apart != int(apart):
            raise BadInput("apart", apart, "a whole number of features, 1 or more")
        return int(apart)
    if not is_number(apart) or apart <= 0:
        raise BadInput("apart", apart, "a number of scales above 0")
    return float(apart)


def _scales(instance: Instance, differ: Differ, scale: Mapping[str, float] | None) -> dict[str, float]:
    """What counts as 1, of every feature that may differ; those that nothing can move are left out."""
    said = dict(scale or {})
    names = [f.name for f in instance.features]
    for name, value in said.items():
        if name not in names:
            raise BadInput(f"scale.{name}", value, "a feature: " + ", ".join(names))
        if not is_number(value) or value <= 0:
            raise BadInput(f"scale.{name}", value, "a number above 0")
    own = instance.cost.scale if instance.cost.uses_scale and not instance.cost.quantiles else {}
    made = {}
    for name, ends in reachable(instance).items():
        width = float(ends.upper - ends.lower)
        moves = width > 0 or name in instance.missing
        if not moves or (differ == "distance" and name not in instance.levers):
            continue
        whole = instance.feature(name).labelled
        made[name] = float(said.get(name, own.get(name, 1.0 if whole else width)))
    return made
