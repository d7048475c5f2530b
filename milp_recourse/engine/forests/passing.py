r"""Good prices at once: trees tell each other, axis by axis, what the axis' cells cost them at least.

With the prices of :mod:`~milp_recourse.engine.forests.prices`, let :math:`m_t(k)` be the least energy of the
leaves of tree t that cell k of an axis can lead to. What a cell costs all of them,

.. math:: \theta(k) = c(k) - \sum_t p_t(k) + \sum_t m_t(k)

is shared out evenly: the prices of this axis become such that every one of its n trees has
:math:`m_t(k) = \min \theta / n`, the minimum taken over the cells that the tree does not tell from k. At one
multiplier no such pass lowers the bound, as the least :math:`\theta` is at least the sum of what its parts
had at least. A *sweep* passes every axis once, forwards or backwards; the multiplier is moved between sweeps.
Sweeps come near the bound of the linear program sooner than steps along subgradients do.

Before the sharing, trees may be cheapest elsewhere than the axis as a whole: the thresholds between the two
are those that the trees *disagree* about, and a node is split at one of these.

f, live and laid are the factor graph, what is left of it, and its layout (:class:`LaidOut`). t numbers trees,
i axes, and k classes; n listed slots, j living leaves, m living cells, u needed sets and r runs, all in the
order of the layout.

References
----------
Werner (2007), https://doi.org/10.1109/TPAMI.2007.1036 (max-sum diffusion: even shares);
Kolmogorov (2015), https://doi.org/10.1109/TPAMI.2014.2363465 (message passing in a fixed order)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import counting as compiled
from milp_recourse.engine.forests.factors import Array, Ints

INF = np.inf

SLOWEST = 2.0**-8
"""The least share of the multiplier by which it is moved between sweeps."""

FADE = 0.8
"""Disagreements of the sweep before count so much."""


class LaidOut(NamedTuple):
    """What is left of a factor graph, in the order in which prices are improved.

    Listed slots, living leaves, living cells and needed sets are numbered by their places in the lists of
    :class:`~milp_recourse.engine.forests.living.Live`.

    Attributes
    ----------
    tree_of
        The tree of each slot, (listed slots,).
    needs_from, needs
        For each slot the sets that its tree's leaves need, leaf after leaf: where they begin, (listed
        slots + 1,), and the sets.
    has_from, has
        The living classes of each needed set: where they begin, (needed sets + 1,), and the classes.
    value
        The leaves' values, (living leaves,).
    run_from, run_first, run_class
        For each slot the runs of cells of one class that follow each other on its axis: where they begin,
        (listed slots + 1,), their first cells, (runs,), and their classes, (runs,).
    by_axis_from, by_axis
        The slots axis by axis: where they begin, (axes + 1,), and the slots, (listed slots,).
    """

    tree_of: Ints
    needs_from: NDArray[np.int64]
    needs: NDArray[np.uint32]
    has_from: NDArray[np.uint32]
    has: NDArray[np.uint32]
    value: Array
    run_from: NDArray[np.int64]
    run_first: Ints
    run_class: Ints
    by_axis_from: Ints
    by_axis: Ints


@compiled
def laid_out(f, live):
    """The arrays of :class:`LaidOut` for what ``live`` lists."""
    trees = len(f.slot_from) - 1
    slots, leaves = live.slot_to[trees], live.leaf_to[trees]
    place, sets, h = np.empty(f.set_from[-1], np.uint32), live.used_to[slots], 0
    has_from, has = np.zeros(sets + 1, np.uint32), np.empty(len(f.member), np.uint32)
    for u in range(sets):
        z = live.used[u]
        place[z] = u
        for m in range(f.member_from[z], f.member_from[z + 1]):
            if live.kept[f.member[m]]:
                has[h] = f.member[m]
                h += 1
        has_from[u + 1] = h
    tree_of, value, needs_from = np.empty(slots, np.int32), np.empty(leaves), np.zeros(slots + 1, np.int64)
    for t in range(trees):
        for n in range(live.slot_to[t], live.slot_to[t + 1]):
            tree_of[n] = t
            needs_from[n + 1] = needs_from[n] + live.leaf_to[t + 1] - live.leaf_to[t]
    needs = np.empty(needs_from[slots], np.uint32)
    for t in range(trees):
        a, b, width = live.slot_to[t], live.slot_to[t + 1], f.slot_from[t + 1] - f.slot_from[t]
        for j in range(live.leaf_to[t], live.leaf_to[t + 1]):
            leaf, nth = live.leaf[j], j - live.leaf_to[t]
            value[j] = f.value[leaf]
            at = f.table_from[t] + (leaf - f.leaf_from[t]) * width - f.slot_from[t]
            for n in range(a, b):
                needs[needs_from[n] + nth] = place[f.table[at + live.slot[n]]]
    runs, grouped = _runs(f, live, tree_of), _by_axis(f, live)
    return LaidOut(tree_of, needs_from, needs, has_from, has[:h], value, *runs, *grouped)


@compiled
def _runs(f, live, tree_of):
    """Where each slot's runs begin in the list of runs, (listed slots + 1,), their first cells, (runs,), and
    their classes, (runs,). Shape: tree_of (listed slots,)."""
    slots, most = len(tree_of), 0
    for n in range(slots):
        i = f.slot_axis[live.slot[n]]
        most += live.cell_to[i + 1] - live.cell_to[i]
    run_from, r = np.zeros(slots + 1, np.int64), 0
    run_first, run_class = np.empty(most, np.int32), np.empty(most, np.int32)
    for n in range(slots):
        s = live.slot[n]
        i, first, last = f.slot_axis[s], f.class_from[s], -1
        for m in range(live.cell_to[i], live.cell_to[i + 1]):
            k = first + f.classes[tree_of[n], live.cell[m]]
            if k != last:
                run_first[r], run_class[r], last = m, k, k
                r += 1
        run_from[n + 1] = r
    return run_from, run_first[:r], run_class[:r]


@compiled
def _by_axis(f, live):
    """Where each axis begins in the list of slots by axis, (axes + 1,), and this list, (listed slots,)."""
    axes, slots = len(live.cell_to) - 1, live.slot_to[-1]
    begins, ordered = np.zeros(axes + 1, np.int32), np.empty(slots, np.int32)
    for n in range(slots):
        begins[f.slot_axis[live.slot[n]] + 1] += 1
    for i in range(axes):
        begins[i + 1] += begins[i]
    at = begins[:-1].copy()
    for n in range(slots):
        i = f.slot_axis[live.slot[n]]
        ordered[at[i]] = n
        at[i] += 1
    return begins, ordered


@compiled
def left_over(live, laid, paid, price, rest):
    """rest (living cells,) = paid (cells,) - sum of the trees' prices. Shape: price (classes,)."""
    rest[:] = 0.0
    for n in range(len(laid.tree_of)):
        before = 0.0
        for r in range(laid.run_from[n], laid.run_from[n + 1]):
            now = price[laid.run_class[r]]
            rest[laid.run_first[r]] += before - now
            before = now
    for i in range(len(live.cell_to) - 1):
        _run_on(live, i, rest)
    for m in range(live.cell_to[-1]):
        rest[m] += paid[live.cell[m]]


