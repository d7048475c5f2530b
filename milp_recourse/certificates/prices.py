"""Ensembles whose levers cause nothing else, proven by prices (section 7.3 of the document)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.certificates.limits import MOST_NODES
from milp_recourse.certificates.trees import Box, acted_sets, forest_configurations, refined
from milp_recourse.domain.forest import TreeEnsemble, last_left
from milp_recourse.forests.axes import Axis, axes_of, factual_cells
from milp_recourse.forests.branch_tree import BranchTree
from milp_recourse.forests.parts import each_part
from milp_recourse.forests.table import LeafTable
from milp_recourse.instance import Instance
from milp_recourse.judge import deltas

Array = NDArray[np.float64]
Node = list[Any]

MOST_PRICES = 2_500_000
"""More numbers would make a file that a checker may refuse by its size."""


def ensemble_configurations(
    instance: Instance, bound: float | None, time_limit: float | None
) -> list[dict[str, Any]] | None:
    """Configurations that prove that no action costs less than ``bound`` (None: none exists).

    By prices, but for a single tree. None where the search was stopped, or finds the claim false.

    Parameters
    ----------
    time_limit
        Seconds; None for no limit.
    """
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    if len(forest.trees) == 1:
        return forest_configurations(instance, bound, time_limit)
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    configurations, left = [], MOST_NODES
    for acted in acted_sets(instance):
        if _outside_domain(instance, acted):
            configurations.append({"acted": list(acted), "tree": [["e"]]})
            continue
        cases = []
        for part in each_part(instance):
            made = _proof(part, acted, bound, deadline, left)
            if made is None or len(made["tree"]) > left:
                return None
            left -= len(made["tree"])
            cases.append(made)
        proof = cases[0] if len(cases) == 1 else {"cases": cases}
        configurations.append({"acted": list(acted), **proof})
    return configurations


def _outside_domain(instance: Instance, acted: tuple[str, ...]) -> bool:
    """Whether a feature that is not acted on keeps a value outside its domain: nothing there is feasible."""
    kept = (
        f for f in instance.features if f.domain is not None and f.name not in {*acted, *instance.missing}
    )
    return any(not f.domain[0] <= instance.factual[f.name] <= f.domain[1] for f in kept if f.domain)


def _proof(
    instance: Instance, acted: tuple[str, ...], bound: float | None, deadline: float | None, most_nodes: int
) -> dict[str, Any] | None:
    """The tree of one configuration, and its prices."""
    from milp_recourse.certificates.price_proof import PriceProof  # loads numba

    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    axes = axes_of(instance)
    if axes is None:
        return {"tree": [["e"]]}
    full = BranchTree(axes)
    axes = [_settable(axis) for axis in axes if axis.feature in acted]
    axes = [axis if instance.feature(axis.feature).by_label else _merged(axis) for axis in axes]
    paid = [_paid(instance, axis) for axis in axes]
    cost, wide = (np.concatenate(parts) for parts in zip(*paid, strict=True))
    exact = _dearest(instance, acted) + 1 if bound is None else Fraction(bound) - _fixed(instance, acted)
    target = math.nextafter(float(exact), math.inf) if exact > 0 else 0.0
    table = LeafTable(forest, factual_cells(instance, forest), axes)
    proof = PriceProof(table, axes, cost, wide, instance.accept.above, target, deadline, most_nodes)
    if not proof.run():
        return None
    writer = _Writer(instance, acted, axes, proof.factors)
    tables = [writer.table(one) for one in proof.tables]
    if writer.numbers > MOST_PRICES:
        return None
    nodes = [node for step in proof.steps for node in writer.nodes(step, full)]
    return {"tree": nodes, **({"prices": tables} if tables else {})}


def _fixed(instance: Instance, acted: tuple[str, ...]) -> Fraction:
    """The l0 part of acting on these."""
    return Fraction(instance.cost.l0) * sum((Fraction(instance.weight(f)) for f in acted), Fraction(0))


def _dearest(instance: Instance, acted: tuple[str, ...]) -> Fraction:
    """The most that the levers can cost at their ends, l0 left out."""
    ends = [
        max(
            instance.cost.exact(deltas(instance, {name: end}), instance.weights)
            for end in instance.levers[name]
        )
        for name in acted
    ]
    return sum(ends, Fraction(0)) - _fixed(instance, acted)


def _settable(axis: Axis) -> Axis:
    """The cells whose values an action may set."""
    kept = axis.settable
    arrays = {name: getattr(axis, name)[kept] for name in ("values", "low", "high", "added", "widest")}
    columns = tuple((column, cells[kept]) for column, cells in axis.columns)
    start = int(np.argmin(arrays["added"] + arrays["widest"]))
    return replace(axis, **arrays, start=start, home=start, settable=kept[kept], columns=columns)


def _merged(axis: Axis) -> Axis:
    """Neighbours that no tree tells apart as one cell, as the document has them; its cost is the least.

    Ordinal labels that enter by their index are cells of their own in an axis.
    """
    [(column, cells)] = axis.columns
    begins = np.concatenate([[True], cells[1:] != cells[:-1]])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(cells)) - 1
    paid = axis.added + axis.widest  # neither falls with the distance
    cheapest = np.array([a + int(np.argmin(paid[a : b + 1])) for a, b in zip(first, last, strict=True)])
    arrays = {name: getattr(axis, name)[cheapest] for name in ("values", "added", "widest", "settable")}
    start = int(np.argmin(arrays["added"] + arrays["widest"]))
    columns = ((column, cells[first]),)
    return replace(
        axis, low=axis.low[first], high=axis.high[last], start=start, home=start, columns=columns, **arrays
    )


def _paid(instance: Instance, axis: Axis) -> tuple[Array, Array]:
    """Lower bounds of what acting in each cell costs, l0 left out, and of what it is in the maximum."""
    apart = instance.cost.l0 * instance.weight(axis.feature)
    held = np.isnan(axis.values)
    paid = axis.added - apart - 2.0**-49 * (axis.added + apart)
    most = instance.cost.linf * axis.widest * (1 - 2.0**-49)
    paid, most = (np.where(held, 0.0, np.maximum(each - 2.0**-1000, 0.0)) for each in (paid, most))
    return paid, most


class _Writer:
    """Turns a proof over cells into the document's nodes and tables."""

    def __init__(self, instance: Instance, acted: tuple[str, ...], axes: list[Axis], factors: Any) -> None:
        self.instance, self.acted, self.axes, self.numbers = instance, acted, axes, 0
        self.first = factors.axis_from
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        owner = {column: i for i, axis in enumerate(axes) for column, _ in axis.columns}
        slots = {
            (t, int(factors.slot_axis[s])): s
            for t in range(len(forest.trees))
            for s in range(int(factors.slot_from[t]), int(factors.slot_from[t + 1]))
        }
        self.listed: list[list[NDArray[np.int64] | None]] = []
        for t, tree in enumerate(forest.trees):
            inner = tree.left != -1
            looks = sorted({owner[c] for c in tree.feature[inner].tolist() if c in owner})
            row: list[NDArray[np.int64] | None] = []
            for i in looks:
                s = slots.get((t, i))
                if s is None:
                    row.append(None)
                    continue
                cells = self._representatives(axes[i], tree, inner)
                row.append(factors.class_from[s] + factors.classes[t, factors.axis_from[i] + cells])
            self.listed.append(row)

    def _representatives(self, axis: Axis, tree: Any, inner: NDArray[np.bool_]) -> NDArray[np.int64]:
        """One cell per class, as the document counts classes: labels with numbers, or sides of thresholds."""
        if self.instance.feature(axis.feature).by_label:
            return np.arange(len(axis))
        forest = self.instance.classifier
        assert isinstance(forest, TreeEnsemble)
        [(column, _)] = axis.columns
        ends = np.unique(last_left(tree.threshold[inner & (tree.feature == column)], forest.dtype))
        side = np.searchsorted(ends, axis.low, side="left")
        return np.unique(side, return_index=True)[1]

    def table(self, table: Any) -> dict[str, Any]:
        """A table of prices as JSON; empty lists stand for zeros."""
        trees: list[list[list[int]]] = []
        for row in self.listed if table.price is not None else []:
            prices = [[] if at is None else table.price[at].tolist() for at in row]
            prices = [own if any(own) else [] for own in prices]
            trees.append(prices if any(prices) else [])
            self.numbers += sum(map(len, prices)) + 1
        made = {"unit": table.unit, "mu": table.mu, "trees": trees if any(trees) else []}
        made |= {"weights": table.weights.tolist()} if len(table.weights) > 1 else {}
        return made | ({"shares": table.shares.tolist()} if len(table.shares) else {})

    def nodes(self, step: Any, full: BranchTree) -> Iterator[Node]:
        """The nodes of one step."""
        if step.kind == "split":
            cell = step.cell - int(self.first[step.axis])
            yield ["s", step.axis, float(self.axes[step.axis].high[cell])]
        elif step.kind == "cost":
            yield ["e"]
        elif step.kind in ("prices", "take"):
            yield ["p" if step.kind == "prices" else "t", step.table]
        elif step.kind == "merge":
            yield ["m"]
        else:
            box: Box = {
                axis.feature: (float(axis.low[a]), float(axis.high[b]))
                for axis, a, b in zip(self.axes, step.low, step.high, strict=True)
            }
            yield from refined(self.instance, full, self.acted, box)
