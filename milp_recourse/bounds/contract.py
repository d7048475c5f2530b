r"""Shrinking boxes by cost and plausibility, before any network is looked at.

Where the cost must be at most C, :math:`\sum_i c_i(\delta_i) \le C`, and the terms of the other features are
at least :math:`m_j` on the box, feature i may cost at most :math:`C - \sum_{j \ne i} m_j`. Likewise the
plausibility ball leaves :math:`w_i r_i^2` of a residual at most :math:`R - \sum_{j \ne i} w_j \min r_j^2`,
and an interval of a residual implies one of each action in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.tape import Tape
from milp_recourse.domain.quantiles import ROUNDING
from milp_recourse.program.functions import value_range, within_domain

Array = NDArray[np.float64]

_SLACK = 1e-10  # relative outward slack: covers the rounding of a handful of operations


def contract(tape: Tape, low: Array, high: Array, cutoff: float, rounds: int = 2) -> tuple[Array, Array]:
    """Boxes (B, d) less parts that cost more than ``cutoff`` or break the ball; empty ones have low > high.

    Parameters
    ----------
    cutoff
        Cost of interest; ``inf`` for none.
    rounds
        How often to repeat; each round feeds the next.
    """
    low, high = low.copy(), high.copy()
    for _ in range(rounds):
        if np.isfinite(cutoff):
            _by_cost(tape, low, high, cutoff)
        if tape.program.ball is not None:
            _by_ball(tape, low, high)
        whole = tape.integral
        if whole.any():
            low[:, whole], high[:, whole] = np.ceil(low[:, whole] - _SLACK), np.floor(high[:, whole] + _SLACK)
    return low, high


def least_cost(tape: Tape, low: Array, high: Array) -> Array:
    """The least cost on each box, shape (B,), rounded down."""
    terms, largest = _least_terms(tape, low, high)
    c = tape.program.cost
    total = terms.sum(axis=1) + float(c.linf) * largest.max(axis=1, initial=0.0)
    return (total + tape.fixed_cost) * (1 - _SLACK)


def _term_range(tape: Tape, low: Array, high: Array) -> tuple[Array, Array]:
    """Intervals of the cost terms' deltas, (B, terms) each."""
    plain = tape.plain_terms
    dl, dh = np.zeros((len(low), len(plain))), np.zeros((len(low), len(plain)))
    x = tape.term_factuals
    dl[:, plain] = (low - x)[:, plain]
    dh[:, plain] = (high - x)[:, plain]
    # a category costs 1 unless the factual label is still possible
    other = ~plain
    other[[j for j, _ in tape.quantiles]] = False
    possible = (low[:, other] <= x[other]) & (high[:, other] >= x[other])
    dl[:, other] = dh[:, other] = (~possible).astype(np.float64)
    for j, quantiles in tape.quantiles:  # a distribution function never falls
        factual = quantiles.evaluate(x[j])
        dl[:, j] = quantiles.evaluate(low[:, j]) - factual - ROUNDING
        dh[:, j] = quantiles.evaluate(high[:, j]) - factual + ROUNDING
    return dl, dh


def _least_terms(tape: Tape, low: Array, high: Array) -> tuple[Array, Array]:
    """Least l2-squared + l1 cost of every term, and least weighted |delta|/s, on each box; (B, terms)."""
    dl, dh = _term_range(tape, low, high)
    nearest = np.where((dl <= 0) & (dh >= 0), 0.0, np.minimum(np.abs(dl), np.abs(dh)))
    step = nearest / tape.cost_scales
    c = tape.program.cost
    weighted = tape.cost_weights * step
    return float(c.l2_squared) * weighted * step + float(c.l1) * weighted, weighted


