r"""The choices of one applicant, feature by feature, where no feature causes another.

What an ensemble sees of a value is the cell it lies in, and every part of a cost grows with the
distance from the factual. So of each cell only the double nearest to the factual matters, and a lever
becomes a short list: an :class:`Axis`. Costs of cells are float64; :func:`rounded_down` turns a sum of
them into a lower bound of the exact cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.features import Feature, with_columns
from milp_recourse.problem.forest import MISSING, TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import ROUNDINGS

Array = NDArray[np.float64]
Cells = NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """One lever's cells, in ascending order of value; cells without an allowed value are left out.

    Attributes
    ----------
    feature
        The lever.
    values
        The cheapest value to set in each cell, in the feature's unit; nan where not acting is cheapest.
    low, high
        Least and largest double that a value in the cell can have, in the feature's unit.
    added, widest
        What the cell costs: the lever's term in the sum, and its entry in the cost's maximum.
    start
        The cell of least cost; costs fall towards it from both sides.
    settable
        Whether an action may set a value in the cell. No action may where the cell holds nothing but a
        factual that an action may not set, because it is outside the lever's interval or no value of the
        feature's lattice, or a missing factual (whose cell comes first).
    columns
        The classifier's columns that the lever fills, and the cell of the ensemble on each of them, shape
        (columns, cells).
    """

    feature: str
    values: Array
    low: Array
    high: Array
    added: Array
    widest: Array
    start: int
    settable: NDArray[np.bool_]
    columns: tuple[tuple[int, Cells], ...]

    def __len__(self) -> int:
        return len(self.values)


def axes_of(instance: Instance) -> list[Axis] | None:
    """An axis per lever, in feature order; None if a feature must move and cannot.

    Not acting stays a choice, in the factual's cell, as long as the factual is inside its domain.
    """
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    axes = []
    for feature, columns in with_columns(instance.features):
        if feature.name in instance.levers:
            axis = axis_of(instance, forest, feature, columns)
            if not len(axis):
                return None
            axes.append(axis)
        elif not _inside_domain(instance, feature):
            return None
    return axes


def rounded_down(costs: Array, levers: int) -> Array:
    """A lower bound of exact costs, from sums of cells' costs in float64.

    Every number is made of at most :data:`ROUNDINGS` correctly rounded operations on non-negative terms, then
    added up; 2^-1000 covers what underflow takes away.
    """
    slack = 2.0**-53 * 2 * (levers + ROUNDINGS)
    return np.maximum(costs * (1.0 - slack) - 2.0**-1000, 0.0)


def _inside_domain(instance: Instance, feature: Feature) -> bool:
    """Whether a feature's factual value is inside its domain, or missing."""
    x = instance.factual[feature.name]
    missing = feature.name in instance.missing  # a domain does not bind what stays missing
    return missing or feature.domain is None or feature.domain[0] <= x <= feature.domain[1]


def axis_of(instance: Instance, forest: TreeEnsemble, feature: Feature, columns: Sequence[int]) -> Axis:
    """The axis of one lever. Of a missing one, all values cost as much; in each cell it is the one nearest to
    the middle of the lever's interval."""
    name, x, missing = feature.name, instance.factual[feature.name], feature.name in instance.missing
    stays, (first, last) = _inside_domain(instance, feature) and not missing, instance.levers[name]
    if not feature.labelled:
        low, high, cells = _intervals(instance, forest.cuts[columns[0]], feature)
        on_columns: tuple[tuple[int, Cells], ...] = ((columns[0], cells),)
    else:
        assert feature.lattice is not None
        labels = feature.lattice.within(first, last)
        if stays and x not in labels:
            labels = np.union1d(labels, [x])
        low = high = labels
        on_columns = _label_cells(forest, feature, labels, columns)
        cells = np.arange(len(labels))
    lattice = feature.lattice
    values = np.clip(feature.nearest(0.5 * first + 0.5 * last) if missing else x, low, high)
    added, widest = instance.lever_costs[name].evaluate(values)
    settable = (low >= first) & (high <= last)
    if stays:
        here_cells = (low <= x) & (x <= high)
        if lattice is not None and not instance.may_hold(name):
            if not feature.labelled:
                here_cells |= cells == _cell(forest.cuts[columns[0]], np.array([x]))[0]
            settable &= low == lattice.floors(low)
        values = np.where(here_cells, np.nan, values)
        added, widest = np.where(here_cells, 0.0, added), np.where(here_cells, 0.0, widest)
    start = int(np.argmin(added + widest)) if len(values) else 0
    axis = Axis(name, values, low, high, added, widest, start, settable, on_columns)
    return _or_missing(axis) if missing else axis


def _label_cells(
    forest: TreeEnsemble, feature: Feature, labels: Array, columns: Sequence[int]
) -> tuple[tuple[int, Cells], ...]:
    """The cells of labels on the columns that they fill."""
    assert feature.lookup is not None
    at, unsplit = labels.astype(np.int64), np.zeros(len(labels), dtype=np.int64)
    pairs = ((k, c, forest.cuts[c]) for k, c in enumerate(columns))
    return tuple((c, _cell(cuts, feature.lookup[at, k]) if len(cuts) else unsplit) for k, c, cuts in pairs)


