"""The grid's points of one applicant: what the scripts beside this file judge by different densities."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.grid import grid_values, looks_accepted


def points(instance: Instance, mask: Sequence[str]) -> tuple[NDArray, NDArray, NDArray]:
    """Counterfactual rows (n, d), whether the network accepts them, squared costs with weights 1."""
    names = [f.name for f in instance.features]
    chosen = np.array(list(product(*(grid_values(instance, lever) for lever in mask))))
    actions, cost = np.full((len(chosen), len(names)), np.nan), np.zeros(len(chosen))
    for k, lever in enumerate(mask):
        actions[:, names.index(lever)] = chosen[:, k]
        cost += ((chosen[:, k] - instance.factual[lever]) / instance.cost.scale[lever]) ** 2
    rows = instance.scm.counterfactual(instance.factual_row, actions)
    return rows, looks_accepted(instance, rows), cost
