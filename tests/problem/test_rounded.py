"""Doubles with rounding errors: every bound holds in exact arithmetic, and so does every decision."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import Expression, Relu, Sigmoid, Square, Variable, rounded
from milp_recourse.problem.loan import loan
from milp_recourse.problem.network import ReluNetwork


def network(rng: np.random.Generator, dtype: str) -> ReluNetwork:
    """Large weights that cancel, so that rounding shows."""
    widths = [int(n) for n in rng.integers(1, 20, size=rng.integers(2, 5))] + [1]
    layers = []
    for n, m in pairwise(widths):
        weight = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-3, 4, size=(m, n))
        layers.append((weight.astype(np.float32), rng.normal(size=m).astype(np.float32)))
    return ReluNetwork.from_layers(layers, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_logit_in_doubles_is_as_near_as_it_says(dtype: str) -> None:
    """To the exact one, also of inputs that are no doubles but round to these, and to the deployed one."""
    rng = np.random.default_rng(5)
    closest, shares = 1.0, []
    for _ in range(300):
        model = network(rng, dtype)
        exact = [
            Fraction(float(v)) + Fraction(float(v)) * Fraction(int(rng.integers(-9, 10)), 10 << 53)
            for v in rng.normal(size=model.inputs) * 100.0
        ]
        x = np.array([float(v) for v in exact])
        _, near, nothing = model.nearly(np.array([-x, x, np.full_like(x, np.nan)]))
        assert near is not None and nothing is None
        [logit] = model.enclose([Enclosure.of(v) for v in exact])
        assert near[0].lower <= logit.lower <= logit.upper <= near[0].upper
        assert abs(model.deployed_logit(x) - near[0].value) <= near[1]
        far = near[1] if dtype == "float32" else near[0].error
        shares.append(abs(model.deployed_logit(x) - float(logit.lower)) / far)
        closest = min(closest, near[0].error / max(1e-300, abs(near[0].value)))
    assert closest < 1e-12  # the bounds say something
    assert max(shares) > 1e-3  # and rounding comes near them


def test_numbers_that_might_overflow_are_left_to_exact_arithmetic() -> None:
    wide = ReluNetwork.from_layers([([[1e300, -1e300]], [0.0]), ([[1e200]], [0.0])])
    assert wide.nearly(np.array([[1.0, 1.0]])) == [None]
    small = ReluNetwork.from_layers([([[1e30]], [0.0]), ([[1e30]], [0.0])])
    too_large, missing, usual = small.nearly(np.array([[1e300], [np.nan], [1.0]]))
    assert too_large is None and missing is None and usual is not None


def formula(rng: np.random.Generator, depth: int) -> Expression:
    if depth == 0:
        return Variable("xyz"[rng.integers(3)]) * float(rng.normal())
    one, other = formula(rng, depth - 1), formula(rng, depth - 1)
    return [one + other, one - other, one * other, Relu(one) + other, Square(one)][rng.integers(5)]


def test_an_expression_in_doubles_is_as_near_as_it_says() -> None:
    """Polynomials with ReLUs; others are not evaluated in doubles."""
    rng = np.random.default_rng(6)
    off = 0
    for _ in range(300):
        made = formula(rng, int(rng.integers(1, 4)))
        near = rounded(made)
        assert near is not None
        exact = {name: Fraction(int(rng.integers(-999, 999)), 7) for name in "xyz"}
        value, error = near({name: float(v) for name, v in exact.items()})
        meant = made.enclose({name: Enclosure.of(v) for name, v in exact.items()}).lower
        assert abs(Fraction(value) - meant) <= Fraction(error)
        assert error <= 1e-10 * max(1.0, abs(float(meant))) * 1e6
        off += Fraction(value) != meant
    assert off > 100
    assert rounded(Sigmoid(Variable("x"))) is None
    deep: Expression = Variable("x")
    for _ in range(64):
        deep = Square(deep)
    assert rounded(deep) is None


def test_plausibility_is_decided_as_in_exact_arithmetic() -> None:
    """On both sides of the ball, next to its surface, and on it, where doubles must not decide."""
    rng, scm = np.random.default_rng(7), loan()
    decided = {True: 0, False: 0, None: 0}
    for _ in range(60):
        x = dict(zip(scm.features, scm.sample(1, rng)[0].tolist(), strict=True))
        acted = [f for f in ("amount", "duration", "income", "savings") if rng.random() < 0.8] or ["income"]
        goal = {f: x[f] + float(rng.normal()) * 4 for f in acted}
        low, high, offset = 0.0, 1.0, float(rng.choice([0.0, -0.7, 0.01]))
        for _ in range(60):  # to the edge, if there is one on the way
            part = 0.5 * (low + high)
            action = {f: x[f] + part * (goal[f] - x[f]) for f in acted}
            after = scm.counterfactual_exact(x, action)
            meant = scm.excess_energy(x, after, frozenset(acted))
            assert meant is not None
            said, holds = (
                scm._plausible_nearly(x, after, frozenset(acted), offset),
                meant.upper <= -Fraction(offset),
            )
            assert said in (None, holds)
            assert scm.plausible_exact(x, after, frozenset(acted), offset) == holds
            decided[said] += 1
            low, high = (part, high) if holds else (low, part)
        held = scm.counterfactual_exact(x, {f: x[f] for f in acted})
        assert scm._plausible_nearly(x, held, frozenset(acted)) is None  # exactly on the surface
        assert scm.plausible_exact(x, held, frozenset(acted))
    assert min(decided.values()) > 50


def test_a_model_can_be_sent_after_it_was_used() -> None:
    """Functions of equations stay behind."""
    scm = loan()
    near = scm.rounded("amount")
    other = pickle.loads(pickle.dumps(scm)).rounded("amount")
    assert near is not None
    assert other is not None
    x = dict.fromkeys(scm.features, 0.5)
    assert near(x) == other(x)
