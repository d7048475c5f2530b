"""Lines above ReLUs with kinks where levers are at the factual: lower than chords where a budget is spent on
many levers.

Letters are those of :mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.lever_arrays import ACTED
from milp_recourse.engine.networks.levers import term
from milp_recourse.engine.networks.problem_arrays import Problem

LOWER_FIRST, LOWER = 0.9, 0.75
"""A bent line is taken if it is below this share of the chord at the parent's relaxed optimum: in layer 1,
and in later ones, where the chord goes on to the lines of earlier layers."""


def bendable(p: Problem) -> bool:
    """Whether a problem's lines may be bent: its levers are numbers that cost in proportion to their changes,
    and there are no causal units, rows or ball. Costs between knots, which change from node to node, are not
    such."""
    lever, rows = p.lever, p.widths[0] or p.noise.size or p.row.shape[-2]
    proportional = (lever["linear"] > lever["label"] + lever["square"]) & (lever["knots"] == 0.0)
    return not rows and bool(proportional.all())


@compiled
def _corner(box, i):
    """The coordinate of a numeric lever in box (d,) that is nearest to the factual."""
    return 0.0 if box[i].mode != ACTED else min(max(0.0, box[i].lo), box[i].hi)


@compiled
def left_to_bend(p, w, budget):
    """What the budget leaves where all levers are at their corners, rounded up; 0 where no line is bent."""
    paid = 0.0
    if not (len(w.columns.line) > p.start[-1] and budget < math.inf):
        return 0.0
    for i in range(len(p.lever)):
        if p.lever[i].knots > 0.0:  # others that share this memory may have none
            return 0.0
        paid += term(p.lever[i].linear, 0.0, p.lever[i].down, 0.0, _corner(w.box, i))
    return max(budget - paid + 2.0 * p.slacks.cost * (abs(budget) + paid), p.slacks.tiny)


@compiled
def bend(p, w, k, j):
    r"""Put a bent line above an open ReLU instead of its chord, if it is clearly lower at the parent's
    relaxed optimum. Row j of w.unit.upper[k], with w.unit.base, is a line Z above the argument.

    Let v >= 0 be the levers' distances from their corners and a their prices, so that :math:`a v \le S`, what
    the budget leaves there. On each side of the corners :math:`Z = B + s v`. For :math:`\theta = |B| / S`,

    .. math:: \max(0, Z) \le \max(0, B) + \sum_i v_i \begin{cases}
        \max(s_i - \theta a_i, 0) & B \le 0 \\ \max(s_i, -\theta a_i) & B > 0 \end{cases}

    since what the right side exceeds 0 and Z by is at least 0 or :math:`|B| - \theta a v`. The two are the
    same at the corner, and where all that is left is spent on one lever.
    """
    unit, line, box, kinks = w.unit, w.unit.upper[k, j], w.box, p.start[-1]
    here = at = unit.base[k, j]
    for i in range(len(p.lever)):
        c, o, t = p.start[i], _corner(box, i), min(max(w.points.seen[i], box[i].lo), box[i].hi)
        here += line[c] * o + line[kinks + i] * abs(o)
        at += line[c] * t + line[kinks + i] * abs(t)
    chord, const, value = unit.slope[k, j] * at + unit.rise[k, j], max(here, 0.0), max(here, 0.0)
    theta = -here / w.now.spare * (2.0 - p.slacks.up)
    for i in range(len(p.lever)):
        c, o, t = p.start[i], _corner(box, i), min(max(w.points.seen[i], box[i].lo), box[i].hi)
        rise = theta * p.lever[i].linear
        fall = rise * p.lever[i].down
        up = max(line[kinks + i] + line[c], rise) - max(rise, 0.0)
        down = max(line[kinks + i] - line[c], fall) - max(fall, 0.0)
        up, down = -down if box[i].hi <= 0.0 else up, -up if box[i].lo >= 0.0 else down
        line[c], line[kinks + i] = 0.5 * (up - down), 0.5 * (up + down)
        const -= line[c] * o + line[kinks + i] * abs(o)
        value += (up if t > o else -down) * (t - o)
    if value < (LOWER_FIRST if k == 1 else LOWER) * chord:
        unit.bent[k, j], unit.base[k, j] = 1.0, const + p.slacks.line * unit.size[k, j] + p.slacks.tiny
        unit.size[k, j] *= 3.0  # terms at the corner count twice more
