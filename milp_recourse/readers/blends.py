r"""Columns that are weighted sums of others: principal components and other matrices behind columns.

.. math:: z_i = \sum_j M_{ij} g_j + c_i

A linear model or a network takes the sums in its first layer; trees cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.operations import Operation
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.track import Track

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Blend:
    """A column between two steps that is a weighted sum.

    Attributes
    ----------
    parts, weights, constant
        The columns g, their weights, and c.
    size
        The sum of the absolute values of what is added and taken off again: rounding is proportional to it.
    name
        The transformer's, for messages.
    """

    parts: tuple[Track, ...]
    weights: Array
    constant: float
    size: float
    name: str

    def after(self, operations: Sequence[Operation], where: str) -> Blend:
        """The same behind scalers.

        Raises
        ------
        Unsupported
            One of them is no sum and no product.
        """
        weights, constant, size = self.weights, self.constant, self.size
        for o in operations:
            if o.kind == "add":
                constant, size = constant + o.a, size + abs(o.a)
            elif o.kind in ("multiply", "divide"):
                factor = o.a if o.kind == "multiply" else 1.0 / o.a
                weights, constant, size = weights * factor, constant * factor, size * abs(factor)
            else:
                raise refuse(
                    where, f"a scaler that cuts off behind {self.name}", "a scaler without clip=True"
                )
        return Blend(self.parts, weights, constant, size, self.name)


@dataclass(frozen=True, eq=False)
class Mix:
    """M, c and the sizes of several blends over the same columns."""

    weights: Array
    constants: Array
    sizes: Array
    name: str


def is_matrix(step: Any) -> bool:
    """Whether a transformer multiplies by a matrix."""
    from sklearn import decomposition, random_projection

    kinds = decomposition.PCA, decomposition.IncrementalPCA, decomposition.TruncatedSVD
    random = random_projection.GaussianRandomProjection, random_projection.SparseRandomProjection
    return type(step) in (*kinds, *random)


def blended(step: Any, columns: Sequence[Track | Blend], where: str) -> list[Blend]:
    """What such a transformer makes of columns."""
    matrix = step.components_
    matrix = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
    mean = getattr(step, "mean_", None)
    mean = np.zeros(matrix.shape[1]) if mean is None else np.asarray(mean, dtype=np.float64)
    constants, sizes = -(matrix @ mean), np.abs(matrix) @ np.abs(mean)
    if getattr(step, "whiten", False):
        scale = np.maximum(np.sqrt(step.explained_variance_), np.finfo(np.float64).eps)[:, None]
        matrix, constants, sizes = matrix / scale, constants / scale[:, 0], sizes / scale[:, 0]
    if matrix.shape[1] != len(columns):
        raise refuse(where, f"{len(columns)} columns", f"{matrix.shape[1]}, as many as it was fitted on")
    parts = {id(p): p for one in columns for p in ([one] if isinstance(one, Track) else one.parts)}
    inner = mix_of(columns, list(parts.values()))
    weights, name = matrix @ inner.weights, type(step).__name__
    constants = constants + matrix @ inner.constants
    sizes = sizes + np.abs(matrix) @ inner.sizes
    return [
        Blend(tuple(parts.values()), row, float(c), float(size), name)
        for row, c, size in zip(weights, constants, sizes, strict=True)
    ]


def mix_of(columns: Sequence[Track | Blend], parts: Sequence[Track]) -> Mix:
    """Columns as sums over all their parts."""
    place = {id(part): k for k, part in enumerate(parts)}
    weights = np.zeros((len(columns), len(parts)))
    constants, sizes, name = np.zeros(len(columns)), np.zeros(len(columns)), ""
    for k, one in enumerate(columns):
        if isinstance(one, Track):
            weights[k, place[id(one)]] = 1.0
            continue
        weights[k, [place[id(part)] for part in one.parts]] = one.weights
        constants[k], sizes[k], name = one.constant, one.size, one.name
    return Mix(weights, constants, sizes, name)


def no_blends(columns: Sequence[Track | Blend], step: Any, where: str) -> list[Track]:
    """The columns, of which none is a blend.

    Raises
    ------
    Unsupported
        One is.
    """
    for one in columns:
        if isinstance(one, Blend):
            got = f"{type(step).__name__} behind {one.name}"
            raise refuse(where, got, f"scalers, a linear model or a network behind it, {OR_ASK}")
    return [one for one in columns if isinstance(one, Track)]
