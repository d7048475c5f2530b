"""torch modules and ONNX graphs behind read_model: rewritten exactly, decided as deployed."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # the helpers of these tests import it
pytest.importorskip("torch")  # an optional extra: without it there is no module to read

import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from torch import nn

from milp_recourse import Recourse
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.network import products
from milp_recourse.readers import Reading, read_model, read_torch, rounding_margin
from milp_recourse.readers.margins import Entry, _start
from tests.helpers.pipelines import decide, encode


def random_module(seed: int) -> tuple[nn.Sequential, int, int]:
    """A module of every layer that is read, its inputs and its outputs."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    widths = [int(w) for w in rng.integers(2, 6, rng.integers(2, 5))]
    outputs = int(rng.choice([1, 1, 2, 3, 4, 5]))
    layers: list[nn.Module] = [nn.Flatten()] if rng.random() < 0.3 else []
    if rng.random() < 0.3:
        layers.append(nn.BatchNorm1d(widths[0]))
    for inputs, width in pairwise([*widths, outputs]):
        layers.append(nn.Linear(inputs, width, bias=bool(rng.random() < 0.8)))
        if rng.random() < 0.3:
            layers.append(nn.BatchNorm1d(width, affine=bool(rng.random() < 0.7)))
        kinds = [
            nn.ReLU(),
            nn.LeakyReLU(0.2),
            nn.LeakyReLU(1.7),
            nn.Hardtanh(-0.7, 1.3),
            nn.ReLU6(),
            nn.Tanh(),
            nn.Sigmoid(),
            nn.Identity(),
        ]
        layers.append(kinds[rng.integers(len(kinds))])
        layers.append(nn.Dropout(0.5))
    while not isinstance(layers[-1], nn.Linear | nn.BatchNorm1d):
        layers.pop()
    if rng.random() < 0.5:
        closing = nn.Sigmoid() if outputs == 1 else nn.Softmax(1) if rng.random() < 0.5 else nn.LogSoftmax(-1)
        layers.append(closing)
    half = len(layers) // 2
    module = nn.Sequential(nn.Sequential(*layers[:half]), *layers[half:])
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.running_mean = torch.randn(layer.num_features)
            layer.running_var = torch.rand(layer.num_features) + 0.1
            if layer.affine:
                nn.init.normal_(layer.weight)
                nn.init.normal_(layer.bias)
    return module.to(torch.float64 if rng.random() < 0.3 else torch.float32).eval(), widths[0], outputs


def forward(module: nn.Module, rows: np.ndarray) -> np.ndarray:
    dtype = next(module.parameters()).dtype
    with torch.no_grad():
        return module(torch.tensor(rows, dtype=dtype)).numpy()


def predicted(module: nn.Sequential, values: np.ndarray) -> np.ndarray:
    if values.shape[1] > 1:
        return values.argmax(axis=1)
    return (values[:, 0] > (0.5 if isinstance(module[-1], nn.Sigmoid) else 0.0)).astype(int)


