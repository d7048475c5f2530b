"""A step of the interior point solves Newton's equations, whichever of the two systems it is taken from."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np


def steps(trials: int) -> None:
    """Random iterates, by the functions themselves against a dense solve; run where nothing is compiled."""
    from milp_recourse.compiled import interior
    from milp_recourse.compiled.layout import DIAGONAL, DL, DY, LAM, RD, RL, RP, THETA, ZZ, H, Q, S, V, Y

    rng = np.random.default_rng(0)
    ways = (
        (interior._by_variables, lambda *of: interior._step_by_variables(*of[:-1])),
        (interior._by_rows, interior._step_by_rows),
    )
    for _ in range(trials):
        m, k, bends = (int(n) for n in rng.integers(1, 7, 3))
        every = k + bends
        size = max(m, every)
        vec, kvec = np.zeros((17, m)), np.zeros((10, every))
        vec[Q], vec[ZZ], vec[V] = rng.uniform(0, 1, (3, m))
        vec[Y], vec[RD] = rng.uniform(0.05, 0.95, m), rng.normal(0, 1, m)
        kvec[S], kvec[LAM], kvec[DIAGONAL] = rng.uniform(0.05, 2.0, (3, every))
        kvec[RP], kvec[RL] = rng.normal(0, 1, (2, every))
        a = rng.normal(0, 1, (every, m)) * (rng.random((every, m)) < 0.8)
        stiff = 2.0 * vec[Q] + vec[ZZ] / vec[Y] + vec[V] / (1.0 - vec[Y])
        vec[THETA], pull = 1.0 / stiff, rng.normal(0, 1, m)
        rows, curves = a[:k], a[k:]
        dense = np.block(
            [
                [np.diag(stiff) + curves.T @ np.diag(1.0 / kvec[DIAGONAL, k:]) @ curves, -rows.T],
                [rows, np.diag(kvec[S, :k] / kvec[LAM, :k])],
            ]
        )
        wanted = np.linalg.solve(dense, np.concatenate([pull, kvec[RL, :k] / kvec[LAM, :k] - kvec[RP, :k]]))
        for factored, step in ways:
            vec[H], matrix = pull, np.zeros((size, size))
            factored(vec, kvec, a, matrix, m, k, every)
            step(vec, kvec, a, matrix, m, k, every)
            made = np.concatenate([vec[DY], kvec[DL, :k]])
            assert np.abs(made - wanted).max() <= 1e-8 * (1.0 + np.abs(wanted).max())


def test_both_systems_give_newtons_step() -> None:
    """Of one to six variables and rows, with as many rows of curvature."""
    code = "from tests.compiled.test_newton_step import steps; steps(300)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
