"""When a leaf is accepted (section 6): every function here only ever errs towards rejecting."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any

from verify.bounds import Box, Interval, Row
from verify.network import Neurons, Signs
from verify.problem import Cells, Problem, Term
from verify.reading import Clock, Rejected, conform, not_negative

MOST_TERMS = 64

PAIR = (not_negative, not_negative)


def closed(problem: Problem, ends: Sequence[Interval], cells: Cells, target: Fraction) -> bool:
    """Whether a leaf ``["e"]`` is accepted on a box and in cells (section 6.1)."""
    if problem.least_cost(ends) >= target:
        return True
    box = Box(ends, problem.units)
    for value, low, high in problem.rows(cells).values():
        least, most = box.interval(value)
        if low > high or most < low or least > high:
            return True
    energy = problem.rest
    for weight, residual in problem.squares:
        least, most = box.interval(residual)
        energy += weight * max(least, -most, Fraction(0)) ** 2
    if energy > 0:
        return True
    if problem.trees is None:
        return False
    seen = problem.seen([box.interval(c) for c in problem.columns], cells)
    return seen is None or not problem.trees.can_accept(seen)


def proven(
    problem: Problem,
    ends: Sequence[Interval],
    signs: Signs,
    cells: Cells,
    leaf: list[Any],
    target: Fraction,
    where: str,
) -> Fraction | None:
    """What a leaf ``["d", slopes, terms, shares?]`` proves on a box (section 6.2); None: that it is empty.

    Neurons are looked at where a term needs them, or where the bound falls short without.
    """
    shape = (str, str, list, (not_negative,) * len(ends))
    _, slopes, listed, *given = conform(leaf, shape if len(leaf) == 4 else shape[:3], where)
    shares = [Fraction(share) for share in (given[0] if given else [0] * len(ends))]
    if sum(shares) > 1:
        raise Rejected(f"{where}: shares that sum to more than 1")
    if len(listed) > MOST_TERMS:
        raise Rejected(f"{where}: more than {MOST_TERMS} terms (section 8)")
    _slopes(problem, slopes, where)
    terms = [_term(problem, signs, cells, slopes, data, where) for data in listed]
    box, neurons = Box(ends, problem.units), None
    if problem.network and any(g or any(n) for _, g, n, _ in terms):
        neurons = Neurons(problem.network, box, slopes, signs)
        if neurons.empty:
            return None
    bound, slope = problem.fixed, [Fraction(0)] * len(ends)
    for own, g, n, form in terms:
        Clock.look()
        row: Sequence[Fraction] = box.row(form)
        if neurons is not None and (g or any(n)):
            sides = [(neuron, side * m) for (neuron, side), m in zip(signs.items(), n, strict=True) if m]
            row = [a + b for a, b in zip(row, neurons.from_above(own, g, sides), strict=True)]
        constant, *inclines = (c / box.factor for c in box.above(row))
        bound -= constant / box.grid
        slope = [p + q for p, q in zip(slope, inclines, strict=True)]
    for term, (low, high), share, p in zip(problem.terms, ends, shares, slope, strict=True):
        bound += least(term, low, high, p, share)
    if problem.network and neurons is None and bound < target:
        return None if Neurons(problem.network, box, slopes, signs).empty else bound
    return bound


def least(term: Term, low: Fraction, high: Fraction, p: Fraction, share: Fraction) -> Fraction:
    """The minimum over [low, high] of an action's cost, its share of the maximum counted, less p a."""
    x, beta, jump = term.factual, term.beta + share * term.omega, term.jump + share * term.omega
    if term.label:
        points = {low, high, x - 1, x, x + 1}
        return min((jump if a != x else 0) - p * a for a in points if low <= a <= high)
    steep = p - beta if p > beta else p + beta if p < -beta else Fraction(0)
    if term.kappa:
        a = min(max(x + steep / (2 * term.kappa), low), high)
    else:
        a = high if steep > 0 else low if steep < 0 else min(max(x, low), high)
    return term.kappa * (a - x) ** 2 + beta * abs(a - x) - p * a


def split(problem: Problem, i: int, ends: Interval, t: Fraction, strict: bool) -> tuple[Interval, Interval]:
    """An action's intervals on the two sides of a split (section 5)."""
    cut = (t, Fraction(nextafter(float(t), inf))) if strict else (t, t)
    if problem.whole[i]:
        cut = Fraction(floor(t)), Fraction(floor(t) + 1)
    return (ends[0], cut[0]), (cut[1], ends[1])


def _slopes(problem: Problem, slopes: str, where: str) -> str:
    if len(slopes) != problem.neurons or not set(slopes) <= {"0", "1"}:
        raise Rejected(f"{where}: slopes: allowed: {problem.neurons} characters 0 or 1")
    return slopes


def _term(
    problem: Problem, signs: Signs, cells: Cells, slopes: str, data: Any, where: str
) -> tuple[str, Fraction, list[Fraction], Row]:
    """A term's slopes, its multipliers of logit and signs, and the rest of its form (section 6.2)."""
    rows = problem.rows(cells)
    shape: dict[str, Any] = {"n?": (not_negative,) * len(signs), "r?": {f"{f}?": PAIR for f in rows}}
    if problem.network:
        shape["g?"] = not_negative
    if problem.plausible:
        shape["b?"] = (not_negative, *[float] * len(problem.squares))
    given = conform(data, {"s?": str, **shape}, where)
    own = slopes if given["s"] is None else _slopes(problem, given["s"], where)
    form = [Fraction(0)] * len(problem.row({}))
    for f, (value, *limits) in rows.items() if given["r"] else ():
        for times, end, side in zip(map(Fraction, given["r"][f] or (0, 0)), limits, (1, -1), strict=True):
            if not times:
                continue
            if abs(end) == inf:
                raise Rejected(f"{where}: a multiplier of {f}, which has no such end here")
            form = [c + side * times * v for c, v in zip(form, value, strict=True)]
            form[0] -= side * times * Fraction(end)
    if problem.plausible and given["b"]:
        mu, *points = map(Fraction, given["b"])
        form[0] -= mu * problem.rest
        for (weight, residual), rho in zip(problem.squares, points, strict=True):
            form = [c - 2 * mu * weight * rho * r for c, r in zip(form, residual, strict=True)]
            form[0] += mu * weight * rho**2
    n = [Fraction(m) for m in given["n"] or [0] * len(signs)]
    return own, Fraction(given.get("g") or 0), n, form
