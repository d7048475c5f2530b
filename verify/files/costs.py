"""How files state costs, and what they make of them: the kernel's lever intervals and cost terms (sections 1
to 3).

A new name is a line of ``KINDS``; a new way to measure a change is an entry of ``MEASURES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Any

from verify.files.reading import by, share
from verify.files.shapes import conform, not_negative, positive
from verify.kernel.checks import Rejected
from verify.kernel.lattice import Lattice
from verify.kernel.problem import Interval, Piece, Term

PARTS = ("l0", "l1", "l2-squared", "linf")
ZERO, ONE = Fraction(0), Fraction(1)
RELATIVE = "factual"


def _two(value: Any, where: str) -> Any:
    """The shape of two scales; they are one where they are equal."""
    two = conform(value, {"increase": positive, "decrease": positive}, where)
    return two if two["increase"] != two["decrease"] else two["increase"]


def _two_pieces(x: Fraction, increase: Fraction, decrease: Fraction) -> list[Piece]:
    """The distance over one scale if a value rises, over another if it falls."""
    return [Piece(-inf, x, -1 / decrease, x / decrease), Piece(x, inf, 1 / increase, -x / increase)]


MEASURES: dict[tuple[str, ...], tuple[Any, Callable[..., list[Piece]]]] = {
    ("increase", "decrease"): (_two, _two_pieces),
}
"""By the keys of an object that states how large a change is: the object's shape; and a function that makes
of the factual value and the object's numbers the size of a change, piece by piece."""


