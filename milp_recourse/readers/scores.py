r"""The numbers that a fitted model computes from its columns, in the two forms that can be searched exactly.

A :class:`TreeScore` is a sum of trees' values, a :class:`NetworkScore` an output of affine maps and ReLUs.
Models made of other models (averages, votes, calibrations) have weighted sums of their members' scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.forest import Aggregate, Precision, TreeEnsemble, last_left
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.tree_parts import ReadTree, Splits, checked, rounding_apart

_FINE, _LARGE = 2.0**20, 2.0**30


@dataclass(frozen=True, eq=False)
class TreeScore:
    """A sum of trees' values, added in order.

    Attributes
    ----------
    trees
        The trees in order; their features are columns of :class:`milp_recourse.readers.places.Chains`.
    base
        The number that the sum starts from.
    dtype, sum_dtype, aggregate
        As in :class:`milp_recourse.problem.forest.TreeEnsemble`.
    unsure
        How far the number that the model computes can be from this sum as computed; 0 if they are the same,
        bit for bit.
    exact
        Whether the model's own number differs from the sum by rounding that cannot change the order of two
        such scores, since none of the additions rounds.
    unit
        How much of the score one unit of :attr:`milp_recourse.readers.member.Member.measure` is.
    """

    trees: tuple[ReadTree, ...]
    base: float = 0.0
    dtype: Precision = "float64"
    sum_dtype: Precision = "float64"
    aggregate: Aggregate = "sum"
    unsure: float = 0.0
    exact: bool = False
    unit: float = 1.0

    @cached_property
    def reach(self) -> float:
        """A bound on the score's absolute value."""
        total = abs(self.base) + sum(float(np.abs(one.tree.value).max()) for one in self.trees)
        return total / len(self.trees) if self.aggregate == "mean" else total

    @property
    def leaf_sums(self) -> NDArray[np.float64]:
        """The score of every node of a single tree, as if rows ended there."""
        (one,) = self.trees
        kind = np.dtype(self.sum_dtype).type
        return np.asarray(kind(self.base) + one.tree.value.astype(kind), dtype=np.float64)

    @property
    def ends(self) -> tuple[float, float]:
        """Bounds on the score that no rounding crosses."""
        leaves = [one.tree.value[one.tree.left == -1] for one in self.trees]
        low, high = (self.base + sum(float(end(v)) for v in leaves) for end in (np.min, np.max))
        if self.aggregate == "mean":
            low, high = low / len(leaves), high / len(leaves)
        spare = self.rounding + self.unsure
        return low - spare, high + spare

    @property
    def rounding(self) -> float:
        """Twice the most that the rounding of this sum, added in any order, can be."""
        return 0.0 if self.exact else rounding_apart(len(self.trees), self.reach, UNIT[self.sum_dtype])

    def at(self, columns: Sequence[int]) -> TreeScore:
        """The same score of other columns: feature k becomes ``columns[k]``."""
        moved = np.asarray(columns, dtype=np.int64)
        trees = []
        for one in self.trees:
            tree, inner = one.tree, one.tree.left != -1
            if inner.any() and tree.feature[inner].max() >= len(columns):
                raise refuse("model", f"{len(columns)} columns", "as many as the trees were fitted on")
            feature = np.where(inner, moved[np.where(inner, tree.feature, 0)], -2)
            trees.append(replace(one, tree=replace(tree, feature=feature)))
        return replace(self, trees=tuple(trees))

    def times(self, factor: float) -> tuple[ReadTree, ...]:
        """The trees with their values multiplied, which rounds unless the factor is 1 or -1."""
        if factor == 1.0:
            return self.trees
        scaled = ((one, 0.0 + factor * one.tree.value) for one in self.trees)
        return tuple(replace(one, tree=replace(one.tree, value=value)) for one, value in scaled)

    def in_doubles(self) -> TreeScore:
        """The same score with thresholds that doubles are compared with."""
        if self.dtype == "float64":
            return self
        trees = (
            replace(one, tree=replace(one.tree, threshold=last_left(one.tree.threshold, self.dtype)))
            for one in self.trees
        )
        return replace(self, trees=tuple(trees), dtype="float64")

    def ensemble(self, inputs: int) -> tuple[TreeEnsemble, Splits]:
        """The ensemble that computes the score, and its splits on categories.

        Raises
        ------
        Unsupported
            :func:`milp_recourse.readers.tree_parts.checked` refuses it.
        """
        trees = tuple(one.tree for one in self.trees)
        made = TreeEnsemble(trees, inputs, self.aggregate, self.base, self.dtype, self.sum_dtype)
        return checked(made), splits_of(self.trees)


@dataclass(frozen=True, eq=False)
class NetworkScore:
    """One output of affine maps and ReLUs.

    Attributes
    ----------
    layers
        The maps; the scores of one model share them.
    output
        Which of their outputs.
    columns
        The columns of :class:`milp_recourse.readers.places.Chains` that enter.
    softmax_unit
        Unit roundoff of a softmax by which the model compares its outputs; 0 without one.
    """

    layers: Layers
    output: int
    columns: tuple[int, ...]
    softmax_unit: float = 0.0


Score = TreeScore | NetworkScore


