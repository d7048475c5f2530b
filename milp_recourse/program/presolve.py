"""The same problem, with less in it: conditions as masks and domains, and no columns that no action moves.

One alternative of an applicant's conditions is written as a mask and domains, as far as these can express it.
Sums, and conditions on the values of features that others move, cannot be expressed so. They stay demands,
which become rows of the neutral program.

Where no action moves thousands of columns, a few take their place. What they add to the arguments of the
first layer's units are numbers. Each is written as a sum of few doubles, exactly: an error-free product of
every weight and value, and then the correctly rounded sum, that of what it leaves, and so on. These doubles
are the weights of new columns whose value is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import TRUE, Counted, Row, Switched, leaves, unlabelled
from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import StructuralCausalModel

Literal = Row | Switched | Counted


@dataclass(frozen=True)
class Folded:
    """A problem whose conditions have been written as mask and domains.

    Attributes
    ----------
    instance
        The problem without conditions; its ``demands`` are what mask and domains cannot express.
    held
        Features that the conditions want acted on, which ``instance`` does not ask: holding them is free.
    """

    instance: Instance
    held: tuple[str, ...]

    def action(self, action: dict[str, float]) -> dict[str, float]:
        """An action of ``instance`` as one of the original problem: features in ``held`` are held, too."""
        return action | {name: self.instance.factual[name] for name in self.held if name not in action}


def fold(instance: Instance, literals: Iterable[Literal]) -> Folded | None:
    """The problem with all literals in place of its conditions; None if they contradict each other.

    A count is left out beside other demands, which only searches without counts know.
    """
    literals = list(literals)
    wanted = {one.feature: one.acted for one in literals if isinstance(one, Switched)}
    if any(wanted[one.feature] != one.acted for one in literals if isinstance(one, Switched)):
        return None
    mask = tuple(name for name in instance.preferences.actionable if wanted.get(name, True))
    features = dict(instance.by_name)
    undriven = {name for name in features if not driven(instance, name, mask)}
    demands: list[Literal] = []
    for one in literals:
        if isinstance(one, Switched):
            continue
        if isinstance(one, Counted) or len(one.terms) != 1 or one.terms[0][0] not in undriven:
            demands.append(one)
            continue
        name = one.terms[0][0]
        narrowed = _narrowed(features[name], instance.factual[name], one)
        if narrowed is None:
            return None
        features[narrowed.name] = narrowed
    preferences = replace(instance.preferences, actionable=mask, conditions=())
    folded = replace(
        instance,
        features=tuple(features.values()),
        preferences=preferences,
        conditions=(),
        demands=(),
        reference=None,
    )
    held = []
    for name, acted in wanted.items():
        if not acted:
            continue
        if name not in folded.levers:
            return None
        if _held_freely(folded, name, mask):
            held.append(name)
        elif name not in undriven or not _must_move(features[name], instance.factual[name]):
            demands.append(Switched(name, True))
    others = [one for one in demands if not isinstance(one, Counted)]
    return Folded(replace(folded, demands=tuple(others or demands)) if demands else folded, tuple(held))


def _must_move(feature: Feature, x: float) -> bool:
    """Whether a feature that no other moves must be acted on, because its factual is outside its domain."""
    return feature.domain is not None and (x < feature.domain[0] or x > feature.domain[1])


def driven(instance: Instance, name: str, mask: Iterable[str]) -> bool:
    """Whether an action on another feature of the mask can move the feature."""
    return any(name in instance.scm.descendants({other}) for other in mask if other != name)


def _narrowed(feature: Feature, x: float, row: Row) -> Feature | None:
    """The feature with its domain cut to where a row on its value alone holds; None if nothing is left.

    The new end is rounded inward to a double, which excludes no value, since the values are doubles. A
    feature without a domain gets the smallest one that contains all its possible values.
    """
    [(_, c)] = row.terms
    end = row.at_least / c
    ends = (x, x, *(feature.action_bounds if feature.actionable else ()))
    low, high = feature.domain or (min(ends), max(ends))
    if c > 0 and end > Fraction(low):
        if end > Fraction(high):
            return None
        low = round_up(end)
    elif c < 0 and end < Fraction(high):
        if end < Fraction(low):
            return None
        high = round_down(end)
    return replace(feature, domain=(low, high)) if low <= high else None


def without_conditions(instance: Instance) -> Instance:
    """The same problem without conditions and demands."""
    if not (instance.all_conditions or instance.demands):
        return instance
    return replace(
        instance, conditions=(), demands=(), preferences=replace(instance.preferences, conditions=())
    )


def folds_away(instance: Instance) -> bool:
    """Whether every case of the conditions can be expressed by mask and domains, without demands."""
    mask = instance.preferences.actionable
    for one in leaves(unlabelled(instance.demand)):
        if isinstance(one, Row):
            of = one.terms[0][0]
            if len(one.terms) != 1 or not isinstance(of, str) or driven(instance, of, mask):
                return False
        forced = (isinstance(one, Switched) and one.acted) or (isinstance(one, Counted) and one.at_least > 0)
        names = [one.feature] if isinstance(one, Switched) else list(instance.levers)
        if forced and not all(
            _held_freely(instance, name, mask) for name in names if name in instance.levers
        ):
            return False
    return True


def told_apart_by_scenarios(instance: Instance) -> set[str]:
    """The features of which a scenario tells whether they are acted on, even at their factual values."""
    found, scm = set[str](), instance.scm
    for scenario in instance.scenarios:
        missed, noisy = ({f for f, e in one.items() if e} for one in (scenario.missed, scenario.noise))
        found |= {f for f in scm.features if scm.descendants({f}) & noisy} | scm.descendants(missed | noisy)
    return found


def _held_freely(instance: Instance, name: str, mask: tuple[str, ...]) -> bool:
    """Whether holding a lever has the same cost and effect, in every scenario, as not acting on it."""
    costs = instance.lever_costs[name].prices.fixed or instance.plausible
    free = not costs and name not in told_apart_by_scenarios(instance)
    return free and instance.may_hold(name) and not driven(instance, name, mask)


MANY = 1000
"""With fewer fixed features problems stay as they are."""

MOST_NEW = 8
"""More new columns than any usual numbers need."""

_SAFE = 1e-140, 1e140
"""Factors that are 0 or between these have products whose errors are doubles."""

_SPLIT = 134217729.0  # 2^27 + 1


def without_fixed(instance: Instance) -> tuple[Instance, list[int]] | None:
    """The problem with few columns, and the numbers of the features that it has kept, which come first; None
    where few are fixed, or where more than the classifier may ask for them.

    Its logits are the same rational numbers, and so are bounds and costs; the deployed model, which rounds
    its own sum, can only be asked of the problem as it was.
    """
    network, scm = instance.classifier, instance.scm
    asked = instance.plausible or instance.scenarios or instance.demand != TRUE
    if not isinstance(network, ReluNetwork) or asked:
        return None
    moved = scm.descendants(set(instance.levers))
    kept = moved.union(*(scm.parents(name) for name in moved), instance.preferences.actionable)
    stays = [f.name in kept or f.domain is not None for f in instance.features]
    if stays.count(False) < MANY:
        return None
    read = np.repeat(stays, [len(f.columns) for f in instance.features])
    row = instance.model_rows(instance.factual_row)
    parts = [_in_doubles(weights, row[~read]) for weights in network.weights[0][:, ~read]]
    if None in parts:
        return None
    new = np.zeros((len(parts), max(map(len, parts))))  # type: ignore[arg-type]
    for place, part in zip(new, parts, strict=True):
        place[: len(part)] = part  # type: ignore[arg-type]
    weight = np.hstack([network.weights[0][:, read], new])
    features = [f for f, one in zip(instance.features, stays, strict=True) if one]
    known = {f.name for f in features}
    ones = [Feature("'" * (1 + max(map(len, known), default=0)) + str(k)) for k in range(new.shape[1])]
    made = replace(
        instance,
        features=(*features, *ones),
        scm=StructuralCausalModel(
            [*(f.name for f in features), *(one.name for one in ones)],
            {name: scm.mechanisms[name] for name in moved if scm.parents(name)},
            scm.name,
        ),
        classifier=replace(network, weights=(weight, *network.weights[1:]), dtype="float64"),
        factual={f.name: instance.factual[f.name] for f in features} | {one.name: 1.0 for one in ones},
        conditions=(),  # they hold whatever is done: nothing is demanded
        preferences=replace(instance.preferences, conditions=()),
        reference=None,
    )
    return made, [k for k, one in enumerate(stays) if one]


def _in_doubles(weights: NDArray[np.float64], values: NDArray[np.float64]) -> list[float] | None:
    """Doubles whose exact sum is that of all weights times values; None where that takes too many, or numbers
    are very small or large."""
    sizes = np.abs([weights, values])
    if ((sizes != 0.0) & ~((_SAFE[0] < sizes) & (sizes < _SAFE[1]))).any():
        return None
    products = weights * values
    (a, b), (c, d) = _halves(weights), _halves(values)
    left = [*products.tolist(), *(b * d - (((products - a * c) - b * c) - a * d)).tolist()]
    found: list[float] = []
    while (total := fsum(left)) != 0.0:
        if len(found) == MOST_NEW:
            return None
        found.append(total)
        left.append(-total)
    return found


def _halves(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two numbers of half the digits whose sum is exact (Dekker 1971)."""
    large = _SPLIT * x
    high = large - (large - x)
    return high, x - high
