"""A step of the interior point solves Newton's equations, whichever of the two systems it is taken from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tests.helpers.processes import uncompiled


def steps(trials: int) -> None:
    """Random iterates, by the functions themselves against a dense solve; run where nothing is compiled."""
    from milp_recourse.engine.networks import interior
    from milp_recourse.engine.networks import layout as at

    rng, ways = np.random.default_rng(0), [0, 0]
    for _ in range(trials):
        m, k, bends = (int(n) for n in rng.integers(1, 7, 3))
        every = k + bends
        size = max(m, every)
        vec, pair, kvec = np.zeros((8, m)), np.zeros((6, 2 * m + k)), np.zeros((5, every))
        pair[at.SLACK], pair[at.LAMBDA] = rng.uniform(0.05, 2.0, (2, 2 * m + k))
        pair[at.REST] = rng.normal(0, 1, 2 * m + k)
        kvec[at.WEIGHT], kvec[at.RP] = rng.uniform(0.05, 2.0, every), rng.normal(0, 1, every)
        a = rng.normal(0, 1, (every, m)) * (rng.random((every, m)) < 0.8)
        vec[at.Q], vec[at.H] = rng.uniform(0.0, 2.0, m) * (rng.random(m) < 0.5), rng.normal(0, 1, m)
        rate = pair[at.LAMBDA] / pair[at.SLACK]
        stiff, pull = 2.0 * vec[at.Q] + rate[:m] + rate[m : 2 * m], vec[at.H].copy()
        rows, curves = a[:k], a[k:]
        slack, price, rest = pair[at.SLACK, 2 * m :], pair[at.LAMBDA, 2 * m :], pair[at.REST, 2 * m :]
        dense = np.block(
            [
                [np.diag(stiff) + curves.T @ np.diag(kvec[at.WEIGHT, k:]) @ curves, -rows.T],
                [rows, np.diag(slack / price)],
            ]
        )
        wanted = np.linalg.solve(dense, np.concatenate([pull, rest / price - kvec[at.RP, :k]]))
        w = SimpleNamespace(vec=vec, pair=pair, kvec=kvec, a=a, m=np.zeros((size, size)))
        interior._factored(w, m, k, every)
        interior._step(w, m, k, every)
        made = np.concatenate([pair[at.DS, :m], pair[at.DL, 2 * m :]])
        assert np.abs(made - wanted).max() <= 1e-8 * (1.0 + np.abs(wanted).max())
        moved = rows @ pair[at.DS, :m] + kvec[at.RP, :k]
        assert np.abs(pair[at.DS, 2 * m :] - moved).max() <= 1e-7 * (1.0 + np.abs(moved).max())
        ways[m < every] += 1
    assert min(ways) > trials // 10


def test_both_systems_give_newtons_step() -> None:
    """Of one to six variables and rows, with as many rows of curvature: the smaller system is solved."""
    uncompiled("from tests.engine.networks.test_newton_step import steps; steps(600)")