def _keys(stated: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of :data:`MEASURES` an object states: with most keys in common and, of several, fewest others."""
    return max(MEASURES, key=lambda keys: (len(stated.keys() & {*keys}), -len(keys)))


def _scale(value: Any, where: str) -> Any:
    """A feature's scale: a number, the applicant's own value, or one of :data:`MEASURES` (section 1)."""
    if isinstance(value, str):
        return conform(value, {RELATIVE}, f"{where}, as text")
    if not isinstance(value, dict):
        return positive(value, where)
    keys = _keys(value)
    if missing := [key for key in keys if key not in value]:
        raise Rejected(f"{where}: of the keys {', '.join(keys)}, {missing[0]!r} is missing")
    return conform(value, MEASURES[keys][0], where)


SCALE = {str: _scale}
KINDS: dict[str, tuple[dict[str, float], dict[str, Any]]] = {part: ({part: 1.0}, {}) for part in PARTS} | {
    "l2": ({"l2-squared": 1.0}, {"root": True}),
    "percentile": ({"l1": 1.0}, {"ranks": share}),
    "percentile-max": ({"linf": 1.0}, {"ranks": share}),
    "log-percentile": ({"l1": 1.0}, {"ranks": not_negative}),
    "log-percentile-max": ({"linf": 1.0}, {"ranks": not_negative}),
}
"""For each name of a cost, its coefficients; and either "root", if the cost is the root of their sum, or
"ranks", for costs in percentiles: the shape of a knot's second number."""
COST = by(
    "kind",
    {"mixture": {f"{part}?": not_negative for part in PARTS} | {"scale?": SCALE}}
    | {
        kind: {"quantiles": {str: [(float, more["ranks"])]}}
        if "ranks" in more
        else {"scale?" if set(parts) == {"l0"} else "scale": SCALE}
        for kind, (parts, more) in KINDS.items()
    },
)


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
    """What changing a feature costs an applicant: prices of a change's size, and that size piece by piece.

    The size is 1 for every missing value that is set, and for every other label. ``label`` says whether the
    feature is categorical; ``factual`` is None for a missing value.
    """
    gap = None
    if lattice and factual is not None and lattice.floor(factual) != factual:
        gap = lattice.floor(factual), lattice.ceil(factual)
    given, knots = cost["scale"][name], cost.get("quantiles", {}).get(name)
    w, linear, square, most = (Fraction(n) for n in (weight, *(cost[part] for part in PARTS[1:])))
    unit = ONE if factual is None or isinstance(given, dict) else Fraction(given)
    if factual is None:
        pieces = [Piece(-inf, inf, ZERO, ONE)]
    elif label:
        pieces = [Piece(-inf, factual - 1, ZERO, ONE), Piece(factual, factual, ZERO, ZERO)]
        pieces.append(Piece(factual + 1, inf, ZERO, ONE))
    elif knots:
        pieces = _ranks(factual, knots)
    elif isinstance(given, dict):
        _, made = MEASURES[_keys(given)]
        pieces = made(factual, **{key: Fraction(number) for key, number in given.items()})
    else:
        pieces = [Piece(-inf, factual, -ONE, factual), Piece(factual, inf, ONE, -factual)]
    return Term(square * w / unit**2, linear * w / unit, most * w / unit, pieces, gap)


def _ranks(x: Fraction, knots: Sequence[Sequence[float]]) -> list[Piece]:
    """The change of the piecewise linear function through the knots, constant outside them."""
    known = [(Fraction(v), Fraction(p)) for v, p in knots]
    pieces = [Piece(-inf, known[0][0], ZERO, known[0][1])]
    for (low, p), (high, q) in pairwise(known):
        rate = (q - p) / (high - low)
        pieces.append(Piece(low, high, rate, p - rate * low))
    pieces.append(Piece(known[-1][0], inf, ZERO, known[-1][1]))
    at = next(one.size(x) for one in pieces if one.low <= x <= one.high)
    below = [Piece(one.low, x if x < one.high else one.high, -one.rate, at - one.start)
             for one in pieces if one.low <= x]  # fmt: skip
    above = [Piece(x if x > one.low else one.low, one.high, one.rate, one.start - at)
             for one in pieces if one.high >= x]  # fmt: skip
    return below + above


def canonical_cost(data: dict[str, Any], features: list[dict[str, Any]]) -> dict[str, Any]:
    """The canonical cost: coefficients, scale, and the knots of features measured in percentiles."""
    kinds = {f["name"]: f["kind"] for f in features}
    own, more = KINDS.get(data["kind"], (data, {}))  # a mixture says its coefficients itself
    parts = {part: own.get(part) or 0.0 for part in PARTS}
    if "quantiles" in data:
        for name, knots in data["quantiles"].items():
            rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(knots))
            if kinds.get(name, "categorical") == "categorical" or len(knots) < 2 or not rising:
                raise Rejected(f"cost.quantiles.{name}: allowed: 2 or more rising knots of a numeric feature")
        ones = [name for name, kind in kinds.items() if kind == "categorical" or name in data["quantiles"]]
        return parts | {"scale": dict.fromkeys(ones, 1.0), "quantiles": data["quantiles"]}
    if wrong := set(data["scale"] or ()) - kinds.keys():
        raise Rejected(f"cost.scale: {min(wrong)[:40]!r} names no feature")
    for name, scale in (data["scale"] or {}).items():
        labels = {"categorical", "ordinal"} if scale == RELATIVE else {"categorical"}
        if not isinstance(scale, float) and kinds[name] in labels:
            raise Rejected(f"cost.scale.{name}: allowed: a number, for a feature that is {kinds[name]}")
    if not any(parts.values()):
        raise Rejected("cost: coefficients that are all 0")
    return parts | {"scale": data["scale"] or {}} | ({"root": True} if "root" in more else {})


def own_scale(scale: Any, given: Any, name: str) -> Any:
    """A feature's scale for one applicant; "factual" stands for the size of the factual value."""
    if scale != RELATIVE or given is None:
        return 1.0 if scale == RELATIVE else scale
    size = abs(conform(given, float, f"factual.{name}"))
    if not size:
        raise Rejected(f"cost.scale.{name}: {RELATIVE!r}, relative to a factual value of 0")
    return size
