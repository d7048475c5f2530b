r"""Good actions early: steps along linearisations, and levers pulled back to the factual.

Nothing here proves anything. A point counts as accepted only if its logit is above what is needed by more
than what rounding can take (:func:`try_point`). Its cost is the search's target at once; Python judges the
last such point of each call exactly.

u (d,) is a point, a coordinate of each lever or its label's number; other letters are as in
:mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.compiling import ROUND, clock, compiled
from milp_recourse.engine.networks.interior import solve_node
from milp_recourse.engine.networks.lever_arrays import ACTED, EITHER, IDLE
from milp_recourse.engine.networks.levers import contract, cost_at, cost_of, respond, to_whole, top_of
from milp_recourse.engine.networks.linear_bounds import arguments, at_point, logit_at
from milp_recourse.engine.networks.numerics import COARSE, ROUNDOFF, SAME
from milp_recourse.engine.networks.rows import (
    ball_slack,
    in_ball,
    is_linear,
    linearise,
    residual_lines,
    stated_rows,
)
from milp_recourse.engine.networks.work import cleared, copied

INF = math.inf

STEPS = 16
"""Most interior-point steps of a hop: where there is an optimum, hardly any takes more than 13."""

HALVINGS = 37
"""Of the interval in which the least maximum lies."""

PULLS, ROUNDING = 9, 2.0**-10
"""Most points between an accepted and a refused value of one lever that are tried; by what share these stay
on this side of where the logit is thought to be just enough."""

DIVE = 4
"""Hops of the dives in the tree, where few levers are."""


@compiled
def in_time(w):
    """Whether there is time to search for better actions. Only the user's limit ends that, so that answers
    within it do not depend on the clock."""
    return (int(w.now.late) - clock()) % ROUND < ROUND // 2


@compiled
def random(w):
    """The next number in [0, 1): xorshift, so the same in every run."""
    x = w.random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    w.random[0] = x
    return float(x >> np.uint64(11)) * ROUNDOFF


@compiled
def snap(p, u):
    """Round a point to one that stands for an action of the configuration: doubles, on the lever's steps if
    it has some, inside the bounds of levers that are acted on, the factual for those that are not. Where
    either is possible and the bounds would move a lever by more than its change, it rests."""
    for i in range(len(u)):
        lever = p.lever[i]
        mode, x = p.box[i].mode, lever.factual
        if lever.label > 0.0 or (u[i] == 0.0 and mode != ACTED):
            continue
        a, step = x + lever.unit * u[i], lever.unit * lever.grid
        if step > 0.0:
            first = x + lever.unit * lever.shift
            a = first + np.floor((a - first) / step + 0.5) * step
        near = min(max(a, p.ends[0, i]), p.ends[1, i])
        rests = mode == IDLE or (mode == EITHER and abs(near - a) > abs(a - x))
        u[i] = 0.0 if rests else (near - x) / lever.unit


@compiled
def inside(p, w, slack):
    """Whether the point of :func:`logit_slack` meets the rows and the ball by at least ``slack`` times the
    absolute terms behind them. ``p.slacks.line`` asks for beyond doubt; with a negative slack a point may
    miss them by as much."""
    for r in range(p.row.shape[1]):
        value, size = at_point(p, w, p.row[:, r], p.row_caused[:, r], p.row_const[0, r], p.row_const[1, r])
        if not value >= slack * size + (p.slacks.tiny if slack > 0.0 else -p.slacks.tiny):
            return False
    excess, doubt = 0.0, 0.0
    for f in range(len(p.noise)):
        if not in_ball(p, f):
            continue
        weight, n, linear = p.precision[f], p.noise[f], is_linear(p, f)
        value = p.excess if linear else 0.0
        value, size = at_point(p, w, p.residual[:, f], p.residual_caused[:, f], value, abs(value))
        excess += value if linear else weight * value * (value + 2.0 * n)
        doubt += size if linear else weight * size * (abs(value) + abs(n) + size)
    return excess <= -(4.0 * slack * doubt) or doubt == 0.0


@compiled
def logit_slack(p, w):
    """The largest rounding error of the logit at the last point of
    :func:`~milp_recourse.engine.networks.linear_bounds.logit_at`."""
    return 3.0 * p.slacks.line * arguments(p, w, w.points.place, w.unit.z_size, 1, False) + p.slacks.tiny


@compiled
def try_point(p, w, u):
    """Whether a point, which :func:`snap` rounds first, is feasible beyond rounding. If it is also cheaper
    than the best, it becomes the best. w.now.surplus gets its logit less what is needed."""
    snap(p, u)
    logit = logit_at(p, w, u)
    w.now.surplus = logit - p.need_high
    if not (logit >= p.need_high and logit >= p.need_high + logit_slack(p, w)):
        return False
    if not inside(p, w, p.slacks.line):
        return False
    cost = cost_at(p, u)
    if cost < w.now.best_cost:
        w.now.best_cost, w.now.best_case = cost, w.now.case
        copied(u, w.points.best)
    return True


@compiled
def one_largest(p, w, g, need, out, other):
    """The cheapest point of w.box with g u >= need where the cost is the maximum alone, by bisection over its
    value; False if there is none that is cheaper than the best. Shapes: g (P,); out (d,), which gets the
    point, and other (d,), which is work."""
    low, high, paid, left = 0.0, min(w.now.best_cost, w.now.ceiling), w.aside, w.aside_allowed
    for turn in range(HALVINGS):
        middle = 0.5 * (low + high) if turn > 0 else high
        copied(w.box, paid)
        copied(w.allowed, left)
        reach = 0.0 if contract(p, w, paid, left, middle) else -INF
        for i in range(len(p.lever) if reach == 0.0 else 0):
            reach -= respond(p, paid, left, i, g, 0.0, 0.0, other)
        if reach >= need:
            high = middle
            copied(other, out)
        elif turn == 0:
            return False
        else:
            low = middle
    return True


@compiled
def cheapest(p, w, g, need, out, other):
    """The cheapest point of w.box with g u >= need and, with the lines at hand, whatever else is asked for;
    False if none is found, or none that is clearly cheaper than the best. w's node, point and multipliers are
    overwritten. Shapes: g (P,); out (d,), which gets the point, and other (d,), which is work."""
    if p.only_largest and p.row.shape[1] + len(p.noise) == 0:
        return one_largest(p, w, g, need, out, other)
    copied(g, w.rows[0])
    w.row.consts[0], w.row.inside[0] = -need, 0.0
    count, ball = stated_rows(p, w, 1, False), -1
    if count > 0 and len(p.noise) > 0:
        where = residual_lines(p, w)
        if where > 0:
            ball, count = count, count + 1
            w.row.inside[ball], w.row.consts[ball] = 2.0 * ball_slack(p, w), 0.0
            cleared(w.rows[ball])
        elif where < 0:
            count = -1
    if count < 0:
        return False
    # only what is clearly cheaper than the action in hand is of use
    dear = min(w.now.best_cost * (1.0 - COARSE), w.now.ceiling) - p.base[0]
    return solve_node(p, w, count, ball, dear, out, other, STEPS, True) < dear and w.now.left < COARSE


@compiled
def _mixed(p, start, goal, part, u):
    """Into u the point at a part of the way between two; labels are the goal's. Shapes: start, goal (d,)."""
    for i in range(len(u)):
        u[i] = goal[i] if p.lever[i].label > 0.0 else start[i] + part * (goal[i] - start[i])


