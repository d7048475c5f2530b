"""Read a network from a torch module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.network import DType, ReluNetwork
from milp_recourse.readers.classes import two_classes
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.refusal import refuse, require

_ALLOWED = (
    "Linear, ReLU, LeakyReLU, Hardtanh, Tanh, Sigmoid, BatchNorm1d and Dropout in eval mode, "
    "Flatten(1, -1), Identity, Sequential, a closing Softmax or LogSoftmax"
)
TIED = 2.0**7
"""How far, in unit roundoffs, a logit can be from 0 while the rounded sigmoid or softmax ties the classes."""


def read_torch(module: Any) -> ReluNetwork:
    r"""Read a feed-forward classifier. A Linear with no other affine layer before the next ReLU is read bit
    for bit.

    A closing Sigmoid is dropped, because :math:`\mathrm{sigmoid}(z) \ge 1/2` exactly when
    :math:`z \ge 0`. (In floating point the sigmoid of a tiny negative logit rounds to 1/2. So a threshold on
    the computed sigmoid accepts a little more than the network read here, never less.) Of two logits, the
    second minus the first is read.

    Parameters
    ----------
    module
        ``torch.nn.Sequential`` (possibly nested) of Linear, ReLU, LeakyReLU, Hardtanh, BatchNorm1d,
        Dropout, Flatten and Identity, perhaps with a Sigmoid, Softmax or LogSoftmax at the end, or a single
        Linear; it takes rows of shape (n, d) and has one output,
        the logit of class 1, or one per class of two. BatchNorm1d and Dropout must be in eval mode.

    Returns
    -------
    ReluNetwork
        ``dtype`` is that of the parameters, or float64 if multiplying layers gives a number that is no
        float32. ``deployed_logit`` and torch compute in the same precision but may sum in another order, so
        they agree up to rounding.

    Raises
    ------
    Unsupported
        The module has another layer or option, one in training mode, more than two outputs, hooks, or
        parameters that are not all float32 or all float64; or torch is not installed.
    """
    return two_classes(append_torch, module)


def is_torch(model: Any) -> bool:
    """Whether a model is of torch."""
    return any(kind.__module__.split(".")[0] == "torch" for kind in type(model).__mro__)


def append_torch(module: Any, layers: Layers) -> DType:
    """Append a module's layers to ``layers``, and return the precision in which it computes."""
    nn = require("torch", "read_torch", "torch").nn
    leaves = list(_leaves(nn, module, ""))
    dtype = _precision(leaves)
    readers: dict[Any, Callable[[Any, Layers, str, DType], None]] = {
        nn.Linear: _linear,
        nn.ReLU: lambda layer, layers, where, dtype: layers.relu(where),
        nn.LeakyReLU: _leaky,
        nn.Hardtanh: _clamp,
        nn.BatchNorm1d: _normalise,
        nn.Sigmoid: lambda layer, layers, where, dtype: layers.sigmoid(where, UNIT[dtype]),
        nn.Tanh: lambda layer, layers, where, dtype: layers.curve("tanh", where, UNIT[dtype]),
        nn.Softmax: _softmax,
        nn.LogSoftmax: _softmax,
        nn.Flatten: _flatten,
        nn.Dropout: _dropout,
        nn.Identity: lambda layer, layers, where, dtype: None,
    }
    for path, layer in leaves:
        name = type(layer).__name__
        where = f"layer {path}" if path else "module"
        if layer._forward_hooks or layer._forward_pre_hooks:
            raise refuse(where, f"{name} with hooks, which may change what it computes", "no hooks")
        kind = next((kind for kind in readers if _is(layer, kind)), None)
        if kind is None:
            raise refuse(where, name, _ALLOWED)
        refuse_overrides(layer, where, "torch", uses=("__call__", "forward"))
        readers[kind](layer, layers, f"{where} ({name})", dtype)
    layers.slack += TIED * UNIT[dtype]  # added whether or not a sigmoid or softmax closes the network
    return dtype


def _linear(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    weight = _array(layer.weight)
    bias = np.zeros(len(weight)) if layer.bias is None else _array(layer.bias)
    layers.affine(weight, bias, where, UNIT[dtype])


def _leaky(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    layers.leaky(float(np.dtype(dtype).type(layer.negative_slope)), where, UNIT[dtype])


def _clamp(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    low, high = (float(np.dtype(dtype).type(end)) for end in (layer.min_val, layer.max_val))
    layers.clamp(low, high, where)


def _softmax(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    if layer.dim not in (1, -1):
        raise refuse(where, f"dim {layer.dim}", "dim 1, over the classes")
    layers.softmax(where)


def _flatten(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    if layer.start_dim != 1 or layer.end_dim not in (-1, 1):
        raise refuse(where, f"Flatten({layer.start_dim}, {layer.end_dim})", "Flatten(1, -1) or Flatten(1, 1)")


def _dropout(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    if layer.training:
        raise refuse(where, "training mode", "eval mode: call module.eval() first")


def _normalise(layer: Any, layers: Layers, where: str, dtype: DType) -> None:
    """BatchNorm1d in eval mode: (z - mean) / sqrt(variance + eps) * weight + bias."""
    if layer.training:
        raise refuse(where, "training mode", "eval mode: call module.eval() first")
    if layer.running_mean is None:
        raise refuse(where, "no running statistics", "track_running_stats=True")
    count = len(layer.running_mean)
    weight = np.ones(count) if layer.weight is None else _array(layer.weight).astype(np.float64)
    bias = np.zeros(count) if layer.bias is None else _array(layer.bias).astype(np.float64)
    mean, variance = (_array(v).astype(np.float64) for v in (layer.running_mean, layer.running_var))
    layers.normalise(mean, variance, float(layer.eps), weight, bias, where, UNIT[dtype])


def _precision(leaves: list[tuple[str, Any]]) -> DType:
    dtypes: set[str] = set()
    for path, layer in leaves:
        held = [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
        dtypes |= {str(p.dtype).removeprefix("torch.") for p in held if p.dtype.is_floating_point}
        if len(dtypes) > 1 or not dtypes <= {"float32", "float64"}:
            where = f"layer {path}" if path else "module"
            raise refuse(where, f"parameters of {' and '.join(sorted(dtypes))}", "all float32 or all float64")
    return "float64" if dtypes == {"float64"} else "float32"


def _leaves(nn: Any, module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The layers in order, each with its dotted path; Sequentials are replaced by their layers."""
    if not isinstance(module, nn.Module):
        raise refuse(f"layer {path}" if path else "module", type(module).__name__, "a torch.nn.Module")
    if _is(module, nn.Sequential) and not (module._forward_hooks or module._forward_pre_hooks):
        refuse_overrides(module, f"layer {path}" if path else "module", "torch", uses=("__call__", "forward"))
        for name, child in module._modules.items():  # named_children() drops a ReLU used twice
            yield from _leaves(nn, child, f"{path}.{name}" if path else name)
    else:
        yield path, module


def _is(layer: Any, kind: Any) -> bool:
    """Whether the layer is of class ``kind``, or of a subclass that keeps its ``forward``."""
    return isinstance(layer, kind) and type(layer).forward is kind.forward


def _array(parameter: Any) -> NDArray[np.floating[Any]]:
    return np.array(parameter.detach().cpu().numpy())
