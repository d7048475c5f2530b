r"""The operators of ONNX graphs.

======================================  ==============================================================
Gemm, MatMul                            :math:`\alpha A' B' + \beta C`; applicants as rows or columns
Add, Sub, Mul, Div, Neg, Scaler         with a constant; Add and Sub of two tensors, too
Relu, LeakyRelu, Clip, Tanh, Sigmoid    of affine maps; a Clip of columns, too
BatchNormalization                      :math:`(z - \mu) / \sqrt{v + \epsilon} \cdot w + b`
Concat, FeatureVectorizer               along the columns
ArrayFeatureExtractor, Gather, Split    of columns; or of the classes at the predicted position
OneHotEncoder, LabelEncoder, Imputer    of columns
TreeEnsembleClassifier, -Regressor      :mod:`milp_recourse.readers.graph_trees`
LinearClassifier, LinearRegressor       the largest of several scores, one score above 0, or the number
Softmax, LogSoftmax, ArgMax             of affine maps, at the end
Cast, Identity, Dropout and shapes      between float32 and float64, or of labels; shapes (n, columns)
======================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from milp_recourse.errors import Unsupported
from milp_recourse.readers.graph_call import Call, Nodes
from milp_recourse.readers.graph_columns import COLUMNS, SAME
from milp_recourse.readers.graph_maps import MAPS
from milp_recourse.readers.graph_values import Hidden, Value
from milp_recourse.readers.refusal import OR_ASK, refuse

DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
ALLOWED = f"affine maps, ReLUs, encoders and trees, {OR_ASK}"
OPERATIONS = MAPS | COLUMNS


def visit(nodes: Nodes, node: Any, where: str) -> None:
    """Note what a node's outputs hold, in ``nodes.values``."""
    from onnx import helper

    if node.op_type == "Constant" and node.domain in DOMAINS:
        return  # its tensor is among the values
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    try:
        made = _made(nodes, node, attributes, where)
    except Unsupported as error:
        made = [Hidden(error)] * len(node.output)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        unfit = refuse(where, f"attributes that do not fit ({error!r})", "a graph as exporters write it")
        made = [Hidden(unfit)] * len(node.output)
    nodes.values |= dict(zip(node.output, made, strict=False))


def _made(nodes: Nodes, node: Any, attributes: dict[str, Any], where: str) -> Sequence[Value]:
    if node.domain not in DOMAINS:
        raise refuse(where, f"an operator of domain {node.domain}", ALLOWED)
    operation = OPERATIONS.get(node.op_type)
    if operation is None:
        raise refuse(where, node.op_type, ALLOWED)
    inputs = [nodes.values.get(name) if name else None for name in node.input]
    hidden = next((one for one in inputs if isinstance(one, Hidden)), None)
    if hidden is not None:
        raise hidden.error
    if all(isinstance(one, np.ndarray) for one in inputs) and node.op_type in SAME:
        return [inputs[0]]  # type: ignore[list-item]
    made = operation(Call(nodes, node, attributes, where, inputs))
    if isinstance(made, list):
        return made
    what = "probabilities as the answer", "the label as an output of the graph"
    return [made, Hidden(refuse(where, *what))]
