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

from milp_recourse.judge.proposal import Proposal
from milp_recourse.problem.cost import SMALLEST, Cost
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Options

USUAL_COST, USUAL_LENGTH = (-7, 14), (-4, 10)
"""Exponents of two: if the largest cost, or the longest lever in its cost scale, lies between these powers,
it is left as it is."""

_COST, _LENGTH = 5, 3
"""Exponents of two that they are brought to otherwise."""

_FURTHEST = 400
"""Costs and scales whose exponents are larger in absolute value are left as they are."""


Made = dict[tuple[int, int, int], Cost | None]
"""Costs of usual size by the identity of the cost as it was, and the exponents."""


def cost_units(instance: Instance, made: Made | None = None) -> tuple[Instance, float]:
    """The instance with costs of usual size, and the factor, a power of two, that costs are multiplied by.

    Parameters
    ----------
    made
        Shared by a population: people with one cost then have one cost again, as lowering them together
        needs.
    """
    longer, larger = _exponents(instance)
    if not (longer or larger):
        return instance, 1.0
    known, key = {} if made is None else made, (id(instance.cost), longer, larger)
    if key not in known:
        known[key] = instance.cost.in_units(longer, larger)
    cost = known[key]
    return (instance, 1.0) if cost is None else (replace(instance, cost=cost), 2.0**larger)


def in_own_units(proposal: Proposal, factor: float) -> Proposal:
    """A proposal for the instance of :func:`cost_units`, its bound divided by the factor again."""
    bound = proposal.lower_bound
    if bound is None or factor == 1.0:
        return proposal
    return replace(proposal, lower_bound=bound / factor if bound / factor >= SMALLEST else 0.0)


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
    scaled = all(cost.label or cost.straight for cost in map(instance.lever_cost, instance.levers))
    length = math.frexp(ratio)[1] if scaled else 0
    cost = math.frexp(dearest)[1]
    if math.isinf(ratio) or max(abs(length), abs(cost)) > _FURTHEST:
        return 0, 0
    fits = USUAL_LENGTH[0] <= length <= USUAL_LENGTH[1], USUAL_COST[0] <= cost <= USUAL_COST[1]
    return 0 if fits[0] or not scaled else length - _LENGTH, 0 if fits[1] else _COST - cost


def _sizes(instance: Instance) -> tuple[float, float]:
    """The longest lever in its cost scale, and about what the dearest values of all levers cost together (0
    if that is too large for a double)."""
    ratio, total, largest = 0.0, 0.0, 0.0
    for name, (low, high) in instance.levers.items():
        cost = instance.lever_cost(name)
        if cost.graded:
            ratio = max(ratio, (high - low) / cost.length)
        fixed, paid, entry = cost.priced(max(cost.about(low), cost.about(high)))
        total, largest = total + fixed + paid, max(largest, entry)
    return ratio, total + largest if math.isfinite(total + largest) else 0.0
