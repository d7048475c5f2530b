r"""Lowering instances to arrays, and actions back.

A lever's coordinate is :math:`u_i = (a_i - x_i) / s_i` with s a power of two near the width of its
interval, so the factual is the origin and no digit is lost. A lever with labels has one column per label,
its own label's being zero. What levers cause (:mod:`milp_recourse.compiled.causes`) are forms over the
columns and over causal units, the functions in structural equations; these are the network's layer 0,
which few problems have any unit in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled import layout as at
from milp_recourse.compiled.causes import (
    MOST_CONFIGURATIONS,
    Effects,
    NotCovered,
    Stated,
    column_starts,
    effects_of,
    is_label,
    no_effects,
)
from milp_recourse.compiled.elementary import LOG, RELU
from milp_recourse.compiled.lever_arrays import ACTED, IDLE, Lever, in_units
from milp_recourse.compiled.numerics import Slacks, slacks
from milp_recourse.compiling import by_reference, compiled
from milp_recourse.domain.conditions import TRUE
from milp_recourse.domain.enclosure import Enclosure, round_down, round_up
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance, of_one_model
from milp_recourse.program.cohort import together
from milp_recourse.program.lower import EDGE
from milp_recourse.program.model import Program

Array = NDArray[np.float64]


MOST_ROWS = 48
"""Rows of one Lagrangian besides those of domains and the ball: the logit's lines and the signs split on."""

MOST_LINES = 3
"""Lines above the logit in one Lagrangian, with as many of every row through curves."""


def most_rows(stated: int, bends: bool) -> int:
    """Rows of one Lagrangian, with those of domains and conditions and the ball."""
    return MOST_ROWS + (MOST_LINES if bends else 1) * stated + 2


@by_reference
class Problem(NamedTuple):
    r"""One applicant's problem as compiled code sees it, in one configuration of what is acted on.

    d levers, P columns, M causal units, layers 0..K of at most n units (layer 0: the causal units), R rows, F
    residuals. Rows of ``lever``, ``box`` and ``column`` have names in :mod:`milp_recourse.compiled.layout`.
    In the arrays of a whole applicant (:class:`Problems`) those of ``CASES`` have a first axis of
    configurations.

    Attributes
    ----------
    start
        Where each lever's columns begin, (d + 1,).
    lever
        Whether it has labels; the step between whole values in its coordinate, 0 for continuous; its cost,
        rounded down: fixed when acted on, linear * abs(u), square * u^2, and its share in the maximum; then x
        and s; then, for one whose change is measured in percentiles, what is fixed, its rates and its number
        of knots; and the coordinate of a whole value, (13, d).
    knot
        Those knots: coordinates, and percentiles from the factual, (2, d, most knots).
    box
        Interval and mode of numeric levers at the root, (3, d).
    allowed
        Labels that may be taken, (P,); numeric columns are 1.
    column
        Cost and share in the maximum of every label, (2, P).
    acts
        Levers that are acted on whatever their coordinate, because others move them or a condition asks for
        it, (d,).
    ends
        The least and the largest value that acting may set, (2, d).
    base
        What acting on those costs whatever their value, (1,), rounded down.
    first, caused, offset
        Layers 0 and 1 (the logit where no layer is hidden) on u and on what the causal units (in layer 0,
        those of lower number) have changed by, z_k = first[0, k] u + caused[0, k] r + offset[0, k]; with [1]
        the sums of absolute terms behind them, (2, 2, n, P), (2, 2, n, M) and (2, 2, n).
    resting
        The causal units at the factual, (M,): r is a unit's value less this.
    kind, edge
        What each causal unit is (:mod:`milp_recourse.compiled.elementary`), and what its argument is at least
        where anything is plausible (of a logarithm), (M,).
    widths
        Units of each layer, (K + 1,).
    weights, biases
        weights[k] leads from layer k to the next (the last to the logit), k >= 1, (K + 1, n, n) and
        (K + 1, n).
    turned
        The weights, transposed, (K + 1, n, n).
    row, row_caused, row_const
        Rows that must not be negative at a feasible point, row[0] u + row_caused[0] r + row_const[0] >= 0,
        and the sums of absolute terms behind them, (2, R, P), (2, R, M) and (2, R): domains of features that
        others move, and whatever rows a caller adds.
    residual, residual_caused, noise, precision
        The plausibility ball, :math:`\sum_f w_f ((n_f + \rho_f)^2 - n_f^2) \le 0` with
        :math:`\rho = residual_0 u + residual\_caused_0 r`, (2, F, P), (2, F, M), (F,) and (F,); ``owner`` is
        the column of the lever that a residual is the noise of, (F,), causes before effects.
    bent
        Whether the ball has a linear part, of noise that is not normal and of links: then the last residual
        is that, with a precision of zero, and is added as it is.
    excess
        What the ball's left side is at the factual: the offset of the density that is asked for.
    need_low, need_high
        The logit that must be reached, rounded down and up.
    has_largest
        Whether the maximum enters the cost.
    ceiling
        More than anything in the box costs.
    line, budget, dual, cost, up, tiny
        See :class:`~milp_recourse.compiled.numerics.Slacks`.
    """

    start: NDArray[np.int64]
    lever: Array
    knot: Array
    box: Array
    allowed: NDArray[np.uint8]
    column: Array
    acts: NDArray[np.uint8]
    ends: Array
    base: Array
    first: Array
    caused: Array
    offset: Array
    resting: Array
    kind: NDArray[np.int64]
    edge: Array
    widths: NDArray[np.int64]
    weights: Array
    biases: Array
    turned: Array
    row: Array
    row_caused: Array
    row_const: Array
    residual: Array
    residual_caused: Array
    noise: Array
    owner: NDArray[np.int64]
    precision: Array
    bent: bool
    excess: float
    need_low: float
    need_high: float
    has_largest: bool
    ceiling: float
    line: float
    budget: float
    dual: float
    cost: float
    up: float
    tiny: float


