"""Fold the standardisation of features into a network's first layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.errors import BadInput
from milp_recourse.problem.network import DType, ReluNetwork


def standardised(
    network: ReluNetwork, mean: ArrayLike, sd: ArrayLike, dtype: DType | None = None
) -> ReluNetwork:
    r"""The network of raw features, from one trained on standardised features.

    .. math:: W_1 \frac{x - \mu}{\sigma} + b_1 = W' x + b', \quad
        W' = W_1 / \sigma, \quad b' = b_1 - W' \mu.

    Folding rounds, so near logit 0 the returned network can decide otherwise than "standardise, then
    predict"; it is the model from then on. With ``dtype`` float32 every weight and bias is rounded to a
    float32 value. W' is rounded first and b' is computed from the rounded W', so that the rounding of W'
    changes the logit in proportion to :math:`x - \mu` instead of x.

    Parameters
    ----------
    network
        A network of standardised features.
    mean, sd
        :math:`\mu` and :math:`\sigma > 0` in each feature's unit, shape (inputs,).
    dtype
        Precision of the returned network; None keeps the network's own.

    Returns
    -------
    ReluNetwork
        The network of raw features.

    Raises
    ------
    BadInput
        ``dtype`` is neither float32 nor float64, a shape does not fit, a mean is not finite, an sd is not a
        finite number above 0, or a folded number leaves the range of ``dtype``.
    """
    dtype = dtype or network.dtype
    if dtype not in ("float32", "float64"):
        raise BadInput("dtype", dtype, "float32 or float64")
    shift = _vector("mean", mean, network.inputs)
    scale = _vector("sd", sd, network.inputs)
    if not (scale > 0).all():
        raise BadInput("sd", float(scale[~(scale > 0)][0]), "numbers above 0")
    first, *rest = zip(network.weights, network.biases, strict=True)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        weight = (first[0] / scale).astype(dtype).astype(np.float64)
        layers = [(weight, first[1] - weight @ shift), *rest]
        rounded = [(w.astype(dtype), b.astype(dtype)) for w, b in layers]
    try:
        made = ReluNetwork.from_layers(rounded, dtype)
    except ValueError as error:
        raise BadInput("mean, sd", str(error), f"values that fold to finite {dtype} weights") from error
    return replace(network, weights=made.weights, biases=made.biases, dtype=dtype)


def _vector(field: str, values: ArrayLike, length: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise BadInput(field, f"shape {array.shape}", f"shape ({length},), one number per input")
    if not np.isfinite(array).all():
        raise BadInput(field, float(array[~np.isfinite(array)][0]), "finite numbers")
    return array