def _by_cost(tape: Tape, low: Array, high: Array, cutoff: float) -> None:
    """Cut off, in place, values that cost more than ``cutoff`` even if all other terms cost their least."""
    c = tape.program.cost
    terms, _ = _least_terms(tape, low, high)
    total = terms.sum(axis=1, keepdims=True)
    room = cutoff * (1 + _SLACK) - tape.fixed_cost - (total - terms)  # (B, terms)
    spent = room < 0
    room = np.maximum(room, 0.0)
    reach = np.full_like(room, np.inf)
    w, s = tape.cost_weights, tape.cost_scales
    if c.l2_squared:
        reach = np.minimum(reach, s * np.sqrt(room / (float(c.l2_squared) * w)))
    slope = float(c.l1) * w / s
    if c.l1:
        reach = np.minimum(reach, room / slope)
    if c.linf:
        reach = np.minimum(reach, np.maximum(cutoff - tape.fixed_cost, 0.0) / (float(c.linf) * w / s))
    reach = reach * (1 + _SLACK) + 1e-300
    plain, x = tape.plain_terms, tape.term_factuals
    slack = _SLACK * (1 + np.abs(x))
    # fmax and fmin here and below: what overflowed to nan cuts nothing off
    low[:, plain] = np.fmax(low, x - reach - slack)[:, plain]
    high[:, plain] = np.fmin(high, x + reach + slack)[:, plain]
    for j, quantiles in tape.quantiles:
        factual, room_left = quantiles.evaluate(x[j]), reach[:, j] + ROUNDING
        least, most = quantiles.least_value(factual - room_left), quantiles.largest_value(factual + room_left)
        span = _SLACK * (1 + max(abs(v) for v in quantiles.values))
        low[:, j], high[:, j] = np.fmax(low[:, j], least - span), np.fmin(high[:, j], most + span)
    empty = spent.any(axis=1)
    low[empty], high[empty] = tape.upper + 1.0, tape.lower - 1.0


def _by_ball(tape: Tape, low: Array, high: Array) -> None:
    """Cut off, in place, what is outside the ball whatever the other residuals are on the box."""
    al, ah = atom_ranges(tape, low, high)
    matrix, weights = tape.residuals, tape.ball_weights
    positive, negative = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    rl = al @ positive.T + ah @ negative.T + tape.residual_offset
    rh = ah @ positive.T + al @ negative.T + tape.residual_offset
    lin = np.where(tape.ball_linear > 0, al, ah) @ tape.ball_linear + tape.ball_offset
    least = np.where((rl <= 0) & (rh >= 0), 0.0, np.minimum(np.square(rl), np.square(rh))) * weights
    total = least.sum(axis=1, keepdims=True)
    room = -lin[:, None] - (total - least)
    slack = _SLACK * (1 + np.abs(lin[:, None]) + total)
    room += slack
    empty = (-lin[:, None] - total + slack < 0)[:, 0]  # also where there is no square at all
    radius = np.sqrt(np.maximum(room, 0.0) / weights)
    for j in range(len(weights)):
        for k, column in enumerate(tape.actions):
            coefficient = matrix[j, column]
            if coefficient == 0:
                continue
            share = sorted((coefficient * al[:, column], coefficient * ah[:, column]), key=lambda v: v.sum())
            rest_low, rest_high = rl[:, j] - share[0], rh[:, j] - share[1]
            ends = (-radius[:, j] - rest_high) / coefficient, (radius[:, j] - rest_low) / coefficient
            l, h = np.minimum(*ends), np.maximum(*ends)  # nan if either end is
            slack = _SLACK * (1 + np.abs(l) + np.abs(h) + np.abs(rest_low) + np.abs(rest_high))
            low[:, k] = np.fmax(low[:, k], l - slack)
            high[:, k] = np.fmin(high[:, k], h + slack)
    low[empty], high[empty] = tape.upper + 1.0, tape.lower - 1.0


def atom_ranges(tape: Tape, low: Array, high: Array) -> tuple[Array, Array]:
    """Interval bounds (B, atoms) of every atom on boxes; cheap, for propagation."""
    al, ah = np.zeros((len(low), tape.atoms)), np.zeros((len(low), tape.atoms))
    al[:, tape.actions], ah[:, tape.actions] = low, high
    for k, unit, row, offset in tape.units:
        positive, negative = np.maximum(row[0], 0.0), np.minimum(row[0], 0.0)
        # atoms not computed yet are zero and have coefficient zero
        with np.errstate(invalid="ignore"):
            l = al @ positive + ah @ negative + offset[0]
            h = ah @ positive + al @ negative + offset[0]
        l, h = within_domain(unit.function, np.minimum(l, h), np.maximum(l, h))
        al[:, k], ah[:, k] = value_range(unit.function, l, h, unit.level)
    return al, ah
