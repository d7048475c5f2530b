r"""Good actions early: linearise, solve, step, and keep the cuts of pieces met before.

The logit is piecewise linear. At a point its first-order form is exact on the whole linear region, so
the cheapest point of the linearised problem is the region's optimum or lies across a facet; there the new
piece joins the old ones as a further row (where pieces meet in a concave kink, the optimum satisfies both).
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from milp_recourse.engine import evaluate
from milp_recourse.engine.dual import Costs
from milp_recourse.engine.node_problem import Ball, optimum
from milp_recourse.engine.stack import Stack

Array = Any


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
) -> tuple[Array, Array]:
    """The best surely feasible points met from ``start`` (d, B), and their costs (inf: none)."""
    xp = array_namespace(start)
    start = rounded(stack, start)
    best = start
    best_cost = cost_if_feasible(stack, costs, start, who, error)
    a = start
    rows = None
    for _ in range(hops):
        here = evaluate.logit_error(stack, a, evaluate.unit_values(stack, a, who), who)
        margin = 4 * xp.where(here < error, here, error)
        local = evaluate.linearise(stack, a, who)
        piece = xp.concat([local.logit[:-1], local.logit[-1:] - stack.threshold], axis=0)  # (d + 1, 1, B)
        rows = piece if rows is None else xp.concat([piece, rows], axis=1)[:, :memory]
        ball = None
        if stack.plausible:
            nothing = xp.zeros_like(local.residuals[-1])  # its bound is not used
            ball = Ball(
                local.residuals, local.residuals, stack.ball_weights, local.linear[:, 0], nothing, error * 0.0
            )
        limits = [xp.concat([rows[:-1], rows[-1:] - margin], axis=0)]
        if stack.rows.shape[0]:
            least, most = xp.take(stack.row_low, who, axis=1), xp.take(stack.row_high, who, axis=1)
            limits += [
                xp.concat([local.rows[:-1], (local.rows[-1] - least)[None]], axis=0),
                xp.concat([-local.rows[:-1], (most - local.rows[-1])[None]], axis=0),
            ]
        a = rounded(stack, optimum(costs, low, high, xp.concat(limits, axis=1), ball, target)[0])
        cost = cost_if_feasible(stack, costs, a, who, error)
        better = cost < best_cost
        best, best_cost = xp.where(better, a, best), xp.where(better, cost, best_cost)
    return best, best_cost


def cost_if_feasible(stack: Stack, costs: Costs, a: Array, who: Array, error: Array) -> Array:
    """Costs of the points that are surely feasible, inf for the others, (B,)."""
    xp = array_namespace(a)
    sure, _ = evaluate.feasibility(stack, a, who, error)
    jump, largest = xp.take(stack.jump, who, axis=1), xp.take(stack.jump_largest, who, axis=1)
    return xp.where(sure, evaluate.costs_at(costs, jump, largest, a), xp.inf)


def rounded(stack: Stack, a: Array) -> Array:
    """Whole actions rounded to whole numbers."""
    if not any(stack.integral):
        return a
    xp = array_namespace(a)
    return xp.where(stack.whole, xp.round(a), a)


def sampled(stack: Stack, costs: Costs, low: Array, high: Array, who: Array, draws: Array) -> Array:
    """Of random points of each box, denser near the factual, the most promising: (d, B).

    Parameters
    ----------
    draws
        Uniform random numbers, (samples, d + 1, B).
    """
    xp = array_namespace(low)
    x = xp.where(costs.x < low, low, xp.where(costs.x > high, high, costs.x))
    jump, largest = xp.take(stack.jump, who, axis=1), xp.take(stack.jump_largest, who, axis=1)
    best, best_score = x, xp.full(x.shape[1:], xp.inf, dtype=x.dtype)
    for k in range(draws.shape[0]):
        a = rounded(stack, x + xp.sqrt(draws[k, -1]) * (low + draws[k, :-1] * (high - low) - x))
        units = evaluate.unit_values(stack, a, who)
        short = stack.threshold - evaluate.logits(stack, a, units, who)
        excess = evaluate.ball_excess(stack, a, units, who)[0]
        lacking = xp.where(short > 0, short, 0.0) + 10 * xp.where(excess > 0, excess, 0.0)
        cost = evaluate.costs_at(costs, jump, largest, a)
        score = xp.where(lacking > 0, 1e6 * (1 + lacking), cost / (1 + cost))
        better = score < best_score
        best, best_score = xp.where(better, a, best), xp.where(better, score, best_score)
    return best