@compiled
def _last_accepted(p, w, start, goal, u):
    """Go from an accepted point towards another as long as it is accepted, into u; whether that moved it.
    Shapes: start, goal (d,)."""
    low, high = 0.0, 1.0
    for _ in range(16):
        middle = 0.5 * (low + high)
        _mixed(p, start, goal, middle, u)
        if try_point(p, w, u):
            low = middle
        else:
            high = middle
    _mixed(p, start, goal, low, u)
    return low > 0.0 and try_point(p, w, u)


@compiled
def hops(p, w, u, most):
    """Linearise the logit at ``u``, move to the cheapest point of w.box that the line accepts, and repeat, at
    most ``most`` times. ``u`` gets the last point that was accepted, or without one the last point."""
    anchor, trial = w.points.anchor, w.points.trial
    have, before = False, INF
    for hop in range(most):
        logit_at(p, w, u)
        need = p.need_high + 2.0 * logit_slack(p, w) - linearise(p, w)
        if not cheapest(p, w, w.columns.gradient, need, trial, w.points.other):
            # go where the line is largest; with rows or a ball, to the point at which the convex problem has
            # ended. That is hardly ever any good, so the last hops, all that a dive in the tree has, do not
            if p.row.shape[1] + len(p.noise) == 0:
                for i in range(len(u)):
                    respond(p, w.box, w.allowed, i, w.columns.gradient, 0.0, 0.0, trial)
            elif hop >= most - DIVE or w.now.best_cost < INF:
                break
            if have or hop >= most // 2:
                break
        if hop >= 4 and not have:  # hops go back and forth: take half the way
            _mixed(p, u, trial, 0.5, trial)
        direct = try_point(p, w, trial)
        if direct:
            copied(trial, u)
        # else between the last accepted point and this one
        if direct or (have and _last_accepted(p, w, anchor, trial, u)):
            copied(u, anchor)
            have, cost = True, cost_at(p, u)
            if not cost < before * (1.0 - (SAME if direct else COARSE)):
                break
            before = cost
            continue
        same = not have
        for i in range(len(u)):
            same = same and abs(u[i] - trial[i]) <= SAME
        copied(trial, u)
        have, before = False, INF
        if same:
            break
    if have:
        copied(anchor, u)


