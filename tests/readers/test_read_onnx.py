"""read_onnx agrees with ONNX's reference evaluator within rounding, or refuses in one line."""

from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.readers import read_onnx

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}
ELEMENT = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}


def model(nodes, constants, dtype="float32", *, columns=False, opset=17, outputs=("y",)):
    """A model from x to y; ``nodes`` are (operator, inputs, output, attributes)."""
    made = [
        helper.make_node(op, ins, [out], name=f"n_{out}", **attributes) for op, ins, out, attributes in nodes
    ]
    shape = ["d", "n"] if columns else ["n", "d"]
    graph = helper.make_graph(
        made,
        "network",
        [helper.make_tensor_value_info("x", ELEMENT[dtype], shape)],
        [helper.make_tensor_value_info(name, ELEMENT[dtype], None) for name in outputs],
        [numpy_helper.from_array(value.astype(dtype), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def layers(seed=0, widths=(4, 7, 6, 1)):
    """Constants W0, b0, W1, ... with W (outputs, inputs)."""
    rng = np.random.default_rng(seed)
    made = {}
    for k, (inputs, outputs) in enumerate(pairwise(widths)):
        made |= {f"W{k}": rng.normal(size=(outputs, inputs)), f"b{k}": rng.normal(size=outputs)}
    return made


def assert_agrees(made, dtype, columns=False, inputs=4):
    network = read_onnx(made)
    assert network.dtype == dtype
    evaluator = ReferenceEvaluator(made)
    for x in np.random.default_rng(9).normal(size=(25, inputs)).astype(dtype) * 3:
        data = x[:, None] if columns else x[None, :]
        expected = float(evaluator.run(None, {"x": data})[0].ravel()[0])
        size = np.abs(x.astype(np.float64))
        for w, b in zip(network.weights, network.biases, strict=True):
            size = np.abs(w) @ size + np.abs(b)
        assert abs(network.deployed_logit(x) - expected) <= 100 * UNIT[dtype] * float(size[0])
        assert abs(network.evaluate(x)[0] - expected) <= 100 * UNIT[dtype] * float(size[0])


def transposed(constants, names="W"):
    return {k: v.T if k.startswith(names) else v for k, v in constants.items()}


GEMM = [
    ("Gemm", ["x", "W0", "b0"], "a", {"transB": 1}),
    ("Relu", ["a"], "b", {}),
    ("Gemm", ["b", "W1", "b1"], "c", {"transB": 1}),
    ("Relu", ["c"], "d", {}),
    ("Gemm", ["d", "W2", "b2"], "y", {"transB": 1}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gemm_with_transposed_weights_as_torch_exports_it(dtype):
    made = model(GEMM, layers(), dtype)
    assert_agrees(made, dtype)
    for k, weight in enumerate(read_onnx(made).weights):
        assert (weight == layers()[f"W{k}"].astype(dtype)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gemm_with_alpha_and_beta(dtype):
    nodes = [(op, ins, out, dict(a)) for op, ins, out, a in GEMM]
    nodes[0][3].update(alpha=0.3, beta=-1.7)
    nodes[2][3].update(alpha=2.0, beta=0.0)
    assert_agrees(model(nodes, layers(), dtype), dtype)


def test_gemm_without_bias_or_transposition():
    nodes = [
        ("Gemm", ["x", "W0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "W1", "b1"], "y", {}),
    ]
    assert_agrees(model(nodes, transposed(layers(widths=(4, 5, 1)))), "float32")


def test_matmul_and_add_in_either_order_of_inputs():
    nodes = [
        ("Flatten", ["x"], "f", {}),
        ("MatMul", ["f", "W0"], "a", {}),
        ("Add", ["b0", "a"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("Identity", ["c"], "d", {}),
        ("MatMul", ["d", "W1"], "e", {}),
        ("Add", ["e", "b1"], "y", {}),
    ]
    assert_agrees(model(nodes, transposed(layers(widths=(4, 5, 1)))), "float32")


def test_gemm_with_bias_followed_by_add():
    nodes = [*GEMM[:-1], ("Gemm", ["d", "W2", "b2"], "e", {"transB": 1}), ("Add", ["e", "s"], "y", {})]
    assert_agrees(model(nodes, layers() | {"s": np.array(0.25)}), "float32")


def test_applicants_as_columns():
    constants = {k: v[:, None] if k.startswith("b") else v for k, v in layers(widths=(4, 5, 1)).items()}
    nodes = [
        ("MatMul", ["W0", "x"], "a", {}),
        ("Add", ["a", "b0"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("Gemm", ["W1", "c", "b1"], "y", {}),
    ]
    assert_agrees(model(nodes, constants, columns=True), "float32", columns=True)


def test_gemm_that_transposes_its_data_turns_columns_into_rows_and_back():
    constants = layers(widths=(4, 5, 6, 1))
    constants["W2"] = constants["W2"].T
    nodes = [
        ("Gemm", ["x", "W0", "b0"], "a", {"transA": 1, "transB": 1}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["W1", "b", "c1"], "c", {"transB": 1}),
        ("Relu", ["c"], "d", {}),
        ("Gemm", ["W2", "d", "b2"], "y", {"transA": 1}),
    ]
    made = model(nodes, constants | {"c1": constants["b1"][:, None]}, columns=True)
    assert_agrees(made, "float32", columns=True)


def test_a_closing_sigmoid_is_dropped_and_decides_the_same():
    made = model(
        [*GEMM[:-1], ("Gemm", ["d", "W2", "b2"], "z", {"transB": 1}), ("Sigmoid", ["z"], "y", {})], layers()
    )
    network, evaluator = read_onnx(made), ReferenceEvaluator(made)
    for x in np.random.default_rng(4).normal(size=(40, 4)).astype(np.float32):
        accepted = evaluator.run(None, {"x": x[None, :]})[0].item() >= 0.5
        assert (network.deployed_logit(x) >= 0) == accepted


def test_constants_may_be_nodes_or_renamed():
    constants = layers(widths=(4, 5, 1))
    bias = numpy_helper.from_array(constants.pop("b0").astype(np.float32))
    nodes = [
        ("Constant", [], "b0", {"value": bias}),
        ("Identity", ["W0"], "V0", {}),
        ("Gemm", ["x", "V0", "b0"], "a", {"transB": 1}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "W1", "b1"], "y", {"transB": 1}),
    ]
    assert_agrees(model(nodes, constants), "float32")


def test_branches_that_meet_again():
    """A shift behind a ReLU, a residual block, branches beside each other and the input itself."""
    rng = np.random.default_rng(5)
    constants = layers(widths=(4, 7, 7, 7)) | {"W3": rng.normal(size=(1, 18)), "b3": np.ones(1)}
    nodes = [
        ("Gemm", ["x", "W0", "b0"], "a", {"transB": 1}),
        ("Relu", ["a"], "b", {}),
        ("Add", ["b", "b1"], "c", {}),
        ("Gemm", ["c", "W1", "b1"], "d", {"transB": 1}),
        ("Relu", ["d"], "e", {}),
        ("Sub", ["b", "e"], "f", {}),
        ("Relu", ["f"], "g", {}),
        ("LeakyRelu", ["d"], "h", {"alpha": 0.25}),
        ("Mul", ["h", "b2"], "i", {}),
        ("Concat", ["g", "i", "x"], "j", {"axis": 1}),
        ("Gemm", ["j", "W3", "b3"], "y", {"transB": 1}),
    ]
    made = model(nodes, constants)
    network, evaluator = read_onnx(made), ReferenceEvaluator(made)
    for x in rng.normal(size=(40, 4)).astype(np.float32) * 3:
        expected = evaluator.run(None, {"x": x[None]})[0].item()
        assert network.deployed_logit(x) == pytest.approx(expected, abs=1e-3)


def test_a_file_is_read_like_the_model(tmp_path):
    made = model(GEMM, layers())
    onnx.save(made, tmp_path / "network.onnx")
    assert (read_onnx(tmp_path / "network.onnx").weights[0] == read_onnx(made).weights[0]).all()
    assert (read_onnx(str(tmp_path / "network.onnx")).weights[0] == read_onnx(made).weights[0]).all()


def one(node, constants, **options):
    return lambda: model([node], constants, **options)


W, B = np.ones((4, 1)), np.ones(1)
REFUSALS = {
    "operator": (
        lambda: model([*GEMM[:1], ("Erf", ["a"], "y", {})], layers()),
        "node n_y (Erf): got Erf; allowed: affine maps, ReLUs, encoders and trees",
    ),
    "skip": (
        lambda: model([*GEMM, ("Add", ["y", "a"], "z", {})], layers(), outputs=("z",)),
        "node n_z (Add): got 1 and 7 columns; allowed: as many of both",
    ),
    "branch": (
        lambda: model([*GEMM, ("Relu", ["a"], "z", {})], layers(), outputs=("z",)),
        "last layer: got a ReLU; allowed: an affine map",
    ),
    "square": (one(("MatMul", ["x", "x"], "y", {}), {}), "got input x, which is no constant"),
    "outputs": (
        lambda: model(GEMM, layers(), outputs=("y", "a")),
        "graph: got outputs y, a; allowed: one of them alone, or labels",
    ),
    "precision": (
        one(("MatMul", ["x", "W"], "y", {}), {"W": W}, dtype="float16"),
        "node n_y (MatMul): got constants of float16; allowed: all float32 or all float64",
    ),
    "several outputs": (
        lambda: model([*GEMM[:1], ("Gemm", ["a", "W1", "b1"], "y", {"transB": 1})], layers()),
        "last layer: got 6 outputs; allowed: 1, the logit",
    ),
    "add first": (
        lambda: model([("Add", ["x", "B"], "a", {}), ("MatMul", ["a", "W"], "y", {})], {"W": W, "B": B}),
        "node n_a (Add): got Add before the first affine map; allowed: it after MatMul or Gemm",
    ),
    "product of two": (
        lambda: model([*GEMM[:2], ("Mul", ["a", "b"], "y", {})], layers()),
        "node n_y (Mul): got Mul of two tensors; allowed: Add or Sub",
    ),
    "shift per applicant": (
        one(("Gemm", ["W", "x", "B"], "y", {}), {"W": np.ones((3, 4)), "B": np.ones(3)}, columns=True),
        "node n_y (Gemm): got a shift of shape (3,); allowed: shape (3, 1)",
    ),
    "rows and columns": (
        lambda: model([*GEMM[:2], ("MatMul", ["W1", "b"], "y", {})], layers()),
        "node n_y (MatMul): got applicants as columns; allowed: applicants as rows",
    ),
    "vector": (
        one(("MatMul", ["x", "W"], "y", {}), {"W": W[:, 0]}),
        "got a factor of shape (4,); allowed: a matrix",
    ),
    "flatten": (one(("Flatten", ["x"], "y", {"axis": 0}), {}), "got Flatten with axis 0; allowed: axis 1"),
    "domain": (
        one(("Gemm", ["x", "W"], "y", {"domain": "com.example"}), {"W": W}),
        "got an operator of domain com.example; allowed: affine maps",
    ),
    "opset": (
        one(("MatMul", ["x", "W"], "y", {}), {"W": W}, opset=6),
        "model: got opset 6; allowed: opset 7",
    ),
    "relu last": (lambda: model([*GEMM[:1], ("Relu", ["a"], "y", {})], layers()), "last layer: got a ReLU"),
    "softmax of one": (
        lambda: model([("MatMul", ["x", "W"], "z", {}), ("Softmax", ["z"], "y", {})], {"W": W}),
        "node n_y (Softmax): got a softmax of one output, which is the same for all inputs",
    ),
    "sigmoid of two": (
        lambda: model([("MatMul", ["x", "W"], "z", {}), ("Sigmoid", ["z"], "y", {})], {"W": np.ones((4, 2))}),
        "node n_y (Sigmoid): got a sigmoid of 2 outputs, whose order is lost where it rounds to 1",
    ),
    "outputs of the network": (
        one(("MatMul", ["x", "W"], "y", {}), {"W": np.ones((4, 3))}),
        "last layer: got 3 outputs; allowed: 1, the logit",
    ),
    "not finite": (
        one(("MatMul", ["x", "W"], "y", {}), {"W": W * np.inf}),
        "node n_y (MatMul): got a number that is not finite",
    ),
    "two inputs": (
        lambda: helper.make_model(
            helper.make_graph(
                [], "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "uv"], []
            )
        ),
        "graph: got 2 inputs; allowed: one input, the features",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_represented_is_refused_in_one_line(name):
    make, message = REFUSALS[name]
    with pytest.raises(Unsupported) as caught:
        read_onnx(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(b"\xff\xff not a model")
    with pytest.raises(Unsupported, match=r"network\.onnx: got a file that does not parse; allowed: an ONNX"):
        read_onnx(path)


def test_a_missing_file_is_reported_as_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_onnx(tmp_path / "nothing.onnx")


@pytest.fixture
def beside(tmp_path):
    """A model whose numbers are in a file of its folder; the folder above has a file of the same content."""
    made = model([("Gemm", ["x", "W0", "b0"], "y", {"transB": 1})], layers(widths=(4, 1)))
    folder, expected = tmp_path / "model", read_onnx(made)
    folder.mkdir()
    onnx.save(made, folder / "m.onnx", save_as_external_data=True, location="numbers.bin", size_threshold=0)
    (tmp_path / "outside.bin").write_bytes((folder / "numbers.bin").read_bytes())
    return folder, expected


def with_location(folder, location):
    """The model with its numbers elsewhere."""
    made = onnx.load(folder / "m.onnx", load_external_data=False)
    for tensor in made.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return made


def test_numbers_in_a_file_beside_the_model(beside):
    """They are the same as in the model's own."""
    folder, expected = beside
    assert read_onnx(folder / "m.onnx").digest == expected.digest


@pytest.mark.parametrize(
    "location", ["../outside.bin", "link.bin", "{above}/outside.bin", "none.bin", ".", "", "a\0b"]
)
def test_numbers_outside_the_models_folder_are_not_read(beside, tmp_path, location):
    """Not by a path upwards, a link, or an absolute path; the error is ours, and one line."""
    folder, _ = beside
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    with_location(folder, location.format(above=tmp_path))
    with pytest.raises(Unsupported, match=r"^tensor W0: got data ") as refused:
        read_onnx(folder / "m.onnx")
    assert "\n" not in str(refused.value)


def test_a_model_in_memory_reads_nothing_of_the_current_folder(beside, monkeypatch):
    """onnx itself takes a file of that name where the process was started."""
    folder, _ = beside
    monkeypatch.chdir(folder)
    with pytest.raises(Unsupported, match="allowed: a model with all its data, or its file's path"):
        read_onnx(with_location(folder, "numbers.bin"))


def test_numbers_that_are_too_few_are_one_line(beside):
    """In a file beside the model, and in the model."""
    folder, _ = beside
    (folder / "numbers.bin").write_bytes(b"1234")
    with pytest.raises(Unsupported, match="data that cannot be read"):
        read_onnx(folder / "m.onnx")
    made = model([("Gemm", ["x", "W0", "b0"], "y", {"transB": 1})], layers(widths=(4, 1)))
    made.graph.initializer[0].dims[0] = 1000
    with pytest.raises(Unsupported, match="data that cannot be read"):
        read_onnx(made)
