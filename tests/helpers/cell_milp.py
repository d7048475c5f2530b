"""A plain cell MILP through SciPy's HiGHS: a second formulation of the same problem, with nothing clever.

One binary per cell of every lever (exactly one chosen), one continuous variable per leaf (exactly one per
tree), and z_leaf <= the sum of the lever's cells from which the leaf can be reached, lever by lever. Leaves
are found by walking the trees for every cell's value, by the deployed comparison.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Instance
from tests.helpers.tree_samples import candidates

CLEAR = 1e-5
"""Scores this close to the threshold are left to exact arithmetic."""

TOLERANCE = 1e-6
"""Relative and absolute, of a solver whose own tolerances are 1e-6 and 1e-7."""


def between_scores(instance: Instance) -> Instance:
    """The instance with its threshold moved off the scores that can be reached.

    Leaf values have at most 3 digits and there are at most 5 trees, so scores are 2e-4 apart.
    """
    accept = instance.accept
    shift = 5e-5 if accept.strict else -5e-5
    return replace(instance, accept=replace(accept, threshold=accept.threshold + shift))


def solve_cells(instance: Instance) -> float | None:
    """The least cost, inf where there is none; None where scores too close to the threshold decide."""
    first, second = (_solve(instance, shift) for shift in (CLEAR, -CLEAR))
    if first is None or second is None:
        return None
    if first == second:
        return first
    return first if abs(first - second) <= TOLERANCE * (1 + abs(second)) < np.inf else None


def _solve(instance: Instance, shift: float) -> float | None:  # noqa: PLR0912
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    choices: dict[str, list[float | None]] = {}
    for f in instance.features:
        x = instance.factual[f.name]
        stays = f.name in instance.missing or f.domain is None or f.domain[0] <= x <= f.domain[1]
        values = list(candidates(instance, f.name)) if f.name in instance.levers else []
        choices[f.name] = ([None] if stays else []) + values
        if not choices[f.name]:
            return float("inf")
    offsets = dict(zip(choices, np.cumsum([0, *(len(v) for v in choices.values())]), strict=False))
    count = sum(len(v) for v in choices.values())
    cost, widest = np.zeros(count), np.zeros(count)
    for name, values in choices.items():
        for k, value in enumerate(values):
            if value is not None:
                paid = map(float, instance.lever_costs[name].paid(value))
                cost[offsets[name] + k], widest[offsets[name] + k] = paid
    rows: list[dict[int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def add(row: dict[int, float], least: float, most: float) -> None:
        rows.append(row)
        low.append(least)
        high.append(most)

    for name, values in choices.items():
        add({offsets[name] + k: 1.0 for k in range(len(values))}, 1.0, 1.0)
    score: dict[int, float] = {}
    column = count
    for tree in forest.trees:
        leaves = [n for n in range(len(tree.left)) if tree.left[n] == -1]
        add({column + j: 1.0 for j in range(len(leaves))}, 1.0, 1.0)
        for j, leaf in enumerate(leaves):
            score[column + j] = float(tree.value[leaf])
            path = _path(tree, leaf)
            for name, values in choices.items():
                reach = {
                    offsets[name] + k: -1.0 for k, v in enumerate(values) if _takes(instance, name, v, path)
                }
                if len(reach) < len(values):
                    add({column + j: 1.0} | reach, -np.inf, 0.0)
        column += len(leaves)
    add(score, len(forest.trees) * instance.accept.above + shift, np.inf)
    for name, values in choices.items():
        add(
            {column: -1.0} | {offsets[name] + k: widest[offsets[name] + k] for k in range(len(values))},
            -np.inf,
            0.0,
        )
    matrix = np.zeros((len(rows), column + 1))
    for k, row in enumerate(rows):
        for c, value in row.items():
            matrix[k, c] = value
    objective = np.concatenate([cost, np.zeros(column - count), [1.0]])
    integral = np.concatenate([np.ones(count), np.zeros(column - count + 1)])
    top = np.concatenate([np.ones(column), [np.inf]])
    answer = milp(
        objective,
        constraints=LinearConstraint(matrix, low, high),
        integrality=integral,
        bounds=Bounds(0.0, top),
        options={"mip_rel_gap": 1e-9},
    )
    if answer.status == 2:
        return float("inf")
    return float(answer.fun) if answer.status == 0 else None


def _path(tree: Tree, leaf: int) -> list[tuple[int, float, bool]]:
    """(column, threshold, whether left) from the root to a leaf."""
    parent = {}
    for n in range(len(tree.left)):
        if tree.left[n] != -1:
            parent[int(tree.left[n])], parent[int(tree.right[n])] = (n, True), (n, False)
    path = []
    while leaf in parent:
        leaf, left = parent[leaf]
        path.append((int(tree.feature[leaf]), float(tree.threshold[leaf]), left))
    return path


def _takes(instance: Instance, name: str, value: float | None, path: list[tuple[int, float, bool]]) -> bool:
    """Whether a lever's value goes the path's way at every split on its columns."""
    row = instance.factual_row
    position = [f.name for f in instance.features].index(name)
    row[position] = instance.factual[name] if value is None else value
    inputs = instance.model_rows(row)
    mine = [c for c, label in enumerate(instance.columns) if label in instance.by_name[name].columns]
    return all(
        bool(float(np.float32(inputs[column])) <= threshold) == left
        for column, threshold, left in path
        if column in mine
    )
