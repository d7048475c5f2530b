"""The method for semidefinite relaxations: its sums are those of formulas, its steps solve its equations."""

from __future__ import annotations

import numpy as np

from milp_recourse.engine.networks import propose
from milp_recourse.engine.networks.moments import Method, Program, _System


def program(rng: np.random.Generator) -> Program:
    """Some forms of (1, x), of which the first ones are coordinates, and products of them of all kinds."""
    n, own, kinks, pairs, capped = 7, 3, 2, 4, 2
    columns = np.array([2, 4, 5])
    first = np.zeros((own, n))
    first[np.arange(own), columns] = rng.uniform(0.5, 2.0, own)
    forms = np.vstack([first, rng.normal(size=(9, n))])
    rows = 8  # the last of these are capped; the two forms after them are kinks
    kink = rows + np.arange(kinks)
    return Program(
        forms=forms,
        own=own,
        columns=columns,
        left=np.concatenate([np.arange(own), kink, rng.integers(0, rows, pairs)]),
        right=np.concatenate([own + np.arange(own), kink, rng.integers(0, rows, pairs)]),
        weights=rng.uniform(0.5, 2.0, kinks),
        rows=rows,
        capped=slice(rows - capped, rows),
        linear=rng.normal(size=n),
        squares=np.append(0.0, rng.uniform(0.5, 1.0, n - 1)),
        budget=3.0,
        unit=1.0,
    )


def test_sums_are_those_of_the_formula() -> None:
    """Z of the multipliers, product by product, and what a symmetric matrix says of products."""
    propose.ready()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = program(rng)
        m = Method(p)
        m.theta, m.rows, m.lam, m.tau = rng.normal(size=len(p.left)), rng.random(p.rows), 0.7, 0.4
        wanted = m.lam * np.diag(p.squares)
        wanted[0, 0] += m.tau - m.lam * p.budget
        for theta, a, b in zip(m.theta, p.forms[p.left], p.forms[p.right], strict=True):
            wanted -= 0.5 * theta * (np.outer(a, b) + np.outer(b, a))
        side = p.linear + m.rows @ p.forms[: p.rows]
        wanted[0] -= 0.5 * side
        wanted[:, 0] -= 0.5 * side
        assert np.allclose(m.made(), wanted, rtol=1e-12, atol=1e-12)
        y = rng.normal(size=(7, 7))
        y = y + y.T
        products = [a @ y @ b for a, b in zip(p.forms[p.left], p.forms[p.right], strict=True)]
        left = p.budget * y[0, 0] - p.squares @ np.diag(y)
        assert np.allclose(m.of(y), [*products, left], rtol=1e-12, atol=1e-12)


def test_a_whole_step_meets_all_equations() -> None:
    """Without and with corrections: Y is 1 in its first place, products are 0 or their slacks, rows and what
    is left of the budget their slacks, and Z is what the multipliers make it."""
    propose.ready()
    for seed in range(20):
        p = program(np.random.default_rng(seed))
        m = Method(p)
        m.mean = m.gap / (m.n + len(m.slacks))
        system, before = _System(m), None
        for share in (0.0, 0.3):
            before = step = system.step(share * m.mean, before)
            y, slacks = m.primal + step.primal, m.slacks + step.slacks
            rows, products, budget, caps = system.parts(slacks)
            of, at = m.of(y), p.forms[: p.rows] @ y[0]
            assert np.isclose(y[0, 0], 1.0)
            assert np.allclose(of[: p.own], 0.0, atol=1e-9)
            assert np.allclose(of[m.positive], products, atol=1e-9) and np.isclose(of[-1], budget[0])
            at[p.capped] += caps  # s - s' = F y
            assert np.allclose(at, rows, atol=1e-9)
            m2 = Method(p)
            m2.theta, m2.rows = m.theta + step.theta, m.rows + step.rows
            m2.lam, m2.tau = m.lam + step.budget, m.tau + step.tau
            assert np.allclose(m2.made(), m.dual + step.dual, atol=1e-9)
