"""ReLU networks: exact where asked, deployed where asked."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.network import ReluNetwork
from tests.helpers.generators import random_network
from verify.kernel.feasible import computed

SEEDS = range(25)


def naive(network: ReluNetwork, x: list[Fraction]) -> list[Fraction]:
    """The formula, term by term, in Fractions."""
    z = x
    for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        if k:
            z = [max(Fraction(0), v) for v in z]
        z = [
            Fraction(bi) + sum(Fraction(wi) * zi for wi, zi in zip(row, z, strict=True))
            for row, bi in zip(w, b, strict=True)
        ]
    return z


def drawn(seed: int) -> tuple[ReluNetwork, np.ndarray]:
    """A network of every depth and dtype, and five inputs of very different sizes."""
    rng = np.random.default_rng(seed)
    network = random_network(rng, 3, seed % 4, 6, ("float64", "float32")[seed % 2], outputs=1 + seed % 2)
    return network, rng.normal(size=(5, 3)) * 10.0 ** rng.integers(-12, 6, (5, 3))


@pytest.mark.parametrize("seed", SEEDS)
def test_enclosing_a_point_is_the_naive_sum_exactly(seed: int) -> None:
    """Fraction equality, not tolerance."""
    network, inputs = drawn(seed)
    for x in inputs:
        outputs = network.enclose([Enclosure.of(float(v)) for v in x])
        assert [(e.lower, e.upper) for e in outputs] == [
            (v, v) for v in naive(network, [Fraction(v) for v in x])
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_enclosing_intervals_contains_every_point_of_them(seed: int) -> None:
    """Also where an end is a rational that is no binary fraction."""
    network, inputs = drawn(seed)
    rng = np.random.default_rng(seed)
    for x in inputs:
        low = [Fraction(v) for v in x]
        high = [v + Fraction(int(rng.integers(0, 50)), 7) for v in low]
        box = network.enclose([Enclosure(a, b) for a, b in zip(low, high, strict=True)])
        for _ in range(5):
            share = Fraction(int(rng.integers(0, 11)), 10)
            values = naive(network, [a + share * (b - a) for a, b in zip(low, high, strict=True)])
            assert all(e.lower <= v <= e.upper for e, v in zip(box, values, strict=True))


def test_a_rational_input_that_is_no_binary_fraction_is_enclosed_narrowly() -> None:
    """One third has no finite binary expansion: 200 bits and a proven interval."""
    network, _ = drawn(6)
    third = [Fraction(1, 3)] * 3
    e = network.enclose([Enclosure.of(v) for v in third])[0]
    assert e.lower <= naive(network, third)[0] <= e.upper
    assert e.upper - e.lower < Fraction(1, 10**55)


@pytest.mark.parametrize("seed", SEEDS)
def test_float64_evaluation_is_close_to_the_exact_value(seed: int) -> None:
    """To rounding."""
    network, inputs = drawn(seed)
    for x in inputs:
        exact = [float(v) for v in naive(network, [Fraction(v) for v in x])]
        assert network.evaluate(x) == pytest.approx(exact, rel=1e-9, abs=1e-9 * (1 + np.abs(x).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_deployed_logit_is_numpys_in_the_networks_dtype(seed: int) -> None:
    """One row, cast once, multiplied and rectified in float32 (or float64), bit for bit."""
    network, inputs = drawn(seed)
    for x in inputs:
        z = x.astype(network.dtype)
        for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
            z = np.maximum(z, 0) if k else z
            z = w.astype(network.dtype) @ z + b.astype(network.dtype)
            assert z.dtype == network.dtype
        assert network.deployed_logit(x) == float(z[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_deployed_logit_is_torchs_to_the_rounding_of_its_dtype(seed: int) -> None:
    """torch may sum in another order; nothing but the last digits may differ."""
    torch = pytest.importorskip("torch")
    network, inputs = drawn(seed)
    kind = {"float32": torch.float32, "float64": torch.float64}[network.dtype]
    layers: list = []
    for w, b in zip(network.weights, network.biases, strict=True):
        linear = torch.nn.Linear(w.shape[1], w.shape[0], dtype=kind)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(w, dtype=kind))
            linear.bias.copy_(torch.tensor(b, dtype=kind))
        layers += [linear, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    for x in inputs:
        with torch.no_grad():
            logit = float(model(torch.tensor(x, dtype=kind)[None])[0, 0])
        size = rounding_size(network, x)
        assert abs(network.deployed_logit(x) - logit) <= 8 * np.finfo(network.dtype).eps * size


def rounding_size(network: ReluNetwork, x: np.ndarray) -> float:
    """Sum of absolute values of everything added up: what rounding errors are relative to."""
    z = np.abs(x)
    for w, b in zip(network.weights, network.biases, strict=True):
        z = np.abs(w) @ z + np.abs(b)
    return float(z.max()) * (1 + len(network.weights))


def test_the_deployed_float32_logit_differs_from_the_exact_one() -> None:
    """So both must be asked: 2^24 + 1 is no float32."""
    network = ReluNetwork.from_layers([([[1.0]], [-(2.0**24)])], "float32")
    x = 2.0**24 + 1
    assert network.enclose([Enclosure.of(x)])[0].lower == 1
    assert network.deployed_logit(np.array([x])) == 0.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_stated_order_of_operations_is_the_checker_s(seed: int, dtype: str) -> None:
    """Deployed acceptance is numpy's and that of the certificate document, to the last bit."""
    rng = np.random.default_rng(seed)
    sizes = [5, 40, 30, 1]
    layers = [
        (rng.normal(size=(n, m)).astype(dtype), rng.normal(size=n).astype(dtype)) for m, n in pairwise(sizes)
    ]
    network = ReluNetwork.from_layers(layers, dtype)
    x = rng.normal(size=5) * 10.0 ** rng.integers(-3, 6, size=5)
    listed = [
        {"weight": w.tolist(), "bias": b.tolist()}
        for w, b in zip(network.weights, network.biases, strict=True)
    ]
    stated = computed(listed, x.tolist(), dtype == "float32")
    numpys = network.deployed_logit(x)
    for threshold in (stated, numpys, np.nextafter(stated, np.inf), np.nextafter(numpys, np.inf)):
        accepted = stated >= threshold and numpys >= threshold
        assert network.deploys_at_least(x, float(threshold)) is bool(accepted)