def splits_of(trees: Sequence[ReadTree]) -> Splits:
    """The splits on categories, by tree and node."""
    return {(k, node): split for k, one in enumerate(trees) for node, split in one.splits.items()}


def outputs_of(layers: Layers, columns: Sequence[int], softmax_unit: float = 0.0) -> tuple[NetworkScore, ...]:
    """All outputs of a network as scores."""
    return tuple(NetworkScore(layers, k, tuple(columns), softmax_unit) for k in range(layers.outputs or 0))


def adds_exactly(trees: Sequence[ReadTree], base: float = 0.0) -> bool:
    """Whether the trees' values add up without rounding: all are multiples of 2^-20, and not too large."""
    leaves = [one.tree.value[one.tree.left == -1] for one in trees] + [np.array([base])]
    small = sum(float(np.abs(v).max()) for v in leaves) < _LARGE
    return small and all((v * _FINE == np.round(v * _FINE)).all() for v in leaves)


def of_one_kind(scores: Sequence[Score], where: str) -> list[TreeScore] | list[NetworkScore]:
    """The scores themselves, if all are sums of trees or all are outputs of networks.

    Raises
    ------
    Unsupported
        There are some of both kinds.
    """
    trees = [one for one in scores if isinstance(one, TreeScore)]
    nets = [one for one in scores if isinstance(one, NetworkScore)]
    if trees and nets:
        got = "a sum of trees and of linear models or networks"
        raise refuse(where, got, f"members of one kind, {OR_ASK}")
    return trees or nets


def weighted(scores: Sequence[Score], weights: Sequence[float], constant: float, where: str) -> Score:
    r"""The score :math:`\sum_k w_k s_k + c`, which the model computes in doubles, in whatever order.

    Raises
    ------
    Unsupported
        Some scores are sums of trees, and others are not.
    """
    same = of_one_kind(scores, where)
    if all(isinstance(one, TreeScore) for one in same):
        return _sum_of_trees([s for s in same if isinstance(s, TreeScore)], weights, constant)
    joined = side_by_side([s for s in same if isinstance(s, NetworkScore)])
    layers = joined[0].layers
    row = np.zeros((1, layers.outputs or 0))
    for one, weight in zip(joined, weights, strict=True):
        row[0, one.output] += weight
    layers.affine(row, [constant], where, UNIT["float64"])
    return NetworkScore(layers, 0, joined[0].columns)


def _sum_of_trees(scores: Sequence[TreeScore], weights: Sequence[float], constant: float) -> TreeScore:
    several = len({one.dtype for one in scores}) > 1
    trees: list[ReadTree] = []
    base, unsure = constant, 0.0
    for one, weight in zip(scores, weights, strict=True):
        own = one.in_doubles() if several else one
        trees += own.times(weight / len(own.trees) if own.aggregate == "mean" else weight)
        base += weight * own.base
        unsure += abs(weight) * (own.unsure + own.rounding)
    made = TreeScore(tuple(trees), base, "float64" if several else scores[0].dtype)
    whole = all(w in (1.0, -1.0) for w in weights) and all(s.exact and s.aggregate == "sum" for s in scores)
    if whole and adds_exactly(trees, base):
        return replace(made, exact=True)
    return replace(made, unsure=unsure + made.rounding)


def side_by_side(scores: Sequence[NetworkScore]) -> list[NetworkScore]:
    """The scores as outputs of one new network, which holds each of their networks once."""
    firsts: dict[tuple[int, tuple[int, ...]], int] = {}
    networks: list[Layers] = []
    columns: list[int] = []
    total = 0
    for one in scores:
        if (id(one.layers), one.columns) in firsts:
            continue
        firsts[id(one.layers), one.columns] = total
        networks.append(one.layers)
        columns += one.columns
        total += one.layers.outputs or 0
    layers, entering = Layers.beside(networks), tuple(columns)
    outputs = (firsts[id(one.layers), one.columns] + one.output for one in scores)
    return [
        NetworkScore(layers, output, entering, one.softmax_unit)
        for output, one in zip(outputs, scores, strict=True)
    ]


def composed(inputs: Sequence[Score], outputs: Sequence[NetworkScore], where: str) -> tuple[Score, ...]:
    """The scores that a linear model, or a network, computes from other scores.

    Parameters
    ----------
    outputs
        Scores of one network whose inputs are the other scores, in order.

    Raises
    ------
    Unsupported
        The inputs are sums of trees and the network is not linear, or some are sums of trees and others not.
    """
    layers, same = outputs[0].layers, of_one_kind(inputs, where)
    nets = [one for one in same if isinstance(one, NetworkScore)]
    if nets:
        joined = side_by_side(nets)
        base = joined[0].layers
        picked = np.zeros((len(joined), base.outputs or 0))
        picked[np.arange(len(joined)), [one.output for one in joined]] = 1.0
        base.affine(picked, np.zeros(len(joined)), where)
        base.extend(layers)
        return tuple(NetworkScore(base, one.output, joined[0].columns, one.softmax_unit) for one in outputs)
    if len(layers.segments) > 1 or len(layers.segments[0]) > 1:
        raise refuse(where, "a network over sums of trees", f"a linear model, {OR_ASK}")
    (only,) = layers.segments[0]
    return tuple(
        weighted(inputs, only.weight[one.output].tolist(), float(only.bias[one.output]), where)
        for one in outputs
    )
