r"""A choice of recourses: the cheapest ones that differ, each proven optimal given those before it.

Choice j is :math:`\min\{c(u) : u \text{ feasible and different from } u_1, \dots, u_{j-1}\}`. One condition
per earlier choice expresses that u is different. So every problem on the way is an ordinary one: each back
end that solves problems with conditions solves it, and its result can be certified. There are three meanings
of "different from :math:`u_i`":

* ``features``: u does not act on at least one of the features that :math:`u_i` acts on. To act on these and
  on further features is not different, because any optimum could act on one more feature by a tiny amount at
  a tiny cost. The choices are then the sets of features whose optimum acts on all of them, cheapest first. If
  they must be more than one feature apart, those that are closer to an earlier choice are left out.
* ``distance``: after u some lever's value is at least d scales away from where it is after :math:`u_i`
  (a changed category counts as 1).
* ``effect``: the same for any feature, including those that only follow from their causes.

Where any two choices must differ by more than one feature, taking one after the other need not give the least
total cost, since the cheapest one may be close to all others. ``together`` minimises the total cost instead:
it lists sets of features, cheapest first, until those not listed cost too much to be part of a better choice.

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

from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.formats.schema_answers import ChoiceModel, ChoicesModel
from milp_recourse.formats.schema_conditions import condition_to_dict
from milp_recourse.formats.stated import document
from milp_recourse.problem.conditions import Acted, Condition, LabelIn, Not, Sum
from milp_recourse.problem.conditions import Any as AnyOf
from milp_recourse.problem.decimals import as_written, written_above, written_below
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.instance import Instance, demanding
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status, is_closed
from milp_recourse.program.lower import reachable
from milp_recourse.questions.solve import as_instance, check_options, solve

Differ = Literal["features", "distance", "effect"]


@dataclass(frozen=True)
class Choice:
    """One of the recourses.

    Attributes
    ----------
    result
        Optimal among what differs from the choices before it, or a limit with both bounds.
    conditions
        The conditions that make it differ from the earlier choices. The result is the answer for the instance
        with these conditions added.
    """

    result: Result
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Choices:
    """Several recourses of one applicant.

    Attributes
    ----------
    choices
        Cheapest first; with ``together`` those of the selection of least total cost.
    differ, apart, scale
        How any two differ: by at least ``apart`` features acted on, or in some feature by at least ``apart``
        times its ``scale``.
    exhausted
        Whether it is proven that no further recourse differs from all choices; with ``features``, that no
        further set of features does whose optimum acts on all of them.
    lower_bound
        None of these costs less; None if the choices are exhausted.
    message
        Why there are fewer choices than ``count``; None if there are as many, or if they are exhausted.
    total
        With ``together``, the least total cost and its lower bound; else None.
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
        """Whether every choice is optimal given the earlier ones, and the search did not stop early.

        With ``together``, each choice is optimal among the actions on its own set of features.
        """
        return self.message is None and all(one.result.status is Status.OPTIMAL for one in self.choices)

    def problem(self, number: int) -> Instance:
        """The problem whose answer is choice ``number``, counted from 0."""
        return demanding(self.instance, self.choices[number].conditions)

    def to_dict(self) -> dict[str, Any]:
        """As a ``choices-1`` document."""
        features = self.instance.features
        total = None if self.total is None else {"cost": self.total[0], "lower_bound": self.total[1]}
        rows = []
        for one in self.choices:
            conditions = [condition_to_dict(c, features) for c in one.conditions]
            rows.append(document(ChoiceModel, one.result, conditions=conditions))
        return document(ChoicesModel, self, scale=dict(self.scale), choices=rows, total=total)


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
    problem, backend
        As for :func:`milp_recourse.solve`.
    differ
        In the set of ``features`` acted on, in some lever's value (``distance``), or in any feature's value
        after the action (``effect``).
    apart
        By how much any two differ at least: the number of features that one acts on and the other does not
        (default 1), or the difference of some feature's values in units of ``scale`` (default 1).
    scale
        Feature -> what counts as 1, above 0, in the feature's unit, for ``distance`` and ``effect``. Where
        not named: the cost's scale, else what the feature can span.
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
    if not isinstance(differ, str) or differ not in get_args(Differ):
        raise BadInput("differ", differ, ", ".join(get_args(Differ)))
    if not isinstance(together, bool):
        raise BadInput("together", repr(together), "True or False")
    apart = _apart(differ, apart)
    scales = {} if differ == "features" else _scales(instance, differ, scale)
    clock = Clock.start(time_limit)
    if together:
        return _together(instance, count, differ, apart, backend, clock)
    chosen: list[Choice] = []
    bound, message = 0.0, None
    for found in differing(instance, differ, apart, scales, backend, clock):
        result = found.result
        if result.status is Status.INFEASIBLE:
            return Choices(instance, tuple(chosen), differ, apart, scales, True, None)
        bound = max(bound, result.lower_bound or 0.0)
        if result.action is None:
            message = result.message or result.status.sentence
            break
        if differ == "features" and not _apart_from(result, [c.result for c in chosen], apart):
            continue
        chosen.append(found)
        if len(chosen) == count:
            break
    done = bool(chosen) and differ == "features" and not chosen[-1].result.action
    return Choices(instance, tuple(chosen), differ, apart, scales, done, None if done else bound, message)


