"""Instances with costs of usual size, for searches with absolute tolerances.

Where the longest lever is far from one cost scale (a scale of 1e6 under bounds of 10, say), all scales
are multiplied by 2^j and the coefficients by 2^j, that of the squares by 4^j: the same cost. Then all
coefficients are multiplied by 2^k: the same problem with costs times 2^k. Powers of two round nothing.
Costs that are of usual size (:data:`USUAL_COST`) stay as they are. Setting a missing value costs its weight
times the coefficients, whatever the scale; so where one can be set, j is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from milp_recourse.judge import deltas
from milp_recourse.judge.proposal import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Options

USUAL_COST, USUAL_LENGTH = (-7, 14), (-4, 10)
"""Exponents of two: if the largest cost, or the longest lever in its cost scale, lies between these powers,
it is left as it is."""

_COST, _LENGTH = 5, 3
"""Exponents of two that they are brought to otherwise."""

_FURTHEST = 400
"""Costs and scales whose exponents are larger in absolute value are left as they are."""

_SMALLEST = 2.0**-960
"""Below this, multiplying by a power of two may round up; such a bound counts as 0."""


def cost_units(instance: Instance) -> tuple[Instance, float]:
    """The instance with costs of usual size, and the factor, a power of two, that costs are multiplied by."""
    longer, larger = _exponents(instance)
    if not (longer or larger):
        return instance, 1.0
    cost = instance.cost
    parts = {part: getattr(cost, part) for part in ("l2_squared", "l1", "linf", "l0")}
    powers = {"l2_squared": 2 * longer, "l1": longer, "linf": longer, "l0": 0}
    parts = {part: math.ldexp(parts[part], powers[part] + larger) for part in parts}
    scale = {name: math.ldexp(s, longer) for name, s in cost.scale.items()}
    decrease = {name: math.ldexp(s, longer) for name, s in cost.decrease.items()}
    numbers = [p for name, p in parts.items() if getattr(cost, name)]
    numbers += [*scale.values(), *decrease.values()]
    if any(math.isinf(p) or p < _SMALLEST for p in numbers):
        return instance, 1.0
    # these scales are final: none is to be read off the factual again
    own: Any = {**parts, "scale": scale, "decrease": decrease, "relative": frozenset()}
    return replace(instance, cost=replace(cost, **own)), 2.0**larger


def in_own_units(proposal: Proposal, factor: float) -> Proposal:
    """A proposal for the instance of :func:`cost_units`, its bound divided by the factor again."""
    bound = proposal.lower_bound
    if bound is None or factor == 1.0:
        return proposal
    return replace(proposal, lower_bound=bound / factor if bound / factor >= _SMALLEST else 0.0)


def in_cost_units(solve: Callable[[Instance], Proposal], instance: Instance) -> Proposal:
    """Solve the instance with costs of usual size; the proposal's bound is in the instance's own costs."""
    scaled, factor = cost_units(instance)
    return in_own_units(solve(scaled), factor)


def options_for_units(options: Options, factor: float) -> Options:
    """Options to solve the instance of :func:`cost_units` with: ``watch`` gets costs divided by the
    factor."""
    watch = options.watch
    if watch is None:
        return options
    return replace(options, watch=lambda cost, bound: watch(cost / factor, bound / factor))


def _exponents(instance: Instance) -> tuple[int, int]:
    """j and k of the module's docstring; 0 for what stays as it is."""
    ratio, dearest = _sizes(instance)
    scaled = not instance.cost.quantiles and not instance.missing & instance.levers.keys()
    length = math.frexp(ratio)[1] if scaled else 0
    cost = math.frexp(dearest)[1]
    if math.isinf(ratio) or max(abs(length), abs(cost)) > _FURTHEST:
        return 0, 0
    fits = USUAL_LENGTH[0] <= length <= USUAL_LENGTH[1], USUAL_COST[0] <= cost <= USUAL_COST[1]
    return 0 if fits[0] or not scaled else length - _LENGTH, 0 if fits[1] else _COST - cost


def _sizes(instance: Instance) -> tuple[float, float]:
    """The longest lever in its cost scale, and about what the dearest values of all levers cost together (0
    if that is too large for a double)."""
    cost, ratio, total, largest = instance.cost, 0.0, 0.0, 0.0
    uses_scale = cost.uses_scale
    for name, (low, high) in instance.levers.items():
        by_label, far, step = instance.feature(name).kind == "categorical", 1.0, 0.0
        if name in cost.quantiles or name in instance.missing:
            far = max(float(abs(deltas(instance, {name: end})[name])) for end in (low, high))
        elif not by_label:
            x = instance.factual[name]
            far = max(abs(low - x), abs(high - x))
        if uses_scale:
            scale = min(cost.scale[name], cost.decrease.get(name, math.inf))
            step = far / scale
            ratio = ratio if by_label else max(ratio, (high - low) / scale)
        weight = instance.weight(name)
        total += weight * (cost.l0 + step * (cost.l1 + cost.l2_squared * step))
        largest = max(largest, weight * cost.linf * step)
    return ratio, total + largest if math.isfinite(total + largest) else 0.0
