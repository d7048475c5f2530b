"""When a leaf is accepted (section 7): every function here only ever errs towards rejecting."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any

from verify.kernel.arithmetic import Arithmetic
from verify.kernel.box import Signs
from verify.kernel.conditions import Row
from verify.kernel.configuration import Cells, Configuration
from verify.kernel.forms import ONE, ZERO, Form, add, constant
from verify.kernel.problem import Interval, Term
from verify.kernel.shapes import Clock, Empty, Rejected, conform, not_negative

MOST_TERMS = 64

PAIR = (not_negative, not_negative)

Multiplied = tuple[str, Fraction, list[tuple[tuple[int, int], Fraction]], Form]
"""A term's slopes, its multipliers of logit and neurons' arguments, and the rest of its form."""


def closed(
    configuration: Configuration,
    arithmetic: Arithmetic,
    ends: Sequence[Interval],
    cells: Cells,
    conditions: Sequence[Row],
    target: Fraction,
) -> bool:
    """Whether a leaf ``["e"]`` is accepted on a box and in cells (section 7.1)."""
    if configuration.least_cost(ends) >= target:
        return True
    try:
        return _nothing(configuration, arithmetic, ends, cells, conditions)
    except Empty:
        return True


def _nothing(
    configuration: Configuration,
    arithmetic: Arithmetic,
    ends: Sequence[Interval],
    cells: Cells,
    conditions: Sequence[Row],
) -> bool:
    """Whether intervals alone show that a box holds nothing feasible."""
    box = arithmetic.box(ends, "", {})
    if any(box.interval(configuration.conditions[row])[1] < 0 for row in conditions):
        return True
    for value, low, high in configuration.rows(cells).values():
        least_, most = box.interval(value)
        if low > high or most < low or least_ > high:
            return True
    trees = configuration.trees
    if trees is not None:
        values = {f.name: box.interval(configuration.values[f.name]) for f in configuration.problem.features}
        seen = configuration.seen(values, cells)
        if seen is None or not trees.can_accept(seen):
            return True
    if not configuration.problem.model.plausible:
        return False
    squares, rest = configuration.ball
    energy = box.least(rest)
    for weight, residual in squares:
        least_, most = box.interval(residual)
        energy += weight * max(least_, -most, ZERO) ** 2
    return energy > 0


def proven(
    configuration: Configuration,
    arithmetic: Arithmetic,
    ends: Sequence[Interval],
    signs: Signs,
    cells: Cells,
    conditions: Sequence[Row],
    leaf: list[Any],
    target: Fraction,
    where: str,
) -> Fraction | None:
    """What a leaf ``["d", slopes, terms, shares?]`` proves on a box (section 7.2); None: that it is empty.

    Neurons are looked at where a term needs them, or where the bound falls short without.
    """
    shape = (str, str, list, (not_negative,) * len(ends))
    _, slopes, listed, *given = conform(leaf, shape if len(leaf) == 4 else shape[:3], where)
    shares = [Fraction(share) for share in (given[0] if given else [0] * len(ends))]
    if sum(shares) > 1:
        raise Rejected(f"{where}: shares that sum to more than 1")
    if len(listed) > MOST_TERMS:
        raise Rejected(f"{where}: more than {MOST_TERMS} terms (section 9)")
    _slopes(configuration, slopes, where)
    terms = [_term(configuration, signs, cells, conditions, slopes, data, where) for data in listed]
    try:
        return _least_cost(configuration, arithmetic, ends, signs, slopes, terms, shares, target)
    except Empty:
        return None


def _least_cost(
    configuration: Configuration,
    arithmetic: Arithmetic,
    ends: Sequence[Interval],
    signs: Signs,
    slopes: str,
    terms: Sequence[Multiplied],
    shares: Sequence[Fraction],
    target: Fraction,
) -> Fraction | None:
    """The minimum D of cost less terms (section 7.2); None where the box is empty."""
    box, has_neurons = arithmetic.box(ends, slopes, signs), any(configuration.widths)
    looked = has_neurons and any(g or sides for _, g, sides, _ in terms)
    if looked and box.empty:
        return None
    above: Form = {}
    for own, g, sides, form in terms:
        Clock.look()
        add(above, box.above(form, own, g, sides), 1)
    bound = configuration.fixed - above.get(ONE, ZERO)
    for k, (term, (low, high), share) in enumerate(zip(configuration.terms, ends, shares, strict=True)):
        bound += least(term, low, high, above.get(k, ZERO), share)
    if has_neurons and not looked and bound < target and box.empty:
        return None
    return bound


def least(term: Term, low: Fraction, high: Fraction, p: Fraction, share: Fraction) -> Fraction:
    """The minimum over [low, high] of an action's cost, its share of the maximum counted, less p a.

    It lies at an end, where the cost has a kink (of a label: jumps), or where the derivative is 0.
    """
    x, beta = term.factual, term.beta + share * term.omega
    points = [low, high, x, *(v for v, _ in term.knots)] + [x - 1, x + 1] * term.label
    if term.kappa:
        falls = term.fall
        points += [x + (p - beta) / (2 * term.kappa), x + (p + beta * falls) / (2 * term.kappa * falls**2)]
    found = [(a, *term.parts(a)) for a in points if low <= a <= high]
    return min(cost + share * most - p * a for a, cost, most in found)


def split(
    configuration: Configuration, i: int, ends: Interval, t: Fraction, strict: bool
) -> tuple[Interval, Interval]:
    """An action's intervals on the two sides of a split (section 6)."""
    cut = (t, Fraction(nextafter(float(t), inf))) if strict else (t, t)
    if configuration.whole[i]:
        cut = Fraction(floor(t)), Fraction(floor(t) + 1)
    return (ends[0], cut[0]), (cut[1], ends[1])