@compiled
def cheapest_value(p, w, i):
    """The coordinate or label where a lever costs least: the factual's where that is allowed."""
    if p.lever[i].label > 0.0:
        own = p.lever[i].factual
        if _allows(p, i, own) and cost_of(p, i, own) + top_of(p, i, own) == 0.0:
            return own
    respond(p, p.box, p.allowed, i, w.columns.zeros, 1.0, 1.0, w.points.other)
    return w.points.other[i]


@compiled
def pull_back(p, w, u):
    """Move each lever of a feasible point, a random one first, towards its cheapest value as far as the point
    stays feasible. A lever with labels takes its cheapest label, else the first cheaper one that is feasible.
    """
    start, d = w.points.anchor, len(u)
    first, surplus = int(random(w) * d), logit_at(p, w, u) - p.need_high
    for k in range(d):
        i = (first + k) % d
        copied(u, start)
        rest = cheapest_value(p, w, i)
        if rest == start[i]:
            continue
        u[i] = rest
        accepted, own = try_point(p, w, u), cost_of(p, i, start[i])
        if not accepted and not p.lever[i].label > 0.0:
            surplus = _pulled(p, w, u, i, surplus)
            continue
        for label in range(p.start[i + 1] - p.start[i] if p.lever[i].label > 0.0 else 0):
            if not accepted:
                u[i] = float(label)
                accepted = cost_of(p, i, u[i]) < own and _allows(p, i, u[i]) and try_point(p, w, u)
        if accepted:
            surplus = w.now.surplus
        else:
            copied(start, u)


@compiled
def _pulled(p, w, u, i, surplus):
    """Move a numeric lever from where it is in w.points.anchor, an accepted point with so much more logit
    than it needs, towards where it is in ``u``, which has just been refused, as long as it is accepted: by
    false position; every third time, and where that is next to nothing, by halves. Returns what of the
    surplus is left."""
    low, high, grid, short = w.points.anchor[i], u[i], p.lever[i].grid, w.now.surplus
    close = 2.0**-PULLS * abs(high - low)
    for turn in range(PULLS):
        part = surplus / (surplus - short) if short < 0.0 <= surplus and turn % 3 < 2 else 0.5
        part = part if part * abs(high - low) > close else 0.5
        steps = np.floor(abs(high - low) / grid + 0.5) if grid > 0.0 else INF
        if steps <= 1.0 or abs(high - low) <= close:
            break
        if grid > 0.0:
            part = min(max(np.floor(part * steps), 1.0), steps - 1.0) / steps
        u[i] = low + part * (1.0 if grid > 0.0 else 1.0 - ROUNDING) * (high - low)
        if try_point(p, w, u):
            low, surplus = u[i], w.now.surplus
        else:
            high, short = u[i], w.now.surplus
    u[i] = low
    return surplus


@compiled
def improve(p, w, u):
    """Make an accepted point cheaper: move levers back, make hops from there, move levers back again."""
    pull_back(p, w, u)
    hops(p, w, u, 8)
    if try_point(p, w, u):
        pull_back(p, w, u)


@compiled
def _random_point(p, w, u, share):
    """Move about that share of the levers to random values, the others to rest."""
    for i in range(len(u)):
        u[i] = cheapest_value(p, w, i)
        if random(w) < share:
            value = p.box[i].lo + random(w) * (p.box[i].hi - p.box[i].lo)
            if p.lever[i].label > 0.0:
                value = float(int(random(w) * (p.start[i + 1] - p.start[i])))
            if _allows(p, i, value):
                u[i] = value
    snap(p, u)