def near_the_border(reading: Reading, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows moved along lines between the two decisions to where the logit is next to nothing."""
    rows = encode(reading, frame)
    logits = reading.classifier.evaluate(rows)[:, 0]
    yes, no = rows[logits > 0], rows[logits <= 0]
    if not len(yes) or not len(no):
        return frame
    yes, no = yes[np.arange(len(frame)) % len(yes)].copy(), no[np.arange(len(frame)) % len(no)].copy()
    for _ in range(30):
        middle = (yes + no) / 2
        above = reading.classifier.evaluate(middle)[:, 0] > 0
        yes, no = np.where(above[:, None], middle, yes), np.where(above[:, None], no, middle)
    return pd.DataFrame(yes, columns=[column.name for column in reading.columns])[list(frame.columns)]


@pytest.mark.parametrize("seed", range(8))
def test_modules_decide_as_read(seed: int) -> None:
    """Every wish, on random rows and next to the border: beyond the margin the module decides as read."""
    module, inputs, outputs = random_module(seed)
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(60, inputs)) * 3, columns=[f"x{k}" for k in range(inputs)])
    wishes = [1, 0, {"not": 0}] if outputs < 3 else [0, outputs - 1, {"not": 1}, {"not": 0}]
    for desired in wishes:
        reading = read_model(module, X, desired)
        for frame in (X, near_the_border(reading, X)):
            said = predicted(module, forward(module, frame.to_numpy()))
            wanted = said != desired["not"] if isinstance(desired, dict) else said == desired
            yes, sure = decide(reading, encode(reading, frame))
            assert (yes == wanted)[sure].all()
        rows = encode(reading, X)
        assert rounding_margin(reading, rows.min(axis=0), rows.max(axis=0)) < 1e-2


@pytest.mark.parametrize("seed", range(20))
def test_rewriting_is_exact_and_the_margin_covers_the_module(seed: int) -> None:
    """The network's exact logit and the module's own differ by less than the margin, which is not idle."""
    module, inputs, outputs = random_module(1000 + seed)
    module = nn.Sequential(*[m for m in module if not isinstance(m, nn.Sigmoid | nn.Softmax | nn.LogSoftmax)])
    X = pd.DataFrame(np.random.default_rng(seed).normal(size=(40, inputs)) * 3)
    reading = read_model(module, X, 0 if outputs > 2 else 1)
    rows = encode(reading, X)
    margin = rounding_margin(reading, rows.min(axis=0), rows.max(axis=0))
    values = forward(module, rows).astype(np.float64)
    if outputs == 1:
        mine = values[:, 0]
    elif outputs == 2:
        mine = values[:, 1] - values[:, 0]
    else:
        mine = (values[:, :1] - values[:, 1:]).min(axis=1)
    off = [
        abs(Fraction(float(v)) - reading.classifier.enclose([_point(x) for x in row])[0].lower)
        for v, row in zip(mine, rows, strict=True)
    ]
    assert max(off) <= margin
    single = next(module.parameters()).dtype == torch.float32
    assert margin < (1e-2 if single else 1e-10)


@pytest.mark.parametrize("kind", [LogisticRegression, RidgeClassifier])
def test_the_margin_of_a_model_of_float32_columns_covers_its_own_sums(kind: type) -> None:
    """Coefficients that were fitted on float32 columns are float32, and so are their products and sums."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 6)).astype(np.float32), columns=list("abcdef"))
    model = kind().fit(X, X.sum(axis=1) + rng.normal(size=500) > 0)
    reading = read_model(model, X)
    for row, said in zip(X.to_numpy(np.float64), model.decision_function(X), strict=True):
        off = abs(Fraction(float(said)) - reading.classifier.enclose([_point(x) for x in row])[0].lower)
        assert off <= rounding_margin(reading, row, row) < 1e-4


def test_a_sigmoid_before_an_identity_is_a_sigmoid() -> None:
    """The module's own prediction, with which answers are compared, has its threshold at 1/2."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=list("ab"))
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1), nn.Sigmoid(), nn.Identity()).eval()
    refused = X[forward(module, X.to_numpy())[:, 0] < 0.5].head(5)
    table = Recourse(module, X).certify(refused).table
    assert len(table) and table["status"].eq("optimal").all() and table["confirmed"].all()


def test_rows_of_one_number_are_multiplied_as_all_others() -> None:
    """To the last bit: of large matrices they only pick a column."""
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(5, 300)), rng.normal(size=(300, 300))
    weight[:200] = np.diag(rng.normal(size=300))[:200]
    weight[150] = 0.0
    assert (products(rows, weight) == np.einsum("nj,kj->nk", rows, weight)).all()


def test_a_box_of_labels_has_the_least_and_largest_number_of_those_that_are_possible() -> None:
    """Of one-hot columns and of any others."""
    rng = np.random.default_rng(1)
    tables = [np.eye(5), rng.normal(size=(5, 2)), np.zeros((5, 1))]
    entries = tuple(Entry(0, tuple(column)) for table in tables for column in table.T)
    above = (rng.random((40, 5)) < 0.4).astype(float)
    low, high = _start(entries, np.zeros((40, 5)), above)
    values = np.hstack(tables)
    for row, box in enumerate(above):
        possible = values[box > 0] if box.any() else values
        assert (low[row] == possible.min(axis=0)).all() and (high[row] == possible.max(axis=0)).all()


def _point(value: float):
    from milp_recourse.problem.enclosure import Dyadic

    return Dyadic.of(float(value))


def test_onnx_of_the_same() -> None:
    """BatchNormalization, LeakyRelu, Clip, two logits and a Softmax decide as the runtime does."""
    onnx = pytest.importorskip("onnx")  # an optional extra
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(3)
    shapes = {
        "m": 4,
        "v": 4,
        "s": 4,
        "o": 4,
        "W": (4, 5),
        "b": 5,
        "V": (5, 5),
        "U": (5, 1),
        "lo": (),
        "hi": (),
    }
    constants = {k: np.float32(rng.normal(size=shape)) for k, shape in shapes.items()}
    constants["U"] = np.hstack([constants["U"], -constants["U"]])
    constants |= {"v": np.float32([0.5, 1, 2, 3]), "lo": np.float32(-0.4), "hi": np.float32(0.9)}
    nodes = [
        helper.make_node("BatchNormalization", ["x", "s", "o", "m", "v"], ["n"], epsilon=1e-3),
        helper.make_node("Gemm", ["n", "W", "b"], ["a"]),
        helper.make_node("LeakyRelu", ["a"], ["l"], alpha=0.3),
        helper.make_node("MatMul", ["l", "V"], ["c"]),
        helper.make_node("Dropout", ["c"], ["d"]),
        helper.make_node("Clip", ["d", "lo", "hi"], ["e"]),
        helper.make_node("MatMul", ["e", "U"], ["z"]),
        helper.make_node("Softmax", ["z"], ["y"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 2])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    onnx.checker.check_model(made)
    X = pd.DataFrame(rng.normal(size=(80, 4)) * 2, columns=list("abcd"))
    for desired in (1, 0):
        reading = read_model(made, X, desired)
        for frame in (X, near_the_border(reading, X)):
            said = ReferenceEvaluator(made).run(None, {"x": frame.to_numpy(np.float32)})[0].argmax(axis=1)
            yes, sure = decide(reading, encode(reading, frame))
            assert (yes == (said == desired))[sure].all()
        yes, sure = decide(reading, encode(reading, X))
        assert sure.all() and 0 < yes.mean() < 1


def test_affine_maps_in_a_row_are_one_layer() -> None:
    """The product leaves float32, so the network is float64; two logits are the second minus the first."""
    network = read_torch(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).eval())
    assert [w.shape for w in network.weights] == [(1, 3)] and network.dtype == "float64"


def test_what_a_module_cannot_tell_is_refused_in_one_line() -> None:
    """No names to match, so the number of columns counts; three classes need a wish; the box is checked."""
    module = nn.Linear(3, 3).eval()
    with pytest.raises(Unsupported, match="got 3 inputs; allowed: 2, as many as come out before it"):
        read_model(module, pd.DataFrame(np.zeros((2, 2))), 0)
    X = pd.DataFrame(np.zeros((2, 3)))
    with pytest.raises(BadInput, match="desired: got nothing; allowed: one of the 3 classes 0, 1, 2"):
        read_model(module, X)
    reading = read_model(module, X, 2)
    with pytest.raises(BadInput, match=r"upper: got inf; allowed: finite numbers"):
        rounding_margin(reading, [0, 0, 0], [1, 1, np.inf])
    with pytest.raises(BadInput, match=r"lower: got 2.0 above 1.0 in column 0"):
        rounding_margin(reading, [2, 0, 0], [1, 1, 1])
    with pytest.raises(BadInput, match=r"lower: got shape \(2,\)"):
        rounding_margin(reading, [2, 0], [1, 1])
