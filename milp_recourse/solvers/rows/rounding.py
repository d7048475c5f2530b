r"""Rounding of sums in float64.

A sum of n products computed in any order is off by at most
:math:`\gamma_n \sum_i |p_i|,\; \gamma_n = n u / (1 - n u),\; u = 2^{-53}`
(Higham 2002, https://doi.org/10.1137/1.9780898718027, section 3.1): proportional to the absolute
values, not to what is left after they cancel.
"""

from __future__ import annotations

ULP = 2.0**-52


def slack(terms: int) -> float:
    """The relative slack that covers sums of up to ``terms`` products and their few roundings each."""
    return ULP * terms
