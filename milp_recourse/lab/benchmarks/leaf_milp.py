r"""The plain leaf formulation of the literature in HiGHS, to compare with; it uses no search of this package.

There is one binary :math:`y_{j,k}` per column and threshold ("the column lies at or below it"), ascending;
one binary per label of a feature; and one variable :math:`z_\ell \ge 0` per leaf, which add up to 1 in each
tree. For every split,

.. math:: \sum_{\text{leaves to the left}} z_\ell \le y_{j,k}, \qquad
          \sum_{\text{leaves to the right}} z_\ell \le 1 - y_{j,k}, \qquad
          \sum_t \sum_\ell v_\ell z_\ell \ge g + 10^{-5},

where g is the score that must be exceeded (times the number of trees for means); values and g are divided by
the largest leaf value. A numeric column costs what the nearest allowed value in the chosen interval costs. No
first action and no budget is given; :func:`~milp_recourse.lab.benchmarks.peers.highs` solves it.

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from milp_recourse.lab.benchmarks.peers import Watch, highs
from milp_recourse.lab.benchmarks.timed import Answer
from milp_recourse.problem.features import Feature, with_columns
from milp_recourse.problem.forest import Tree, TreeEnsemble, last_left
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.rows import MixedInteger

MARGIN = 1e-5
"""Ten times HiGHS's tolerance. With 1e-6, solutions that take a little of a second leaf in a tree met the row
although the score of the action only equalled the threshold."""


class LeafMilp:
    """The model of an instance whose features are all levers, numeric or one-hot; cost l1 or l2-squared."""

    def __init__(self, instance: Instance) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        self.instance, self.forest, self.model = instance, instance.classifier, MixedInteger()
        self.below: dict[tuple[int, float], int] = {}  # column and threshold -> variable
        self.chosen: dict[str, list[tuple[int, float]]] = {}  # feature -> (variable, value it stands for)
        for feature, (column, *_) in with_columns(instance.features):
            if feature.kind == "categorical":
                self._labels(feature, column)
            else:
                self._numbers(feature, column)
        self._trees()

    def solve(self, seconds: float, watch: Watch | None = None) -> Answer:
        """HiGHS's answer, with the action in place of the values of variables."""
        found = highs(self.model, seconds, watch)
        values = found.pop("values", None)
        return found | {"action": None if values is None else self._action(values)}

    def _variable(self, cost: float = 0.0, binary: bool = True) -> int:
        variable = self.model.column(f"v{len(self.model.names)}", 0.0, 1.0, binary)
        self.model.linear[variable] = cost
        return variable

    def _row(self, coefficients: Mapping[int, float], low: float, high: float) -> None:
        self.model.row("", (coefficients, 0.0), low, high)

    def _cost(self, feature: Feature, value: float) -> float:
        if value == self.instance.factual[feature.name]:
            return 0.0
        return float(sum(self.instance.lever_costs[feature.name].paid(value)))

    def _labels(self, feature: Feature, column: int) -> None:
        """A binary per label, one of which is 1: that label's one-hot column exceeds its thresholds."""
        labels = [self._variable(self._cost(feature, k)) for k in range(len(feature.columns))]
        self._row(dict.fromkeys(labels, 1.0), 1.0, 1.0)
        self.chosen[feature.name] = [(v, float(k)) for k, v in enumerate(labels)]
        for k, label in enumerate(labels):
            not_it = self._variable()
            self._row({label: 1.0, not_it: 1.0}, 1.0, 1.0)
            self.below |= {(column + k, cut): not_it for cut in self._cuts(column + k)}

    def _cuts(self, column: int) -> list[float]:
        found = {
            float(c) for t in self.forest.trees for c in t.threshold[(t.left != -1) & (t.feature == column)]
        }
        return sorted(found)

    def _numbers(self, feature: Feature, column: int) -> None:
        """A binary per threshold, in order; the interval between two thresholds costs what its value nearest
        to the factual costs."""
        low, high = self.instance.levers[feature.name]
        x, intervals = self.instance.factual[feature.name], []
        cuts = self._cuts(column)
        ends = last_left(np.array(cuts), self.forest.dtype).tolist()  # the last doubles to the left
        order = [self._variable() for _ in cuts]
        for one, two in pairwise(order):
            self._row({one: 1.0, two: -1.0}, -math.inf, 0.0)
        self.below |= {(column, cut): y for cut, y in zip(cuts, order, strict=True)}
        for k in range(len(cuts) + 1):
            first = low if k == 0 else max(low, math.nextafter(ends[k - 1], math.inf))
            last = high if k == len(cuts) else min(high, ends[k])
            if feature.integral:
                first, last = math.ceil(first), math.floor(last)
            chosen = {order[k]: 1.0} if k < len(cuts) else {}
            if k:
                chosen[order[k - 1]] = -1.0
            least = 1.0 if k < len(cuts) else 0.0  # chosen where y_k - y_(k-1) = 1, y_last = 1
            if first > last:
                self._row(chosen, least - 1.0, least - 1.0)
                continue
            value = min(max(x, first), last)
            paid = self._cost(feature, value)
            for y, sign in chosen.items():
                self.model.linear[y] += sign * paid
            if k == len(cuts):
                self.model.offset += paid
            intervals.append((k, float(value)))
        self.chosen[feature.name] = [(order[k] if k < len(order) else -1, value) for k, value in intervals]

    def _trees(self) -> None:
        scale = max(float(np.abs(t.value[t.left == -1]).max()) for t in self.forest.trees) or 1.0
        score: dict[int, float] = {}
        for tree in self.forest.trees:
            leaves = self._leaves(tree)
            self._row(dict.fromkeys(leaves.values(), 1.0), 1.0, 1.0)
            score |= {z: float(tree.value[node]) / scale for node, z in leaves.items()}
        count = len(self.forest.trees) if self.forest.aggregate == "mean" else 1
        needed = self.instance.accept.above * count - self.forest.base
        self._row(score, needed / scale + MARGIN, math.inf)

    def _leaves(self, tree: Tree) -> dict[int, int]:
        """Variables of a tree's leaves, by node; two rows per split."""
        leaves: dict[int, int] = {}

        def under(node: int) -> list[int]:
            if tree.left[node] == -1:
                leaves[node] = self._variable(binary=False)
                return [leaves[node]]
            left, right = under(int(tree.left[node])), under(int(tree.right[node]))
            y = self.below[int(tree.feature[node]), float(tree.threshold[node])]
            self._row(dict.fromkeys(left, 1.0) | {y: -1.0}, -math.inf, 0.0)
            self._row(dict.fromkeys(right, 1.0) | {y: 1.0}, -math.inf, 1.0)
            return left + right

        under(0)
        return leaves

    def _action(self, values: Sequence[float]) -> dict[str, float]:
        """The chosen labels and values, for the features whose factual value they differ from."""
        action = {}
        for feature in self.instance.features:
            options = self.chosen[feature.name]
            if feature.kind == "categorical":
                value = max(options, key=lambda one: values[one[0]])[1]
            else:
                value = next((v for y, v in options if y == -1 or values[y] > 0.5), options[-1][1])
            if value != self.instance.factual[feature.name]:
                action[feature.name] = value
        return action
