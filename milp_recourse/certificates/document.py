"""Proof trees as JSON values: sections 4 and 6 of the certificate document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from milp_recourse.engine.proof import Cut, Leaf, Sign

CERTIFICATE_FORMAT = "milp-recourse/certificate-1"


@dataclass(frozen=True)
class Configuration:
    """How the engine's order of things translates to the document's.

    Parameters
    ----------
    acted
        Features acted on, in the order of the instance's features.
    position
        For every action of the engine, its place in ``acted``.
    domains
        Features with a domain row, in the engine's order.
    units
        By what the rows of conditions, which come after those, are divided in the engine.
    squares
        For every square of the ball in the document's order, its place in the engine's.
    """

    acted: tuple[str, ...]
    position: tuple[int, ...]
    domains: tuple[str, ...]
    squares: tuple[int, ...]
    units: tuple[float, ...] = ()


def tree_to_list(nodes: Iterable[Leaf | Cut | Sign], configuration: Configuration) -> list[list[Any]]:
    """The nodes of a tree, in preorder."""
    written: list[list[Any]] = []
    for node in nodes:
        if isinstance(node, Cut):
            written.append(["a", configuration.position[node.action], node.at])
        elif isinstance(node, Sign):
            written.append(["n", node.layer, node.neuron])
        elif node.slopes is None:
            written.append(["e"])
        else:
            written.append(_leaf(node, configuration))
    return written


def _leaf(leaf: Leaf, configuration: Configuration) -> list[Any]:
    terms: list[dict[str, Any]] = []
    for slopes, factor in leaf.terms:
        term: dict[str, Any] = {}
        if factor:
            if slopes is not None and slopes != leaf.slopes:
                term["s"] = slopes
            term["g"] = factor
        terms.append(term)
    first = terms[0]
    if any(leaf.signs):
        first["n"] = list(leaf.signs)
    half, domains = len(leaf.rows) // 2, len(configuration.domains)
    ends = zip(leaf.rows[:domains], leaf.rows[half : half + domains], strict=True)
    rows = leaf.rows and {
        name: [low, high]
        for name, (low, high) in zip(configuration.domains, ends, strict=True)
        if low or high
    }
    conditions = [m / unit for m, unit in zip(leaf.rows[domains:half], configuration.units, strict=False)]
    if any(conditions):
        first["q"] = conditions
    if rows:
        first["r"] = rows
    if leaf.ball:
        first["b"] = [leaf.ball[0], *(leaf.ball[1 + k] for k in configuration.squares)]
    written: list[Any] = ["d", leaf.slopes, [term for term in terms if term]]
    if leaf.shares:
        shares = [0.0] * len(configuration.acted)
        for k, share in zip(configuration.position, leaf.shares, strict=True):
            shares[k] = share
        written.append(shares)
    return written


def order_of(names: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...]:
    """For every name, its place among ``wanted``."""
    return tuple(wanted.index(name) for name in names)
