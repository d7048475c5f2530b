r"""Every action of a person in the order of its exact cost, without listing all of them first.

A lever's values come in the order of their size, the nearest first. An action with the last lever j (in the
order in which levers are taken) at its i-th value is followed by at most three others: the same with the next
value of j; the same with a first value of the lever after j; and, if i is the first, the same with the lever
after j in place of j. Each action but the empty one follows exactly one other, and costs at least as much, if
levers are taken in the order of what their first values cost. So a heap that starts with the empty action
gives all of them in order (Lawler 1972). Where a cost has a sum and a maximum whose orders of the first
values differ, the second kind of follower is instead made for every lever after j, and there is no third.

Costs are compared as whole numbers: exact costs times a common denominator.

References
----------
Lawler (1972), https://doi.org/10.1287/mnsc.18.7.401
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import (
    AllOf,
    Counted,
    Demand,
    Labelled,
    Row,
    Switched,
    holds,
    leaves,
)
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import LeverCost


def lever_values(instance: Instance, name: str) -> NDArray[np.float64] | None:
    """The values that an action may set on a lever, ascending; None where it may set every double between
    two limits."""
    low, high = instance.levers[name]
    return np.arange(low, high + 1.0) if instance.feature(name).integral else None


def endless_levers(instance: Instance) -> list[str]:
    """The levers whose values cannot be listed."""
    return [name for name in instance.levers if lever_values(instance, name) is None]


class _Setting(NamedTuple):
    """A value of a lever: what it adds to the cost and its entry in the maximum, times the common
    denominator, and the size of the change, about."""

    added: int
    widest: int
    size: float
    value: float


class _Lever:
    """A lever's values by the size of the change, made as far as they are asked for."""

    def __init__(self, name: str, cost: LeverCost, values: NDArray[np.float64]) -> None:
        self.name, self.cost, self.values = name, cost, values
        self.known: list[_Setting] = []
        self.scale = 1

    @cached_property
    def denominator(self) -> int:
        """A multiple of the denominators of all that the values cost."""
        pieces, price = self.cost.pieces, self.cost.prices
        places = max(_dyadic(self.values), *(piece.near.as_integer_ratio()[1] for piece in pieces))
        rates = math.lcm(*(piece.rate.denominator for piece in pieces))
        size = math.lcm(rates * places, *(piece.start.denominator for piece in pieces))
        least = (price.square.denominator * size * size, price.linear.denominator * size)
        return math.lcm(price.fixed.denominator, price.largest.denominator * size, *least)

    @cached_property
    def _coming(self) -> Iterator[float]:
        x, values = self.cost.factual, self.values
        if math.isnan(x):
            return iter(values.tolist())
        below, above = values[values < x][::-1].tolist(), values[values >= x].tolist()
        return heapq.merge(below, above, key=self.cost.size)

    def setting(self, i: int) -> _Setting | None:
        """The i-th value; None if there are fewer."""
        while len(self.known) <= i:
            value = next(self._coming, None)
            if value is None:
                return None
            paid, entry = self.cost.paid(value)
            size = float(self.cost.size(value))
            self.known.append(_Setting(_times(paid, self.scale), _times(entry, self.scale), size, value))
        return self.known[i]


class _Node(NamedTuple):
    """An action that waits: its cost, the sum of its sizes (of equal costs the smaller change comes first),
    the order of its making; then what it costs without its last lever, and the others acted on."""

    cost: int
    size: float
    made: int
    added: int
    widest: int
    rest: float
    before: tuple[object, ...]
    many: int
    lever: int
    place: int