@compiled
def _run_on(live, i, steps):
    """Replace what every cell of axis i has more than the one before by what it has: steps (living cells or
    more,)."""
    for m in range(live.cell_to[i] + 1, live.cell_to[i + 1]):
        steps[m] += steps[m - 1]


@compiled
def price_sets(laid, price, begin, end, set_price):
    """Prices of the needed sets from ``begin`` to ``end`` (exclusive), each the least of its classes', into
    set_price (needed sets,). Shape: price (classes,)."""
    for u in range(begin, end):
        least = INF
        for h in range(laid.has_from[u], laid.has_from[u + 1]):
            least = min(least, price[laid.has[h]])
        set_price[u] = least


@compiled
def add_prices(live, laid, n, set_price, energy):
    """Add to the energies of a slot's leaves what their sets cost. Shapes: set_price (needed sets,), energy
    (living leaves,)."""
    t, needs = laid.tree_of[n], laid.needs[laid.needs_from[n] : laid.needs_from[n + 1]]
    own = energy[live.leaf_to[t] : live.leaf_to[t + 1]]
    for j in range(len(own)):
        own[j] += set_price[needs[j]]


@compiled
def fill_energies(live, laid, mu, set_price, energy):
    """Fill in energy (living leaves,): what the leaves' sets cost, by set_price (needed sets,), less mu times
    their values."""
    for j in range(len(laid.value)):
        energy[j] = -mu * laid.value[j]
    for n in range(len(laid.tree_of)):
        add_prices(live, laid, n, set_price, energy)


