"""The largest value of a line over the part of a box that costs at most a budget: never too small, and what
its formula says.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from milp_recourse.engine.networks.lever_arrays import COLUMN, INTERVAL, LEVER
from tests.helpers.processes import uncompiled


def drawn(rng: np.random.Generator, squares: bool, d: int):
    """d levers (the last one with labels, which may not be taken where costs are squares alone), a box, a cut
    with its shares, and a line; half of them with kinks at 0."""
    labels = int(rng.integers(2, 4))
    start = np.array([*range(d), d - 1 + labels])
    lever, column, box = np.zeros(d, LEVER), np.zeros(start[-1], COLUMN), np.zeros(d, INTERVAL)
    lever[-1].label = 1.0
    for name, share in (("fixed", 0.3), ("linear", 0.7), ("square", 0.4), ("largest", 0.4), ("least", 0.2)):
        lever[name][:-1] = rng.uniform(0.1, 1.0, d - 1) * (rng.random(d - 1) < share)
    column["cost"][d - 1 :], column["top"][d - 1 :] = rng.uniform(0, 1, labels), rng.uniform(0, 1, labels)
    lever["down"][:-1] = np.where(rng.random(d - 1) < 0.5, 1.0, rng.uniform(0.1, 4.0, d - 1))
    box["lo"], box["hi"] = np.sort(rng.normal(0.0, 1.0, (2, d)), axis=0)
    box["mode"] = rng.choice([0.0, 1.0, 1.0, 2.0], d)
    allowed = np.ones(start[-1], dtype=np.uint8)
    allowed[-1] = rng.random() < 0.5
    slacks = SimpleNamespace(budget=1e-13, tiny=1e-300)
    p = SimpleNamespace(start=start, lever=lever, column=column, slacks=slacks)
    cut = rng.normal(0.0, 0.3, start[-1]) * (rng.random() < 0.5)
    shares = rng.dirichlet(np.ones(d)) * (rng.random() < 0.5) * (not squares)
    if squares:
        for name in ("fixed", "linear", "largest", "least"):
            lever[name] = 0.0
        lever["square"], lever[-1].label = rng.uniform(0.1, 1.0, d), 0.0
        lever[-1].down = 1.0
        start[-1] = d
        either = box["mode"] == 0.0  # resting is taken for a part of the interval, which it mostly is
        box["lo"][either] = np.minimum(box["lo"][either], 0)
        box["hi"][either] = np.maximum(box["hi"][either], 0)
        cut, allowed, column = cut[:d], allowed[:d], column[:d]
        p.column = column
    kinks = rng.normal(0.0, 0.3, (2, d)) * (rng.random() < 0.5)
    line = np.append(rng.normal(0.0, 1.0, start[-1]), kinks[0])
    return p, box, allowed, np.append(cut, kinks[1]), shares, line


def working(box, allowed, line, cut, shares, const: float, count: int = 3):
    """What a search's memory holds of ``count`` lines, of one more, and of an inherited cut."""
    from milp_recourse.engine.compiling import allocated
    from milp_recourse.engine.networks.work import Columns, Lines, Points

    columns, points = allocated(Columns, L=len(line)), allocated(Points, d=len(shares))
    columns.line[:], columns.cut[:], points.cut_shares[:] = line, cut, shares
    lines, now = allocated(Lines, L=len(line), **{"2 n": count}), SimpleNamespace(cut_const=const)
    return SimpleNamespace(box=box, allowed=allowed, columns=columns, points=points, lines=lines, now=now)


def points(rng: np.random.Generator, p, box, allowed, cut, shares, line, count: int):
    """Values of the line, and of r, at points of the box, its corners among them."""
    values, pays = np.zeros(count), np.zeros(count)
    for i in range(len(box)):
        if p.lever[i].label > 0.0:
            own = rng.choice(np.flatnonzero(allowed[p.start[i] :]), count) + p.start[i]
            values += line[own]
            pays += p.column["cost"][own] + shares[i] * p.column["top"][own] - cut[own]
            continue
        if box[i].mode == 2:
            continue
        u = rng.uniform(box[i].lo, box[i].hi, count)
        end = rng.random(count)
        u = np.where(end < 0.2, box[i].lo, np.where(end < 0.4, box[i].hi, u))
        if box[i].lo <= 0.0 <= box[i].hi:
            u[end > 0.8] = 0.0
        fixed = np.full(count, p.lever[i].fixed + shares[i] * p.lever[i].least)
        if box[i].mode == 0:
            rests = rng.random(count) < 0.3
            u[rests], fixed[rests] = 0.0, 0.0
        values += line[i] * u + line[p.start[-1] + i] * abs(u)
        size = np.where(u > 0.0, u, -p.lever[i].down * u)
        pays += fixed + (p.lever[i].linear + shares[i] * p.lever[i].largest) * size
        pays += p.lever[i].square * size * size - cut[i] * u - cut[p.start[-1] + i] * abs(u)
    return values, pays