Problems = Problem
"""All configurations of an applicant: the arrays named in :data:`CASES` have a first axis for them."""

CASES = (
    *("box", "allowed", "acts", "ends", "base", "first", "caused", "offset", "resting"),
    *("row", "row_caused", "row_const", "residual", "residual_caused", "precision"),
)

_OF_CASE = ", ".join(f"p.{name}[c]" if name in CASES else f"p.{name}" for name in Problem._fields)

case = compiled(eval(f"lambda p, c: Problem({_OF_CASE})"))
"""The problem p in configuration c, spelled out from :data:`CASES`: compiled code has no loop over fields."""


def impossible(instance: Instance, moved: Sequence[str] = ()) -> bool:
    """Whether nothing can be acted on, or what neither levers nor ``moved`` name leaves its domain."""
    return not instance.levers or any(
        f.domain is not None
        and f.name not in instance.levers
        and f.name not in moved
        and not f.domain[0] <= instance.factual[f.name] <= f.domain[1]
        for f in instance.features
    )


def why_not(instance: Instance) -> str | None:
    """Why the compiled engine does not cover an instance, or None."""
    if not isinstance(instance.classifier, ReluNetwork):
        return "not a network"
    if instance.cost.quantiles and instance.cost.l2_squared:
        return "squared percentiles"
    if 2 ** len(instance.levers) > MOST_CONFIGURATIONS:
        moved = {f for lever in instance.levers for f in instance.scm.descendants({lever}) - {lever}}
        if 2 ** len(moved & instance.levers.keys()) > MOST_CONFIGURATIONS:
            return f"more than {MOST_CONFIGURATIONS} sets of acted features to tell apart"
    return None


def lowered(instances: Sequence[Instance]) -> Iterator[tuple[list[int], Lowered]]:
    """Positions of instances that are lowered together, and their arrays; those not covered are left out."""
    covered = [k for k, instance in enumerate(instances) if why_not(instance) is None]
    chosen = [instances[k] for k in covered]
    for group in of_one_model(chosen):
        people = [covered[k] for k in group]
        if _without_effects(instances[people[0]]):
            members = [instances[k] for k in people]
            yield people, Lowered(members, no_effects(members[0]))
            continue
        for part, made in together([instances[k] for k in people], _with_effects):
            if made is not None:
                yield [people[k] for k in part], made


def lower(instance: Instance) -> Problems:
    """The arrays of one instance.

    Raises
    ------
    NotCovered
        The engine has none.
    """
    for _, made in lowered([instance]):
        return made.problems(0)
    raise NotCovered(why_not(instance) or "curves")


def _without_effects(instance: Instance) -> bool:
    levers, free = instance.preferences.actionable, not instance.plausible and instance.demand == TRUE
    return free and not instance.scenarios and all(instance.scm.descendants({f}) == {f} for f in levers)


def _with_effects(instances: list[Instance], program: Program) -> Lowered | None:
    try:
        return Lowered(instances, effects_of(instances, program))
    except NotCovered:
        return None


