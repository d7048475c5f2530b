"""When a leaf is accepted (section 7): every function here only ever errs towards rejecting."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

from verify.kernel.box import Budget, highest, parts
from verify.kernel.checks import Empty, Rejected, multipliers, shares
from verify.kernel.configuration import Configuration, Region
from verify.kernel.forms import ONE, ZERO, Form, combined, constant, plus
from verify.kernel.prices import Exact

MOST_TERMS = 64


def closed(configuration: Configuration, arithmetic: Exact, region: Region, target: Fraction) -> bool:
    """Whether a leaf ``["e"]`` is accepted (section 7.1)."""
    try:
        return configuration.costs(region.ends)[0] >= target or _nothing(configuration, arithmetic, region)
    except Empty:
        return True


def _nothing(configuration: Configuration, arithmetic: Exact, region: Region) -> bool:
    """Whether intervals alone show that a region holds nothing feasible."""
    box, energy = arithmetic.box(region.ends, "", {}), configuration.energy
    if any(box.interval(configuration.conditions[row])[1] < 0 for row in region.case[0]):
        return True
    for value, (low, high) in configuration.domains(region.cells).values():
        least, most = box.interval(value)
        if max(low, least) > min(high, most):
            return True
    if configuration.forests:
        intervals = {f: box.interval(value) for f, value in configuration.values.items()}
        if not configuration.can_accept(intervals, region.cells):
            return True
    rest = box.least(energy.rest)
    for weight, residual in energy.squares:
        least, most = box.interval(residual)
        rest += weight * max(least, -most, ZERO) ** 2
    return rest > 0


def proven(
    configuration: Configuration, arithmetic: Exact, region: Region, leaf: Any, target: Fraction
) -> Fraction | None:
    """What ``["d", slopes, terms, shares?, thetas?]`` proves (section 7.2); None: the region is empty."""
    (slopes, terms, *more), count = leaf, sum(configuration.widths)
    share = shares(more[0] if more else None, len(region.ends))
    thetas = multipliers(more[1], 2 * count) if more[1:] else []
    budget = Budget(target - configuration.fixed, list(zip(thetas[::2], thetas[1::2], strict=True)))
    if len(terms) > MOST_TERMS:
        raise Rejected(f"more than {MOST_TERMS} terms (section 9)")
    read = [_term(configuration, region, given, slopes) for given in [{}, *terms]]
    try:
        box = arithmetic.box(region.ends, slopes, region.signs, budget)
        above = combined([1] * len(read), [box.above(*term) for term in read])
        bound = configuration.fixed - above.get(ONE, ZERO)
        for k, part in enumerate(parts(configuration.moved, above)):
            bound -= highest(configuration.terms[k], *region.ends[k], part, Fraction(1), share[k])
        return None if bound < target and count and box.empty else bound
    except Empty:
        return None


def _term(
    configuration: Configuration, region: Region, given: dict[str, Any], slopes: str
) -> tuple[Form, str, Fraction, list[tuple[int, Fraction]]]:
    """A term's form but for its multiples of the logit and of neurons' arguments, its slopes, and these."""
    model, energy, conditions = configuration.problem.model, configuration.energy, region.case[0]
    known = {"s": True, "g": model.layers, "n": True, "r": True, "q": conditions, "b": model.plausible}
    if unknown := [key for key in given if not known.get(key)]:
        raise Rejected(f"unknown key {unknown[0][:40]!r} here")
    own, count = given.get("s", slopes), sum(configuration.widths)
    if len(own) != count or not set(own) <= {"0", "1"}:
        raise Rejected(f"slopes: allowed: {count} characters 0 or 1")
    rows = [configuration.conditions[row] for row in conditions]
    times = multipliers(given.get("q"), len(rows))
    domains = configuration.domains(region.cells)
    for f, pair in given.get("r", {}).items():
        if f not in domains:
            raise Rejected(f"unknown key {f[:40]!r}: it has no domain here")
        value, limits = domains[f]
        for m, end, side in zip(multipliers(pair, 2), limits, (1, -1), strict=True):
            if m and abs(end) == inf:
                raise Rejected(f"a multiplier of {f}, which has no such end here")
            if m:
                times.append(side * m)
                rows.append(plus(value, constant(Fraction(end)), -1))
    if "b" in given:
        [mu], points = multipliers(given["b"][:1], 1), list(map(Fraction, given["b"][1:]))
        if len(points) != len(energy.squares):
            raise Rejected(f"b: allowed: a list of {1 + len(energy.squares)}")
        times += [-mu, *(-2 * mu * w * rho for (w, _), rho in zip(energy.squares, points, strict=True))]
        rows.append(energy.rest)
        rows += [plus(r, constant(-rho / 2)) for (_, r), rho in zip(energy.squares, points, strict=True)]
    own_signs = zip(region.signs.items(), multipliers(given.get("n"), len(region.signs)), strict=True)
    [g] = multipliers([given.get("g", 0.0)], 1)
    return combined(times, rows), own, g, [(neuron, side * m) for (neuron, side), m in own_signs if m]