@compiled
def descend(p, w, starts, effort):
    """Search for good actions from the factual and from given points, starts (starts, d); ``w.points.best``
    gets the cheapest. With ``effort`` 1, also from random points, which else are tried until there is an
    action, and with some of the best's levers held back; with 2, moves of the best are replaced, too."""
    u = w.points.relaxed
    copied(p.box, w.box)
    copied(p.allowed, w.allowed)
    _random_point(p, w, u, 0.0)  # the factual
    hops(p, w, u, 12)
    if try_point(p, w, u):
        improve(p, w, u)
    for k in range(len(starts) + SAMPLES):
        if k >= len(starts) and effort == 0 and w.now.best_cost < INF:
            break
        if k < len(starts):
            for i in range(len(u)):
                u[i] = starts[k, i] if _allows(p, i, starts[k, i]) else cheapest_value(p, w, i)
        else:
            _random_point(p, w, u, 0.2 + 0.8 * random(w))
        before = w.now.best_cost
        if in_time(w) and try_point(p, w, u) and w.now.best_cost < before:
            improve(p, w, u)
    for _ in range(CLIMBS):
        if w.now.best_cost < INF or not in_time(w):
            break
        _random_point(p, w, u, 1.0)
        if climb(p, w, u):
            improve(p, w, u)
    if w.now.best_cost < INF and effort > 0:
        drops(p, w)
    for _ in range(3):
        before = w.now.best_cost
        if before < INF:
            copied(w.points.best, u)
            pull_back(p, w, u)
            around(p, w, u)
            if effort > 1:
                repairs(p, w)
        if not w.now.best_cost < before * (1.0 - COARSE):
            break


SAFELY = 2.0
"""How many times what the gradient promises moving levers back is thought to save at most."""

SAMPLES, CLIMBS, DROPS, REPAIRS = 500, 30, 60, 40
"""Random points that are tried, and from which the search goes uphill while there is no action; how often
levers of the best action are held back; and how often some are replaced by others."""


@compiled
def drops(p, w):
    """Let one or two levers of the best point rest, or limit how far they move, and make hops from there.
    Cheaper points become the best."""
    u, box = w.points.relaxed, w.box
    for _ in range(DROPS):
        copied(w.points.best, u)
        copied(p.box, box)
        copied(p.allowed, w.allowed)
        for _one in range(1 + int(random(w) * 2)):
            i = int(random(w) * len(u))
            goal = cheapest_value(p, w, i)
            if goal == u[i]:
                i = int(random(w) * len(u))
                goal = cheapest_value(p, w, i)
            if p.lever[i].label > 0.0:
                for c in range(p.start[i], p.start[i + 1]):
                    w.allowed[c] = 1 if c == p.start[i] + int(goal) else 0
                u[i] = goal
                continue
            if random(w) < 0.7:
                box[i].lo = box[i].hi = u[i] = goal
                box[i].mode = IDLE if goal == 0.0 and p.box[i].mode == EITHER else ACTED
                continue
            end = min(max(u[i] * (0.3 + 1.2 * random(w)), box[i].lo), box[i].hi)
            if u[i] > 0.0:
                box[i].hi = end
            else:
                box[i].lo = end
            if p.lever[i].grid > 0.0:
                to_whole(p, box, i)
            u[i] = min(max(u[i], box[i].lo), box[i].hi)
        hops(p, w, u, 8 if in_time(w) else 0)


@compiled
def repairs(p, w):
    """Replace some moves of the best point by others: let a few levers rest, hold one of these, and move
    others until the point is accepted again, each time the move that raises the logit most for what it
    costs. Cheaper points become the best.

    With many labels the neighbours of a good action that differ in one lever are hardly ever accepted.
    """
    u, trial, d = w.points.relaxed, w.points.choice, len(p.lever)
    for _ in range(REPAIRS):
        copied(w.points.best, u)
        held = _rest_some(p, w, u)
        for _step in range(d if held >= 0 and in_time(w) else 0):
            i, value = _best_move(p, w, u, held)
            if i < 0:
                break
            u[i] = value
            copied(u, trial)
            if try_point(p, w, trial):
                copied(trial, u)
                pull_back(p, w, u)
                break
            if logit_at(p, w, trial) >= p.need_high:  # it misses a row or the ball
                break


