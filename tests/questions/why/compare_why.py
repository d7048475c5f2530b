"""Why not, applied: random applicants in whose way something stands, by two back ends and brute force.

``minimal``: one back end gives the minimal sets and the least widenings. By the other, with a set lifted
there is an optimum at the stated cost, without any part of it there is none; every set of restrictions is
tried, and is feasible just where it holds one of the minimal sets; a widening suffices at the stated cost,
and one that is smaller by 1e-6 of its width does not. ``prices``: what each restriction costs somebody who
has recourse. Brute force looks for feasible points cheaper than what is stated, and for any where it says
there are none; feasibility of a point is the exact judgement's. Run from the repository root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.why import Why, lift, why, widen
from milp_recourse.questions.why.widening import _span, ends_of
from tests.conditions.compare_conditions import cheap_points
from tests.helpers.brute_force import subsets
from tests.helpers.stuck import problem, restricted, stuck
from tests.properties.agreement import BRUTE, TWO, agreed, compare, same

KINDS = ("minimal", "prices")
POINTS = 30
"""Grid points that are judged per set of features, cheapest first."""


@dataclass
class Second:
    """The second back end, and brute force, asked about changed problems.

    Attributes
    ----------
    open
        How many of its answers stayed open, or were refused.
    """

    name: str
    limit: float
    open: int = 0
    known: dict[frozenset[str], tuple[bool, float | None]] = field(default_factory=dict)

    def cost(self, instance: Instance, wrong: list[str]) -> tuple[bool, float | None]:
        """Whether it is settled, and the cost; None: infeasible. Brute force contradicts into ``wrong``."""
        sure = agreed(instance, (self.name,), self.limit, lambda result: [], Counter(), wrong)
        if self.name not in sure:
            self.open += 1
            return False, None
        result = sure[self.name]
        point = cheaper(instance, result)
        if point is not None:
            wrong.append(f"{self.name}: {result.status.value} at {result.lower_bound}, but {point}")
        return True, result.cost

    def lifted(self, instance: Instance, ids: frozenset[str], wrong: list[str]) -> tuple[bool, float | None]:
        """The same without these restrictions, asked once."""
        if ids not in self.known:
            self.known[ids] = self.cost(lift(instance, ids), wrong)
        return self.known[ids]


def cheaper(instance: Instance, result: Result) -> tuple[float, dict[str, float]] | None:
    """A feasible point of a grid below the stated bound."""
    below = np.inf if result.lower_bound is None else result.lower_bound * (1 - 1e-9) - 1e-9
    if judge(instance, {}).feasible:
        return (0.0, {}) if below > 0 else None
    for acted in subsets(instance):
        for looked, (cost, action) in enumerate(cheap_points(instance, acted, below)):
            if looked >= POINTS:
                break
            if judge(instance, action).feasible:
                return cost, action
    return None


def refuted_sets(instance: Instance, found: Why, second: Second, wrong: list[str]) -> Iterator[str]:
    """What the second back end says against the minimal sets."""
    stated = {frozenset(one.lift): one.result.cost for one in found.minimal}
    for ids, cost in stated.items():
        settled, own = second.lifted(instance, ids, wrong)
        if settled and not same(own, cost):
            yield f"{sorted(ids)} lifted costs {own}, not {cost}"
        for part in ids:
            settled, own = second.lifted(instance, ids - {part}, wrong)
            if settled and own is not None:
                yield f"{sorted(ids)}: {part} need not be lifted"
    if not found.complete:
        return
    for size in range(len(found.restrictions) + 1):
        for some in map(frozenset, combinations(found.restrictions, size)):
            settled, own = second.lifted(instance, some, wrong)
            if settled and (own is not None) != any(ids <= some for ids in stated):
                yield f"lifting {sorted(some)} {'is enough' if own is not None else 'is not enough'}"


def refuted_widenings(instance: Instance, found: Why, second: Second, wrong: list[str]) -> Iterator[str]:
    """What it says against the least widenings, and of ends that are not among them."""
    listed = {(one.id, one.end) for one in found.smallest}
    for one in found.smallest:
        width, far, whole = _span(instance, one.id)
        settled, own = second.cost(widen(instance, one.id, one.end, one.to), wrong)
        if settled and not same(own, one.result.cost):
            yield f"{one.id} {one.end} at {one.to} costs {own}, not {one.result.cost}"
        less = one.to - (-1 if one.end == "low" else 1) * (1.0 if whole else 1e-6 * width)
        settled, own = second.cost(widen(instance, one.id, one.end, less), wrong)
        if settled and own is not None:
            yield f"{one.id} {one.end}: {less} is enough"
    for id in found.restrictions if found.complete else ():
        for end, start in ends_of(instance, id):
            if (id, end) not in listed:
                far = _span(instance, id)[1][end == "high"]
                if far > start if end == "high" else far < start:
                    settled, own = second.cost(widen(instance, id, end, far), wrong)
                    if settled and own is not None:
                        yield f"{id} {end} at {far} is enough, and is not listed"


def check(
    seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float, certify: bool = False
) -> tuple[Counter[str], list[str]]:
    """What happened in a draw, and what is wrong."""
    assert not certify
    counts, wrong = Counter[str](), list[str]()
    instance = stuck(seed, trees) if kind == "minimal" else priced(seed, trees)
    if instance is None:
        return Counter({"no problem": 1}), []
    found = why(instance, backends[0], 20 * limit)
    second = Second(backends[1], limit)
    counts["complete"] += found.complete
    settled, own = second.lifted(instance, frozenset(), wrong)
    if (
        settled
        and found.result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        and not same(own, found.result.cost)
    ):
        wrong.append(f"as it stands: {found.result.cost}, {own}")
    if found.result.status is Status.INFEASIBLE:
        wrong += list(refuted_sets(instance, found, second, wrong))
        wrong += list(refuted_widenings(instance, found, second, wrong))
    for id, one in found.prices.items():
        settled, own = second.lifted(instance, frozenset([id]), wrong)
        if settled and not same(own, one.cost):
            wrong.append(f"without {id}: {own}, not {one.cost}")
    counts["sets"] += len(found.minimal)
    counts["sets of several"] += sum(len(one.lift) > 1 for one in found.minimal)
    counts["widenings"] += len(found.smallest)
    counts["prices"] += len(found.prices)
    counts["prices that save"] += sum(one.cost < found.result.cost for one in found.prices.values())
    counts["left open by the second"] += second.open
    counts[TWO] += found.complete and not second.open
    counts[BRUTE] += 1
    return counts, wrong


def priced(seed: int, trees: bool) -> Instance | None:
    """Somebody refused who has recourse, under restrictions."""
    for k in range(6):
        plain = problem(seed + 1000 * k, trees)
        if plain is None:
            continue
        for attempt in range(3):
            made = restricted(np.random.default_rng([seed, k, attempt]), plain)
            result = agreed(made, ("bab",), 10.0, lambda r: [], Counter(), []).get("bab")
            if result is not None and result.action:
                return made
    return None


if __name__ == "__main__":
    raise SystemExit(compare(__doc__, KINDS, check))
