r"""Rounding of bounds in float64: sums of products made exactly, and slacks for sums that cancel.

A sum of n products computed in any order is off by at most
:math:`\gamma_n \sum_i |p_i|,\; \gamma_n = n u / (1 - n u),\; u = 2^{-53}`
(Higham 2002, https://doi.org/10.1137/1.9780898718027, section 3.1): proportional to the absolute
values, not to what is left after they cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.program.affine import Affine

Array = NDArray[np.float64]

ULP = 2.0**-52


def compose(weight: Array, bias: Array, forms: Sequence[Affine], atoms: int) -> tuple[Array, Array]:
    """weight @ forms + bias as (matrix over atoms, constants): exact sums, each rounded once.

    The matrix is the same for every applicant of a population, and made once.
    """
    shape = weight.shape
    matrix = _matrix(weight.tobytes(), shape, tuple(tuple(sorted(f.terms.items())) for f in forms), atoms)
    whole, one = _whole(weight.tobytes(), shape)
    shift, shift_one = _whole(bias.tobytes(), bias.shape)
    shared = math.lcm(*(f.constant.denominator for f in forms))
    constants = np.array([int(f.constant * shared) for f in forms], dtype=object)
    denominator = math.lcm(one * shared, shift_one)
    sums = whole @ constants * (denominator // (one * shared)) + shift * (denominator // shift_one)
    return matrix, np.array([total / denominator for total in sums], dtype=np.float64)


@lru_cache(maxsize=64)
def _whole(content: bytes, shape: tuple[int, ...]) -> tuple[NDArray[np.object_], int]:
    """Doubles as whole numbers over one common denominator."""
    ratios = [v.as_integer_ratio() for v in np.frombuffer(content).tolist()]
    denominator = max((d for _, d in ratios), default=1)
    whole = np.empty(len(ratios), dtype=object)
    whole[:] = [n * (denominator // d) for n, d in ratios]
    return whole.reshape(shape), denominator


@lru_cache(maxsize=256)
def _matrix(
    content: bytes, shape: tuple[int, ...], terms: tuple[tuple[tuple[int, Fraction], ...], ...], atoms: int
) -> Array:
    """weight times the forms' coefficients, (out, atoms), read-only."""
    whole, one = _whole(content, shape)
    shared = math.lcm(*(c.denominator for form in terms for _, c in form))
    used = sorted({k for form in terms for k, _ in form})
    columns = np.zeros((shape[1], len(used)), dtype=object)
    for row, form in zip(columns, terms, strict=True):
        for k, c in form:
            row[used.index(k)] = int(c * shared)
    matrix = np.zeros((shape[0], atoms))
    if used:
        matrix[:, used] = [[total / (one * shared) for total in row] for row in whole @ columns]
    matrix.setflags(write=False)
    return matrix


def slack(terms: int) -> float:
    """The relative slack that covers sums of up to ``terms`` products and their few roundings each."""
    return ULP * terms