class Lowered:
    """Applicants of one model whose levers do the same: what they share, and each one's arrays.

    Parameters
    ----------
    instances
        With the same levers.
    effects
        Theirs.
    """

    def __init__(self, instances: Sequence[Instance], effects: Effects) -> None:
        self.instances, self.effects = instances, effects
        first, network = instances[0], effects.network
        self.start = column_starts(first)
        self.labels = [is_label(first.feature(name)) for name in first.levers]
        columns, units = int(self.start[-1]), effects.arguments.value.shape[1]
        hidden = [len(b) for b in network.biases[:-1]]
        self.widths = np.array([units, *hidden], dtype=np.int64)
        most = max([1, units, *hidden])
        self.weights = np.zeros((len(self.widths), most, most))
        self.biases = np.zeros((len(self.widths), most))
        for k, (w, b) in enumerate(zip(network.weights[1:], network.biases[1:], strict=True)):
            self.weights[k + 1, : w.shape[0], : w.shape[1]] = w
            self.biases[k + 1, : len(b)] = b
        self.turned = np.ascontiguousarray(self.weights.transpose(0, 2, 1))
        cases = len(effects.acts)
        layers = np.zeros((cases, 2, 2, most, columns + units))
        layers[:, 0, 0, :units], layers[:, 1, 0, :units] = effects.arguments.value, effects.arguments.size
        weight = network.weights[0]
        self.absolute = np.abs(weight), np.abs(network.biases[0])
        layers[:, 0, 1, : len(weight)] = weight @ effects.inputs.value
        layers[:, 1, 1, : len(weight)] = self.absolute[0] @ effects.inputs.size
        self.first, self.caused = self._parted(layers)
        self.ends = _ends(effects.stated)
        rows = np.zeros((cases, 2, len(self.ends), columns + units))
        for r, (f, side, _) in enumerate(self.ends):
            rows[:, 0, r], rows[:, 1, r] = side * effects.rows.value[:, f], effects.rows.size[:, f]
        self.rows, self.row_caused = self._parted(rows)
        residuals = np.stack([effects.residuals.value, effects.residuals.size], axis=1)
        self.residuals, self.residual_caused = self._parted(residuals)
        need = Fraction(first.accept.threshold) + Fraction(first.accept.margin)
        self.need = round_down(need), round_up(need)
        curves = int((effects.kinds != RELU).sum())
        inputs, rows_ = network.weights[0].shape[1], most_rows(len(self.ends), curves > 0) + columns
        self.slack: Slacks = slacks(hidden, inputs, columns, rows_, units, effects.roundings, curves)
        self.moved = [one.feature.name for one in effects.stated if one.feature is not None]
        acted = (effects.acts[0] | effects.follows[0]).astype(bool)
        self.levers = [Lever(instances, name, bool(m)) for name, m in zip(first.levers, acted, strict=True)]
        self.numbers, self.roots = np.zeros((len(instances), 13, 0)), np.zeros((len(instances), 3, 0))
        self.intervals, self.dearest = np.zeros((len(instances), 2, 0)), [0.0] * len(instances)
        if self.levers:
            self.numbers = np.stack([lever.numbers for lever in self.levers], axis=2)
            self.roots = np.stack([lever.box for lever in self.levers], axis=2)
            self.intervals = np.stack([lever.interval for lever in self.levers], axis=2)
            costs, tops = np.stack([lever.dearest for lever in self.levers], axis=2).transpose(1, 0, 2)
            self.dearest = (costs.sum(axis=1) + tops.max(axis=1)).tolist()
        # what nobody has labels or percentiles for is the same for all
        self.numeric = np.ones((cases, columns), dtype=np.uint8), np.zeros((2, columns))
        self.no_knots = np.zeros((2, len(self.levers), 1))
        self.inputs = first.model_rows(
            np.array([[one.factual[f.name] for f in first.features] for one in instances])
        )
        self.owners = self.start[effects.owners]
        self.edges = np.where(effects.kinds == LOG, EDGE, -np.inf)
        self.bent_to = np.argwhere(np.isfinite(effects.ends).any(axis=2)).tolist()
        places = (
            lever.x if label else lever.unit for lever, label in zip(self.levers, self.labels, strict=True)
        )
        self.places = list(zip(*(place.tolist() for place in places), strict=True))
        self._measured: dict[tuple[float, ...], list[Array]] = {}
        self.resting = effects.resting
        if self.resting.shape[1] != cases:
            self.resting = self.resting.repeat(cases, 1)
        self.together = max(1, MOST_NUMBERS // max(1, cases * (4 * most + 5 * len(self.levers))))
        self._block: tuple[int, list[Array]] = -1, []

    def _parted(self, forms: Array) -> tuple[Array, Array]:
        columns = int(self.start[-1])
        return np.ascontiguousarray(forms[..., :columns]), np.ascontiguousarray(forms[..., columns:])

    def problems(self, k: int) -> Problems:
        """The arrays of one of the applicants."""
        instance, effects = self.instances[k], self.effects
        begin = k - k % self.together
        if self._block[0] != begin:
            self._block = begin, self._together(slice(begin, begin + self.together))
        box, ends, offset = (part[k - begin] for part in self._block[1])
        row_const = self._at_rest(instance, len(box))
        self._cut_ends(k, box, ends, row_const)
        first, rows, residuals = self._on_coordinates(k)
        base = self._base(k)
        return Problem(
            self.start,
            self.numbers[k].copy(),
            self._knots_of(k),
            box,
            self._allowed(k),
            np.concatenate([lever.columns[k] for lever in self.levers], axis=1)
            if any(self.labels)
            else self.numeric[1],
            effects.acts,
            ends,
            base,
            first,
            self.caused,
            offset,
            self.resting[k if len(self.resting) > 1 else 0],
            effects.kinds,
            self.edges,
            self.widths,
            self.weights,
            self.biases,
            self.turned,
            rows,
            self.row_caused,
            row_const,
            residuals,
            self.residual_caused,
            effects.noise[k] if effects.noise.size else np.zeros(0),
            self.owners,
            effects.precision,
            effects.bent,
            instance.offset,
            *self.need,
            instance.cost.linf > 0,
            (max(base[:, 0].tolist()) + self.dearest[k]) * (1.0 + 4.0 * self.slack.cost) + self.slack.tiny,
            *self.slack,
        )

    def _together(self, here: slice) -> list[Array]:
        """Boxes, (n, C, 3, d), what acting may set, (n, C, 2, d), and offsets of n applicants: each one's are
        what they would be alone."""
        effects, cases = self.effects, len(self.effects.acts)
        box = np.repeat(self.roots[here, None], cases, axis=1)
        box[:, :, at.MODE][:, effects.acts > 0] = ACTED
        box[:, :, at.MODE][:, effects.follows > 0] = IDLE
        weight, bias = effects.network.weights[0], effects.network.biases[0]
        row = self.inputs[here, None] if effects.inputs_at is None else effects.inputs_at[None]
        argument = effects.arguments_at[here if len(effects.arguments_at) > 1 else slice(None)]
        offset = np.zeros((len(box), cases, 2, 2, self.biases.shape[1]))
        offset[:, :, 0, 0, : argument.shape[2]] = argument
        offset[:, :, 1, 0, : argument.shape[2]] = np.abs(argument)
        offset[:, :, 0, 1, : len(bias)] = row @ weight.T + bias
        offset[:, :, 1, 1, : len(bias)] = np.abs(row) @ self.absolute[0].T + self.absolute[1]
        return [box, np.repeat(self.intervals[here, None], cases, axis=1), offset]

    def _knots_of(self, k: int) -> Array:
        if not self.instances[0].cost.quantiles:
            return self.no_knots
        own = [lever.knots[k] for lever in self.levers]
        knots = np.zeros((2, len(own), max([1, *(one.shape[1] for one in own)])))
        for i, one in enumerate(own):
            knots[:, i, : one.shape[1]] = one
        return knots

    def _allowed(self, k: int) -> NDArray[np.uint8]:
        """Labels that may be taken in every configuration."""
        if not any(self.labels):
            return self.numeric[0]
        follows = self.effects.follows[:, self.labels]
        allowed = np.concatenate([lever.allowed[k] for lever in self.levers])[None].repeat(len(follows), 0)
        for c, i in np.argwhere(follows > 0).tolist() if follows.size else ():
            place = int(np.flatnonzero(self.labels)[i])
            allowed[c, self.start[place] : self.start[place + 1]] = 0
            allowed[c, self.start[place] + int(self.levers[place].x[k])] = 1
        return allowed

    def _base(self, k: int) -> Array:
        """What acting on the levers that others move costs in every configuration, (C, 1)."""
        acts = self.effects.acts
        base = np.zeros((len(acts), 1))
        if self.instances[0].cost.l0 and (acts | self.effects.follows).any():
            held = [lever.fixed[k] for lever in self.levers]
            base[:, 0] = [
                round_down(sum((c for c, a in zip(held, row, strict=True) if a), Fraction(0))) for row in acts
            ]
        return base

    def _at_rest(self, instance: Instance, cases: int) -> Array:
        """The constants of the problem's own rows, and the sums of absolute terms behind them, (C, 2, R)."""
        effects = self.effects
        row_const = np.zeros((cases, 2, len(self.ends)))
        for r, (f, side, end) in enumerate(self.ends):
            one = effects.stated[f]
            x = one.value if one.feature is None else Fraction(instance.factual[one.feature.name])
            if isinstance(x, Enclosure):
                x = x.upper if side > 0.0 else x.lower
            row_const[:, 0, r] = -round_down(Fraction(-side) * (x - Fraction(end)))
            row_const[:, 1, r] = abs(float(x)) + abs(end)
            settled = effects.holds[:, f] != 0
            row_const[settled, 0, r], row_const[settled, 1, r] = effects.holds[settled, f], 0.0
        return row_const

    def _cut_ends(self, k: int, box: Array, ends: Array, row_const: Array) -> None:
        """Cut what levers may be set to, and boxes, to conditions on single values; where nothing is left
        a row says so."""
        own, given = self.intervals[k], self.effects.ends
        for c, i in self.bent_to:
            low, high = max(own[0, i], given[c, i, 0]), min(own[1, i], given[c, i, 1])
            if low > high:
                row_const[c, 0, :] = -1.0
                continue
            ends[c, :, i] = low, high
            lever = self.levers[i]
            box[c, :2, i] = in_units(low, high, lever.x[k], lever.unit[k])

    def _on_coordinates(self, k: int) -> list[Array]:
        """Layers, rows and residuals on an applicant's coordinates: changes in units, labels less their own.

        Units are powers of two, and few.
        """
        places = self.places[k]
        if places not in self._measured:
            if len(self._measured) >= MOST_UNITS:
                self._measured.clear()
            self._measured[places] = [
                self._of(forms, places) for forms in (self.first, self.rows, self.residuals)
            ]
        return self._measured[places]

    def _of(self, forms: Array, places: tuple[float, ...]) -> Array:
        if not forms.size:
            return forms
        result = forms.copy()
        for i, place in enumerate(places):
            s, e = int(self.start[i]), int(self.start[i + 1])
            if self.labels[i]:
                own = s + int(place)
                result[:, 0, ..., s:e] -= forms[:, 0, ..., own : own + 1]
                result[:, 1, ..., s:e] += forms[:, 1, ..., own : own + 1]
                result[:, 1, ..., own] = 0.0
            else:
                result[..., s] *= place
        return result


MOST_NUMBERS = 1 << 17
"""In the arrays that are made for many applicants at once."""

MOST_UNITS = 16
"""Combinations of units and own labels whose forms are kept."""


def _ends(stated: Sequence[Stated]) -> list[tuple[int, float, float]]:
    """Position, side (1: value - end, -1: end - value) and end of every finite end of a row."""
    ends = []
    for f, one in enumerate(stated):
        for side, end in ((1.0, one.lower), (-1.0, one.upper)):
            if math.isfinite(end):
                ends.append((f, side, end))
    return ends


def coordinates(instance: Instance, problem: Problem, rows: Array) -> Array:
    """Feature rows (n, features) as coordinates (n, d): the levers' values, labels as they are."""
    names = [f.name for f in instance.features]
    result = np.empty((len(rows), len(instance.levers)))
    for i, name in enumerate(instance.levers):
        values = rows[:, names.index(name)]
        if problem.lever[at.LABEL, i]:
            result[:, i] = values
        else:
            result[:, i] = (values - problem.lever[at.FACTUAL, i]) / problem.lever[at.UNIT, i]
    return result


def decode(instance: Instance, p: Problems, values: Array, c: int = 0) -> dict[str, float]:
    """The action that coordinates stand for in a configuration.

    Levers that stay where they are are not acted on, unless they are held against what moves them.
    """
    action = {}
    label, factual, unit, grid = (p.lever[row].tolist() for row in (at.LABEL, at.FACTUAL, at.UNIT, at.GRID))
    acts, (low, high) = p.acts[c].tolist(), p.ends[c].tolist()
    for i, (name, value) in enumerate(zip(instance.levers, values.tolist(), strict=True)):
        a = value
        if not label[i]:
            if a == 0.0:
                if acts[i]:
                    action[name] = float(instance.factual[name])
                continue
            a = min(max(factual[i] + unit[i] * a, low[i]), high[i])
            a = float(round(a)) if grid[i] else a
        if a != instance.factual[name] or acts[i]:
            action[name] = a
    return action
