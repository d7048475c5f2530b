r"""Lower bounds by prices: each tree may choose a leaf as if at a point of its own, but pays for the cells.

Every tree t pays a price :math:`p_t(k)` for the cell k that its leaf is reached from, axis by axis; what it
pays is credited to the axis. With a multiplier :math:`\mu \ge 0` on the score and g the score that is needed,
for any prices whatsoever

.. math:: \sum_i \min_k \Big(c_i(k) - \sum_t p_{t,i}(k)\Big)
          + \sum_t \min_\ell \Big(\sum_i \min_{k \in \ell} p_{t,i}(k) - \mu v_\ell\Big) + \mu g

is at most the cost of every accepted point. At the best prices this is the bound of the leaf formulation's
linear program. Where the cost has a maximum, :math:`\max_i m_i(k_i) \ge \sum_i q_i m_i(k_i)` for any
shares :math:`q_i \ge 0` of the maximum that add up to at most 1: a sum again. The bound is concave in
prices, shares and multipliers. Sweeps over the axes raise it
(:mod:`~milp_recourse.engine.forests.passing`); shares and :math:`\nu` need subgradients with Polyak's step,
whose aim is the cost of the action in hand. The same minima tell which cells, leaves and halves of axes
cannot hold anything cheaper than that action (:func:`assess`). Where at most m axes may be in cells that cost
anything, these may cost any :math:`\nu \ge 0` more, and :math:`m \nu` is taken off the bound.

Throughout f is the factor graph (:class:`~milp_recourse.engine.forests.factors.Factors`) and ``live`` what is
left of it (:class:`~milp_recourse.engine.forests.living.Live`); t numbers trees, i axes, c cells, s slots, k
classes (in the formulas: cells) and z sets. x (axes,) is a point, a cell of each axis; q (axes,) or (0,) are
the shares of the maximum, if the cost has one. ``energy`` is what the formula has in its inner parentheses:
least prices over cells, less :math:`\mu v_\ell`.

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html (the linear program);
Sherali and Ulular (1989), https://doi.org/10.1007/BF01448355 (average direction strategy);
Polyak (1969), https://doi.org/10.1016/0041-5553(69)90061-5;
Held, Wolfe and Crowder (1974), https://doi.org/10.1007/BF01580223 (projection)
"""

from __future__ import annotations

import numpy as np

from milp_recourse.engine.compiling import counting as compiled
from milp_recourse.engine.compiling import counting_entry as entry
from milp_recourse.engine.forests.passing import (
    fill_energies,
    laid_out,
    least_of,
    left_over,
    price_sets,
    sweep,
)

INF = np.inf
ROUNDOFF = 2.0**-53
"""Unit roundoff of a double."""

SLIGHT, FLAT, EVEN = 1e-3, 1e-2, 0.05
"""Splits are compared by a product: of how many trees disagree about them, plus SLIGHT; of how much each
half's bound rises, plus FLAT; and of the smaller half's share of the cells, plus EVEN."""

PLAIN, THOROUGH, SHARED = (5, 0), (8, 0), (2, 30)
"""Sweeps and steps of one round: of a sum over the axes; the same for a proof, of which every table is read
and checked; and where the cost has a maximum or the number of
actions is limited, since only steps improve shares and nu."""

PACE, SLOW = (0.5, 0.1), 0.02
"""In a node's first round: what Polyak's step is multiplied by, and the share by which the multiplier is
moved between its first two sweeps. A round begins with at least SLOW of Polyak's step."""

COUNTED = 3.0
"""How much larger a step of nu is than one of a price."""

STALLED = 12
"""After so many steps without progress the steps become 0.6 times as long."""


@compiled
def _left_over(f, cost, live, price, rest):
    """rest = cost - sum of the trees' prices, for living cells. Shapes: rest, cost (cells,), price
    (classes,)."""
    for n in range(live.cell_to[-1]):
        rest[live.cell[n]] = cost[live.cell[n]]
    for t in range(len(f.slot_from) - 1):
        for n in range(live.slot_to[t], live.slot_to[t + 1]):
            s = live.slot[n]
            i, first = f.slot_axis[s], f.class_from[s]
            for m in range(live.cell_to[i], live.cell_to[i + 1]):
                c = live.cell[m]
                rest[c] -= price[first + f.classes[t, c]]