@compiled
def least_of(energy, a, b):
    """The place of the least of the entries a to b (exclusive) of energy (b or more,)."""
    least, place = INF, a
    for j in range(a, b):
        if energy[j] < least:
            least, place = energy[j], j
    return place


@compiled
def sweep(f, live, laid, paid, mu, goal, price, target, sweeps, turn, torn):
    """Improve prices in place by at most so many sweeps; returns the best bound (not rounded down), its
    multiplier, and ``turn``.

    Parameters
    ----------
    paid
        What cells cost, (cells,).
    price
        The prices, (classes,).
    target
        The bound to reach; sweeps end there.
    turn
        The share of the multiplier by which it is moved between sweeps; 0: it stays. It is halved when the
        direction changes, down to :data:`SLOWEST`.
    torn
        For every living cell, how many trees disagree about the threshold after it, by the last sweeps,
        (cells,); updated.
    """
    axes, sets = len(live.cell_to) - 1, live.used_to[live.slot_to[-1]]
    rest, set_price, energy = np.empty(live.cell_to[-1]), np.empty(sets), np.empty(len(laid.value))
    low, least, theta = np.empty(sets), np.empty(f.class_from[-1]), np.empty(live.cell_to[-1])
    apart = np.empty(live.cell_to[-1] + 1)
    left_over(live, laid, paid, price, rest)
    price_sets(laid, price, 0, sets, set_price)
    fill_energies(live, laid, mu, set_price, energy)
    best, best_mu, best_price, missed = -INF, mu, price.copy(), 0.0
    for round_ in range(sweeps):
        apart[:] = 0.0
        for step in range(axes):
            i = step if round_ % 2 == 0 else axes - 1 - step
            if laid.by_axis_from[i] < laid.by_axis_from[i + 1]:
                _add_up(f, live, laid, i, rest, price, set_price, energy, low, least, theta)
                _disagree(live, laid, i, theta, least, price, apart)
                _share_out(f, live, laid, i, theta, least, rest, price, set_price, low, energy)
        _note(live, apart, torn)
        total, miss = _bound(live, laid, mu, goal, rest, energy)
        if total > best:
            best, best_mu = total, mu
            best_price[:] = price
        if best >= target:
            break
        if miss * missed < 0.0:
            turn = max(0.5 * turn, min(turn, SLOWEST))
        missed, before = miss, mu
        mu *= 1.0 + (turn if miss > 0.0 else -turn)
        for j in range(len(energy)):
            energy[j] -= (mu - before) * laid.value[j]
    price[:] = best_price
    return best, best_mu, turn


@compiled
def _add_up(f, live, laid, i, rest, price, set_price, energy, low, least, theta):
    """theta = what a cell of axis i costs all trees; ``least`` gets every class' least energy without its
    price, and ``low`` the least energy of every set's leaves. Shapes: rest, theta (living cells,), price,
    least (classes,), set_price, low (needed sets,), energy (living leaves,)."""
    a, b = live.cell_to[i], live.cell_to[i + 1]
    theta[a:b] = 0.0
    for o in range(laid.by_axis_from[i], laid.by_axis_from[i + 1]):
        n = laid.by_axis[o]
        s, t, needs = live.slot[n], laid.tree_of[n], laid.needs[laid.needs_from[n] : laid.needs_from[n + 1]]
        own = energy[live.leaf_to[t] : live.leaf_to[t + 1]]
        low[live.used_to[n] : live.used_to[n + 1]] = INF
        for j in range(len(own)):
            low[needs[j]] = min(low[needs[j]], own[j])
        for k in range(f.class_from[s], f.class_from[s + 1]):
            least[k] = INF
        for u in range(live.used_to[n], live.used_to[n + 1]):
            without = low[u] - set_price[u]
            for h in range(laid.has_from[u], laid.has_from[u + 1]):
                least[laid.has[h]] = min(least[laid.has[h]], without)
        before = 0.0
        for r in range(laid.run_from[n], laid.run_from[n + 1]):
            now = least[laid.run_class[r]] + price[laid.run_class[r]]
            theta[laid.run_first[r]] += now - before
            before = now
    _run_on(live, i, theta)
    for m in range(a, b):
        theta[m] += rest[m]


