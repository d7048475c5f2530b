"""Refuses problems whose numbers are too large, or whose costs are too small, for a search in doubles.

Costs between these limits are brought to usual size, for searches with absolute tolerances. Where the longest
lever is far from one cost scale (a scale of 1e6 under bounds of 10, say), all scales are multiplied by 2^j
and the coefficients by 2^j, that of the squares by 4^j: the same cost. Then all coefficients are multiplied
by 2^k: the same problem with costs times 2^k. Powers of two round nothing. Costs that are of usual size
(:data:`USUAL_COST`) stay as they are. Setting a missing value costs its weight times the coefficients,
whatever the scale; so where one can be set, j is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.conditions import TRUE, Row, factors, leaves
from milp_recourse.problem.cost import SMALLEST, Cost
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Gamma, Normal
from milp_recourse.problem.options import Options
from milp_recourse.program.lower import reachable

LARGEST_COST = 1e300
SMALLEST_COST = 1e-270
"""Numbers made of smaller costs can be subnormal doubles, which have fewer digits; with bounds of such costs
a search would not end."""

LARGEST_NUMBER = 1e150
"""Squares, differences and long sums of numbers up to this size do not overflow a double."""

SMALLEST_SHARE = 1e-100
"""Of a noise's spread. The squares of smaller ones are lost among what underflows."""

LARGEST_GAIN = 2.0**80
"""What underflows in a layer is multiplied by at most this on the way to the logit
(:data:`milp_recourse.engine.networks.numerics.TINY`)."""


def too_large(*instances: Instance) -> str | None:
    """The reason why a search in doubles could overflow, or None if it cannot.

    A number that overflows becomes infinite, and an action that merely costs a lot would look infeasible.
    Several applicants must be of one model with the same levers
    (:func:`milp_recourse.program.lower.of_one_model`); their values are taken together. None then holds
    for each of them. A reason may hold for none of them, so the caller must then ask for one at a time.
    """
    reach = reachable(*instances)
    found = _values(reach) or _conditions(instances, reach) or _costs(instances)
    return found or _density(instances, reach) or _network(instances[0], reach)


def _values(reach: Mapping[str, Enclosure]) -> str | None:
    for name, ends in reach.items():
        if max(abs(ends.lower), abs(ends.upper)) > LARGEST_NUMBER:
            return f"{name!r} could pass {LARGEST_NUMBER:g} in size: narrow the bounds or change its unit"
    return None


def _conditions(instances: Sequence[Instance], reach: Mapping[str, Enclosure]) -> str | None:
    largest = {name: max(abs(ends.lower), abs(ends.upper)) for name, ends in reach.items()}
    demands = (i.demand for i in instances if i.demand != TRUE)
    rows = (leaf for demand in demands for leaf in leaves(demand) if isinstance(leaf, Row))
    for row in {one for one in rows if not _bounds_a_value(one)}:
        if sum(abs(c) * math.prod(largest[f] for f in factors(of)) for of, c in row.terms) > LARGEST_NUMBER:
            return f"the sum of a condition could pass {LARGEST_NUMBER:g}: divide it by a large number"
    return None


def _bounds_a_value(row: Row) -> bool:
    """Whether a row is a bound of one value, as many thousand are of people near data."""
    of, c = row.terms[0]
    return len(row.terms) == 1 and isinstance(of, str) and c in (1, -1)