@compiled
def _energies(f, t, live, mu, price, set_price, energy):
    """Fill in the energy of each living leaf of tree t (its prices less mu times its value), and the prices
    of sets, each the least of its classes'; returns the least energy. Shapes: price (classes,), set_price
    (sets,), energy (leaves,).

    The price of a class without living cells is infinite.
    """
    a, b = live.slot_to[t], live.slot_to[t + 1]
    for n in range(a, b):
        for u in range(live.used_to[n], live.used_to[n + 1]):
            z, least = live.used[u], INF
            for m in range(f.member_from[z], f.member_from[z + 1]):
                least = min(least, price[f.member[m]])
            set_price[z] = least
    width, s0 = f.slot_from[t + 1] - f.slot_from[t], f.slot_from[t]
    best = INF
    for n in range(live.leaf_to[t], live.leaf_to[t + 1]):
        leaf = live.leaf[n]
        at = f.table_from[t] + (leaf - f.leaf_from[t]) * width - s0
        total = -mu * f.value[leaf]
        for m in range(a, b):
            total += set_price[f.table[at + live.slot[m]]]
        energy[leaf] = total
        best = min(best, total)
    return best


@compiled
def _of_living(live, price):
    """A copy of price (classes,), infinite for classes without living cells."""
    return np.where(live.kept, price, INF)


@compiled
def _onto_simplex(q):
    """The nearest shares that are not negative and add up to 1 (Held, Wolfe and Crowder 1974)."""
    ordered, total, level = np.sort(q)[::-1], 0.0, 0.0
    for k in range(len(q)):
        total += ordered[k]
        if ordered[k] - (total - 1.0) / (k + 1) > 0.0:
            level = (total - 1.0) / (k + 1)
    for k in range(len(q)):
        q[k] = max(q[k] - level, 0.0)


@entry
def improve(f, cost, wide, q, moved, most, live, mu, nu, goal, given, target, effort, pace, weight, torn):
    """Improve prices, shares and multipliers, by sweeps and then by steps along subgradients; returns the
    best bound (not rounded down), its mu and nu, and the last ``pace``.

    given (classes,), the prices, and ``q`` are improved in place.

    Parameters
    ----------
    cost, wide
        What cells cost in the sum, and in the maximum, (cells,).
    q
        The axes' shares of the maximum, empty where the cost has no maximum. Only steps improve them.
    moved
        1 for cells that count as an action, else 0: moved (cells,) or (0,) if any number of them may be
        chosen.
    most
        How many of them may be chosen.
    mu, nu
        Multipliers of the score and of the number of actions, to begin with. Only steps improve nu.
    live, goal
        What is left in the node; what the leaves' values must add up to.
    target
        The bound to reach; sweeps and steps end there.
    effort
        Most sweeps, at least 1, and most steps.
    pace
        :data:`PACE`, or what the round before returned: what Polyak's step is multiplied by, reduced after
        :data:`STALLED` steps without progress, and the share by which mu is moved between sweeps.
    weight
        How much larger a relative step of the multiplier is than one of a price; 0: it stays.
    torn
        As :func:`~milp_recourse.engine.forests.passing.sweep` updates it, (cells,).
    """
    laid, paid, (sweeps, steps), (shrinking, turn) = laid_out(f, live), cost.copy(), effort, pace
    _charge(cost, wide, q, moved, nu, f.axis_from, live, paid)
    price, aim, turn = _of_living(live, given), target + nu * most, turn if weight > 0.0 else 0.0
    best, mu, turn = sweep(f, live, laid, paid, mu, goal, price, aim, sweeps, turn, torn)
    best -= nu * most
    if steps > 0 and best < target:
        own = cost, wide, q, moved, most, live, laid, paid
        shrinking = max(shrinking, SLOW)
        best, mu, nu, shrinking = _ascend(f, own, mu, nu, goal, price, target, steps, shrinking, weight)
    given[:] = np.where(live.kept, price, given)
    return best, mu, nu, (shrinking, turn)