@compiled
def _rest_some(p, w, u):
    """Let some random levers of a point rest, between two and three on the average; returns one of them, -1
    for none."""
    acted, held = 0, -1
    for i in range(len(u)):
        acted += u[i] != cheapest_value(p, w, i)
    for i in range(len(u)):
        rest = cheapest_value(p, w, i)
        if u[i] != rest and random(w) * acted < 2.5:
            u[i], held = rest, i if held < 0 or random(w) < 0.5 else held
    return held


@compiled
def _best_move(p, w, u, held):
    """The lever and value that raise the logit most for what they cost, up to a random factor; (-1, 0) where
    nothing raises it at less than the best cost. ``u`` stays as it is."""
    value, cost, dear = logit_at(p, w, u), cost_at(p, u), w.now.best_cost
    most, which, to = 0.0, -1, 0.0
    for i in range(len(u)):
        own, label = u[i], p.lever[i].label > 0.0
        low, high = p.box[i].lo, p.box[i].hi
        for k in range(0 if i == held else p.start[i + 1] - p.start[i] if label else 4):
            if label:
                u[i] = float(k) if _allows(p, i, float(k)) else own
            else:  # both ends, and a random point on the way to each
                u[i] = own + (1.0 if k < 2 else random(w)) * ((low if k % 2 == 0 else high) - own)
            if u[i] == own:
                continue
            gain, paid = min(logit_at(p, w, u), p.need_high) - value, cost_at(p, u) - cost
            # a number that moves too far can be pulled back
            if gain > 0.0 and cost + paid < (1.0 if label else 2.0) * dear:
                score = gain * (0.5 + random(w)) / max(paid, 0.01 * dear)
                if score > most:
                    most, which, to = score, i, u[i]
        u[i] = own
    return which, to


@compiled
def _allows(p, i, value):
    """Whether a lever may have a label; True for any number, which :func:`snap` moves inside the bounds."""
    s, number = p.start[i], not p.lever[i].label > 0.0
    return number or (0.0 <= value < p.start[i + 1] - s and p.allowed[s + int(value)] != 0)


@compiled
def around(p, w, u):
    """Move each lever of the best point to other values and pull the others back."""
    for i in range(len(u)):
        label, low, high = p.lever[i].label > 0.0, p.box[i].lo, p.box[i].hi
        for k in range(p.start[i + 1] - p.start[i] if label else 6):
            copied(w.points.best, u)
            if label:
                if not _allows(p, i, float(k)) or float(k) == u[i]:
                    continue
                u[i] = float(k)
            else:
                step = max((high - low) * 0.25 ** (k % 3 + 1), p.lever[i].grid)
                u[i] = min(max(u[i] + (step if k < 3 else -step), low), high)
            if in_time(w) and try_point(p, w, u) and _worth_pulling(p, w, u, i):
                pull_back(p, w, u)


@compiled
def _worth_pulling(p, w, u, moved):
    """Whether moving levers but one of the accepted point tried last back might make it cheaper than the
    best: by the logit's gradient there, its surplus pays for the lever that saves most for what it takes."""
    surplus, grad, saved, rate = w.now.surplus, w.columns.gradient, 0.0, 0.0
    linearise(p, w)
    for i in range(len(u)):
        rest = cheapest_value(p, w, i)
        if i == moved or u[i] == rest:
            continue
        own, s = cost_of(p, i, u[i]) - cost_of(p, i, rest), p.start[i]
        label = p.lever[i].label > 0.0
        drop = grad[s + int(u[i])] - grad[s + int(rest)] if label else grad[s] * (u[i] - rest)
        if drop <= surplus:
            saved += own
        else:
            rate = max(rate, own / drop)
    return cost_at(p, u) - SAFELY * (saved + rate * surplus) < w.now.best_cost


@compiled
def climb(p, w, u):
    """Move to the corner that the gradient points to, as long as the logit rises; whether it gets
    accepted.
    """
    other, trial = w.points.other, w.points.trial
    for _ in range(12):
        value, moved = logit_at(p, w, u), False
        linearise(p, w)
        for i in range(len(u)):
            respond(p, p.box, p.allowed, i, w.columns.gradient, 0.0, 0.0, trial)
        for halvings in range(8):
            _mixed(p, u, trial, 0.5**halvings, other)
            if try_point(p, w, other):
                copied(other, u)
                return True
            if logit_at(p, w, other) > value:
                moved = True
                break
        if not moved:
            return False
        copied(other, u)
    return False
