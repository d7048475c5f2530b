r"""What float64 may take from bounds: exact composition, and slack for sums that cancel.

A sum of n products computed in any order is off by at most
:math:`\gamma_n \sum_i |p_i|,\; \gamma_n = n u / (1 - n u),\; u = 2^{-53}`
(Higham 2002, https://doi.org/10.1137/1.9780898718027, section 3.1): proportional to the absolute
values, not to what is left after they cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.program.affine import Affine

Array = NDArray[np.float64]

ULP = 2.0**-52


def compose(weight: Array, bias: Array, forms: Sequence[Affine], atoms: int) -> tuple[Array, Array]:
    """weight @ forms + bias as (matrix over atoms, constants): exact sums, each rounded once."""
    used = sorted({k for form in forms for k in form.terms})
    shared = math.lcm(*(v.denominator for f in forms for v in (f.constant, *f.terms.values())))
    columns = np.zeros((len(forms), len(used) + 1), dtype=object)
    for row, form in zip(columns, forms, strict=True):
        row[-1] = int(form.constant * shared)
        for j, k in enumerate(used):
            row[j] = int(form.terms.get(k, Fraction(0)) * shared)
    ratios = [float(v).as_integer_ratio() for v in (*weight.flat, *bias)]
    double = max(d for _, d in ratios)
    whole = [n * (double // d) for n, d in ratios]
    sums = np.array(whole[: weight.size], dtype=object).reshape(weight.shape) @ columns
    sums[:, -1] += np.array([b * shared for b in whole[weight.size :]], dtype=object)
    rounded = np.array([[s / (shared * double) for s in row] for row in sums], dtype=np.float64)
    matrix = np.zeros((len(bias), atoms))
    matrix[:, used] = rounded[:, :-1]
    return matrix, rounded[:, -1]


def slack(terms: int) -> float:
    """The relative slack that covers sums of up to ``terms`` products and their few roundings each."""
    return ULP * terms
