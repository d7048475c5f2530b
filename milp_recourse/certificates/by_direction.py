"""Proof trees under two scales: one for every combination of directions of the levers.

With two scales, what a change of a lever costs depends on its direction. A certificate's tree is first split
at the factual value, lever by lever. On each part a lever has one scale, and the part is a problem of its
own, whose tree follows. An action costs the same in the part as in the whole, and so the leaves prove both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from milp_recourse.certificates.acted_sets import dearest
from milp_recourse.problem.enclosure import round_up
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.directions import with_one_scale

MOST_LEVERS = 6
"""Most levers with two scales that can both rise and fall: the problem falls into two parts for each."""

Claim = tuple[Instance, float | None, float]
"""An instance, the lower bound that is claimed (None: that there is no action), and the one, no lower, that
leaves have to prove."""

Configurations = list[dict[str, Any]]


def with_two_directions(instance: Instance) -> list[str]:
    """The levers with two scales that can both rise and fall."""
    names = []
    for name in instance.levers:
        low, high = instance.levers[name]
        if name in instance.cost.decrease and low < instance.factual[name] < high:
            names.append(name)
    return names


def why_not_directions(instance: Instance) -> str | None:
    """Why the parts of one scale each are too many to be proven one by one, or None."""
    count = len(with_two_directions(instance))
    if count > MOST_LEVERS:
        return f"{count} levers have two scales and go both ways; in a certificate {MOST_LEVERS} at most can"
    return None


def by_direction(
    claim: Claim,
    acted: Iterable[Sequence[str]],
    prove: Callable[[Sequence[Claim]], Sequence[Configurations | None]],
) -> Configurations | None:
    """The configurations of an instance with two scales; None where a part's proof failed.

    Parameters
    ----------
    acted
        The sets of levers that need a tree.
    prove
        Gives the configurations of claims about instances of one scale per lever, None without a proof.
    """
    instance, bound, target = claim
    names = with_two_directions(instance)
    if bound is None:  # every leaf has to reach more than any action in the whole problem costs
        bound = 1.0 + round_up(dearest(instance, list(instance.levers))) * (1 + 1e-9)
        target = bound * (1 + 1e-6)
    directions = list(product((False, True), repeat=len(names)))
    parts = [with_one_scale(instance, dict(zip(names, rises, strict=True))) for rises in directions]
    found = prove([(part, bound, target) for part in parts])
    trees: dict[tuple[bool, ...], dict[tuple[str, ...], list[Any]]] = {}
    for rises, configurations in zip(directions, found, strict=True):
        if configurations is None or any(set(one) != {"acted", "tree"} for one in configurations):
            return None
        trees[rises] = {tuple(one["acted"]): one["tree"] for one in configurations}
    joined = []
    for levers in acted:
        if any(tuple(levers) not in known for known in trees.values()):
            return None
        joined.append({"acted": list(levers), "tree": list(_nodes(instance, names, list(levers), trees, ()))})
    return joined


def _nodes(
    instance: Instance,
    names: Sequence[str],
    acted: list[str],
    trees: Mapping[tuple[bool, ...], Mapping[tuple[str, ...], list[Any]]],
    decided: tuple[bool, ...],
) -> Iterator[Any]:
    """A configuration's tree: splits of the levers in ``names`` whose direction is not decided, then the
    parts' trees."""
    if len(decided) == len(names):
        yield from trees[decided][tuple(acted)]
        return
    name = names[len(decided)]
    if name not in acted:  # it keeps its factual value, in either part
        yield from _nodes(instance, names, acted, trees, (*decided, True))
        return
    yield ["a", acted.index(name), instance.factual[name]]
    for rises in (False, True):
        yield from _nodes(instance, names, acted, trees, (*decided, rises))
