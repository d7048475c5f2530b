"""A step of the interior point solves Newton's equations, whichever of the two systems it is taken from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tests.helpers.processes import uncompiled


def steps(trials: int) -> None:
    """Random iterates, by the functions themselves against a dense solve; run where nothing is compiled."""
    from milp_recourse.engine.compiling import allocated
    from milp_recourse.engine.networks import interior
    from milp_recourse.engine.networks.work import ConvexRows, Inequalities, Variables

    rng, ways = np.random.default_rng(0), [0, 0]
    for _ in range(trials):
        m, k, bends = (int(n) for n in rng.integers(1, 7, 3))
        every = k + bends
        size = max(m, every)
        vec, rows_of = allocated(Variables, v=m), allocated(ConvexRows, k=every)
        pair = allocated(Inequalities, **{"2 v + k": 2 * m + k})
        pair.slack[:], pair.multiplier[:] = rng.uniform(0.05, 2.0, (2, 2 * m + k))
        pair.rest[:] = rng.normal(0, 1, 2 * m + k)
        rows_of.weight[:], rows_of.rp[:] = rng.uniform(0.05, 2.0, every), rng.normal(0, 1, every)
        a = rng.normal(0, 1, (every, m)) * (rng.random((every, m)) < 0.8)
        vec.q[:], vec.h[:] = rng.uniform(0.0, 2.0, m) * (rng.random(m) < 0.5), rng.normal(0, 1, m)
        rate = pair.multiplier / pair.slack
        stiff, pull = 2.0 * vec.q + rate[:m] + rate[m : 2 * m], vec.h.copy()
        rows, curves = a[:k], a[k:]
        slack, price, rest = pair.slack[2 * m :], pair.multiplier[2 * m :], pair.rest[2 * m :]
        dense = np.block(
            [
                [np.diag(stiff) + curves.T @ np.diag(rows_of.weight[k:]) @ curves, -rows.T],
                [rows, np.diag(slack / price)],
            ]
        )
        wanted = np.linalg.solve(dense, np.concatenate([pull, rest / price - rows_of.rp[:k]]))
        w = SimpleNamespace(variables=vec, pair=pair, convex_rows=rows_of, a=a, m=np.zeros((size, size)))
        interior._factored(w, m, k, every)
        interior._step(w, m, k, every)
        made = np.concatenate([pair.slack_step[:m], pair.multiplier_step[2 * m :]])
        assert np.abs(made - wanted).max() <= 1e-8 * (1.0 + np.abs(wanted).max())
        moved = rows @ pair.slack_step[:m] + rows_of.rp[:k]
        assert np.abs(pair.slack_step[2 * m :] - moved).max() <= 1e-7 * (1.0 + np.abs(moved).max())
        ways[m < every] += 1
    assert min(ways) > trials // 10


def test_both_systems_give_newtons_step() -> None:
    """Of one to six variables and rows, with as many rows of curvature: the smaller system is solved."""
    uncompiled("from tests.engine.networks.test_newton_step import steps; steps(600)")
