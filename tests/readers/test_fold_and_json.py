"""Folding keeps the function within rounding; JSON keeps every number; imports stay lazy."""

import json
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import milp_recourse
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.readers import read_onnx, read_sklearn, read_torch, standardised, to_json
from milp_recourse.readers.refusal import require


def random_network(seed, dtype="float64", widths=(3, 6, 1)):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [
            (rng.normal(size=(o, i)).astype(dtype), rng.normal(size=o).astype(dtype))
            for i, o in pairwise(widths)
        ],
        dtype,
    )


def test_folding_one_feature_by_hand():
    """3 (x - 4) / 2 + 1 = 1.5 x - 5."""
    folded = standardised(ReluNetwork.from_layers([([[3.0]], [1.0])]), [4.0], [2.0])
    assert folded.weights[0].tolist() == [[1.5]]
    assert folded.biases[0].tolist() == [-5.0]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    mean=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    sd=st.lists(st.floats(1e-2, 1e3), min_size=3, max_size=3),
)
def test_the_folded_network_is_the_standardised_one_within_rounding(seed, mean, sd):
    network = random_network(seed)
    mean, sd = np.array(mean), np.array(sd)
    z = np.random.default_rng(seed).normal(size=(20, 3)) * 2
    folded = standardised(network, mean, sd, "float64")
    x = z * sd + mean
    size = 1 + np.max((np.abs(x) + np.abs(mean)) / sd)
    np.testing.assert_allclose(
        folded.evaluate(x), network.evaluate((x - mean) / sd), rtol=0, atol=1e-12 * size
    )


@pytest.mark.parametrize("seed", range(5))
def test_folding_to_float32_leaves_float32_values_near_the_original(seed):
    network = random_network(seed)
    mean, sd = np.array([100.0, -3.0, 0.0]), np.array([0.5, 7.0, 1.0])
    folded = standardised(network, mean, sd, "float32")
    assert folded.dtype == "float32"
    for numbers in (*folded.weights, *folded.biases):
        assert (numbers.astype(np.float32) == numbers).all()
    z = np.random.default_rng(seed).normal(size=(20, 3))
    assert np.abs(folded.evaluate(z * sd + mean) - network.evaluate(z)).max() < 1e-3


def test_at_the_mean_only_the_rounding_of_the_bias_remains():
    """b' uses the rounded W', so at x = mean the first layer is off by the rounding of b' alone.

    W' mean = 10000 - 10000 cancels; the rounding of W' itself would put it off by 1e-4.
    """
    network = ReluNetwork.from_layers([([[1.0, -1.0]], [0.1])])
    folded = standardised(network, [3e4, 7e4], [3.0, 7.0], "float32")
    at_mean = folded.enclose([Enclosure.of(3e4), Enclosure.of(7e4)])[0].lower
    assert abs(at_mean - Fraction(0.1)) < Fraction(1, 10**7)


def test_dtype_defaults_to_the_networks():
    assert standardised(random_network(0, "float32"), np.zeros(3), np.ones(3)).dtype == "float32"


@pytest.mark.parametrize(
    ("mean", "sd", "message"),
    [
        ([0.0, 0.0], [1.0] * 3, "mean: got shape (2,); allowed: shape (3,), one number per input"),
        ([0.0] * 3, [1.0, 0.0, 1.0], "sd: got 0.0; allowed: numbers above 0"),
        ([0.0] * 3, [1.0, -2.0, 1.0], "sd: got -2.0; allowed: numbers above 0"),
        ([0.0, float("nan"), 0.0], [1.0] * 3, "mean: got nan; allowed: finite numbers"),
        ([0.0] * 3, [1.0, 1e-300, 1.0], "allowed: values that fold to finite float32 weights"),
    ],
)
def test_a_standardisation_that_cannot_be_folded_is_bad_input(mean, sd, message):
    with pytest.raises(BadInput) as caught:
        standardised(random_network(0), mean, sd, "float32")
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_json_gives_every_number_back(dtype):
    network = random_network(1, dtype)
    data = json.loads(json.dumps(to_json(network)))
    assert list(data) == ["kind", "dtype", "layers"]
    assert (data["kind"], data["dtype"]) == ("relu-network", dtype)
    back = ReluNetwork.from_layers([(layer["weight"], layer["bias"]) for layer in data["layers"]], dtype)
    for ours, theirs in zip((*back.weights, *back.biases), (*network.weights, *network.biases), strict=True):
        assert (ours == theirs).all()


def test_importing_the_readers_loads_none_of_the_libraries():
    code = (
        "import sys, milp_recourse.readers; "
        "print([m for m in ('torch', 'sklearn', 'onnx', 'scipy') if m in sys.modules])"
    )
    root = Path(milp_recourse.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("reader", "library"), [(read_torch, "torch"), (read_sklearn, "sklearn"), (read_onnx, "onnx")]
)
def test_a_missing_library_is_named_with_the_way_to_install_it(reader, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Unsupported) as caught:
        reader("anything")
    assert f"needs {library}, which is not installed: pip install 'milp-recourse[{library}]'" in str(
        caught.value
    )


def test_an_installed_library_is_handed_over():
    assert require("json", "a test", "none") is json