def _together(
    instance: Instance, count: int, differ: Differ, apart: float, backend: str | None, clock: Clock
) -> Choices:
    """The selection of ``count`` recourses of least total cost, any two at least ``apart`` features apart.

    Recourses are listed one after the other. A selection with one that is not listed yet costs at least the
    sum of the ``count - 1`` least lower bounds of listed ones and the lower bound of all that are not listed.
    When this is no less than the best selection of listed ones, the listing ends.
    """
    if differ != "features":
        raise Unsupported(f"the least total of ways that differ in {differ}; allowed: one after the other")
    listed: list[Choice] = []
    unlisted, message = 0.0, None  # lower bound of what is not listed
    best: list[int] = []
    for found in differing(instance, differ, apart, {}, backend, clock):
        if found.result.status is Status.INFEASIBLE or found.result.action == {}:
            listed += [found] if found.result.action == {} else []
            unlisted = math.inf
            break
        unlisted = max(unlisted, found.result.lower_bound or 0.0)
        if found.result.action is None:
            message = found.result.message or found.result.status.sentence
            break
        listed.append(found)
        results = [one.result for one in listed]
        best = _least(results, [one.cost or 0.0 for one in results], count, apart)
        if len(best) == count:
            with_new = sum(sorted(one.result.lower_bound or 0.0 for one in listed)[: count - 1]) + unlisted
            total = sum(listed[k].result.cost or 0.0 for k in best)
            if total <= with_new + instance.gap_tolerance(total):
                break
    results = [one.result for one in listed]
    costs, bounds = [r.cost or 0.0 for r in results], [r.lower_bound or 0.0 for r in results]
    best = _least(results, costs, count, apart)
    least = _sum_below([bounds[k] for k in _least(results, bounds, count, apart)])
    if unlisted < math.inf:
        least = min(least, _sum_below([*sorted(bounds)[: count - 1], unlisted]))
    chosen, cost = [results[k] for k in best], sum(costs[k] for k in best)
    left = [r.lower_bound or 0.0 for r in results if _apart_from(r, chosen, apart)]
    bound = min([unlisted, *left])
    return Choices(
        instance,
        tuple(listed[k] for k in best),
        differ,
        apart,
        {},
        exhausted=bound == math.inf,
        lower_bound=None if bound == math.inf else bound,
        message=message,
        total=(cost, min(least, cost)),
    )


def _sum_below(numbers: Sequence[float]) -> float:
    """The largest double that is not above a sum."""
    return round_down(sum(map(Fraction, numbers), Fraction(0)))


