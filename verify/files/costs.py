"""From a file's bounds, scales and weights to the kernel's lever intervals and cost terms (sections 2, 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Any

from verify.kernel.lattice import Lattice
from verify.kernel.problem import Interval, Piece, Term

PARTS = ("l0", "l1", "l2-squared", "linf")


def lever(
    content: Mapping[str, Any], lattice: Lattice | None, chosen: Any, factual: Fraction | None
) -> Interval | None:
    """The lever interval: bounds, range, domain and monotonicity intersected, its ends values that may be
    set; None if it is empty.

    ``chosen`` is the applicant's own range; ``factual`` is None for a missing value.
    """
    every = [0.0, len(content["categories"] or ()) - 1.0]
    ends = [content["bounds"] or every, *filter(None, (chosen, content["domain"]))]
    low, high = Fraction(max(end[0] for end in ends)), Fraction(min(end[1] for end in ends))
    if content["monotone"] and factual is not None:
        low, high = (
            (max(low, factual), high) if content["monotone"] == "increase" else (low, min(high, factual))
        )
    first, last = (lattice.ceil(low), lattice.floor(high)) if lattice else (low, high)
    return (Fraction(first), Fraction(last)) if first <= last else None


def term(
    cost: Mapping[str, Any],
    name: str,
    weight: float,
    label: bool,
    factual: Fraction | None,
    lattice: Lattice | None = None,
) -> Term:
    """What changing a feature costs an applicant.

    ``label`` says whether the feature is categorical; ``factual`` is None for a missing value.
    """
    gap = None
    if lattice and factual is not None and lattice.floor(factual) != factual:
        gap = lattice.floor(factual), lattice.ceil(factual)
    given = cost["scale"][name]
    scale, down = (given["increase"], given["decrease"]) if isinstance(given, dict) else (given, given)
    s = Fraction(1) if factual is None else Fraction(scale)
    w, linear, square, most = (Fraction(n) for n in (weight, *(cost[part] for part in PARTS[1:])))
    pieces = _pieces(
        factual, label, cost.get("quantiles", {}).get(name, ()), Fraction(scale) / Fraction(down)
    )
    return Term(square * w / s**2, linear * w / s, most * w / s, pieces, gap)


def _pieces(x: Fraction | None, label: bool, knots: Sequence[Sequence[float]], fall: Fraction) -> list[Piece]:
    """The size of a change from x, piece by piece.

    The size is 1 for every value if x is None (missing), and for every other label; with ``knots`` it is
    measured in percentiles; else it is the distance, a fall counting ``fall`` times as much as a rise. The
    scale of rises is not in it: :func:`term` divides the prices by that.
    """
    zero, one = Fraction(0), Fraction(1)
    if x is None:
        return [Piece(-inf, inf, zero, one)]
    if label:
        return [Piece(-inf, x - 1, zero, one), Piece(x, x, zero, zero), Piece(x + 1, inf, zero, one)]
    if not knots:
        return [Piece(-inf, x, -fall, fall * x), Piece(x, inf, one, -x)]
    known = [(Fraction(v), Fraction(p)) for v, p in knots]
    pieces = [Piece(-inf, known[0][0], zero, known[0][1])]
    for (low, p), (high, q) in pairwise(known):
        rate = (q - p) / (high - low)
        pieces.append(Piece(low, high, rate, p - rate * low))
    pieces.append(Piece(known[-1][0], inf, zero, known[-1][1]))
    at = next(one.size(x) for one in pieces if one.low <= x <= one.high)
    below = [Piece(one.low, x if x < one.high else one.high, -one.rate, at - one.start)
             for one in pieces if one.low <= x]  # fmt: skip
    above = [Piece(x if x > one.low else one.low, one.high, one.rate, one.start - at)
             for one in pieces if one.high >= x]  # fmt: skip
    return below + above
