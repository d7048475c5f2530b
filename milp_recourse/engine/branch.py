r"""Where to split a node: the action interval or the ReLU that the bound loses most to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine.dual import Costs
from milp_recourse.engine.nodes import Nodes
from milp_recourse.engine.relaxation import Relaxed, value_at

Array = Any

FEW_OPEN = 6
"""With so few ReLUs of open sign left, their signs are split on; before, the box is."""

_NARROWEST = 2.0**-50  # relative width below which an interval holds too few doubles to be cut

_EVEN = 1e-6  # a share of every open ReLU's intercept: breaks ties where nothing is lost at the point


@dataclass
class Choices:
    """How to split B nodes.

    Attributes
    ----------
    number
        Signed splitting is on the ReLU with this number (from 1); 0 where the box is halved, (B,).
    action, cut
        Which action's interval is cut, and where, (B,).
    """

    number: Array
    action: Array
    cut: Array


def choose(
    relaxed: Relaxed,
    costs: Costs,
    multipliers: list[Array],
    point: Array,
    signs_free: Array,
    split_units: bool = True,
) -> Choices:
    """How to split each node.

    Parameters
    ----------
    multipliers
        What each ReLU's relaxation was weighted with in the logit's bound, one (h, B) per layer.
    point
        Where the bound is attained, (d, B).
    signs_free
        Which nodes can take another sign, (B,).
    split_units
        Whether structural ReLUs can be split on too.
    """
    lost = _losses(relaxed, multipliers, point)
    scores = _action_scores(relaxed, lost) + _unit_scores(relaxed, point)
    width = relaxed.high - relaxed.low
    splits = width > _NARROWEST * (np.abs(relaxed.low) + np.abs(relaxed.high))
    # where |delta| bends inside the box, half of the cost's slope is unknown: cut there
    bends = (costs.beta + costs.omega > 0) & (relaxed.low < costs.x) & (costs.x < relaxed.high)
    bend = np.where(bends, (costs.beta + costs.omega) * width, 0.0)
    scores = scores + 1e-9 * bend / (np.max(bend, axis=0) + 1e-300)
    scores = np.where(splits, scores + 1e-12 * width / (np.max(width, axis=0) + 1e-300), -1.0)
    action = np.argmax(scores, axis=0)
    picked = np.arange(width.shape[0], dtype=action.dtype)[:, None] == action[None]
    low, high, at, x = (
        np.sum(np.where(picked, v, 0.0), axis=0) for v in (relaxed.low, relaxed.high, point, costs.x)
    )
    span = high - low
    cut = (low + high) / 4 + at / 2  # between the middle and the point, away from the ends
    cut = np.where(cut < low + 0.2 * span, low + 0.2 * span, cut)
    cut = np.where(cut > high - 0.2 * span, high - 0.2 * span, cut)
    cut = np.where(np.any(picked & bends, axis=0), x, cut)
    units = relaxed.units.open & split_units
    candidates = [np.where(units, np.inf, 0.0), *lost]
    flat = (
        np.concat([c for c in candidates if c.shape[0]], axis=0)
        if any(c.shape[0] for c in candidates)
        else None
    )
    number = np.zeros_like(action)
    if flat is not None:
        best = np.argmax(flat, axis=0)
        few = (relaxed.open() <= FEW_OPEN) | np.any(units, axis=0)
        number = np.where(signs_free & few & (np.max(flat, axis=0) > 0), best + 1, number)
    return Choices(number, action, cut)


def children(nodes: Nodes, choices: Choices, integral: tuple[bool, ...]) -> tuple[Nodes, Nodes, np.ndarray]:
    """Both halves of each node, and which nodes could not be split (numpy arrays throughout)."""
    n = np.arange(len(nodes))
    number, action, cut = choices.number, choices.action, choices.cut
    signed = number > 0
    low, high = nodes.low[action, n], nodes.high[action, n]
    whole = np.asarray(integral, dtype=bool)[action]
    left = np.where(whole, np.floor(cut), cut)
    right = np.where(whole, np.floor(cut) + 1, cut)
    stuck = ~signed & ~((left < high) & (right > low))
    first, second = nodes.take(n), nodes.take(n)
    first.high[action, n] = np.where(signed, high, left)
    second.low[action, n] = np.where(signed, low, right)
    slot = np.argmax(nodes.signs == 0, axis=0)
    first.signs[slot, n] = np.where(signed, number, nodes.signs[slot, n])
    second.signs[slot, n] = np.where(signed, -number, nodes.signs[slot, n])
    return first, second, stuck


def _losses(relaxed: Relaxed, multipliers: list[Array], point: Array) -> list[Array]:
    """How much each ReLU's relaxation adds to the logit's line at a point, one (h, B) array per layer.

    A ReLU with multiplier m > 0 is bounded by its chord, one with m < 0 by alpha y; the loss is |m| times
    the distance of that line from the function.
    """
    result = []
    for layer, m in zip(relaxed.layers, multipliers, strict=True):
        spans = (layer.low < 0) & (layer.high > 0)
        y = value_at(layer, point)
        on = np.where(y > 0, y, 0.0)
        above = layer.chord * y + layer.intercept - on
        below = np.where(layer.high > -layer.low, on - y, on)
        size = np.abs(m)
        loss = size * np.where(m > 0, np.where(above > 0, above, 0.0), below) + _EVEN * size * layer.intercept
        result.append(np.where(spans, loss, 0.0))
    return result


def _action_scores(relaxed: Relaxed, lost: list[Array]) -> Array:
    """Loss shared out over the actions by how wide each makes the argument, (d, B)."""
    radius = (relaxed.high - relaxed.low) / 2
    total = np.zeros_like(radius)
    for layer, loss in zip(relaxed.layers, lost, strict=True):
        width = np.abs(layer.upper[:-1]) * radius[:, None]  # (d, h, B)
        total = total + np.sum(width * (loss / (np.sum(width, axis=0) + 1e-300))[None], axis=1)
    return total


def _unit_scores(relaxed: Relaxed, point: Array) -> Array:
    """The same for the structural units: how far apart their lines are, times how much they matter."""
    units, stack, d = relaxed.units, relaxed.stack, relaxed.stack.actions
    if not units.count or units.exact:
        return np.zeros_like(point)
    radius = (relaxed.high - relaxed.low) / 2
    matter = np.sum(np.abs(stack.first), axis=0) + np.abs(stack.ball_linear)
    matter = (matter + np.sum(np.abs(stack.residuals), axis=0) + np.sum(np.abs(stack.rows), axis=0))[d:]
    spread = units.upper - units.lower
    gap = spread[-1] + np.sum(spread[:-1] * point[:, None], axis=0)  # (u, B)
    width = np.abs(units.arguments[1, :-1]) * radius[:, None]  # (d, u, B)
    share = width / (np.sum(width, axis=0) + 1e-300)
    return np.sum(share * (np.where(gap > 0, gap, 0.0) * matter[:, None])[None], axis=1)