@compiled
def _ascend(f, own, mu, nu, goal, given, target, steps, shrinking, weight):  # noqa: PLR0915
    """The steps of :func:`improve`: along averages of subgradients, of Polyak's length. Shape: given
    (classes,)."""
    cost, wide, q, moved, most, live, laid, paid = own
    axes, size, shared, sets = len(live.cell_to) - 1, len(given), len(q) > 0, live.used_to[live.slot_to[-1]]
    set_price, energy, rest = np.empty(sets), np.empty(len(laid.value)), np.empty(live.cell_to[-1])
    x, unit = np.zeros(axes, np.int32), weight / max(target, 1e-300)
    slope, slope_q, price = np.zeros(size), np.zeros(len(q)), given.copy()
    direction, direction_q = np.zeros(size), np.zeros(len(q))
    turn, turn_nu = 0.0, 0.0  # the multipliers'
    best, best_mu, best_nu, best_q, length, stalled = -INF, mu, nu, q.copy(), 0.0, 0
    for _ in range(steps):
        _charge(cost, wide, q, moved, nu, f.axis_from, live, paid)
        left_over(live, laid, paid, price, rest)
        total, miss = mu * goal - nu * most, goal
        for i in range(axes):
            m = least_of(rest, live.cell_to[i], live.cell_to[i + 1])
            x[i] = live.cell[m]
            total += rest[m]
        price_sets(laid, price, 0, sets, set_price)
        fill_energies(live, laid, mu, set_price, energy)
        slope[:] = 0.0
        for t in range(len(live.leaf_to) - 1):
            j = least_of(energy, live.leaf_to[t], live.leaf_to[t + 1])
            total += energy[j]
            miss -= laid.value[j]
            _add_slope(f, live, laid, t, j, x, price, set_price, slope)
        if total > best:
            stalled = 0 if total > best + 1e-3 * (target - best) else stalled + 1
            best, best_mu, best_nu = total, mu, nu
            given[:] = price
            best_q[:] = q
            if best >= target:
                break
        else:
            stalled += 1
        if stalled >= STALLED:
            shrinking, stalled = 0.6 * shrinking, 0
        if shared:
            _slope_of_shares(wide, x, unit, slope_q)
        steep, steep_nu = miss * weight * mu, _slope_of_count(moved, most, x, nu)
        now = steep * steep + steep_nu * steep_nu + _square(slope) + _square(slope_q)
        if now == 0.0:
            break
        pull = np.sqrt(now / length) if length > 0.0 else 0.0  # weight of the step before
        turn, turn_nu = steep + pull * turn, steep_nu + pull * turn_nu
        length = turn * turn + turn_nu * turn_nu
        length += _turned(direction, slope, pull) + _turned(direction_q, slope_q, pull)
        if length < 1e-30:
            break
        move = shrinking * (target - total) / length
        _move(price, move, direction)
        if shared:
            _move(q, move * unit, direction_q)
            _onto_simplex(q)
        mu = max(mu + move * turn * weight * mu, 0.2 * mu)
        nu = max(nu + move * turn_nu * COUNTED, 0.0)
    q[:] = best_q
    return best, best_mu, best_nu, shrinking


@compiled
def _slope_of_count(moved, most, x, nu):
    """By how much more actions than may be are chosen, in steps of nu; 0 where nu would fall below 0. Shape:
    moved (cells,) or (0,)."""
    over = -most
    if len(moved):
        for i in range(len(x)):
            over += moved[x[i]]
    return COUNTED * (over if nu > 0.0 else max(over, 0.0))


@compiled
def _charge(cost, wide, q, moved, nu, axis_from, live, paid):
    """paid = cost, the axis' share of the maximum and nu where an action counts, for living cells. Shapes:
    paid, cost, wide (cells,), moved (cells,) or (0,), axis_from (axes + 1,)."""
    for i in range(len(axis_from) - 1):
        for n in range(live.cell_to[i], live.cell_to[i + 1]):
            c = live.cell[n]
            paid[c] = cost[c]
            if len(q):
                paid[c] += q[i] * wide[c]
            if len(moved):
                paid[c] += nu * moved[c]


@compiled
def _cheapest_cell(live, i, rest):
    """The least of an axis' living cells, and which that is. Shape: rest (cells,)."""
    low, cell = INF, -1
    for n in range(live.cell_to[i], live.cell_to[i + 1]):
        c = live.cell[n]
        if rest[c] < low:
            low, cell = rest[c], c
    return low, cell