class InOrder:
    """Iterates over (exact cost, action), cheapest first; the empty action is the first.

    Actions that set a feature to the value that it has anyway are left out where they differ in nothing: if
    no lever moves the feature, and no condition counts or names the features acted on. So are actions on more
    features than a condition allows, and values that a condition on their feature alone forbids.

    Parameters
    ----------
    instance
        All of its levers have finitely many values.
    """

    def __init__(self, instance: Instance) -> None:
        demands = _parts(instance.demand)
        most = [d.at_most for d in demands if isinstance(d, Counted) and d.at_most is not None]
        made = (_lever(instance, name, demands) for name in instance.levers)
        levers = [one for one in made if len(one.values)]
        self.scale = math.lcm(*(one.denominator for one in levers))
        for one in levers:
            one.scale = self.scale
        self.levers = sorted(levers, key=lambda one: sum(_first(one)[:2]))
        firsts = [_first(one) for one in self.levers]
        self.chained = all(a.added <= b.added and a.widest <= b.widest for a, b in pairwise(firsts))
        self.most = min([len(levers), *most])
        self.heap: list[_Node] = []
        self._made = count()

    def __iter__(self) -> Iterator[tuple[Fraction, dict[str, float]]]:
        yield Fraction(0), {}
        if self.most > 0:
            for lever in range(1 if self.chained else len(self.levers)):
                self._push(0, 0, 0.0, (), 1, lever, 0)
        while self.heap:
            node = heapq.heappop(self.heap)
            self._follow(node)
            yield Fraction(node.cost, self.scale), self._action(node)

    def _follow(self, node: _Node) -> None:
        """Make the actions that follow one."""
        cost, _, _, added, widest, rest, before, many, lever, place = node
        self._push(added, widest, rest, before, many, lever, place + 1)
        if self.chained and not place:
            self._push(added, widest, rest, before, many, lever + 1, 0)
        if many < self.most:
            own = self.levers[lever].known[place]
            sums = added + own.added, max(widest, own.widest), rest + own.size
            behind = (before, lever, place)
            for other in range(lever + 1, lever + 2 if self.chained else len(self.levers)):
                self._push(*sums, behind, many + 1, other, 0)

    def _push(
        self, added: int, widest: int, rest: float, before: tuple, many: int, lever: int, place: int
    ) -> None:
        """Let an action wait, if there is such a lever and value."""
        own = self.levers[lever].setting(place) if lever < len(self.levers) else None
        if own is not None:
            cost = added + own.added + max(widest, own.widest)
            who = (added, widest, rest, before, many, lever, place)
            heapq.heappush(self.heap, _Node(cost, rest + own.size, next(self._made), *who))

    def _action(self, node: _Node) -> dict[str, float]:
        found = {}
        link: tuple = (node.before, node.lever, node.place)
        while link:
            link, lever, place = link
            found[self.levers[lever].name] = self.levers[lever].known[place].value
        return found


def _lever(instance: Instance, name: str, demands: list[Demand]) -> _Lever:
    values = lever_values(instance, name)
    assert values is not None, name
    counted = any(isinstance(leaf, Switched | Counted) and not _is_limit(leaf) for leaf in leaves(instance.demand))
    if not counted and name not in instance.scm.descendants(instance.levers.keys() - {name}):
        values = values[values != instance.factual[name]]
    own = [d for d in demands if _features(d) == {name}]
    if own:
        kept = [all(holds(d, {name: Enclosure.of(v)}, {name}) for d in own) for v in values.tolist()]
        values = values[np.array(kept, dtype=bool)]
    return _Lever(name, instance.lever_cost(name), values)


def _parts(demand: Demand) -> list[Demand]:
    """Demands that must all hold."""
    return [p for part in demand.parts for p in _parts(part)] if isinstance(demand, AllOf) else [demand]


def has_limits_only(demand: Demand) -> bool:
    """Whether all that is demanded is that at most so many features are acted on."""
    return all(isinstance(part, Counted) and _is_limit(part) for part in _parts(demand))


def _is_limit(leaf: Demand) -> bool:
    """Whether a demand only limits the number of features acted on."""
    return isinstance(leaf, Counted) and not leaf.at_least


def _features(demand: Demand) -> set[str] | None:
    """The features whose values alone decide a demand; None if something else does."""
    found: set[str] = set()
    for leaf in leaves(demand):
        if isinstance(leaf, Row):
            found |= {name for name, _ in leaf.terms}
        elif isinstance(leaf, Labelled):
            found.add(leaf.feature)
        else:
            return None
    return found


def _first(lever: _Lever) -> _Setting:
    first = lever.setting(0)
    assert first is not None
    return first


def _times(value: Fraction, scale: int) -> int:
    return value.numerator * (scale // value.denominator)


def _dyadic(values: NDArray[np.float64]) -> int:
    """A power of two that is a multiple of every value's denominator."""
    broken = values[values != np.rint(values)]
    return 1 << max(0, 53 - int(np.frexp(broken)[1].min())) if len(broken) else 1
