"""Costs and their scales in units of their own size, for searches with absolute tolerances.

Where the longest lever is far from one cost scale (a scale of 1e6 under bounds of 10, say), all scales
are multiplied by 2^j and the coefficients by 2^j, that of the squares by 4^j: the same cost. Then all
coefficients are multiplied by 2^k: the same problem with costs times 2^k. Powers of two round nothing.
Usual costs stay as they are. Setting a missing value costs the same in any scale: where one can be set, the
scales stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from milp_recourse.backends.protocol import Proposal
from milp_recourse.instance import Instance
from milp_recourse.judge import deltas

USUAL_COST, USUAL_LENGTH = (-7, 14), (-4, 10)
"""Binary exponents of largest costs, and of longest levers in cost scales, that are left alone."""

_COST, _LENGTH = 5, 3
_FURTHEST = 400
_SMALLEST = 2.0**-960
"""A bound below this, which times a power of two may round, is no bound."""


def in_cost_units(solve: Callable[[Instance], Proposal], instance: Instance) -> Proposal:
    """What ``solve`` proposes for the instance with costs of usual size, its bound in the instance's own."""
    longer, larger = _exponents(instance)
    cost = instance.cost
    parts = {part: getattr(cost, part) for part in ("l2_squared", "l1", "linf", "l0")}
    powers = {"l2_squared": 2 * longer, "l1": longer, "linf": longer, "l0": 0}
    parts = {part: math.ldexp(parts[part], powers[part] + larger) for part in parts}
    scale = {name: math.ldexp(s, longer) for name, s in cost.scale.items()}
    numbers = [p for name, p in parts.items() if getattr(cost, name)] + list(scale.values())
    if not (longer or larger) or any(math.isinf(p) or p < _SMALLEST for p in numbers):
        return solve(instance)
    factor = 2.0**larger
    proposal = solve(replace(instance, cost=replace(cost, **parts, scale=scale)))
    bound = proposal.lower_bound
    if bound is not None:
        bound = bound / factor if bound / factor >= _SMALLEST else 0.0
    return replace(proposal, lower_bound=bound)


def _exponents(instance: Instance) -> tuple[int, int]:
    """j and k; zeros where nothing is to be changed or the numbers are no doubles."""
    ratios = [
        (high - low) / instance.cost.scale[name]
        for name, (low, high) in instance.levers.items()
        if instance.cost.uses_scale and instance.feature(name).kind != "categorical"
    ]
    scaled = not instance.cost.quantiles and not instance.missing & instance.levers.keys()
    length = math.frexp(max(ratios, default=0.0))[1] if scaled else 0
    cost = math.frexp(_largest(instance))[1]
    if math.isinf(max(ratios, default=0.0)) or max(abs(length), abs(cost)) > _FURTHEST:
        return 0, 0
    usual = USUAL_LENGTH[0] <= length <= USUAL_LENGTH[1], USUAL_COST[0] <= cost <= USUAL_COST[1]
    return 0 if usual[0] or not scaled else length - _LENGTH, 0 if usual[1] else _COST - cost


def _largest(instance: Instance) -> float:
    """The cost of the dearest values of all levers together; 0 where it is no double."""
    ends = [deltas(instance, {name: pair[k] for name, pair in instance.levers.items()}) for k in (0, 1)]
    far = {
        name: Fraction(1)
        if instance.feature(name).kind == "categorical"
        else max(abs(end[name]) for end in ends)
        for name in instance.levers
    }
    try:
        return float(instance.cost.exact(far, instance.weights))
    except OverflowError:
        return 0.0
