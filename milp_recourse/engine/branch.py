r"""Where to split a node: the action interval or the ReLU that the bound loses most to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

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
    xp = array_namespace(point)
    lost = _losses(relaxed, multipliers, point)
    scores = _action_scores(relaxed, lost) + _unit_scores(relaxed, point)
    width = relaxed.high - relaxed.low
    splits = width > _NARROWEST * (xp.abs(relaxed.low) + xp.abs(relaxed.high))
    # where |delta| bends inside the box, half of the cost's slope is unknown: cut there
    bends = (costs.beta + costs.omega > 0) & (relaxed.low < costs.x) & (costs.x < relaxed.high)
    bend = xp.where(bends, (costs.beta + costs.omega) * width, 0.0)
    scores = scores + 1e-9 * bend / (xp.max(bend, axis=0) + 1e-300)
    scores = xp.where(splits, scores + 1e-12 * width / (xp.max(width, axis=0) + 1e-300), -1.0)
    action = xp.argmax(scores, axis=0)
    picked = xp.arange(width.shape[0], dtype=action.dtype)[:, None] == action[None]
    low, high, at, x = (
        xp.sum(xp.where(picked, v, 0.0), axis=0) for v in (relaxed.low, relaxed.high, point, costs.x)
    )
    span = high - low
    cut = (low + high) / 4 + at / 2  # between the middle and the point, away from the ends
    cut = xp.where(cut < low + 0.2 * span, low + 0.2 * span, cut)
    cut = xp.where(cut > high - 0.2 * span, high - 0.2 * span, cut)
    cut = xp.where(xp.any(picked & bends, axis=0), x, cut)
    units = relaxed.units.open & split_units
    candidates = [xp.where(units, xp.inf, 0.0), *lost]
    flat = (
        xp.concat([c for c in candidates if c.shape[0]], axis=0)
        if any(c.shape[0] for c in candidates)
        else None
    )
    number = xp.zeros_like(action)
    if flat is not None:
        best = xp.argmax(flat, axis=0)
        few = (relaxed.open() <= FEW_OPEN) | xp.any(units, axis=0)
        number = xp.where(signs_free & few & (xp.max(flat, axis=0) > 0), best + 1, number)
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
    xp = array_namespace(point)
    result = []
    for layer, m in zip(relaxed.layers, multipliers, strict=True):
        spans = (layer.low < 0) & (layer.high > 0)
        y = value_at(layer, point)
        on = xp.where(y > 0, y, 0.0)
        above = layer.chord * y + layer.intercept - on
        below = xp.where(layer.high > -layer.low, on - y, on)
        size = xp.abs(m)
        loss = size * xp.where(m > 0, xp.where(above > 0, above, 0.0), below) + _EVEN * size * layer.intercept
        result.append(xp.where(spans, loss, 0.0))
    return result


def _action_scores(relaxed: Relaxed, lost: list[Array]) -> Array:
    """Loss shared out over the actions by how wide each makes the argument, (d, B)."""
    xp = array_namespace(relaxed.low)
    radius = (relaxed.high - relaxed.low) / 2
    total = xp.zeros_like(radius)
    for layer, loss in zip(relaxed.layers, lost, strict=True):
        width = xp.abs(layer.upper[:-1]) * radius[:, None]  # (d, h, B)
        total = total + xp.sum(width * (loss / (xp.sum(width, axis=0) + 1e-300))[None], axis=1)
    return total


def _unit_scores(relaxed: Relaxed, point: Array) -> Array:
    """The same for the structural units: how far apart their lines are, times how much they matter."""
    xp = array_namespace(point)
    units, stack, d = relaxed.units, relaxed.stack, relaxed.stack.actions
    if not units.count or units.exact:
        return xp.zeros_like(point)
    radius = (relaxed.high - relaxed.low) / 2
    matter = xp.sum(xp.abs(stack.first), axis=0) + xp.abs(stack.ball_linear)
    matter = (matter + xp.sum(xp.abs(stack.residuals), axis=0) + xp.sum(xp.abs(stack.rows), axis=0))[d:]
    spread = units.upper - units.lower
    gap = spread[-1] + xp.sum(spread[:-1] * point[:, None], axis=0)  # (u, B)
    width = xp.abs(units.arguments[1, :-1]) * radius[:, None]  # (d, u, B)
    share = width / (xp.sum(width, axis=0) + 1e-300)
    return xp.sum(share * (xp.where(gap > 0, gap, 0.0) * matter[:, None])[None], axis=1)
