"""A box of cells as a problem of its own: the same applicant, with domains in place of trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.features import with_columns
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.presolve import driven

FAR = 2.0**1000
"""Beyond any value of a feature (:mod:`milp_recourse.program.magnitude`): domains are finite."""


def region(
    instance: Instance,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    labels: Mapping[str, int],
    outward: bool,
) -> Instance | None:
    """The instance restricted to a box of cells, with a classifier that accepts everything; None where a
    domain would be empty.

    A feature's domain is what its cells leave, and so is the range of what an action may set.

    Parameters
    ----------
    first, last
        Cells per column of the ensemble, (columns,).
    labels
        The label of features that enter the ensemble by their labels' numbers: sets of labels are no
        intervals of cells. A feature that is not in it may have any label.
    outward
        Whether to add a double at each end of the domain of a feature that other actions move. Its value is
        a real number whose nearest double lies in the cell, so that without these some values would be lost.
    """
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    ranges: dict[str, tuple[float, float]] = {}
    features = []
    for feature, (column, *_) in with_columns(instance.features):
        low, high = -math.inf, math.inf
        if feature.name in labels:
            low = high = float(labels[feature.name])
        elif not feature.by_label:
            low, high = _ends(forest.cuts[column], int(first[column]), int(last[column]))
        lever = instance.levers.get(feature.name)
        if lever is not None and max(lever[0], low) <= min(lever[1], high):
            ranges[feature.name] = max(lever[0], low), min(lever[1], high)
        if outward and driven(instance, feature.name, instance.levers):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        domain = feature.domain or (-FAR, FAR)
        low, high = max(low, domain[0]), min(high, domain[1])
        if low > high:
            return None
        unbounded = feature.domain is None and (low, high) == (-FAR, FAR)
        features.append(feature if unbounded else replace(feature, domain=(low, high)))
    actionable = tuple(name for name in instance.preferences.actionable if name in ranges)
    preferences = replace(instance.preferences, actionable=actionable, ranges=ranges)
    return accepting(replace(instance, features=tuple(features), preferences=preferences))


def accepting(instance: Instance) -> Instance:
    """The instance with a network that accepts everything in place of its trees."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    everything = ReluNetwork.from_layers([(np.zeros((1, forest.inputs)), np.ones(1))], "float64")
    return replace(instance, classifier=everything, accept=Acceptance(0.0))


def with_domains(instance: Instance) -> Instance:
    """The same, with a domain for every feature whose value actions may move: what cells ask of it is one."""
    features = (
        f
        if f.domain is not None or f.categories is not None or not driven(instance, f.name, instance.levers)
        else replace(f, domain=(-FAR, FAR))
        for f in instance.features
    )
    return accepting(replace(instance, features=tuple(features)))


def _ends(cuts: NDArray[np.float64], first: int, last: int) -> tuple[float, float]:
    """The first and last double of the cells first..last; infinite at the ends."""
    low = -math.inf if first == 0 else math.nextafter(float(cuts[first - 1]), math.inf)
    return low, math.inf if last == len(cuts) else float(cuts[last])