def _least(results: Sequence[Result], costs: Sequence[float], count: int, apart: float) -> list[int]:
    """Positions of as many results as can be chosen, at most ``count``, at the least total cost.

    Any two of those chosen act on sets of features that differ in at least ``apart`` features.

    Parameters
    ----------
    costs
        What each result adds to the total. Partial choices that cannot become the cheapest are not extended.
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
            if _apart_from(results[k], [results[other] for other in chosen], apart):
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
    """One recourse after the other, each the cheapest that differs from all before it.

    The last one has no action: it is proven that no other recourse differs (``infeasible``), or the search
    stopped before that was known. With ``features`` the empty action, which is free, is also the last.
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
    """An optimum, within the gap, that needs each of its features: on the others alone it costs more.

    Features of the optimum are left out one at a time, as long as the cost stays optimal. An optimum may hold
    a feature, or move it by a negligible amount; to count such a feature would list the same recourse twice.
    No other features take their place, because those could be needless in turn.
    """
    for name in list(result.action or {}):
        acted = result.action or {}
        if name not in acted:
            continue  # left out together with an earlier feature
        others = tuple(other for other in instance.preferences.actionable if other in acted and other != name)
        own = replace(instance.preferences, actionable=others)
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
    """The condition that at least one feature that the recourse acts on is not acted on."""
    return AnyOf(tuple(Not(Acted(name)) for name in result.action or ()))


def far_from(instance: Instance, result: Result, apart: float, scales: Mapping[str, float]) -> Condition:
    """The condition that a feature of ``scales`` ends ``apart`` scales or more from its value in ``result``.

    Distances are computed from the numbers as they are written: values that are 1 apart are 0.1 scales of 10
    apart. Another label of a categorical feature is 1 away, so it counts only where that is ``apart`` scales
    or more. A feature whose factual value is missing counts where it is acted on in one of the two recourses
    and not in the other.
    """
    parts: list[Condition] = []
    after = result.counterfactual or {}
    for name, scale in scales.items():
        feature, distance = instance.by_name[name], as_written(apart) * as_written(scale)
        if name in instance.missing:
            parts.append(Not(Acted(name)) if name in (result.action or {}) else Acted(name))
            continue
        number = feature.number(after[name] or 0.0)  # only missing values are None
        if feature.kind == "categorical":
            if distance <= 1:
                others = tuple(k for k in range(len(feature.categories or ())) if k != number)
                parts.append(LabelIn(name, "counterfactual", others))
        else:
            value, term = as_written(number), ((name, 1.0),)
            least, most = written_above(value + distance), written_below(value - distance)
            if math.isfinite(least):
                parts.append(Sum(term, "counterfactual", at_least=least))
            if math.isfinite(most):
                parts.append(Sum(term, "counterfactual", at_most=most))
    return AnyOf(tuple(parts))


def _apart_from(one: Result, others: Sequence[Result], apart: float) -> bool:
    """Whether a recourse acts on at least ``apart`` other features than each of the others, more or fewer."""
    acted = (one.action or {}).keys()
    return all(len(acted ^ (other.action or {}).keys()) >= apart for other in others)


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
    """The scale of every feature in which recourses may differ, without those that no action moves."""
    given = dict(scale or {})
    names = [f.name for f in instance.features]
    for name, value in given.items():
        if name not in names:
            raise BadInput(f"scale.{name}", value, "a feature: " + ", ".join(names))
        if not is_number(value) or value <= 0:
            raise BadInput(f"scale.{name}", value, "a number above 0")
    own = instance.cost.lengths if instance.cost.uses_scale else {}
    scales = {}
    for name, ends in reachable(instance).items():
        width = float(ends.upper - ends.lower)
        moves = width > 0 or name in instance.missing
        if not moves or (differ == "distance" and name not in instance.levers):
            continue
        labelled = instance.by_name[name].labelled
        scales[name] = float(given.get(name, own.get(name, 1.0 if labelled else width)))
    return scales