@compiled
def _add_slope(f, live, laid, t, j, x, price, set_price, slope):
    """Add the subgradient with respect to the prices of tree t, whose cheapest leaf has place j: +1 for the
    class that the leaf pays for, -1 for the class of the axis' cheapest cell, where these differ. Shapes:
    price, slope (classes,), set_price (needed sets,)."""
    for n in range(live.slot_to[t], live.slot_to[t + 1]):
        s, u = live.slot[n], laid.needs[laid.needs_from[n] + j - live.leaf_to[t]]
        cheapest, paid = f.class_from[s] + f.classes[t, x[f.slot_axis[s]]], np.int64(-1)
        for h in range(laid.has_from[u], laid.has_from[u + 1]):
            k = np.int64(laid.has[h])
            if price[k] <= set_price[u] and (paid < 0 or k == cheapest):
                paid = k
        if paid != cheapest:
            slope[paid] += 1.0
            slope[cheapest] -= 1.0


@compiled
def _slope_of_shares(wide, x, unit, slope):
    """The subgradient with respect to the shares of the maximum, less its mean, as the shares' sum stays.
    Shapes: wide (cells,), slope (axes,)."""
    middle = 0.0
    for i in range(len(x)):
        slope[i] = unit * wide[x[i]]
        middle += slope[i] / len(x)
    for i in range(len(x)):
        slope[i] -= middle


@compiled
def _move(v, by, direction):
    """Add a multiple of a direction to a vector: v, direction (length,)."""
    for k in range(len(v)):
        v[k] += by * direction[k]


@compiled
def _square(v):
    """The sum of the squares of v (length,)."""
    a, b, c, d, whole = 0.0, 0.0, 0.0, 0.0, len(v) - len(v) % 4
    for k in range(0, whole, 4):
        a += v[k] * v[k]
        b += v[k + 1] * v[k + 1]
        c += v[k + 2] * v[k + 2]
        d += v[k + 3] * v[k + 3]
    for k in range(whole, len(v)):
        a += v[k] * v[k]
    return (a + b) + (c + d)


@compiled
def _turned(direction, slope, pull):
    """Set direction = slope + pull * direction; returns the sum of its squares. Shapes: direction, slope
    (length,)."""
    for k in range(len(direction)):
        direction[k] = slope[k] + pull * direction[k]
    return _square(direction)


@entry
def assess(f, cost, live, mu, goal, given, x, energy, loss):
    """The bound of a node, rounded down, and by how much it was lowered for that. Where actions are counted,
    the caller rounds ``cost`` with nu in it down, and takes nu times the most actions off.

    Parameters
    ----------
    cost
        What cells cost, (cells,).
    given
        The prices, (classes,).
    x
        Gets each axis' cell that costs least after the trees' prices.
    energy
        Gets by how much each leaf's energy exceeds its tree's least, (leaves,).
    loss
        Gets, for every cell, how much the bound rises if its axis is left with this cell alone, with the
        cells up to it, or with those from it on, (3, cells).
    """
    trees, axes = len(f.slot_from) - 1, len(f.axis_from) - 1
    set_price, set_least = np.empty(f.set_from[-1]), np.empty(f.set_from[-1])
    least, rest, values = np.empty(f.class_from[-1]), np.empty(len(cost)), np.empty(len(cost))
    price = _of_living(live, given)
    _left_over(f, cost, live, price, rest)
    total, size = mu * goal, abs(mu * goal)
    loss[:] = 0.0
    for i in range(axes):
        for n in range(live.cell_to[i], live.cell_to[i + 1]):
            size += abs(cost[live.cell[n]])
        low, x[i] = _cheapest_cell(live, i, rest)
        total += low
        _spread(live, i, rest, low, loss)
    for t in range(trees):
        best = _energies(f, t, live, mu, price, set_price, energy)
        total += best
        size += mu * _excesses(f, live, t, best, energy, set_least)
        for n in range(live.slot_to[t], live.slot_to[t + 1]):
            s = live.slot[n]
            i, first, last = f.slot_axis[s], f.class_from[s], f.class_from[s + 1]
            largest = 0.0
            for k in range(first, last):
                least[k] = INF
                if live.kept[k]:
                    largest = max(largest, abs(price[k]))
            size += 4.0 * largest
            for u in range(live.used_to[n], live.used_to[n + 1]):
                z = live.used[u]
                without = set_least[z] - set_price[z]
                for m in range(f.member_from[z], f.member_from[z + 1]):
                    k = f.member[m]
                    least[k] = min(least[k], without)
            for m in range(live.cell_to[i], live.cell_to[i + 1]):
                c = live.cell[m]
                k = first + f.classes[t, c]
                values[c] = least[k] + price[k]
            _spread(live, i, values, best, loss)
    # a price sees at most a subtraction per tree, then an addition per axis and per tree; 8 leaves room for
    # the roundings of size itself, and of loss and energy, which are sums of the same terms
    slack = 8.0 * (2 * trees + axes + 32) * ROUNDOFF * size
    return total - slack, slack


