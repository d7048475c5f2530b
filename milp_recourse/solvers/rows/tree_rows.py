r"""Rows of a tree ensemble over columns that its trees split on.

A 0/1 column :math:`y_k` per column x and cut, ascending: :math:`x \le c_k` where it is 1, else x is at least
the next value. A column :math:`z_\ell \ge 0` per leaf; those of a tree add up to 1, and

.. math:: \textstyle\sum_{\text{leaves ending at } k \text{ or below}} z_\ell \le y_k, \qquad
          \sum_{\text{leaves starting above } k} z_\ell \le 1 - y_k .

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from milp_recourse.engine.forests.goal import score_error
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance
from milp_recourse.solvers.rows.mixed_integer import Form, MixedInteger, combine

SPARE = 4e-6
"""How far from the threshold rows keep a score, in shares of the largest sum: solvers take rows as met that
are broken by 1e-6, and 0/1 columns as whole that are off by as much."""


class Input(NamedTuple):
    """A column that trees split on.

    Attributes
    ----------
    form, low, high, whole
        Over the model's columns; its range; whether it is whole.
    held
        A 0/1 column, and the input's value where it is 0: there, no tolerance turns a split.
    levels
        The only values, by the 0/1 column that is 1 there, at most one; None is where all are 0.
    """

    form: Form
    low: float
    high: float
    whole: bool
    held: tuple[int, float] | None = None
    levels: Mapping[int | None, float] | None = None


def score_margin(forest: TreeEnsemble, above: float) -> float:
    """How far from ``above`` rows have to be, so that neither rounding nor tolerances turn a decision."""
    found = 0.0
    for part in range(max(1, len(forest.parts))):
        error, reach = score_error(forest, above, part)
        count = (forest.parts or (len(forest.trees),))[part] if forest.aggregate == "mean" else 1
        found = max(found, (error + SPARE * reach) / count)
    return found


def written_accept(forest: TreeEnsemble, accept: Acceptance, sign: int | None = None) -> Acceptance:
    """What rows ask of the score: what has to be exceeded, and :func:`score_margin` more; or less (sign -1).

    None: less where reaching the threshold suffices, because scores often equal it.
    """
    sign = sign or (1 if accept.strict and not accept.margin else -1)
    return Acceptance(accept.above + sign * score_margin(forest, accept.above), strict=True)


def tree_rows(model: MixedInteger, forest: TreeEnsemble, inputs: Sequence[Input], above: float) -> None:
    """Ask for a score of at least ``above``."""
    below = {k: _cuts(model, forest, k, inputs[k]) for k in forest.split}
    parts = list(pairwise(np.cumsum([0, *(forest.parts or (len(forest.trees),))]).tolist()))
    chosen = None
    if len(parts) > 1 and forest.combine == "largest":
        chosen = [model.column(f"part_{p}", 0.0, 1.0, integer=True) for p in range(len(parts))]
        model.row("some_part", (dict.fromkeys(chosen, 1.0), 0.0), lower=1.0)
    for p, (first, last) in enumerate(parts):
        count = last - first if forest.aggregate == "mean" else 1
        goal = above * count
        score: dict[int, float] = {}
        least = forest.base
        for t in range(first, last):
            values = _leaves(model, forest, t, below)
            score |= values
            least += min(values.values())
        if chosen is not None and least < goal:
            score[chosen[p]] = least - goal
            model.row(f"accepted_{p}", (score, forest.base), lower=least - _room(least))
        else:
            model.row(f"accepted_{p}" if len(parts) > 1 else "accepted", (score, forest.base), lower=goal)


def _room(value: float) -> float:
    return 1e-12 * (1 + abs(value))


def _cuts(model: MixedInteger, forest: TreeEnsemble, at: int, one: Input) -> list[int | bool]:
    """Per cut of a column, the 0/1 column of going left, or what is decided."""
    form, low, high = one.form, one.low, one.high
    found: list[int | bool] = []
    for k, cut in enumerate(forest.cuts[at].tolist()):
        left = math.floor(cut) if one.whole else cut
        right = left + 1 if one.whole else math.nextafter(cut, math.inf)
        if high < right or low > left:
            found.append(high < right)
            continue
        y = model.column(f"column_{at}_left{k}", 0.0, 1.0, integer=True)
        if one.levels is not None:  # y = sum of left(level) column, exactly
            sides = {column: float(value <= cut) for column, value in one.levels.items()}
            rest = sides[None]
            row = {column: side - rest for column, side in sides.items() if column is not None}
            model.row(f"column_{at}_left{k}_is", (row | {y: -1.0}, rest), 0.0, 0.0)
            found.append(y)
            continue
        model.row(
            f"column_{at}_left{k}_low", combine((form, 1.0), (({y: high - left}, 0.0), 1.0)), upper=high
        )
        model.row(f"column_{at}_left{k}_high", combine((form, 1.0), (({y: right - low}, 0.0), 1.0)), right)
        if one.held is not None:
            side = float(one.held[1] <= cut)
            for sign in (1.0, -1.0):  # abs(y - side) <= flag
                row = {y: sign, one.held[0]: -1.0}
                model.row(f"column_{at}_left{k}_held{sign:+.0f}", (row, 0.0), upper=sign * side)
        if found and not isinstance(found[-1], bool):
            model.row(f"column_{at}_order{k}", ({found[-1]: 1.0, y: -1.0}, 0.0), upper=0.0)
        found.append(y)
    return found


def _leaves(
    model: MixedInteger, forest: TreeEnsemble, t: int, below: Mapping[int, list[int | bool]]
) -> dict[int, float]:
    """The columns of a tree's leaves that can be reached, with their values."""
    leaves = forest.leaves[t]
    last = {k: len(forest.cuts[k]) for k in below}
    met = np.ones(len(leaves.value), dtype=bool)
    for k, ways in below.items():  # cells that what is decided leaves
        first = sum(way is False for way in ways)
        met &= (leaves.high[:, k] >= first) & (leaves.low[:, k] <= last[k] - sum(way is True for way in ways))
        met &= leaves.low[:, k] <= leaves.high[:, k]
    columns = {int(i): model.column(f"tree_{t}_leaf{i}", 0.0, 1.0) for i in np.flatnonzero(met)}
    model.row(f"tree_{t}_one", (dict.fromkeys(columns.values(), 1.0), 0.0), 1.0, 1.0)
    for k, ways in below.items():
        for cell in sorted(
            {int(leaves.high[i, k]) for i in columns} | {int(leaves.low[i, k]) - 1 for i in columns}
        ):
            if not 0 <= cell < last[k] or isinstance(ways[cell], bool):
                continue
            left = [z for i, z in columns.items() if leaves.high[i, k] <= cell]
            right = [z for i, z in columns.items() if leaves.low[i, k] > cell]
            name = f"tree_{t}_column_{k}_{cell}"
            if left:
                model.row(
                    f"{name}_left", ({**dict.fromkeys(left, 1.0), int(ways[cell]): -1.0}, 0.0), upper=0.0
                )
            if right:
                model.row(
                    f"{name}_right", ({**dict.fromkeys(right, 1.0), int(ways[cell]): 1.0}, 0.0), upper=1.0
                )
    return {z: float(leaves.value[i]) for i, z in columns.items()}