def test_shapes_dtypes_and_numbers_are_checked_layer_by_layer() -> None:
    """The message names the layer."""
    with pytest.raises(ValueError, match=r"layers\.1\.weight: 3 inputs"):
        ReluNetwork.from_layers([([[1.0]], [0.0]), ([[1.0, 2.0, 3.0]], [0.0])])
    with pytest.raises(ValueError, match=r"layers\.0: dtype is float32"):
        ReluNetwork.from_layers([([[0.1]], [0.0])], "float32")
    with pytest.raises(ValueError, match=r"layers\.0: a number is not finite"):
        ReluNetwork.from_layers([([[np.inf]], [0.0])])
    with pytest.raises(ValueError, match="do not fit"):
        ReluNetwork.from_layers([([[1.0]], [0.0, 1.0])])
    with pytest.raises(ValueError, match="at least one"):
        ReluNetwork.from_layers([])


def test_sizes_are_counted() -> None:
    """Inputs, outputs and ReLU units."""
    network = random_network(np.random.default_rng(3), 4, 2, 5, outputs=2)
    assert (network.inputs, network.outputs) == (4, 2)
    assert network.hidden == sum(w.shape[0] for w in network.weights[:-1])


def test_biases_of_any_size_and_sign_stay_integers() -> None:
    """Scaled to integers they are 2^63 and -1, which numpy by itself would hold as floats."""
    tiny = 2.0**-62
    network = ReluNetwork.from_layers([([[1.0], [-1.0]], [2.0, -tiny]), ([[1.0, 1.0]], [0.0])])
    assert network.enclose([Enclosure.of(1.0)])[0] == Enclosure.of(3)
    assert network.enclose([Enclosure.of(-1.0)])[0] == Enclosure.of(1 + 1 - Fraction(tiny))