def check() -> None:
    """Random levers, boxes, cuts; at its theta the bound is the formula's maximum, to what points miss. Run
    where nothing is compiled."""
    from milp_recourse.engine.networks.linear_bounds import keep_line, least_paid, sizes_over_box, within

    rng = np.random.default_rng(0)
    tighter = 0
    for trial in range(250):
        d = int(rng.integers(2, 5) if trial < 200 else rng.integers(9, 25))  # of many, more thetas are tried
        p, box, allowed, cut, shares, line = drawn(rng, trial % 3 == 0, d)
        values, pays = points(rng, p, box, allowed, cut, shares, line, 4000)
        limit, const = float(np.quantile(pays, rng.random() * 0.6)), 0.2
        top = float(values.max()) + const + 0.1
        w = working(box, allowed, line, cut, shares, 0.3)
        paid = least_paid(p, w)
        assert paid[0] <= pays.min() + 1e-12
        digits = 3 * (trial % 2)
        spread = const + sizes_over_box(p, w, line)
        keep_line(w, 1, 0, 1.0, const, top, spread)
        w.lines.terms[:, 0], w.lines.const[0] = rng.normal(size=len(line)), 0.1
        within(p, w, 2, limit - 0.3, paid, digits)
        bound, theta = float(w.lines.bound[1]), float(w.lines.theta[1])
        inside = pays <= limit
        assert bound <= top
        assert bound >= values[inside].max(initial=-math.inf) + const - 1e-12
        assert not digits or float(f"{theta:.3g}") == theta or theta == int(theta) >= 1000
        if theta > 0.0:
            tighter += 1
            there = theta * limit + float((values - theta * pays).max()) + const
            assert there - 1e-12 <= bound
            assert d > 4 or bound <= there + 0.2  # the points are samples, of many levers few
    assert tighter > 50


@pytest.mark.long
def test_nothing_that_is_paid_for_is_above_the_bound() -> None:
    """Of random lines over random boxes, a cut among them or not, theta in full or at three digits."""
    uncompiled("from tests.engine.networks.test_within import check; check()")


def check_best() -> None:
    """Where costs are proportional to changes, the best that the budget buys is known: lever after lever, in
    the order of what the line gains for the money. Run where nothing is compiled."""
    from milp_recourse.engine.networks.linear_bounds import least_paid, within

    rng, d, count = np.random.default_rng(1), 23, 40
    lever, box = np.zeros(d, LEVER), np.zeros(d, INTERVAL)
    lever["linear"], lever["down"], box["mode"] = rng.uniform(0.5, 2.0, d), 1.0, 1.0
    box["lo"], box["hi"] = -rng.uniform(0.1, 1.0, d), rng.uniform(0.1, 1.0, d)
    slacks = SimpleNamespace(budget=1e-13, tiny=1e-300)
    p = SimpleNamespace(start=np.arange(d + 1), lever=lever, slacks=slacks, column=np.zeros(d, COLUMN))
    w = working(box, np.ones(d, dtype=np.uint8), np.zeros(2 * d), np.zeros(2 * d), np.zeros(d), 0.0, count)
    lines = rng.normal(size=(d, count)) ** 3
    w.lines.terms[:d], w.lines.spread[:], budget = lines, 1.0, 2.0
    ends = np.where(lines > 0.0, box["hi"][:, None], -box["lo"][:, None])
    w.lines.top[:] = (abs(lines) * ends).sum(axis=0)
    within(p, w, count, budget, least_paid(p, w), 0)
    for m in range(count):
        order = np.argsort(-abs(lines[:, m]) / lever["linear"])
        price = (lever["linear"] * ends[:, m])[order]
        bought = np.clip(budget - (np.cumsum(price) - price), 0.0, price)
        best = float((bought * (abs(lines[:, m]) / lever["linear"])[order]).sum())
        assert best - 1e-9 <= w.lines.bound[m] <= 1.04 * best


def test_lines_are_bounded_by_about_the_best_that_the_budget_buys() -> None:
    """To a few percent; where 23 levers share the budget, a bad theta loses a third."""
    uncompiled("from tests.engine.networks.test_within import check_best; check_best()")


def check_spread(seeds: int) -> None:
    """The sums of absolute terms that a search passes on cover those of the lines; run where nothing is
    compiled. Chords' slopes are rounded by up to 2^-32, far less than the factor two in every slack."""
    from milp_recourse.engine.networks import linear_bounds, propose
    from milp_recourse.engine.networks.problem_arrays import why_not
    from tests.helpers.generators import Style, random_instance

    lines, within = 0, linear_bounds.within

    def watched(p, w, count, *rest):
        nonlocal lines
        for m in range(count):
            lines += 1
            terms = abs(w.lines.const[m]) + linear_bounds.sizes_over_box(p, w, w.lines.terms[:, m])
            assert terms <= w.lines.spread[m] * (1.0 + 2.0**-20) + 1e-30
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