def _costs(instances: Sequence[Instance]) -> str | None:
    light, heavy, faults = Fraction(0), Fraction(0), list[str]()
    for name in instances[0].levers:
        own = [i.lever_costs[name] for i in instances]
        for scale in {scale for cost in own if cost.graded for scale in (cost.rise, cost.fall)}:
            if not 1 / LARGEST_NUMBER <= scale <= LARGEST_NUMBER:
                faults.append(f"cost.scale of {name!r} is {scale:g}: its square leaves the range of a double")
        bent = [(i.levers[name], cost) for i, cost in zip(instances, own, strict=True) if not cost.straight]
        if any(piece.rate > LARGEST_NUMBER for ends, cost in bent for piece in cost.within(*ends)):
            faults.append(f"cost: a change of {name!r} by 1 could have a size above {LARGEST_NUMBER:g}")
        ends = [end for i in instances for end in i.levers[name]]
        known = sorted((c for c in own if not math.isnan(c.factual)), key=lambda cost: cost.factual)
        extreme = [*known[:1], *known[-1:], *[c for c in own if math.isnan(c.factual)][:1]]
        size = max(cost.size(end) for cost in extreme for end in (min(ends), max(ends)))
        by_weight = sorted(own, key=lambda cost: cost.weight)
        light += sum(by_weight[0].prices.paid(size))
        heavy += sum(by_weight[-1].prices.paid(size))
    if heavy > LARGEST_COST:
        return f"an action could cost more than {LARGEST_COST:g}: narrow the bounds or enlarge cost.scale"
    if 0 < light < SMALLEST_COST:
        small = f"no action could cost as much as {SMALLEST_COST:g}: reduce cost.scale or enlarge the weights"
        faults.append(small)
    return faults[0] if faults else None


def _density(instances: Sequence[Instance], reach: Mapping[str, Enclosure]) -> str | None:
    r"""Of every noise that plausibility weighs, :math:`|x| / spread` and its square."""
    one = instances[0]
    for name in one.levers if any(i.plausible for i in instances) else ():
        noise = one.scm.mechanisms[name].noise
        if not isinstance(noise, Normal | Gamma):
            continue
        spread = noise.sd if isinstance(noise, Normal) else noise.scale
        size = max(abs(reach[name].lower), abs(reach[name].upper)) / Fraction(spread)
        if not 1 / LARGEST_NUMBER <= spread <= LARGEST_NUMBER or 0 < size < SMALLEST_SHARE:
            return f"the noise of {name!r} has spread {spread:g}: bring that near the range of its values"
        if size > LARGEST_NUMBER or (isinstance(noise, Gamma) and noise.shape > LARGEST_NUMBER):
            return f"the energy of {name!r} could pass {LARGEST_NUMBER:g}: enlarge its noise or its unit"
    return None


def _network(instance: Instance, reach: Mapping[str, Enclosure]) -> str | None:
    r"""Sums of absolute values through the layers, :math:`m_{k+1} = |W_k| m_k + |b_k|`, and absolute weights
    from each hidden layer to the logit, :math:`|W_K| \cdots |W_{k+1}|`."""
    network = instance.classifier
    if not isinstance(network, ReluNetwork):
        return None
    sizes: list[float] = []
    for feature in instance.features:
        ends = reach[feature.name]
        largest = float(max(abs(ends.lower), abs(ends.upper)))
        lookup = feature.lookup if feature.by_label else None
        sizes += [largest] if lookup is None else np.abs(lookup).max(axis=0).tolist()
    size = np.array(sizes)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            sums = size = np.abs(weight) @ size + np.abs(bias)
            if k + 1 < len(network.weights):
                size = network.bent(k, sums)
            if not max(sums.max(), size.max()) <= LARGEST_NUMBER:  # nan too
                return f"the classifier's numbers could pass {LARGEST_NUMBER:g}: scale its weights down"
        gain = np.ones(1)
        for weight in network.weights[:0:-1]:
            gain = gain @ np.abs(weight)
            if not gain.max() <= LARGEST_GAIN:
                return (
                    f"the classifier multiplies what its first layer sums by more than {LARGEST_GAIN:g}: "
                    "scale its later weights down"
                )
    return None


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
    costs = (instance.lever_costs[name] for name in instance.levers)
    scaled = all(cost.label or cost.straight for cost in costs)
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
        cost = instance.lever_costs[name]
        if cost.graded:
            ratio = max(ratio, (high - low) / cost.length)
        fixed, paid, entry = cost.dearest(low, high)
        total, largest = total + fixed + paid, max(largest, entry)
    return ratio, total + largest if math.isfinite(total + largest) else 0.0