def without_twins(axis: Axis, forest: TreeEnsemble) -> tuple[Axis, Cells]:
    """The axis with the cheapest of the cells that the ensemble tells from no other, on the columns that it
    splits; and for every cell the place of the one that stands for it."""
    split = tuple(one for one in axis.columns if len(forest.cuts[one[0]])) or axis.columns[:1]
    axis, order = replace(axis, columns=split), np.argsort(axis.added + axis.widest, kind="stable")
    cells = np.stack([cells for _, cells in split])[:, order]
    _, first, which = np.unique(cells, axis=1, return_index=True, return_inverse=True)
    kept = np.zeros(len(axis), dtype=bool)
    kept[order[first]] = True
    place = np.empty(len(axis), dtype=np.int64)
    place[order] = (np.cumsum(kept) - 1)[order[first]][which.reshape(-1)]
    return with_cells(axis, kept), place


def with_cells(axis: Axis, kept: NDArray[np.bool_]) -> Axis:
    """The axis with some of its cells. It keeps its start, or if that is not among them starts at the first
    of the cheapest."""
    names = ("values", "low", "high", "added", "widest", "settable")
    arrays = {name: getattr(axis, name)[kept] for name in names}
    before = int(np.count_nonzero(kept[: axis.start]))
    start = before if kept[axis.start] else int(arrays["added"].argmin())
    columns = tuple((column, cells[kept]) for column, cells in axis.columns)
    return replace(axis, start=start, columns=columns, **arrays)


def _or_missing(axis: Axis) -> Axis:
    """The axis of a missing lever: staying missing, which is free, is a cell before all others."""
    before = {"values": math.nan, "low": math.nan, "high": math.nan, "added": 0.0, "widest": 0.0}
    arrays: dict[str, Any] = {
        name: np.concatenate([[one], getattr(axis, name)]) for name, one in before.items()
    }
    columns = tuple((c, np.concatenate([[MISSING], cells])) for c, cells in axis.columns)
    return replace(axis, **arrays, start=0, settable=np.arange(len(axis) + 1) > 0, columns=columns)


def _intervals(instance: Instance, cuts: Array, feature: Feature) -> tuple[Array, Array, Cells]:
    """Least and largest allowed double of each cell that has one, and the cell's number.

    A factual outside the allowed interval has an entry of its own, which stands for not acting. A factual
    inside it that is no value of the lattice keeps its cell even if there is no value in it.
    """
    first, last = instance.levers[feature.name]
    with np.errstate(over="ignore"):  # nothing but infinity is above the largest double
        low = np.concatenate([[-np.inf], np.nextafter(cuts, np.inf)])
    high = np.concatenate([cuts, [np.inf]])
    lattice = feature.lattice
    if lattice is not None:
        low, high = lattice.ceils(low), lattice.floors(high)
    low, high = np.maximum(low, first), np.minimum(high, last)
    cells = np.flatnonzero(low <= high)
    low, high = low[cells], high[cells]
    x = instance.factual[feature.name]
    outside = x < first or x > last  # not where it is missing
    if outside and _inside_domain(instance, feature):
        cell = int(_cell(cuts, np.array([x]))[0])
        at = 0 if x < first else len(low)
        # A separate entry even if the cell is there already: it holds a value no action may set.
        low, high, cells = np.insert(low, at, x), np.insert(high, at, x), np.insert(cells, at, cell)
    elif lattice is not None and first < x < last and x not in lattice and _inside_domain(instance, feature):
        cell = int(_cell(cuts, np.array([x]))[0])
        at = int(np.searchsorted(cells, cell))
        if at == len(cells) or cells[at] != cell:  # no value lies in the factual's cell
            low, high, cells = np.insert(low, at, x), np.insert(high, at, x), np.insert(cells, at, cell)
    return low, high, cells


def _cell(cuts: Array, values: Array) -> Cells:
    """How many cuts lie below each value."""
    return np.searchsorted(cuts, values, side="left")


def factual_cells(instance: Instance, forest: TreeEnsemble) -> Cells:
    """The factual's cell on every column, shape (columns,)."""
    row = instance.model_rows(instance.factual_row)
    cells = np.zeros(len(row), dtype=np.int64)
    for k in forest.split:
        cells[k] = _cell(forest.cuts[k], row[k : k + 1])[0]
    return np.where(np.isnan(row), MISSING, cells)


def action_of(axes: Sequence[Axis], cells: Cells) -> dict[str, float]:
    """The action that sets each axis to its cheapest value in a cell."""
    chosen = ((axis.feature, float(axis.values[k])) for axis, k in zip(axes, cells, strict=True))
    return {feature: value for feature, value in chosen if not math.isnan(value)}


def separable(instance: Instance) -> bool:
    """Whether levers move only themselves, and neither plausibility nor a demand ties them together."""
    return (
        not instance.plausible
        and instance.demand == TRUE
        and all(instance.scm.descendants({name}) == {name} for name in instance.levers)
    )
