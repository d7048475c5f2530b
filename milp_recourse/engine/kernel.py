r"""Bounding a batch of nodes: from boxes to closed nodes, candidates and splits.

The stages go from cheap to dear, and each drops the nodes it closes:

1. shrink the box by the target cost, the ball and the domains;
2. back-substituted bounds of the network; one row (the logit's line) against the cost;
3. a second line with the slopes that are tight where the first bound is attained;
4. the convex problem of both lines, the ball, the signs split on and the domains;
5. shrink the box to where the dual leaves room below the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine import evaluate
from milp_recourse.engine.branch import Choices, choose
from milp_recourse.engine.contract import (
    HAIR,
    contract,
    forms,
    least_cost,
    linear_form,
    magnitudes,
    residual_forms,
)
from milp_recourse.engine.dual import Costs, halfspace
from milp_recourse.engine.local import rounded
from milp_recourse.engine.node_problem import Ball, solve
from milp_recourse.engine.nodes import Nodes
from milp_recourse.engine.relaxation import Budget, Relaxed, adaptive, logit_line, relax, slopes_at
from milp_recourse.engine.stack import Stack
from milp_recourse.engine.units import Signs

Array = Any


class Met:
    """Actions met: applicants (B,), values (d, B), costs (inf unless surely feasible), and near misses."""

    def __init__(self, batch: Batch, actions: Array) -> None:
        stack, who = batch.stack, batch.who
        sure, nearly = evaluate.feasibility(stack, actions, who, batch.errors[-1])
        jump, largest = np.take(stack.jump, who, axis=1), np.take(stack.jump_largest, who, axis=1)
        price = evaluate.costs_at(batch.plain_costs, jump, largest, actions)
        self.who, self.actions, self.price = who, actions, price
        self.cost = np.where(sure, price, np.inf)
        self.nearly = nearly & ~sure


class Points:
    """Boxes that are one action: applicants, values and bounds; exact judgement decides them."""

    def __init__(self, batch: Batch, index: Array) -> None:
        self.who = np.take(batch.who, index, axis=0)
        self.actions = np.take(batch.low, index, axis=1)
        self.bound = np.take(batch.bound, index, axis=0)


@dataclass
class Examined:
    """What is left of a batch.

    Attributes
    ----------
    index
        Positions of the nodes that stay open in the batch given, (B,).
    low, high, bound, cut
        As in :class:`~milp_recourse.engine.nodes.Nodes`.
    point
        Where the relaxed problem is solved: whence to search locally, (d, B).
    choices
        How to split them.
    met
        Actions met in any node of the batch.
    points
        Boxes that are one action and no bound closed.
    """

    index: Array
    low: Array
    high: Array
    bound: Array
    cut: Array
    point: Array
    choices: Choices | None
    met: Met | None
    points: Points | None


class Batch:
    """A batch of nodes on its way through the stages; every array is (..., B)."""

    def __init__(self, stack: Stack, errors: list[Array], nodes: Nodes, target: Array) -> None:
        self.stack, self.target, who = stack, target, nodes.who
        self.low, self.high, self.who, self.bound = nodes.low, nodes.high, who, nodes.bound
        self.signs, self.cut = nodes.signs, nodes.cut
        self.errors = [np.take(e, who, axis=0) for e in errors]
        self.costs = self.plain_costs = costs_of(stack, who)
        self.index = np.arange(who.shape[0], dtype=who.dtype)
        self.relaxed: Relaxed | None = None
        self.lines: list[Array] = []
        self.multipliers: list[Array] = []
        self.point = nodes.low

    def close(self, done: Array) -> bool:
        """Drop the nodes marked; whether any are left."""
        left = np.nonzero(~done)[0]
        if left.shape[0] == done.shape[0]:
            return bool(done.shape[0])

        def keep(array: Array) -> Array:
            return np.take(array, left, axis=array.ndim - 1)

        for name in ("low", "high", "who", "bound", "signs", "cut", "target", "index", "point"):
            setattr(self, name, keep(getattr(self, name)))
        self.errors = [keep(e) for e in self.errors]
        self.costs, self.plain_costs = self.costs.take(left), self.plain_costs.take(left)
        self.lines = [keep(line) for line in self.lines]
        self.multipliers = [keep(m) for m in self.multipliers]
        if self.relaxed is not None:
            self.relaxed = self.relaxed.take(left)
        return bool(left.shape[0])

    def reached(self) -> Array:
        """Which nodes need no more; a bound that is no number closes nothing."""
        return self.bound >= self.target

    def raise_bound(self, bound: Array) -> None:
        """Take a new bound where it is better."""
        self.bound = np.where(bound > self.bound, bound, self.bound)

    def shrink(self, low: Array, high: Array) -> None:
        """Intersect the boxes with others; ends that are no number change nothing."""
        self.low, self.high = (
            np.where(low > self.low, low, self.low),
            np.where(high < self.high, high, self.high),
        )

    def empty(self) -> Array:
        """Which boxes hold no point."""
        return np.any(self.low > self.high, axis=0)

    # -- stages --------------------------------------------------------------------------

    def contracted(self) -> bool:
        """Stage 1."""
        low, high = contract(self.stack, self.costs, self.low, self.high, self.who, self.target)
        self.shrink(low, high)
        if not self.close(self.empty()):
            return False
        self.costs, _ = paid(self.stack, self.costs, self.low, self.high, self.who)
        self.raise_bound(least_cost(self.costs, self.low, self.high))
        return self.close(self.reached())

    def lined(self) -> bool:
        """Stages 2 and 3."""
        used = int(np.sum(np.astype(np.any(self.signs != 0, axis=1), np.int64)))
        signs = Signs(self.signs[:used]) if used else None
        self.relaxed = relax(
            self.stack,
            self.low,
            self.high,
            self.who,
            self.errors,
            signs,
            Budget(self.costs, self.target, self.cut),
        )
        if not self._line([adaptive(layer) for layer in self.relaxed.layers]):
            return False
        return self._line(slopes_at(self.relaxed, self.point)) if self.relaxed.layers else True

    def _line(self, alphas: list[Array]) -> bool:
        assert self.relaxed is not None
        slope, offset, self.multipliers = logit_line(self.relaxed, alphas, self.relaxed.errors[-1])
        offset = offset - self.stack.threshold
        self.lines.append(np.concat([slope, offset[None]], axis=0))
        bound, self.point, _ = halfspace(self.costs, self.low, self.high, slope, offset)
        self.raise_bound(bound)
        return self.close(self.reached())

    def solved(self) -> Met:
        """Stages 4 and 5; leaves the relaxed optimum in ``point`` and says what it is worth as an action."""
        relaxed, stack = self.relaxed, self.stack
        assert relaxed is not None
        rows = [line[:, None] for line in self.lines]
        rows += sign_rows(relaxed, self.signs) + domain_rows(relaxed)
        ball = None
        if stack.plausible:
            ball = ball_of(stack, relaxed)
        every = np.concat(rows, axis=1)
        hair = 3 * relaxed.errors[-1][None]
        rest = np.zeros((every.shape[1] - len(self.lines), hair.shape[1]), dtype=hair.dtype)
        inside = np.concat([hair] * len(self.lines) + [rest], axis=0)
        found = solve(self.costs, self.low, self.high, every, ball, self.target, inside)
        self.point, self.cut = found.point, found.cut
        met = Met(self, rounded(stack, found.point))
        self.raise_bound(found.bound)
        room = self.target - found.bound
        known = (self.costs.kappa > 0) & (found.bound < np.inf) & (room >= 0)
        reach = np.sqrt(np.where(known, room, 0.0) / np.where(known, self.costs.kappa, 1.0)) * (1 + 1e-9)
        slack = HAIR * (np.abs(found.centre) + reach)
        self.shrink(
            np.where(known, found.centre - reach - slack, self.low),
            np.where(known, found.centre + reach + slack, self.high),
        )
        return met

    def outcome(self, met: Met | None, points: Points | None) -> Examined:
        """What is left, with how to split it."""
        choices = None
        if self.index.shape[0] and self.relaxed is not None:
            self.relaxed.low, self.relaxed.high = self.low, self.high
            free = np.any(self.signs == 0, axis=0)
            choices = choose(self.relaxed, self.costs, self.multipliers, self.point, free)
        left = (self.index, self.low, self.high, self.bound, self.cut, self.point)
        return Examined(*left, choices, met, points)


def examine(stack: Stack, errors: list[Array], nodes: Nodes, target: Array) -> Examined:
    """Bound a batch of nodes; see the module.

    Parameters
    ----------
    errors
        Rounding errors of the stack's applicants, see :func:`~milp_recourse.engine.relaxation.rounding`.
    nodes
        Their arrays live where the stack's do.
    target
        Bounds that reach it close their nodes, (B,).
    """
    batch = Batch(stack, errors, nodes, target)
    if not (batch.contracted() and batch.lined()):
        return batch.outcome(None, None)
    single = np.all(batch.low == batch.high, axis=0)
    points = Points(batch, np.nonzero(single)[0]) if bool(np.any(single)) else None
    if points is not None and not batch.close(single):
        return batch.outcome(None, points)
    met = batch.solved()
    batch.close(batch.reached() | batch.empty())
    return batch.outcome(met, points)


def ball_of(stack: Stack, relaxed: Relaxed) -> Ball:
    """The plausibility ball on a batch of boxes."""
    offset = np.take(stack.residual_offset, relaxed.who, axis=1)
    lower, upper = residual_forms(stack, relaxed.units, offset)
    shift = np.take(stack.ball_offset, relaxed.who, axis=0)[None]
    return Ball(
        lower,
        upper,
        stack.ball_weights,
        linear_form(stack, relaxed.units, relaxed.who),
        magnitudes(stack.residuals, relaxed.units, relaxed.low, relaxed.high, offset),
        magnitudes(stack.ball_linear[None], relaxed.units, relaxed.low, relaxed.high, shift)[0],
    )


def paid(stack: Stack, costs: Costs, low: Array, high: Array, who: Array) -> tuple[Costs, Array]:
    """Costs where boxes without the factual category pay for the change; its shares of the maximum, (d, B).

    The share in the maximum counts where it is the largest whatever the other actions do in the box.
    """
    away = (low > costs.x) | (high < costs.x)
    jumps = np.sum(np.where(away, np.take(stack.jump, who, axis=1), 0.0), axis=0)
    each = np.where(away, np.take(stack.jump_largest, who, axis=1), 0.0)
    largest = np.max(each, axis=0)
    below, above = np.abs(low - costs.x), np.abs(high - costs.x)
    rival = np.max(costs.omega * np.where(below > above, below, above), axis=0)
    wins = largest >= rival
    changed = Costs(
        costs.kappa,
        costs.beta,
        np.where(wins, 0.0, costs.omega),
        costs.x,
        costs.fixed + jumps + np.where(wins, largest, 0.0),
    )
    first = np.arange(low.shape[0], dtype=who.dtype)[:, None] == np.argmax(each, axis=0)[None]
    return changed, np.astype(first & (wins & (largest > 0))[None], low.dtype)


def sign_rows(relaxed: Relaxed, signs: Array) -> list[Array]:
    """Arguments of the ReLUs split on, on their side of zero, (d + 1, 1, B) each."""
    used = int(np.sum(np.astype(np.any(signs != 0, axis=1), np.int64)))
    who = relaxed.who
    here = np.arange(who.shape[0], dtype=who.dtype)
    nothing = np.zeros_like(relaxed.low[0])
    sides = [(relaxed.units.arguments[0], relaxed.units.arguments[1], None)]
    sides += [(layer.lower, layer.upper, e) for layer, e in zip(relaxed.layers, relaxed.errors, strict=False)]
    rows = []
    for p in range(used):
        signed = np.astype(signs[p], who.dtype)
        number, positive = np.abs(signed) - 1, signed > 0
        form = [nothing for _ in range(relaxed.low.shape[0])] + [nothing + 1.0]
        first = 0
        for lower, upper, error in sides:
            count = upper.shape[1]
            mine = (number >= first) & (number < first + count)
            if count and bool(np.any(mine)):
                at = np.where(mine, number - first, 0)
                for i in range(len(form)):
                    side = np.where(positive, upper[i][at, here], -lower[i][at, here])
                    if i == len(form) - 1 and error is not None:
                        side = side + error[at, here]
                    form[i] = np.where(mine, side, form[i])
            first += count
        rows.append(np.stack(form)[:, None])
    return rows


def domain_rows(relaxed: Relaxed) -> list[Array]:
    """Domain rows that must not be negative: all the lower ends, (d + 1, m, B), then all the upper ends."""
    stack, who = relaxed.stack, relaxed.who
    if not stack.rows.shape[0]:
        return []
    offset = np.take(stack.row_offset, who, axis=1)
    lower, upper = forms(stack.rows, stack.actions, relaxed.units, offset)
    hair = HAIR * magnitudes(stack.rows, relaxed.units, relaxed.low, relaxed.high, offset)
    most = np.take(stack.row_high, who, axis=1) - lower[-1] + hair
    least = upper[-1] - np.take(stack.row_low, who, axis=1) + hair
    return [
        np.concat([upper[:-1], least[None]], axis=0),
        np.concat([-lower[:-1], most[None]], axis=0),
    ]


def costs_of(stack: Stack, who: Array) -> Costs:
    """The costs of a batch's applicants."""
    per_action = (stack.kappa, stack.beta, stack.omega, stack.factual)
    kappa, beta, omega, x = (np.take(v, who, axis=1) for v in per_action)
    return Costs(kappa, beta, omega, x, np.take(stack.fixed, who, axis=0))
