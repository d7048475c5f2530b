"""The largest value of a line over the part of a box that costs at most a budget: never too small, and what
its formula says.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from milp_recourse.engine.networks.layout import (
    COST,
    DOWN,
    FIXED,
    HI,
    LABEL,
    LARGEST,
    LEAST,
    LINEAR,
    LO,
    MODE,
    SQUARE,
    TOP,
    TOP_RATE,
)
from tests.helpers.processes import uncompiled


def drawn(rng: np.random.Generator, squares: bool):
    """Levers (the last one with labels, which may not be taken where costs are squares alone), a box, a cut
    with its shares, a line and a budget."""
    d, labels = int(rng.integers(1, 4)) + 1, int(rng.integers(2, 4))
    start = np.array([*range(d), d - 1 + labels])
    lever, column, box = np.zeros((TOP_RATE + 1, d)), np.zeros((2, start[-1])), np.zeros((3, d))
    lever[LABEL, -1] = 1.0
    for row, share in ((FIXED, 0.3), (LINEAR, 0.7), (SQUARE, 0.4), (LARGEST, 0.4), (LEAST, 0.2)):
        lever[row, :-1] = rng.uniform(0.1, 1.0, d - 1) * (rng.random(d - 1) < share)
    column[COST, d - 1 :], column[TOP, d - 1 :] = rng.uniform(0, 1, labels), rng.uniform(0, 1, labels)
    lever[DOWN, :-1] = np.where(rng.random(d - 1) < 0.5, 1.0, rng.uniform(0.1, 4.0, d - 1))
    box[LO], box[HI] = np.sort(rng.normal(0.0, 1.0, (2, d)), axis=0)
    box[MODE] = rng.choice([0.0, 1.0, 1.0, 2.0], d)
    allowed = np.ones(start[-1], dtype=np.uint8)
    allowed[-1] = rng.random() < 0.5
    p = SimpleNamespace(start=start, lever=lever, column=column, budget=1e-13, tiny=1e-300)
    cut = rng.normal(0.0, 0.3, start[-1]) * (rng.random() < 0.5)
    shares = rng.dirichlet(np.ones(d)) * (rng.random() < 0.5) * (not squares)
    if squares:
        lever[[FIXED, LINEAR, LARGEST, LEAST]], lever[SQUARE], lever[LABEL, -1] = (
            0.0,
            rng.uniform(0.1, 1.0, d),
            0.0,
        )
        lever[DOWN, -1] = 1.0
        start[-1] = d
        either = box[MODE] == 0.0  # resting is taken for a part of the interval, which it mostly is
        box[LO, either], box[HI, either] = np.minimum(box[LO, either], 0), np.maximum(box[HI, either], 0)
        cut, allowed, column = cut[:d], allowed[:d], column[:, :d]
        p.column = column
    return p, box, allowed, cut, shares, rng.normal(0.0, 1.0, start[-1])


def points(rng: np.random.Generator, p, box, allowed, cut, shares, line, count: int):
    """Values of the line, and of r, at points of the box, its corners among them."""
    values, pays = np.zeros(count), np.zeros(count)
    for i in range(len(box[0])):
        if p.lever[LABEL, i] > 0.0:
            own = rng.choice(np.flatnonzero(allowed[p.start[i] :]), count) + p.start[i]
            values += line[own]
            pays += p.column[COST, own] + shares[i] * p.column[TOP, own] - cut[own]
            continue
        if box[MODE, i] == 2:
            continue
        u = rng.uniform(box[LO, i], box[HI, i], count)
        end = rng.random(count)
        u = np.where(end < 0.2, box[LO, i], np.where(end < 0.4, box[HI, i], u))
        if box[LO, i] <= 0.0 <= box[HI, i]:
            u[end > 0.8] = 0.0
        fixed = np.full(count, p.lever[FIXED, i] + shares[i] * p.lever[LEAST, i])
        if box[MODE, i] == 0:
            rests = rng.random(count) < 0.3
            u[rests], fixed[rests] = 0.0, 0.0
        values += line[i] * u
        size = np.where(u > 0.0, u, -p.lever[DOWN, i] * u)
        pays += fixed + (p.lever[LINEAR, i] + shares[i] * p.lever[LARGEST, i]) * size
        pays += p.lever[SQUARE, i] * size * size - cut[i] * u
    return values, pays


def check() -> None:
    """Random levers, boxes, cuts; at its theta the bound is the formula's maximum, to what points miss. Run
    where nothing is compiled."""
    from milp_recourse.engine.networks import layout as at
    from milp_recourse.engine.networks.linear_bounds import keep_line, least_paid, sizes_over_box, within

    rng = np.random.default_rng(0)
    tighter = 0
    for trial in range(400):
        p, box, allowed, cut, shares, line = drawn(rng, trial % 3 == 0)
        values, pays = points(rng, p, box, allowed, cut, shares, line, 4000)
        limit, const = float(np.quantile(pays, rng.random() * 0.6)), 0.2
        top = float(values.max()) + const + 0.1
        w = SimpleNamespace(
            box=box,
            allowed=allowed,
            col=np.zeros((7, len(line))),
            at=np.zeros((11, len(shares))),
            scalar=np.zeros(14),
            lines=np.zeros((14 + len(line), 3)),
        )
        w.col[at.LINE], w.col[at.CUT], w.at[at.CUT_SHARES], w.scalar[at.CUT_CONST] = line, cut, shares, 0.3
        paid = least_paid(p, w)
        assert paid[0] <= pays.min() + 1e-12
        digits = 3 * (trial % 2)
        spread = const + sizes_over_box(p, w, line)
        keep_line(w, 1, 0, 1.0, const, top, spread)
        w.lines[:, 0] = rng.normal(size=len(w.lines))  # another line is of no account
        within(p, w, 2, limit - 0.3, paid, digits)
        bound, theta = w.lines[[at.BOUND, at.THETA_OF], 1].tolist()
        inside = pays <= limit
        assert bound <= top
        assert bound >= values[inside].max(initial=-math.inf) + const - 1e-12
        assert not digits or float(f"{theta:.3g}") == theta or theta == int(theta) >= 1000
        if theta > 0.0:
            tighter += 1
            there = theta * limit + float((values - theta * pays).max()) + const
            assert there - 1e-12 <= bound <= there + 0.2  # the points are samples
    assert tighter > 100


def test_nothing_that_is_paid_for_is_above_the_bound() -> None:
    """Of random lines over random boxes, a cut among them or not, theta in full or at three digits."""
    uncompiled("from tests.engine.networks.test_within import check; check()")


def check_spread(seeds: int) -> None:
    """The sums of absolute terms that a search passes on cover those of the lines; run where nothing is
    compiled. Chords' slopes are rounded by up to 2^-32, far less than the factor two in every slack."""
    from milp_recourse.engine.networks import linear_bounds, propose
    from milp_recourse.engine.networks.problem_arrays import why_not
    from tests.helpers.generators import Style, random_instance

    lines, within = 0, linear_bounds.within

    def watched(p, w, count, *rest):
        nonlocal lines
        at = linear_bounds.at
        for m in range(count):
            lines += 1
            terms = abs(w.lines[at.CONST_OF, m]) + linear_bounds.sizes_over_box(p, w, w.lines[at.TERMS :, m])
            assert terms <= w.lines[at.SPREAD_OF, m] * (1.0 + 2.0**-20) + 1e-30
        within(p, w, count, *rest)

    linear_bounds.within = watched
    for seed in range(seeds):
        instance = random_instance(seed, Style(levers=4, depth=3))
        if why_not(instance) is None and instance.levers:
            propose.Run(instance).examine(12)
    assert lines > 10 * seeds


def test_the_absolute_terms_of_a_line_are_those_of_its_unit() -> None:
    """Of random networks and causal models, with curves and kinks."""
    uncompiled("from tests.engine.networks.test_within import check_spread; check_spread(60)")