def _slopes(configuration: Configuration, slopes: str, where: str) -> str:
    if len(slopes) != sum(configuration.widths) or not set(slopes) <= {"0", "1"}:
        raise Rejected(f"{where}: slopes: allowed: {sum(configuration.widths)} characters 0 or 1")
    return slopes


def _term(
    configuration: Configuration,
    signs: Signs,
    cells: Cells,
    conditions: Sequence[Row],
    slopes: str,
    data: Any,
    where: str,
) -> Multiplied:
    """A term's slopes, its multipliers of logit and arguments, and the rest of its form (section 7.2)."""
    rows = configuration.rows(cells)
    shape: dict[str, Any] = {"n?": (not_negative,) * len(signs), "r?": {f"{f}?": PAIR for f in rows}}
    if configuration.problem.model.layers:
        shape["g?"] = not_negative
    if configuration.problem.model.plausible:
        shape["b?"] = (not_negative, *[float] * len(configuration.ball[0]))
    if conditions:
        shape["q?"] = (not_negative,) * len(conditions)
    given = conform(data, {"s?": str, **shape}, where)
    own = slopes if given["s"] is None else _slopes(configuration, given["s"], where)
    form: Form = {}
    for f, (value, *limits) in rows.items() if given["r"] else ():
        for times, end, side in zip(map(Fraction, given["r"][f] or (0, 0)), limits, (1, -1), strict=True):
            if not times:
                continue
            if abs(end) == inf:
                raise Rejected(f"{where}: a multiplier of {f}, which has no such end here")
            add(form, value, side * times)
            add(form, constant(Fraction(end)), -side * times)
    for row, times in zip(conditions, given.get("q") or (), strict=False):
        add(form, configuration.conditions[row], Fraction(times))
    if given.get("b"):
        mu, *points = map(Fraction, given["b"])
        squares, rest = configuration.ball
        add(form, rest, -mu)
        for (weight, residual), rho in zip(squares, points, strict=True):
            add(form, residual, -2 * mu * weight * rho)
            add(form, constant(mu * weight * rho**2), 1)
    n = zip(signs.items(), given["n"] or [0.0] * len(signs), strict=True)
    sides = [(neuron, side * Fraction(m)) for (neuron, side), m in n if m]
    return own, Fraction(given.get("g") or 0), sides, form
