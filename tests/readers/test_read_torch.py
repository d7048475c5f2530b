"""read_torch takes a torch classifier as it is, or refuses it in one line."""

from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.readers import read_torch

torch = pytest.importorskip("torch")
nn = torch.nn

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def random_module(dtype, seed=0, widths=(5, 16, 9, 1)):
    torch.manual_seed(seed)
    layers = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(getattr(torch, dtype)).eval()


def rounding(network, x):
    """A generous bound of what summing in another order may change, in logit units."""
    size = np.abs(x)
    for w, b in zip(network.weights, network.biases, strict=True):
        size = size @ np.abs(w).T + np.abs(b)
    return 100 * UNIT[network.dtype] * float(size[0])


def forward(module, x, dtype):
    with torch.no_grad():
        return float(module(torch.tensor(x[None, :], dtype=getattr(torch, dtype)))[0, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(3))
def test_logit_agrees_with_torch_within_rounding(dtype, seed):
    module = random_module(dtype, seed)
    network = read_torch(module)
    assert network.dtype == dtype
    rows = np.random.default_rng(seed).normal(size=(40, 5)).astype(dtype).astype(np.float64) * 10
    for x in rows.astype(dtype).astype(np.float64):
        expected = forward(module, x, dtype)
        assert abs(network.deployed_logit(x) - expected) <= rounding(network, x)
        assert abs(network.evaluate(x)[0] - expected) <= rounding(network, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_weight_is_taken_bit_for_bit(dtype):
    module = random_module(dtype)
    network = read_torch(module)
    for layer, weight, bias in zip(module[::2], network.weights, network.biases, strict=True):
        assert (layer.weight.detach().numpy() == weight).all()
        assert (layer.bias.detach().numpy() == bias).all()


def test_nested_modules_and_layers_that_do_nothing_are_read_through():
    inner = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.ReLU(), nn.Identity())
    module = nn.Sequential(
        nn.Flatten(), inner, nn.Sequential(nn.Linear(3, 1, bias=False), nn.Sigmoid())
    ).eval()
    network = read_torch(module)
    assert [w.shape for w in network.weights] == [(3, 4), (1, 3)]
    assert network.biases[1].tolist() == [0.0]


def test_one_relu_object_used_twice_counts_twice():
    relu = nn.ReLU()
    network = read_torch(nn.Sequential(nn.Linear(2, 3), relu, nn.Linear(3, 3), relu, nn.Linear(3, 1)))
    assert len(network.weights) == 3


def test_a_closing_sigmoid_is_dropped_and_decides_the_same():
    module = random_module("float64")
    with_sigmoid = nn.Sequential(*module, nn.Sigmoid())
    network = read_torch(with_sigmoid)
    for x in np.random.default_rng(1).normal(size=(50, 5)) * 5:
        assert (network.deployed_logit(x) >= 0) == (forward(with_sigmoid, x, "float64") >= 0.5)


def test_a_single_linear_layer_is_a_network():
    assert read_torch(nn.Linear(3, 1)).weights[0].shape == (1, 3)


def test_later_training_does_not_change_what_was_read():
    module = nn.Linear(3, 1)
    network = read_torch(module)
    before = network.weights[0].copy()
    with torch.no_grad():
        module.weight.add_(1.0)
    assert (network.weights[0] == before).all()


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Skipping(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


def hooked():
    layer = nn.Linear(2, 1)
    layer.register_forward_hook(lambda module, args, output: -output)
    return layer


REFUSALS = {
    "gelu": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.GELU(), nn.Linear(2, 1)),
        "layer 1: got GELU; allowed: ",
    ),
    "nested path": (
        lambda: nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Bilinear(2, 2, 2))),
        "layer 0.1: got Bilinear; allowed: Linear, ReLU",
    ),
    "training": (
        lambda: nn.Sequential(nn.Dropout(), nn.Linear(2, 1)).train(),
        "layer 0 (Dropout): got training mode; allowed: eval mode: call module.eval() first",
    ),
    "normalisation in training": (
        lambda: nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)),
        "layer 1 (BatchNorm1d): got training mode; allowed: eval mode: call module.eval() first",
    ),
    "open clamp": (
        lambda: nn.Sequential(nn.Linear(2, 1), nn.Hardtanh(0.0, float("inf"))),
        "layer 1 (Hardtanh): got limits 0.0 and inf; allowed: finite limits",
    ),
    "relu first": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(2, 1)), "a ReLU right after the input"),
    "relu last": (
        lambda: nn.Sequential(nn.Linear(2, 1), nn.ReLU()),
        "last layer: got a ReLU; allowed: an affine",
    ),
    "softmax of one": (
        lambda: nn.Sequential(nn.Linear(2, 1), nn.Softmax(1)),
        "layer 1 (Softmax): got a softmax of one output, which is the same for all inputs; allowed:",
    ),
    "logarithm of a softmax of one": (
        lambda: nn.Sequential(nn.Linear(2, 1), nn.LogSoftmax(1)),
        "layer 1 (LogSoftmax): got a softmax of one output",
    ),
    "sigmoid of two": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()),
        "layer 1 (Sigmoid): got a sigmoid of 2 outputs, whose order is lost where it rounds to 1; allowed: a",
    ),
    "three outputs": (lambda: nn.Linear(2, 3), "last layer: got 3 outputs; allowed: 1, the logit"),
    "half": (
        lambda: nn.Linear(2, 1).half(),
        "got parameters of float16; allowed: all float32 or all float64",
    ),
    "mixed": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1).double()),
        "layer 2: got parameters of float32 and float64; allowed: all float32",
    ),
    "flatten": (
        lambda: nn.Sequential(nn.Flatten(0), nn.Linear(2, 1)),
        "got Flatten(0, -1); allowed: Flatten(1, -1)",
    ),
    "own forward": (lambda: Doubled(2, 1), "module: got Doubled; allowed: Linear"),
    "own sequence": (lambda: Skipping(nn.Linear(1, 1)), "module: got Skipping; allowed: Linear"),
    "hooks": (hooked, "module: got Linear with hooks, which may change what it computes; allowed: no hooks"),
    "empty": (nn.Sequential, "last layer: got the input; allowed: an affine map"),
    "shapes": (
        lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(4, 1)),
        "layer 2 (Linear): got 4 inputs; allowed: 3, as many as come out before it",
    ),
    "no module": (lambda: "model.pt", "module: got str; allowed: a torch.nn.Module"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_represented_is_refused_in_one_line(name):
    make, message = REFUSALS[name]
    with pytest.raises(Unsupported) as caught:
        read_torch(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_finite_are_refused():
    module = nn.Linear(2, 1)
    with torch.no_grad():
        module.bias.fill_(float("nan"))
    with pytest.raises(Unsupported, match="a number that is not finite"):
        read_torch(module)
