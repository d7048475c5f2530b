"""Sampling, training, folding and the float32 margin of the Loan recipe."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.lab.recipe.float32_margin import (
    choose_margin,
    forward_error_bound,
    observed_error,
    subdivided_error_bound,
)
from milp_recourse.lab.recipe.loan_instances import reachable_box
from milp_recourse.lab.recipe.loan_rows import loan_label, sample_loan
from milp_recourse.lab.recipe.training import Training, deployed_logits, train_network
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.loan import loan
from milp_recourse.problem.network import ReluNetwork

SIZES = (600, 50, 200)
QUICK = Training(hidden=(8, 8), batch=64, epochs=60)


def random_network(rng: np.random.Generator) -> ReluNetwork:
    """Three layers on five inputs, float32."""
    shapes = [(6, 5), (4, 6), (1, 4)]
    layers = [
        (rng.normal(size=s).astype(np.float32), rng.normal(size=s[0]).astype(np.float32)) for s in shapes
    ]
    return ReluNetwork.from_layers(layers, "float32")


def exact_logit(network: ReluNetwork, row: np.ndarray) -> Fraction:
    """The logit in rational arithmetic."""
    return network.enclose([Enclosure.of(float(v)) for v in row])[0].midpoint


def test_a_seed_fixes_every_row_and_label() -> None:
    """The same seed gives the same splits, another one others."""
    one, again, other = sample_loan(3, SIZES), sample_loan(3, SIZES), sample_loan(4, SIZES)
    assert np.array_equal(one.test.rows, again.test.rows)
    assert np.array_equal(one.train.labels, again.train.labels)
    assert not np.array_equal(one.test.rows, other.test.rows)
    assert [len(s.rows) for s in (one.train, one.validation, one.test)] == list(SIZES)


def test_labels_follow_the_released_rule() -> None:
    """Y = 1{-L - D + I + S + s I S >= 0}, s = +1 only where I >= 0 and S >= 0; 0 counts as yes."""
    rows = np.array(
        [
            [1, 0, 0, 3, 4, 2, 1],  # -7 + 3 + 2 < 0
            [1, 0, 0, 1, 4, 2, 1],  # -5 + 3 + 2 = 0
            [0, 0, 0, 1, 1, -2, 3],  # -2 + 1 + 6 >= 0
            [0, 0, 0, 1, 1, -2, -3],  # -2 - 5 - 6 < 0
        ]
    )
    assert loan_label(rows).tolist() == [0, 1, 1, 0]


def test_training_gives_a_float32_network_of_raw_features_that_has_learnt() -> None:
    """Folded and rounded, it beats guessing on fresh rows, and every epoch is reported."""
    data, epochs = sample_loan(0, SIZES), []
    network = train_network(data.train, 0, QUICK, on_epoch=lambda: epochs.append(1))
    assert len(epochs) == QUICK.epochs
    assert network.dtype == "float32"
    assert [w.shape for w in network.weights] == [(8, 7), (8, 8), (1, 8)]
    accuracy = ((deployed_logits(network, data.test.rows) >= 0) == data.test.labels).mean()
    assert accuracy > 0.75


def test_a_seed_fixes_the_network() -> None:
    """Training twice gives the same weights."""
    data = sample_loan(0, SIZES)
    one, two = (train_network(data.train, 5, QUICK) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_the_forward_error_bound_holds(seed: int) -> None:
    """The float32 logit never strays farther from the exact one than the bound of its box."""
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    low, high = -rng.uniform(0, 20, 5), rng.uniform(0, 20, 5)
    bound = forward_error_bound(network, low, high)
    for row in rng.uniform(low, high, (200, 5)):
        error = abs(Fraction(network.deployed_logit(row)) - exact_logit(network, row))
        assert error <= forward_error_bound(network, row, row) <= bound


def test_the_bound_covers_other_orders_of_summation() -> None:
    """Summing term by term, forward or backward, in float32 stays within it."""
    rng = np.random.default_rng(9)
    network = random_network(rng)
    for row in rng.uniform(-10, 10, (50, 5)):
        bound = forward_error_bound(network, row, row)
        for step in (1, -1):
            a = row.astype(np.float32)
            for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
                z = np.zeros(len(b), np.float32)
                for column in range(w.shape[1])[::step]:
                    z += w[:, column].astype(np.float32) * a[column]
                z += b.astype(np.float32)
                a = np.maximum(z, np.float32(0)) if k < 2 else z
            assert abs(Fraction(float(a[0])) - exact_logit(network, row)) <= bound


def test_subdividing_sharpens_the_bound_and_keeps_it_above_every_point() -> None:
    """Halving the box lowers the bound, never below a point's own."""
    rng = np.random.default_rng(2)
    network, low, high = random_network(rng), np.full(5, -10.0), np.full(5, 10.0)
    whole = float(forward_error_bound(network, low, high))
    parts = subdivided_error_bound(network, low, high, target=0.7 * whole, boxes=20_000)
    points = forward_error_bound(network, *[rng.uniform(low, high, (500, 5))] * 2)
    assert points.max() <= parts < whole
    assert parts >= observed_error(network, low, high, 500, rng)


def test_the_margin_is_the_power_of_two_that_covers_the_proven_bound() -> None:
    """Unless that is above 1e-2: then 16 times the observed error is covered, and it says so."""
    choice = choose_margin(0.0051, 1e-6)
    assert (choice.margin, choice.covers_rigorous) == (2.0**-7, True)
    choice = choose_margin(0.0079, 1e-5)
    assert choice.margin == 2.0**-12 >= 16 * 1e-5
    assert not choice.covers_rigorous


def test_no_action_within_bounds_leaves_the_reachable_box() -> None:
    """Counterfactuals of random actions on refused rows lie in the box the margin covers."""
    rng = np.random.default_rng(4)
    rows = sample_loan(1, SIZES).test.rows
    names = ("amount", "duration", "income", "savings")
    low, high = (
        dict(zip(names, rng.uniform(-9, -2, 4), strict=True)),
        dict(zip(names, (3.0, 9, 5, 4), strict=True)),
    )
    lower, upper = reachable_box(rows, low, high)
    actions = np.full((50, *rows.shape), np.nan)
    for k, name in enumerate(names, start=3):
        actions[..., k] = rng.uniform(low[name], high[name], actions.shape[:-1])
    actions[rng.random(actions.shape) < 0.5] = np.nan
    actions[:25][~np.isnan(actions[:25])] = np.where(rng.random() < 0.5, -2.0, 3.0)
    reached = loan().counterfactual(rows, actions)
    assert (reached >= lower - 1e-12).all()
    assert (reached <= upper + 1e-12).all()
