"""Read a torch module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.network import DType, ReluNetwork
from milp_recourse.readers.chain import Chain, refuse, require

_ALLOWED = "Linear, ReLU, a closing Sigmoid, Flatten(1, -1), Identity, Dropout in eval mode, Sequential"


def read_torch(module: Any) -> ReluNetwork:
    r"""Read a feed-forward ReLU classifier; every weight is taken as it is, bit for bit.

    A closing Sigmoid is dropped, because :math:`\mathrm{sigmoid}(z) \ge 1/2` exactly when
    :math:`z \ge 0`. (In floats a sigmoid of a tiny negative logit rounds to 1/2: whoever
    thresholds the float sigmoid accepts a little more than the network read here, never less.)

    Parameters
    ----------
    module
        ``torch.nn.Sequential`` (nested if you like) of Linear, ReLU, Flatten, Identity and
        Dropout, or a single Linear; it takes rows of shape (n, d) and has one output, the
        logit (of class 1). Dropout must be in eval mode, where it does nothing.

    Returns
    -------
    ReluNetwork
        ``dtype`` is that of the parameters. ``deployed_logit`` and torch compute in the same
        precision but may sum in another order, so they agree within rounding.

    Raises
    ------
    Unsupported
        Another layer, an order ``Linear, ReLU, ..., Linear`` does not cover, more than one
        output, parameters not all float32 or all float64, hooks, or torch is not installed.
    """
    nn = require("torch", "read_torch", "torch").nn
    chain, dtypes = Chain(), set()
    for path, layer in _leaves(nn, module, ""):
        where = f"layer {path}" if path else "module"
        kind = type(layer).__name__
        if layer._forward_hooks or layer._forward_pre_hooks:
            raise refuse(where, f"{kind} with hooks, which may change what it computes", "no hooks")
        if _is(layer, nn.Linear):
            dtypes.add(str(layer.weight.dtype).removeprefix("torch."))
            if dtypes not in ({"float32"}, {"float64"}):
                raise refuse(
                    where, f"parameters of {' and '.join(sorted(dtypes))}", "all float32 or all float64"
                )
            weight = _array(layer.weight)
            bias = np.zeros(len(weight), weight.dtype) if layer.bias is None else _array(layer.bias)
            chain.affine(weight, bias, f"{where} ({kind})")
        elif _is(layer, nn.ReLU):
            chain.relu(f"{where} ({kind})")
        elif _is(layer, nn.Sigmoid):
            chain.sigmoid(f"{where} ({kind})")
        elif _is(layer, nn.Flatten):
            if layer.start_dim != 1 or layer.end_dim not in (-1, 1):
                raise refuse(where, f"Flatten({layer.start_dim}, {layer.end_dim})", "Flatten(1, -1)")
        elif _is(layer, nn.Dropout):
            if layer.training:
                raise refuse(where, "Dropout in training mode", "eval mode: call module.eval() first")
        elif not _is(layer, nn.Identity):
            raise refuse(where, kind, _ALLOWED)
    dtype: DType = "float64" if dtypes == {"float64"} else "float32"
    return chain.network(dtype)


def _leaves(nn: Any, module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The layers in order, each with its dotted path, looking into Sequentials."""
    if not isinstance(module, nn.Module):
        raise refuse(f"layer {path}" if path else "module", type(module).__name__, "a torch.nn.Module")
    if _is(module, nn.Sequential) and not (module._forward_hooks or module._forward_pre_hooks):
        for name, child in module._modules.items():  # named_children() drops a ReLU used twice
            yield from _leaves(nn, child, f"{path}.{name}" if path else name)
    else:
        yield path, module


def _is(layer: Any, kind: Any) -> bool:
    """Whether the layer computes what ``kind`` does: that class, or a subclass with its forward."""
    return isinstance(layer, kind) and type(layer).forward is kind.forward


def _array(parameter: Any) -> NDArray:
    return np.array(parameter.detach().cpu().numpy())
