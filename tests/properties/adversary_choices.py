"""What ``choices`` says about one person, compared with what that person could do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations

import numpy as np

from milp_recourse.problem.result import Status
from milp_recourse.questions.choices import Differ, choices
from tests.helpers.every_action import Everything, Mask
from tests.properties.adversary_checks import Case, Check, above, answer, same

Way = tuple[float, frozenset[str]]
LONG = 60.0
"""Seconds for all choices of a person."""


def ways_of(every: Everything, some: Mask) -> list[Way] | None:
    """Every set of features whose own optimum acts on all of them, cheapest first.

    None if the costs of two sets are too close to call.
    """
    cheapest: dict[frozenset[str], float] = {}
    for k in np.flatnonzero(some):
        acted = every.acted_set(k)
        cheapest[acted] = min(cheapest.get(acted, np.inf), float(every.cost[k]))
    ways = []
    for acted, cost in cheapest.items():
        parts = min((c for other, c in cheapest.items() if other < acted), default=np.inf)
        if 1e-12 * cost < abs(parts - cost) <= 1e-5 * cost:
            return None
        if cost < parts * (1 - 1e-5):
            ways.append((cost, acted))
    return sorted(ways, key=lambda way: (way[0], sorted(way[1])))


def left_of(ways: list[Way], chosen: list[frozenset[str]], apart: int) -> list[Way]:
    """The ways that differ from all that were chosen."""
    return [way for way in ways if all(len(way[1] ^ other) >= apart for other in chosen)]


def check_features(case: Case, counts: Counter[str]) -> Iterator[str]:
    """Ways on different features, one after the other."""
    ways = ways_of(case.every, case.every.possible())
    if ways is None:
        counts["too close"] += 1
        return
    apart, count = int(case.rng.choice([1, 1, 2, 3])), int(case.rng.integers(1, 6))
    said = f"{count} ways {apart} apart: "
    found = case.answers.choices(case.person, count, "features", apart, time_limit=LONG)
    chosen: list[frozenset[str]] = []
    for number, row in found.iterrows():
        acted = frozenset(str(key) for key in row["action"])
        left = left_of(ways, chosen, apart)
        counts["choices"] += 1
        if row["status"] != "optimal":
            counts["open"] += 1
            return
        if acted not in [way[1] for way in left]:
            yield f"{said}choice {number} on {sorted(acted)}, of {left}"
        elif not same(row["cost"], left[0][0]) or above(row["lower_bound"], left[0][0]):
            yield f"{said}choice {number} at {row['cost']}, at least {row['lower_bound']}, but {left[0]}"
        chosen.append(acted)
    if found.attrs["message"] is not None:
        counts["open"] += 1
        return
    yield from check_left(said, left_of(ways, chosen, apart), len(found) < count, found.attrs, counts)


def check_left(
    said: str, left: list[Way], fewer: bool, attrs: Mapping[str, object], counts: Counter[str]
) -> Iterator[str]:
    """What is said of the ways that are not listed.

    Parameters
    ----------
    left
        The ways that differ from those listed, cheapest first.
    fewer
        Whether fewer were listed than were asked for.
    """
    exhausted, bound = attrs["exhausted"], attrs["lower_bound"]
    counts["exhausted"] += bool(exhausted)
    if exhausted and left:
        yield f"{said}nothing else differs, but {left}"
    elif fewer and not exhausted:
        yield f"{said}fewer, but not said to be all; {left}"
    elif exhausted != (bound is None) or (left and above(bound, left[0][0])):  # type: ignore[arg-type]
        yield f"{said}what differs costs at least {bound}, but {left}"


def check_together(case: Case, counts: Counter[str]) -> Iterator[str]:
    """The selection of least total cost."""
    ways = ways_of(case.every, case.every.possible())
    if ways is None or len(ways) > 14:
        counts["too close"] += 1
        return
    apart, count = int(case.rng.integers(1, 4)), int(case.rng.integers(2, 4))
    found = case.answers.choices(case.person, count, "features", apart, time_limit=LONG, together=True)
    total = found.attrs["total"]
    if found.attrs["message"] is not None or (found["status"] != "optimal").any():
        counts["open"] += 1
        return
    most, least = 0, 0.0
    for size in range(1, count + 1):
        totals = [
            sum(way[0] for way in some)
            for some in combinations(ways, size)
            if all(len(a[1] ^ b[1]) >= apart for a, b in combinations(some, 2))
        ]
        if totals:
            most, least = size, min(totals)
    counts[f"{most} ways"] += 1
    said = f"{count} together, {apart} apart: "
    chosen = [frozenset(map(str, action)) for action in found["action"]]
    if len(found) != most:
        yield f"{said}{len(found)} ways, but {most} of {ways}"
    elif not same(total[0], least) or above(total[1], least):
        yield f"{said}a total of {total}, but {least} of {ways}"
    yield from check_left(said, left_of(ways, chosen, apart), len(found) < count, found.attrs, counts)


def check_far(differ: Differ) -> Check:
    """Ways whose values differ, of levers (``distance``) or of any feature (``effect``)."""

    def check(case: Case, counts: Counter[str]) -> Iterator[str]:
        every, rng = case.every, case.rng
        numbers = [c.name for c in every.columns if c.feature.kind != "categorical"]
        apart = float(rng.choice([0.1, 0.2, 0.3, 0.5, 0.7, 1.0]))
        scale = {n: float(rng.choice([0.5, 1, 3, 5, 10])) for n in numbers if rng.random() < 0.6}
        count = int(rng.integers(1, 6))
        found = choices(case.instance, count, differ, apart, scale, case.backend, LONG)
        said = f"{count} ways {apart} apart of {dict(found.scale)}: "
        earlier: list[Everything] = []

        def some(all_of_them: Everything) -> Mask:
            left = all_of_them.possible()
            for one in earlier:
                left &= differing(all_of_them, one, apart, found.scale)
            return left

        for k, one in enumerate(found.choices):
            counts["choices"] += 1
            yield from answer(case, one.result, some, f"{said}choice {k}: ")
            if one.result.status is not Status.OPTIMAL:
                counts["open"] += 1
                return
            earlier.append(every.only(case.instance.numbers(one.result.action or {})))
        least = every.least(some(every))
        counts["exhausted"] += found.exhausted
        if found.exhausted and least is not None:
            yield f"{said}nothing else differs, but one at {least} does"
        elif every.whole and not found.exhausted and least is None and len(found.choices) < count:
            if found.message is None:
                yield f"{said}fewer, but not said to be all"
        elif above(found.lower_bound, least):
            yield f"{said}what differs costs at least {found.lower_bound}, but {least}"

    return check


def differing(every: Everything, other: Everything, apart: float, scale: Mapping[str, float]) -> Mask:
    """The actions after which some feature is ``apart`` scales or more from where another one leads."""
    found = np.zeros(len(every.after), dtype=bool)
    for name, unit in scale.items():
        at = every.names.index(name)
        values, here = every.after[:, at], float(other.after[0, at])
        distance = Fraction(str(apart)) * Fraction(str(unit))
        if np.isnan(every.x[name]):
            k = every.levers.index(name)
            found |= every.acted[:, k] != other.acted[0, k]
        elif every.by_name[name].feature.kind == "categorical":
            found |= (values != here) & (distance <= 1)
        else:
            distance -= Fraction(every.slack)
            known = {v: abs(Fraction(v) - Fraction(here)) >= distance for v in set(values.tolist())}
            found |= np.array([known[v] for v in values.tolist()])
    return found
