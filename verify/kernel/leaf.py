"""When a leaf is accepted (section 7): every function here only ever errs towards rejecting."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

from verify.kernel.box import Neuron
from verify.kernel.configuration import Configuration, Region
from verify.kernel.forms import ONE, ZERO, Form, combined, constant, plus
from verify.kernel.prices import Exact
from verify.kernel.problem import Term
from verify.kernel.shapes import Empty, Rejected, conform, not_negative

MOST_TERMS = 64


def closed(configuration: Configuration, arithmetic: Exact, region: Region, target: Fraction) -> bool:
    """Whether a leaf ``["e"]`` is accepted (section 7.1)."""
    try:
        return configuration.least_cost(region.ends) >= target or _nothing(configuration, arithmetic, region)
    except Empty:
        return True


def _nothing(configuration: Configuration, arithmetic: Exact, region: Region) -> bool:
    """Whether intervals alone show that a region holds nothing feasible."""
    box, energy = arithmetic.box(region.ends, "", {}), configuration.energy
    if any(box.interval(configuration.conditions[row])[1] < 0 for row in region.conditions):
        return True
    for value, (low, high) in configuration.domains(region.cells).values():
        least_, most = box.interval(value)
        if low > high or most < low or least_ > high:
            return True
    if configuration.trees is not None:
        seen = configuration.seen({f: box.interval(v) for f, v in configuration.values.items()}, region.cells)
        if seen is None or not configuration.trees.can_accept(seen):
            return True
    rest = box.least(energy.rest)
    for weight, residual in energy.squares:
        least_, most = box.interval(residual)
        rest += weight * max(least_, -most, ZERO) ** 2
    return rest > 0


def proven(
    configuration: Configuration, arithmetic: Exact, region: Region, leaf: Any, target: Fraction, where: str
) -> Fraction | None:
    """What a leaf ``["d", slopes, terms, shares?]`` proves (section 7.2); None: that the region is empty."""
    shape = (str, str, list, (not_negative,) * len(region.ends))
    _, slopes, terms, *shares = conform(leaf, shape[: 4 if len(leaf) == 4 else 3], where)
    share = [Fraction(s) for s in (shares[0] if shares else [0] * len(region.ends))]
    if sum(share) > 1:
        raise Rejected(f"{where}: shares that sum to more than 1")
    if len(terms) > MOST_TERMS:
        raise Rejected(f"{where}: more than {MOST_TERMS} terms (section 9)")
    read = [_term(configuration, region, data, slopes, where) for data in [{}, *terms]]
    try:
        box = arithmetic.box(region.ends, slopes, region.signs)
        above = combined([1] * len(read), [box.above(*term) for term in read])
        bound = configuration.fixed - above.get(ONE, ZERO)
        for k, (term, ends) in enumerate(zip(configuration.terms, region.ends, strict=True)):
            bound += least(term, *ends, above.get(k, ZERO), share[k])
        return None if bound < target and any(configuration.widths) and box.empty else bound
    except Empty:
        return None


def _term(
    configuration: Configuration, region: Region, data: Any, slopes: str, where: str
) -> tuple[Form, str, Fraction, list[tuple[Neuron, Fraction]]]:
    """A term's form but for its multiples of the logit and of neurons' arguments, its slopes, and these."""
    domains, energy, neurons = configuration.domains(region.cells), configuration.energy, region.signs
    shape: dict[str, Any] = {"s?": str, "n?": (not_negative,) * len(neurons)}
    shape["r?"] = {f"{f}?": (not_negative, not_negative) for f in domains}
    if configuration.problem.model.layers:
        shape["g?"] = not_negative
    if configuration.problem.model.plausible:
        shape["b?"] = (not_negative, *[float] * len(energy.squares))
    if region.conditions:
        shape["q?"] = (not_negative,) * len(region.conditions)
    given = conform(data, shape, where)
    own, count = slopes if given["s"] is None else given["s"], sum(configuration.widths)
    if len(own) != count or not set(own) <= {"0", "1"}:
        raise Rejected(f"{where}: slopes: allowed: {count} characters 0 or 1")
    rows: list[tuple[Fraction, Form]] = []
    for f, (value, limits) in domains.items() if given["r"] else ():
        for times, end, side in zip(given["r"][f] or (0.0, 0.0), limits, (1, -1), strict=True):
            if times and abs(end) == inf:
                raise Rejected(f"{where}: a multiplier of {f}, which has no such end here")
            if times:
                rows.append((side * Fraction(times), plus(value, constant(Fraction(end)), -1)))
    if given.get("q"):
        held = (configuration.conditions[row] for row in region.conditions)
        rows += zip(map(Fraction, given["q"]), held, strict=True)
    if given.get("b"):
        mu, *points = map(Fraction, given["b"])
        rows.append((-mu, energy.rest))
        for (weight, residual), rho in zip(energy.squares, points, strict=True):
            rows.append((-2 * mu * weight * rho, plus(residual, constant(-rho / 2))))
    n = zip(neurons.items(), given["n"] or [0.0] * len(neurons), strict=True)
    arguments = [(neuron, side * Fraction(m)) for (neuron, side), m in n if m]
    form = combined([times for times, _ in rows], [row for _, row in rows])
    return form, own, Fraction(given.get("g") or 0), arguments


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