@compiled
def _excesses(f, live, t, best, energy, set_least):
    """Fill in the least energy of each set's leaves, and by how much each leaf's energy exceeds the tree's
    least; returns the largest absolute value of a leaf. Shapes: energy (leaves,), set_least (sets,)."""
    a, b, largest = live.slot_to[t], live.slot_to[t + 1], 0.0
    width, s0 = f.slot_from[t + 1] - f.slot_from[t], f.slot_from[t]
    for u in range(live.used_to[a], live.used_to[b]):
        set_least[live.used[u]] = INF
    for n in range(live.leaf_to[t], live.leaf_to[t + 1]):
        leaf = live.leaf[n]
        at, e = f.table_from[t] + (leaf - f.leaf_from[t]) * width - s0, energy[leaf]
        largest = max(largest, abs(f.value[leaf]))
        for m in range(a, b):
            z = f.table[at + live.slot[m]]
            set_least[z] = min(set_least[z], e)
        energy[leaf] = e - best
    return largest


@entry
def take_out(live, bound, slack, energy, loss, target, alive, leaf_alive):
    """Take out cells and leaves that hold nothing below the target; returns how many. Shapes: energy,
    leaf_alive (leaves,), loss (3, cells), alive (cells,)."""
    count = 0
    for n in range(live.cell_to[-1]):
        c = live.cell[n]
        if bound + loss[0, c] - slack >= target:
            alive[c] = False
            count += 1
    for n in range(live.leaf_to[-1]):
        leaf = live.leaf[n]
        if bound + energy[leaf] - slack >= target:
            leaf_alive[leaf] = False
            count += 1
    return count


@compiled
def _spread(live, i, values, best, loss):
    """Add to ``loss`` how much one term of the bound, ``values`` by cell with least ``best``, rises if axis i
    is left with one cell, with the cells up to it, or with those from it on. Shapes: values (cells,), loss
    (3, cells)."""
    a, b = live.cell_to[i], live.cell_to[i + 1]
    below, above = INF, INF
    for n in range(a, b):
        c = live.cell[n]
        below = min(below, values[c] - best)
        loss[0, c] += max(values[c] - best, 0.0)
        loss[1, c] += max(below, 0.0)
    for m in range(b - a):
        c = live.cell[b - 1 - m]
        above = min(above, values[c] - best)
        loss[2, c] += max(above, 0.0)


@entry
def splits(live, missing, loss, torn):
    """For every axis that has more than one cell left, its best split: the axes, and the last cells of the
    lower halves, the best split first; (splits,) each.

    At good prices neither half's bound rises where the trees' cheapest leaves lie on both sides; what they
    disagree about still tells there. The smaller half should not be a single cell where only its own bound
    rises: the other half would be hardly smaller than the whole.

    Parameters
    ----------
    missing
        How far the bound is from the target.
    loss
        What :func:`assess` has written, (3, cells).
    torn
        How many trees disagree about the threshold after each living cell
        (:func:`~milp_recourse.engine.forests.passing.sweep`), (cells,).
    """
    top, axes = max(missing, 1e-300), len(live.cell_to) - 1
    merit, cell = np.full(axes, -1.0), np.zeros(axes, np.int32)
    for i in range(axes):
        a, b = live.cell_to[i], live.cell_to[i + 1]
        for n in range(a, b - 1):
            c = live.cell[n]
            below = min(loss[1, c] / top, 1.0) + FLAT
            above = min(loss[2, live.cell[n + 1]] / top, 1.0) + FLAT
            value = (torn[c] + SLIGHT) * below * above * (EVEN + min(n + 1 - a, b - 1 - n) / (b - a))
            if value > merit[i]:
                merit[i], cell[i] = value, c
    best_first = np.argsort(-merit, kind="mergesort")[: np.count_nonzero(merit >= 0.0)]
    return best_first, cell[best_first]
