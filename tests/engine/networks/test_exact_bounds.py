"""What the search's bounds claim, in rational arithmetic: rounding puts them on the safe side.

Each check is made again without the slack for rounding, and then has to find claims that are false.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from tests.engine.networks.test_within import drawn, working
from tests.helpers.processes import uncompiled

TRIALS = 300


def least_term(p, box, allowed, i: int, gain: list[Fraction], share: Fraction, theta: Fraction) -> Fraction:
    """The least of theta c_i(u) + share top_i(u) - gain u over lever i's part of a box."""

    s = int(p.start[i])
    if p.lever[i].label > 0.0:
        return min(
            theta * Fraction(p.column[c].cost) + share * Fraction(p.column[c].top) - gain[c]
            for c in range(s, int(p.start[i + 1]))
            if allowed[c]
        )
    rests = [Fraction(0)] if box[i].mode != 1 else []
    if box[i].mode == 2:
        return rests[0]
    low, high = Fraction(box[i].lo), Fraction(box[i].hi)
    names = "fixed", "linear", "square", "largest", "least", "down"
    fixed, linear, square, largest, least, down = (Fraction(p.lever[i][name]) for name in names)
    rate, square, fixed = theta * linear + share * largest, theta * square, theta * fixed + share * least
    places, kink = {low, high, min(max(Fraction(0), low), high)}, gain[int(p.start[-1]) + i]
    slopes = (gain[s] + kink - rate, 1), (gain[s] - kink + down * rate, down**2)
    for slope, bend in slopes if square else ():
        places.add(min(max(slope / (2 * square * bend), low), high))
    sizes = {u: u if u > 0 else -down * u for u in places}
    gains = {u: gain[s] * u + kink * abs(u) for u in places}
    return min([*rests, *(fixed + (rate + square * sizes[u]) * sizes[u] - gains[u] for u in places)])


def close(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Numbers that are large beside what is left of their sums: each with nearly its negative after it."""
    large = values * 10.0 ** rng.integers(0, 9)
    return np.stack([large, -large * (1.0 + 1e-9 * rng.normal(size=large.shape))])


def dual_values(slack: float) -> int:
    """How many Lagrangian bounds are above what their formula says."""
    from milp_recourse.engine.compiling import allocated
    from milp_recourse.engine.networks.interior import dual_value
    from milp_recourse.engine.networks.work import Columns

    rng, false = np.random.default_rng(1), 0
    for trial in range(TRIALS):
        p, box, allowed, _, shares, _ = drawn(rng, trial % 3 == 0, int(rng.integers(2, 5)))
        p.slacks = SimpleNamespace(dual=slack, tiny=0.0)
        columns, d = int(p.start[-1]) + len(shares), len(shares)
        rows = close(rng, rng.normal(size=(1, columns)))[:, 0]
        consts = close(rng, rng.normal(size=1))[:, 0]
        multipliers = np.array([rng.random(), 0.0])
        multipliers[1] = multipliers[0] * (1.0 + 1e-10 * rng.random())
        w = SimpleNamespace(box=box, allowed=allowed, columns=allocated(Columns, L=columns))
        value = dual_value(p, w, rows, consts, 2, multipliers, shares, np.zeros(d))
        lam = [Fraction(v) for v in multipliers]
        gain = [sum((lam[r] * Fraction(rows[r, c]) for r in range(2)), Fraction(0)) for c in range(columns)]
        exact = -sum((lam[r] * Fraction(consts[r]) for r in range(2)), Fraction(0))
        for i in range(d):
            exact += least_term(p, box, allowed, i, gain, Fraction(shares[i]), Fraction(1))
        false += Fraction(value) > exact
        size = abs(multipliers @ np.abs(consts)) + float(np.abs(w.columns.size).sum()) * 4.0 + 4.0 * d
        assert value >= float(exact) - 1e-12 * size  # and is not needlessly low
    return false


def within_budgets(slack: float) -> int:
    """How many bounds of lines within a budget are below what their formula says at their theta."""
    from milp_recourse.engine.networks.linear_bounds import keep_line, least_paid, sizes_over_box, within

    rng, false, used = np.random.default_rng(2), 0, 0
    for trial in range(TRIALS):
        p, box, allowed, cut, shares, line = drawn(rng, trial % 3 == 0, int(rng.integers(2, 5)))
        p.slacks = SimpleNamespace(budget=slack, tiny=0.0)
        line = line * 10.0 ** rng.integers(0, 9)
        const = -float(np.abs(line).sum()) * rng.random()  # what cancels leaves few digits
        w = working(box, allowed, line, cut, shares, 0.1)
        paid = least_paid(p, w)
        budget = paid[0] + rng.random() - 0.1
        keep_line(w, 0, 0, 1.0, const, 1e300, abs(const) + sizes_over_box(p, w, line))
        within(p, w, 1, budget, paid, 0)
        bound, theta = (Fraction(v) for v in (w.lines.bound[0], w.lines.theta[0]))
        if not theta:
            continue
        used += 1
        exact = Fraction(const) + theta * (Fraction(budget) + Fraction(0.1))
        gain = [Fraction(v) + theta * Fraction(c) for v, c in zip(line, cut, strict=True)]
        for i in range(len(shares)):
            exact -= least_term(p, box, allowed, i, gain, theta * Fraction(shares[i]), theta)
        false += bound < exact
    assert used >= TRIALS // 4, used
    return false


def check() -> None:
    """Run where nothing is compiled."""
    from milp_recourse.engine.networks.numerics import slacks

    slack = slacks([], 1, 8, 4, 0, 0, 0)
    for bounds, own in ((dual_values, slack.dual), (within_budgets, slack.budget)):
        assert bounds(own) == 0, bounds
        assert bounds(0.0) >= 10, bounds  # so that these sums do show what rounding does


def test_bounds_hold_in_rational_arithmetic_and_would_not_without_their_slacks() -> None:
    """Of the cost by a Lagrangian, and of a line within a budget; sums that cancel among them."""
    uncompiled("from tests.engine.networks.test_exact_bounds import check; check()")
