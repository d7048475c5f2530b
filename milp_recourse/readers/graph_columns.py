"""Operators of ONNX graphs on columns: encoders, imputers, shapes, precisions, and trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from milp_recourse.readers.gaps import imputed_gaps
from milp_recourse.readers.graph_call import Call
from milp_recourse.readers.graph_trees import tree_classifier, tree_regressor
from milp_recourse.readers.graph_values import Columns, Net, Value, Winner, joined
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.operations import Operation
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.track import Track
from milp_recourse.readers.transformers import after_imputer

SAME = ("Identity", "Dropout", "Flatten", "Squeeze", "Unsqueeze", "Reshape")
"""Operators that keep numbers as they are, of tensors of shape (n, columns)."""


def _scaler(call: Call) -> Value:
    value = call.data()
    if not isinstance(value, Columns) or value.tracks is None:
        raise refuse(call.where, "a Scaler behind an affine map", f"one of columns, {OR_ASK}")
    count = len(value.tracks)
    offset, scale = (
        np.broadcast_to(np.asarray(call.attributes[name], dtype=np.float64), (count,)).tolist()
        for name in ("offset", "scale")
    )
    if min(scale, default=1.0) <= 0:
        raise refuse(call.where, f"the scale {min(scale)}", "scales above 0")
    pairs = zip(offset, scale, strict=True)
    return value.after(
        call.output, [[Operation("add", 0.0 - o), Operation("multiply", s)] for o, s in pairs]
    ).rounded(call.output)


def _imputer(call: Call) -> Value:
    value = call.data()
    held = call.attributes.get("imputed_value_floats")
    if not isinstance(value, Columns) or value.tracks is None or held is None:
        raise refuse(call.where, "an Imputer of whole numbers, or behind others", "one of float columns")
    replaced = float(call.attributes.get("replaced_value_float", 0.0))
    if not np.isnan(replaced):
        raise refuse(call.where, f"an Imputer that replaces {replaced}", f"one that replaces nan, {OR_ASK}")
    filled = np.broadcast_to(np.asarray(held, dtype=np.float64), (len(value.tracks),)).tolist()
    gaps = imputed_gaps(np.nan)
    tracks = (
        t if t.coded else after_imputer(t, own, gaps, call.where)
        for t, own in zip(value.tracks, filled, strict=True)
    )
    return replace(value, name=call.output, tracks=tuple(tracks))


def _encoder(call: Call) -> Value:
    """OneHotEncoder or LabelEncoder: what labels become is found by running the graph."""
    value = call.data()
    one_hot = call.node.op_type == "OneHotEncoder"
    if not isinstance(value, Columns) or value.tracks is None or (one_hot and len(value.tracks) != 1):
        raise refuse(call.where, f"{call.node.op_type} of other tensors", "of one column of labels")
    if any(not t.coded and any(o.kind != "round" for o in t.operations) for t in value.tracks):
        raise refuse(call.where, f"{call.node.op_type} behind a scaler or imputer", "of a raw column")
    names = ("cats_strings", "cats_int64s") if one_hot else ("keys_strings", "keys_int64s", "keys_floats")
    keys = next((call.attributes[n] for n in names if len(call.attributes.get(n, ()))), None)
    if keys is None:
        raise refuse(call.where, f"{call.node.op_type} without {' or '.join(names)}", "these attributes")
    kind = "float32" if one_hot or "values_floats" in call.attributes else "int64"
    kind = "str" if "values_strings" in call.attributes else kind
    labels = [key.decode() if isinstance(key, bytes) else key for key in keys]
    tracks = []
    for track in value.tracks:
        if not track.coded:
            known = self_labels = call.nodes.labels.setdefault(track.raw, [])
            known += [label for label in labels if label not in set(self_labels)]
        coded = Track(track.raw, coded=True)
        tracks += [replace(coded) for _ in range(len(labels) if one_hot else 1)]  # each is its own
    return Columns(call.output, tuple(tracks), kind)


def _concat(call: Call) -> Value:
    axis = call.attributes.get("axis", 1)
    parts = [call.data(k) for k in range(len(call.inputs))]
    if axis not in (1, -1, 2):
        raise refuse(call.where, f"Concat along axis {axis}", "axis 1, over the columns")
    found = [one for one in parts if isinstance(one, Columns)]
    if len(found) == len(parts) and all(one.tracks is not None for one in found):
        tracks = tuple(replace(track) for one in found for track in one.tracks or ())
        why = next((one.truncated for one in found if one.truncated), "")
        return Columns(call.output, tracks, found[0].kind, why)
    nets = [one for one in parts if isinstance(one, Net)]
    if len(parts) == 2 and [one.closed for one in nets] == ["rest", "sigmoid"]:
        first, second = nets
        if first.layers is not second.layers or first.width != 1:
            raise refuse(call.where, "two sigmoids", "one minus a sigmoid, and the sigmoid")
        return second  # of both, the second is larger where the logit is above 0
    return joined([call.net(k) for k in range(len(parts))], call.where)


def _picked(call: Call) -> Value:
    """ArrayFeatureExtractor or Gather: columns, or the class at a position."""
    value, at = call.inputs
    if isinstance(at, Winner):
        if not isinstance(value, np.ndarray) or value.size != len(at.classes):
            raise refuse(call.where, "a table of other labels", "a constant with one for each class")
        classes = tuple(one.decode() if isinstance(one, bytes) else one for one in value.reshape(-1).tolist())
        return replace(at, classes=classes)
    value = call.data()
    axis = call.attributes.get("axis", 0) if call.node.op_type == "Gather" else 1
    if not isinstance(value, Columns) or value.tracks is None or not isinstance(at, np.ndarray) or axis != 1:
        raise refuse(call.where, f"{call.node.op_type} of other tensors", "of columns, by constant positions")
    tracks = tuple(replace(value.tracks[int(k)]) for k in at.reshape(-1))
    return replace(value, name=call.output, tracks=tracks)


def _split(call: Call) -> Value | list[Value]:
    value = call.data()
    if not isinstance(value, Columns) or value.tracks is None or call.attributes.get("axis") not in (1, -1):
        raise refuse(call.where, "Split of other tensors", "of columns, along axis 1")
    given = call.attributes.get("split") or (
        call.inputs[1].tolist() if isinstance(call.inputs[-1], np.ndarray) else None  # type: ignore[union-attr]
    )
    count = len(call.node.output)
    sizes = given or [-(-len(value.tracks) // count)] * count
    ends = np.cumsum([0, *sizes]).tolist()
    parts = zip(call.node.output, ends[:-1], ends[1:], strict=True)
    return [replace(value, name=name, tracks=value.tracks[a:b]) for name, a, b in parts]


def _cast(call: Call) -> Value:
    from onnx import helper

    value = call.inputs[0]
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(call.attributes["to"]))
    kind = "str" if dtype.kind == "O" else str(dtype)
    if isinstance(value, np.ndarray):
        return value.astype(dtype)
    if isinstance(value, Winner):
        whole = all(isinstance(one, int | float) and one == int(one) for one in value.classes)
        if dtype.kind in "if" and whole:
            return replace(value, classes=tuple(int(one) for one in value.classes))  # type: ignore[call-overload]
        if kind == "str" and all(isinstance(one, str) for one in value.classes):
            return value
        raise refuse(call.where, f"labels as {kind}", "labels as they are")
    if isinstance(value, Columns) and value.kind == kind:
        return replace(value, name=call.output)
    if isinstance(value, Columns) and kind == "float32" and value.kind != "str":
        return value.rounded(call.output)
    if isinstance(value, Columns) and kind == "float64" and value.kind != "str":
        return replace(value, name=call.output, kind=kind)
    if isinstance(value, Columns):
        all_coded = all(track.coded for track in value.tracks or ())
        why = "" if all_coded and kind != "str" else f"numbers as {kind}"
        return replace(value, name=call.output, kind=kind, truncated=why)
    net = call.net()
    if kind == "float32":
        net.layers.affine(np.eye(net.width), np.zeros(net.width), call.where, UNIT["float32"])
    elif kind != "float64":
        raise refuse(call.where, f"a Cast to {kind}", "float32 or float64")
    return net


def _same(call: Call) -> Value:
    """Identity, Dropout, and nodes that change shapes."""
    value, get = call.inputs[0], call.attributes.get
    kind = call.node.op_type
    if kind == "Dropout" and any(isinstance(one, np.ndarray) and bool(one) for one in call.inputs[2:]):
        raise refuse(call.where, "Dropout in training mode", "a graph exported in eval mode")
    if kind == "Flatten" and get("axis", 1) != 1:
        raise refuse(call.where, f"Flatten with axis {get('axis')}", "axis 1")
    if kind == "Reshape" and not isinstance(value, Winner):
        shape = [] if not isinstance(call.inputs[1], np.ndarray) else call.inputs[1].reshape(-1).tolist()
        width = call.data().width if isinstance(value, Net) else len(call.data().tracks or ())  # type: ignore[union-attr]
        if not (shape[:1] == [-1] and shape[1:] in ([], [width]) and (shape[1:] or width == 1)) and not (
            len(shape) == 2 and shape[0] == 0 and shape[1] in (-1, width)
        ):
            raise refuse(call.where, f"the shape {shape}", f"(-1, {width}): one row per applicant")
    if kind in ("Squeeze", "Unsqueeze") and isinstance(value, Net) and value.width != 1:
        raise refuse(call.where, f"{kind} of {value.width} columns", "of one")
    return replace(value, name=call.output) if isinstance(value, Columns) else value  # type: ignore[return-value]


def _trees(call: Call) -> Value:
    value = call.data()
    if not isinstance(value, Columns) or value.tracks is None or value.truncated or value.kind == "str":
        raise refuse(call.where, "trees behind an affine map", f"trees behind scalers and encoders, {OR_ASK}")
    read = tree_classifier if call.node.op_type == "TreeEnsembleClassifier" else tree_regressor
    return read(call.attributes, value, call.nodes.source, call.where)


COLUMNS: dict[str, Callable[[Call], Value | list[Value]]] = {
    "Scaler": _scaler,
    "Imputer": _imputer,
    **dict.fromkeys(("OneHotEncoder", "LabelEncoder"), _encoder),
    **dict.fromkeys(("Concat", "FeatureVectorizer"), _concat),
    **dict.fromkeys(("ArrayFeatureExtractor", "Gather"), _picked),
    "Split": _split,
    "Cast": _cast,
    **dict.fromkeys(SAME, _same),
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor"), _trees),
}
"""Operator -> what its output holds, or its outputs."""
