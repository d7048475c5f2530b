"""Proof trees under two scales: one for every way that the levers' changes may go.

A lever with two scales costs by its direction. A certificate's tree is first split where nothing changes,
lever by lever; on each part a lever has one scale, and the part is a problem of its own, whose tree follows.
Its terms are those of the whole problem there, so what the leaves prove holds for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from milp_recourse.instance import Instance

MOST_LEVERS = 6
"""Levers that can go either way at different prices: two parts for each."""

Claim = tuple[Instance, float | None, float]
"""An instance, what is claimed of it (None: that there is no action), and what leaves are to prove."""

Configurations = list[dict[str, Any]]


def both_ways(instance: Instance) -> list[str]:
    """The levers with two scales that can go up and down."""
    names = []
    for name in instance.levers:
        low, high = instance.levers[name]
        if name in instance.cost.decrease and low < instance.factual[name] < high:
            names.append(name)
    return names


def why_not_directions(instance: Instance) -> str | None:
    """Why parts of one scale each are not proven one by one, or None."""
    count = len(both_ways(instance))
    if count > MOST_LEVERS:
        return f"{count} levers have two scales and go both ways, and a certificate has at most {MOST_LEVERS}"
    return None


def by_direction(
    claim: Claim,
    acted: Sequence[Sequence[str]],
    prove: Callable[[Sequence[Claim]], Sequence[Configurations | None]],
) -> Configurations | None:
    """The configurations of an instance with two scales; None where a part's proof failed.

    Parameters
    ----------
    acted
        The sets of levers that need a tree.
    prove
        Proves claims about instances of one scale per lever.
    """
    instance, bound, target = claim
    names = both_ways(instance)
    if bound is None:  # a leaf of the whole has to reach more than any action in the whole costs
        bound = 1.0 + _most(instance) * (1 + 1e-9)
        target = bound * (1 + 1e-6)
    ways = list(product((False, True), repeat=len(names)))
    parts = [one_way(instance, dict(zip(names, way, strict=True))) for way in ways]
    found = prove([(part, bound, target) for part in parts])
    trees: dict[tuple[bool, ...], dict[tuple[str, ...], list[Any]]] = {}
    for way, configurations in zip(ways, found, strict=True):
        if configurations is None or any(set(one) != {"acted", "tree"} for one in configurations):
            return None
        trees[way] = {tuple(one["acted"]): one["tree"] for one in configurations}
    made = []
    for some in acted:
        if any(tuple(some) not in known for known in trees.values()):
            return None
        made.append({"acted": list(some), "tree": list(_nodes(instance, names, list(some), trees, ()))})
    return made


def one_way(instance: Instance, rises: Mapping[str, bool]) -> Instance:
    """The part in which these levers rise, or fall, each with the one scale that it has there."""
    cost, ranges = instance.cost, dict(instance.preferences.ranges)
    scale = dict(cost.scale)
    for name, down in cost.decrease.items():
        if name not in instance.levers:
            continue
        (low, high), x = instance.levers[name], instance.factual[name]
        if name in rises:
            low, high = (_above(instance, name), high) if rises[name] else (low, x)
            ranges[name] = low, high
        if high <= x:
            scale[name] = down
    return replace(
        instance,
        cost=replace(cost, scale=scale, decrease={}, relative=frozenset()),
        preferences=replace(instance.preferences, ranges=ranges),
        reference=None,
    )


def _above(instance: Instance, name: str) -> float:
    """Where rising begins: the second part of a split at the factual value."""
    x = instance.factual[name]
    return math.floor(x) + 1.0 if instance.feature(name).integral else x


def _nodes(
    instance: Instance,
    names: Sequence[str],
    acted: list[str],
    trees: Mapping[tuple[bool, ...], Mapping[tuple[str, ...], list[Any]]],
    way: tuple[bool, ...],
) -> Iterator[Any]:
    """A configuration's tree: splits of its levers that go both ways, then the parts' trees."""
    if len(way) == len(names):
        yield from trees[way][tuple(acted)]
        return
    name = names[len(way)]
    if name not in acted:  # it stays as it is, whichever part it is looked at in
        yield from _nodes(instance, names, acted, trees, (*way, True))
        return
    yield ["a", acted.index(name), instance.factual[name]]
    for rises in (False, True):
        yield from _nodes(instance, names, acted, trees, (*way, rises))


def _most(instance: Instance) -> float:
    """No action costs more: every lever moved to its farther end, each part of the cost added up."""
    total = Fraction(0)
    for end in (0, 1):
        for name, ends in instance.levers.items():
            x = instance.factual[name]
            delta = Fraction(0) if math.isnan(x) else Fraction(ends[end]) - Fraction(x)
            size = Fraction(1) if instance.feature(name).kind == "categorical" or math.isnan(x) else delta
            total += instance.cost.exact({name: size}, instance.weights)
    return math.nextafter(float(total), math.inf)
