r"""Good actions early: linearise, solve, step, and keep the cuts of pieces met before.

The logit is piecewise linear. At a point its first-order form is exact on the whole linear region, so
the cheapest point of the linearised problem is the region's optimum or lies across a facet; there the new
piece joins the old ones as a further row (where pieces meet in a concave kink, the optimum satisfies both).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine import evaluate
from milp_recourse.engine.batched import Batched, Resting
from milp_recourse.engine.dual import Costs
from milp_recourse.engine.node_problem import Ball, optimum
from milp_recourse.engine.stack import Stack

Array = Any

_STILL = 1e-9  # a hop that moves no action by more, in widths of its box, leads nowhere


@dataclass
class Walks(Batched):
    """Local searches, each in a box of one applicant's actions.

    Attributes
    ----------
    costs, low, high, who, error, target
        The costs, the box (d, B), the stack's column, the logit's rounding error there and the cost that is
        to be beaten, (B,).
    a
        Where each is, (d, B).
    pieces
        Linear pieces of the logit less the threshold met last, newest first, (d + 1, pieces, B).
    best, best_cost
        The best surely feasible point met, (d, B), and its cost (inf: none), (B,).
    """

    costs: Costs
    low: Array
    high: Array
    who: Array
    error: Array
    target: Array
    a: Array
    pieces: Array
    best: Array
    best_cost: Array


@dataclass
class Polished(Batched):
    """The best surely feasible points met, (d, B), and their costs (inf: none), (B,)."""

    point: Array
    cost: Array


def polish(
    stack: Stack,
    costs: Costs,
    start: Array,
    low: Array,
    high: Array,
    who: Array,
    error: Array,
    target: Array,
    hops: int = 8,
    memory: int = 2,
) -> Polished:
    """Walk from ``start`` (d, B), so many hops at most; a walk rests where a hop leads nowhere else."""
    a = rounded(stack, start)
    cost = cost_if_feasible(stack, costs, a, who, error)
    none = np.zeros((a.shape[0] + 1, 0, a.shape[1]), dtype=a.dtype)
    walks = Walks(costs, low, high, who, error, target, a, none, a, cost)
    resting: Resting[Polished] = Resting(cost)
    for _ in range(hops):
        moves = _hop(stack, walks, memory)
        moving = resting.set_aside(moves, Polished(walks.best, walks.best_cost))
        if moving is not None:
            walks = walks.take(moving)
            if not moving.shape[0]:
                break
    return resting.joined(Polished(walks.best, walks.best_cost))


def _hop(stack: Stack, walks: Walks, memory: int) -> Array:
    """Every walk goes to the cheapest point of the problem linearised where it is; which move, (B,)."""
    a, who = walks.a, walks.who
    here = evaluate.logit_error(stack, a, evaluate.unit_values(stack, a, who), who)
    margin: Array = 4 * np.where(here < walks.error, here, walks.error)
    local = evaluate.linearise(stack, a, who)
    piece = np.concat([local.logit[:-1], local.logit[-1:] - stack.threshold], axis=0)  # (d + 1, 1, B)
    walks.pieces = pieces = np.concat([piece, walks.pieces], axis=1)[:, :memory]
    ball = None
    if stack.plausible:
        nothing = np.zeros_like(local.residuals[-1])  # its bound is not used
        ball = Ball(
            local.residuals, local.residuals, stack.ball_weights, local.linear[:, 0], nothing, margin * 0.0
        )
    limits = [np.concat([pieces[:-1], pieces[-1:] - margin], axis=0)]
    if stack.rows.shape[0]:
        least, most = np.take(stack.row_low, who, axis=1), np.take(stack.row_high, who, axis=1)
        limits += [
            np.concat([local.rows[:-1], (local.rows[-1] - least)[None]], axis=0),
            np.concat([-local.rows[:-1], (most - local.rows[-1])[None]], axis=0),
        ]
    rows = np.concat(limits, axis=1)
    walks.a = rounded(stack, optimum(walks.costs, walks.low, walks.high, rows, ball, walks.target)[0])
    cost = cost_if_feasible(stack, walks.costs, walks.a, who, walks.error)
    better = cost < walks.best_cost
    walks.best = np.where(better, walks.a, walks.best)
    walks.best_cost = np.where(better, cost, walks.best_cost)
    forgets = np.any(pieces[:, :1] != pieces[:, 1:], axis=(0, 1))  # and may go on without the old piece
    return forgets | np.any(np.abs(walks.a - a) > _STILL * (walks.high - walks.low), axis=0)


def cost_if_feasible(stack: Stack, costs: Costs, a: Array, who: Array, error: Array) -> Array:
    """Costs of the points that are surely feasible, inf for the others, (B,)."""
    sure, _ = evaluate.feasibility(stack, a, who, error)
    jump, largest = np.take(stack.jump, who, axis=1), np.take(stack.jump_largest, who, axis=1)
    return np.where(sure, evaluate.costs_at(costs, jump, largest, a), np.inf)


def rounded(stack: Stack, a: Array) -> Array:
    """Whole actions rounded to whole numbers."""
    if not any(stack.integral):
        return a
    return np.where(stack.whole, np.round(a), a)


def sampled(stack: Stack, costs: Costs, low: Array, high: Array, who: Array, draws: Array) -> Array:
    """Of random points of each box, denser near the factual, the most promising: (d, B).

    Parameters
    ----------
    draws
        Uniform random numbers, (samples, d + 1, B).
    """
    x = np.where(costs.x < low, low, np.where(costs.x > high, high, costs.x))
    jump, largest = np.take(stack.jump, who, axis=1), np.take(stack.jump_largest, who, axis=1)
    best, best_score = x, np.full(x.shape[1:], np.inf, dtype=x.dtype)
    for k in range(draws.shape[0]):
        a = rounded(stack, x + np.sqrt(draws[k, -1]) * (low + draws[k, :-1] * (high - low) - x))
        units = evaluate.unit_values(stack, a, who)
        short = stack.threshold - evaluate.logits(stack, a, units, who)
        excess = evaluate.ball_excess(stack, a, units, who)[0]
        lacking = np.where(short > 0, short, 0.0) + 10 * np.where(excess > 0, excess, 0.0)
        cost = evaluate.costs_at(costs, jump, largest, a)
        score = np.where(lacking > 0, 1e6 * (1 + lacking), cost / (1 + cost))
        better = score < best_score
        best, best_score = np.where(better, a, best), np.where(better, score, best_score)
    return best