@compiled
def _disagree(live, laid, i, theta, least, price, apart):
    """Count the trees of axis i that would rather be elsewhere than in the cell with the least theta:
    ``apart`` gets +1 where the thresholds between the two begin, -1 where they end. Shapes:
    theta (living cells,), least, price (classes,), apart (living cells + 1,)."""
    a, b = live.cell_to[i], live.cell_to[i + 1]
    cell = least_of(theta, a, b)
    for o in range(laid.by_axis_from[i], laid.by_axis_from[i + 1]):
        n = laid.by_axis[o]
        begin, end = laid.run_from[n], laid.run_from[n + 1]
        low, at, here = INF, begin, INF
        for r in range(begin, end):
            energy = least[laid.run_class[r]] + price[laid.run_class[r]]
            if laid.run_first[r] <= cell:
                here = energy
            if energy < low:
                low, at = energy, r
        if here > low:
            first, last = laid.run_first[at], (laid.run_first[at + 1] if at + 1 < end else b) - 1
            apart[min(cell, last)] += 1.0
            apart[max(cell, first)] -= 1.0


@compiled
def _note(live, apart, torn):
    """Add a sweep's disagreements to those of the sweeps before, which count less now. Shapes:
    apart (living cells + 1,), torn (cells,)."""
    for i in range(len(live.cell_to) - 1):
        _run_on(live, i, apart)
    for m in range(live.cell_to[-1]):
        torn[live.cell[m]] = FADE * torn[live.cell[m]] + apart[m]


@compiled
def _share_out(f, live, laid, i, theta, least, rest, price, set_price, low, energy):
    """Give each tree of axis i an even share of theta; what classes leave over stays with the cells. Shapes:
    rest, theta (living cells,), price, least (classes,), set_price, low (needed sets,),
    energy (living leaves,)."""
    a, b = live.cell_to[i], live.cell_to[i + 1]
    share = 1.0 / (laid.by_axis_from[i + 1] - laid.by_axis_from[i])
    rest[a:b] = 0.0
    for o in range(laid.by_axis_from[i], laid.by_axis_from[i + 1]):
        n = laid.by_axis[o]
        s, begin, end = live.slot[n], laid.run_from[n], laid.run_from[n + 1]
        for k in range(f.class_from[s], f.class_from[s + 1]):
            price[k] = INF
        for r in range(begin, end):
            k, last = laid.run_class[r], laid.run_first[r + 1] if r + 1 < end else b
            for m in range(laid.run_first[r], last):
                price[k] = min(price[k], theta[m])
        before = 0.0
        for r in range(begin, end):
            now = share * price[laid.run_class[r]]
            rest[laid.run_first[r]] += before - now
            before = now
        for k in range(f.class_from[s], f.class_from[s + 1]):
            if live.kept[k]:
                price[k] = share * price[k] - least[k]
        low[live.used_to[n] : live.used_to[n + 1]] = set_price[live.used_to[n] : live.used_to[n + 1]]
        price_sets(laid, price, live.used_to[n], live.used_to[n + 1], set_price)
        for u in range(live.used_to[n], live.used_to[n + 1]):
            low[u] = set_price[u] - low[u]
        add_prices(live, laid, n, low, energy)
    _run_on(live, i, rest)
    for m in range(a, b):
        rest[m] += theta[m]


@compiled
def _bound(live, laid, mu, goal, rest, energy):
    """The bound, and by how much the values of the trees' cheapest leaves miss the goal. Shapes:
    rest (living cells,), energy (living leaves,)."""
    total, miss = mu * goal, goal
    for i in range(len(live.cell_to) - 1):
        total += rest[live.cell_to[i] : live.cell_to[i + 1]].min()
    for t in range(len(live.leaf_to) - 1):
        j = least_of(energy, live.leaf_to[t], live.leaf_to[t + 1])
        total += energy[j]
        miss -= laid.value[j]
    return total, miss
