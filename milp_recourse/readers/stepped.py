r"""Linear models of bins and labels alone, such as scorecards, as trees.

The score is then a sum of one step function for each raw column,

.. math:: s = b + \sum_i f_i(x_i), \quad f_i(x) = \sum_k w_k g_k(x),

and each :math:`f_i` is a tree that looks its value up. The trees' sum rounds otherwise than the model does,
so that scores that equal the threshold up to rounding count as refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.column import Column
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.margins import gamma
from milp_recourse.readers.member import Member
from milp_recourse.readers.operations import apply, curved, marks_of
from milp_recourse.readers.scores import NetworkScore, Score, TreeScore
from milp_recourse.readers.steps_before import Preprocessing
from milp_recourse.readers.tree_parts import ReadTree, lookup_tree

Array = NDArray[np.float64]


def is_stepped(member: Member, preprocessing: Preprocessing) -> bool:
    """Whether a model's scores are affine functions of step functions of single columns, some of numbers."""
    linear = all(isinstance(s, NetworkScore) and len(s.layers.segments) == 1 for s in member.scores)
    numbers = [t.operations for t in preprocessing.tracks if t.raw not in preprocessing.labels]
    steps = all(any(o.stepped or o.kind == "indicator" for o in own) for own in numbers)
    bins = any(o.stepped for own in numbers for o in own)
    return linear and bins and steps and not member.near and not preprocessing.narrow


def as_trees(
    member: Member, preprocessing: Preprocessing, order: Sequence[object]
) -> tuple[tuple[Column, ...], Member]:
    """The columns of X that are used, one input for each, and the model with trees of these for scores."""
    columns, axes = [], []
    for at, raw in enumerate(preprocessing.used(order)):
        tracks = [k for k, track in enumerate(preprocessing.tracks) if track.raw == raw]
        name, filled, gaps = preprocessing.names[raw], preprocessing.filled(raw), preprocessing.gaps(raw)
        labels = preprocessing.labels.get(raw)
        if labels is not None:
            codes = tuple((float(k),) for k in range(len(labels)))
            columns.append(Column(name, labels, "table", codes, filled, False, gaps))
            cuts: Array = np.arange(len(labels) - 1, dtype=np.float64) + 0.5
            axes.append(_Axis(at, tracks, cuts, preprocessing.tables[raw].T))
            continue
        chains = [preprocessing.tracks[k].operations for k in tracks]
        marks = np.unique(np.concatenate([mark for own in chains for mark in marks_of(own)]))
        marks = marks[np.isfinite(marks)]
        cuts = np.nextafter(marks, -np.inf)
        inside = np.concatenate([cuts, marks[-1:]]) if len(marks) else np.zeros(1)
        values = np.array([apply(own, inside) for own in chains])
        uneven = preprocessing.imputed_unevenly(raw)
        missing = uneven and not any(curved([o]) and not o.gaps for own in chains for o in own)
        gap = np.array([apply(own, np.array([np.nan])) for own in chains]) if missing else None
        missing = missing and gap is not None and bool(np.isfinite(gap).all())
        columns.append(Column(name, None, "code", None, filled, missing, within=preprocessing.within(raw)))
        axes.append(
            _Axis(
                at, tracks, cuts, values if gap is None or not missing else np.hstack([gap, values]), missing
            )
        )
    kept = {id(one): _score(one, axes) for one in member.scores if isinstance(one, NetworkScore)}

    def other(scores: tuple[Score, ...] | None) -> tuple[Score, ...] | None:
        return None if scores is None else tuple(kept.get(id(s), s) for s in scores)

    return tuple(columns), replace(member, scores=other(member.scores) or (), decision=other(member.decision))


@dataclass(frozen=True, eq=False)
class _Axis:
    """One raw column: its input, its tracks, the last number of each interval but one, and the tracks' values
    in every interval, shape (tracks, intervals), before them those of a missing number if ``missing``."""

    at: int
    tracks: list[int]
    cuts: Array
    values: Array
    missing: bool = False


def _score(score: NetworkScore, axes: Sequence[_Axis]) -> TreeScore:
    """One score as a sum of one tree for each column."""
    row, bias = np.zeros((1, score.layers.outputs or 0)), 0.0
    row[0, score.output] = 1.0
    size, largest, terms, unit = np.abs(row), 0.0, 0, UNIT["float64"]
    for step in reversed(score.layers.segments[0]):
        bias += float((row @ step.bias)[0])
        largest += float((size @ (np.abs(step.bias) + step.size))[0])
        row, size = row @ step.weight, size @ np.abs(step.weight)
        terms, unit = terms + step.weight.shape[1] + 10, max(unit, step.unit)
    whole, sizes = np.zeros(1 + max(k for one in axes for k in one.tracks)), np.zeros(0)
    sizes = np.zeros(len(whole))
    np.add.at(whole, list(score.columns), row[0])
    np.add.at(sizes, list(score.columns), size[0])
    trees = []
    for axis in axes:
        made = whole[axis.tracks] @ axis.values
        largest += float((sizes[axis.tracks] @ np.abs(axis.values)).max())
        trees.append(ReadTree(lookup_tree([(axis.at, axis.cuts.tolist())], made, axis.missing)))
    rounding = 2.0 * float(gamma(terms + 2 * len(whole) + 8, unit)) * largest
    return TreeScore(tuple(trees), bias, unsure=rounding)
