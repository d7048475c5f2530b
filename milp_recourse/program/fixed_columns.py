"""Problems with thousands of columns that no action moves: the same problem, with a few in their place.

What fixed columns add to the arguments of the first layer's units are numbers. Each is written as a sum of
few doubles, exactly: an error-free product of every weight and value, and then the correctly rounded sum,
that of what it leaves, and so on. These doubles are the weights of new columns whose value is 1.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import StructuralCausalModel

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
    if not isinstance(network, ReluNetwork) or asked or len(instance.features) < MANY:
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
