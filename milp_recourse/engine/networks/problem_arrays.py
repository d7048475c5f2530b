r"""Lowering instances to arrays, and actions back.

A lever's coordinate is :math:`u_i = (a_i - x_i) / s_i` with s a power of two near the width of its
interval, so the factual is the origin and no digit is lost. A lever with labels has one column per label,
its own label's being zero. What levers cause (:mod:`milp_recourse.engine.networks.causes`) are forms over the
columns and over causal units, the functions in structural equations; these are the network's layer 0,
which few problems have any unit in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import by_reference, compiled
from milp_recourse.engine.networks.causes import Effects, NotCovered, Stated, too_many_sets
from milp_recourse.engine.networks.elementary import LOG, RELU
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE, Levers, Records, in_units, roundings
from milp_recourse.engine.networks.numerics import Slacks, slacks
from milp_recourse.problem.enclosure import Enclosure, difference_below, round_down, round_up
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program import functions
from milp_recourse.program.lower import together
from milp_recourse.program.neutral_program import Program

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
    residuals. In the arrays of a whole applicant (:class:`Problems`) those of ``CASES`` have a first axis of
    configurations; in those of several applicants (:class:`People`) those of ``PERSONAL`` have another one
    before it, and those of ``FORMS`` one of what few applicants do not share.

    Attributes
    ----------
    start
        Where each lever's columns begin, (d + 1,).
    lever
        Records (:data:`~milp_recourse.engine.networks.lever_arrays.LEVER`), (d,).
    knot
        Knots of levers that have some: coordinates, and sizes of the change from the factual, (2, d, most
        knots).
    box
        Intervals of numeric levers at the root, (d,).
    allowed
        Labels that may be taken, (P,); numeric columns are 1.
    column
        Cost and share in the maximum of every label, (P,).
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
        What each causal unit is (:mod:`milp_recourse.engine.networks.elementary`); of a logarithm, the
        argument below which nothing is plausible, of others -inf, (M,).
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
        others move, and conditions.
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
    only_largest
        Whether the cost is a maximum alone.
    ceiling
        More than anything in the box costs.
    allowance
        The part of the gap's tolerance that is no share of the cost.
    form
        Which of the arrays of ``FORMS`` are the applicant's.
    slacks
        How far rounding may be off.
    """

    start: NDArray[np.int64]
    lever: Records
    knot: Array
    box: Records
    allowed: NDArray[np.uint8]
    column: Records
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
    only_largest: bool
    ceiling: float
    allowance: float
    form: int
    slacks: Slacks


Problems: TypeAlias = Problem
"""All configurations of an applicant: the arrays named in :data:`CASES` have a first axis for them."""

People: TypeAlias = Problem
"""Several applicants: the arrays named in :data:`PERSONAL` and :data:`FORMS` have one more axis."""

CASES = (
    *("box", "allowed", "acts", "base", "first", "caused", "offset", "resting"),
    *("row", "row_caused", "row_const", "residual", "residual_caused", "precision"),
)

FORMS = "first", "row", "residual"
PERSONAL = (
    *("lever", "knot", "box", "allowed", "column", "ends", "base", "offset", "resting", "row_const", "noise"),
    *("excess", "need_low", "need_high", "ceiling", "allowance", "form"),
)


@compiled
def case(p: Problems, k: int) -> Problem:
    """The problem p in configuration k: the arrays of :data:`CASES` at k. Compiled code has no loop over
    fields."""
    return Problem(
        start=p.start,
        lever=p.lever,
        knot=p.knot,
        box=p.box[k],
        allowed=p.allowed[k],
        column=p.column,
        acts=p.acts[k],
        ends=p.ends,
        base=p.base[k],
        first=p.first[k],
        caused=p.caused[k],
        offset=p.offset[k],
        resting=p.resting[k],
        kind=p.kind,
        edge=p.edge,
        widths=p.widths,
        weights=p.weights,
        biases=p.biases,
        turned=p.turned,
        row=p.row[k],
        row_caused=p.row_caused[k],
        row_const=p.row_const[k],
        residual=p.residual[k],
        residual_caused=p.residual_caused[k],
        noise=p.noise,
        owner=p.owner,
        precision=p.precision[k],
        bent=p.bent,
        excess=p.excess,
        need_low=p.need_low,
        need_high=p.need_high,
        only_largest=p.only_largest,
        ceiling=p.ceiling,
        allowance=p.allowance,
        form=p.form,
        slacks=p.slacks,
    )


def one_of(p: Any, k: int) -> Problems:
    """Applicant k of several (:data:`People`): the arrays of ``PERSONAL`` at k, of ``FORMS`` at k's form."""
    form = p.form[k]
    return Problem(
        start=p.start,
        lever=p.lever[k],
        knot=p.knot[k],
        box=p.box[k],
        allowed=p.allowed[k],
        column=p.column[k],
        acts=p.acts,
        ends=p.ends[k],
        base=p.base[k],
        first=p.first[form],
        caused=p.caused,
        offset=p.offset[k],
        resting=p.resting[k],
        kind=p.kind,
        edge=p.edge,
        widths=p.widths,
        weights=p.weights,
        biases=p.biases,
        turned=p.turned,
        row=p.row[form],
        row_caused=p.row_caused,
        row_const=p.row_const[k],
        residual=p.residual[form],
        residual_caused=p.residual_caused,
        noise=p.noise[k],
        owner=p.owner,
        precision=p.precision,
        bent=p.bent,
        excess=p.excess[k],
        need_low=p.need_low[k],
        need_high=p.need_high[k],
        only_largest=p.only_largest,
        ceiling=p.ceiling[k],
        allowance=p.allowance[k],
        form=form,
        slacks=p.slacks,
    )


person = compiled(one_of)
""":func:`one_of` in compiled code."""


def alone(p: Problems) -> People:
    """An applicant's arrays as those of several."""
    one: dict[str, Any] = {name: np.asarray(getattr(p, name))[None] for name in PERSONAL + FORMS}
    return p._replace(**{**one, "form": np.zeros(1, dtype=np.int64)})


def impossible(instance: Instance, moved: Sequence[str] = ()) -> bool:
    """Whether there is no lever, or a feature that is neither a lever nor ``moved`` is outside its domain."""
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
    return jumping(instance) or too_many_sets(instance, instance.classifier)


def jumping(instance: Instance) -> str | None:
    """That the cost of a lever jumps, so that no lines are below it; None if none does."""
    if instance.jump is None:
        return None
    return f"the percentiles of {instance.jump!r} jump where values are nearly equal: leave one of those out"


def lowered(instances: Sequence[Instance]) -> Iterator[tuple[list[int], Lowered]]:
    """Groups of instances: the positions of those that are lowered together, and their arrays. Instances that
    the compiled engine does not cover are left out."""
    covered = [k for k, instance in enumerate(instances) if why_not(instance) is None]
    for part, made in together([instances[k] for k in covered], _with_effects):
        if made is not None:
            yield [covered[k] for k in part], made


def lower(instance: Instance) -> Problems:
    """The arrays of one instance.

    Raises
    ------
    NotCovered
        The compiled engine does not cover the instance.
    """
    for _, made in lowered([instance]):
        return made.problems(0)
    raise NotCovered(why_not(instance) or "curves")


def _with_effects(instances: list[Instance], program: Program) -> Lowered | None:
    """The arrays of applicants who have a program in common; None if the engine does not cover them."""
    try:
        return Lowered(instances, Effects(instances, program))
    except NotCovered:
        return None


class Lowered:
    """Applicants of one model whose levers cause the same: what they share, and each one's arrays.

    Parameters
    ----------
    instances
        Applicants with the same levers.
    effects
        What these levers cause.
    """

    def __init__(self, instances: Sequence[Instance], effects: Effects) -> None:
        self.instances, self.effects = instances, effects
        first, network = instances[0], effects.network
        self.moved = [one.feature.name for one in effects.stated if one.feature is not None]
        self.levers = Levers(instances, (effects.acts[0] | effects.follows[0]).astype(bool).tolist())
        self.start, cases = self.levers.start, len(effects.acts)
        self.ends = _ends(effects.stated)
        columns, units = int(self.start[-1]), len(effects.kinds)
        hidden = [len(b) for b in network.biases[:-1]]
        layers, most = len(hidden) + 1, max([1, units, *hidden])
        weights, biases = np.zeros((layers, most, most)), np.zeros((layers, most))
        for k, (w, b) in enumerate(zip(network.weights[1:], network.biases[1:], strict=True), start=1):
            weights[k, : w.shape[0], : w.shape[1]], biases[k, : len(b)] = w, b
        weight = np.stack([network.weights[0], np.abs(network.weights[0])])
        first_two = np.zeros((cases, 2, 2, most, columns + units))
        first_two[:, :, 0, :units] = effects.arguments
        first_two[:, :, 1, : weight.shape[1]] = weight @ effects.inputs
        rows = effects.rows[:, :, np.array([f for f, _, _ in self.ends], dtype=np.int64)]
        rows[:, 0] *= np.array([side for _, side, _ in self.ends])[:, None]
        forms = first_two, rows, effects.residuals
        self.forms = [np.ascontiguousarray(form[..., :columns]) for form in forms]
        caused, row_caused, residual_caused = (np.ascontiguousarray(form[..., columns:]) for form in forms)
        curves = int((effects.kinds != RELU).sum())
        most_of = most_rows(len(self.ends), curves > 0) + columns
        sizes = hidden, weight.shape[2], columns, most_of, units, effects.roundings, curves
        slack = slacks(*sizes, roundings(first))
        turned, edge = weights.transpose(0, 2, 1), np.where(effects.kinds == LOG, functions.EDGE, -np.inf)
        widths, owner = np.array([units, *hidden], dtype=np.int64), self.start[effects.owners]
        self.shared: dict[str, Any] = {"start": self.start, "acts": effects.acts, "slacks": slack}
        self.shared |= {"weights": weights, "biases": biases, "turned": np.ascontiguousarray(turned)}
        self.shared |= {"widths": widths, "kind": effects.kinds, "edge": edge, "bent": effects.bent}
        self.shared |= {"row_caused": row_caused, "residual_caused": residual_caused, "owner": owner}
        self.shared |= {"caused": caused, "precision": effects.precision}
        every = [first.lever_costs[name].prices for name in first.levers]
        self.shared["only_largest"] = all(one.largest and not any(one[:3]) for one in every)
        given = np.array([[one.factual[f.name] for f in first.features] for one in instances])
        self.inputs = first.model_rows(given)
        # of every column its lever, whether it is a label's, its unit, and its applicant's own label
        lever = np.repeat(np.arange(len(first.levers)), np.diff(self.start))
        labels = self.levers.numbers["label"][0] > 0.0
        self.has_labels, self.label, self.unit = labels.any(), labels[lever], self.levers.unit[:, lever]
        self.own = (self.start[:-1] + np.where(labels, self.levers.x, 0.0).astype(np.int64))[:, lever]
        allowed, box = (
            self.levers.allowed[:, None].repeat(cases, 1),
            self.levers.box[:, None].repeat(cases, 1),
        )
        box["mode"][:, effects.acts > 0] = ACTED
        box["mode"][:, effects.follows > 0] = IDLE
        for c, i in np.argwhere((effects.follows > 0) & labels).tolist():
            allowed[:, c, self.start[i] : self.start[i + 1]] = 0
            allowed[np.arange(len(box)), c, self.own[:, self.start[i]]] = 1
        row_const, base = self._at_rest(given), self._base()
        costs, tops = self.levers.dearest.transpose(1, 0, 2)
        dearest = base[:, :, 0].max(axis=1) + costs.sum(axis=1) + tops.max(axis=1, initial=0.0)
        resting = np.broadcast_to(effects.resting, (*box.shape[:2], units))
        self.personal = {"box": box, "allowed": allowed, "row_const": row_const, "base": base}
        self.personal |= {"lever": self.levers.numbers, "column": self.levers.column, "knot": self._knots()}
        self.personal |= {"offset": self._offsets(cases), "resting": resting, "ends": self.levers.intervals}
        self.personal["noise"] = effects.noise if effects.noise.size else np.zeros((len(box), 0))
        self.personal["excess"] = np.array([one.offset for one in instances])
        self.personal["need_low"] = np.array([round_down(one.accept.needed) for one in instances])
        self.personal["need_high"] = np.array([round_up(one.accept.needed) for one in instances])
        self.personal["ceiling"] = dearest * (1.0 + 4.0 * slack.cost) + slack.tiny
        self.personal["allowance"] = np.array([one.gap_allowance for one in instances])

    def problems(self, k: int) -> Problems:
        """The arrays of one of the applicants."""
        return one_of(self.people([k]), 0)

    def people(self, chosen: Sequence[int]) -> People:
        """The arrays of several of the applicants."""
        own: dict[str, Any] = {name: np.ascontiguousarray(one[chosen]) for name, one in self.personal.items()}
        keys = [self.unit[k].tobytes() + self.own[k].tobytes() for k in chosen]
        numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        firsts = [chosen[keys.index(key)] for key in numbers]
        own |= {name: self._measured_in(f, firsts) for name, f in zip(FORMS, self.forms, strict=True)}
        return Problem(**self.shared, **own, form=np.array([numbers[key] for key in keys]))  # type: ignore[arg-type]

    def _offsets(self, cases: int) -> Array:
        """Layers 0 and 1 at every factual and the sums of absolute terms behind them, (n, C, 2, 2, n)."""
        effects, network = self.effects, self.effects.network
        weight, bias = network.weights[0], network.biases[0]
        row = self.inputs[:, None] if effects.inputs_at is None else effects.inputs_at
        argument = effects.arguments_at
        units = argument.shape[2]
        offset = np.zeros((len(self.inputs), cases, 2, 2, self.forms[0].shape[3]))
        offset[:, :, 0, 0, :units], offset[:, :, 1, 0, :units] = argument, np.abs(argument)
        offset[:, :, 0, 1, : len(bias)] = row @ weight.T + bias
        offset[:, :, 1, 1, : len(bias)] = np.abs(row) @ np.abs(weight).T + np.abs(bias)
        return offset

    def _knots(self) -> Array:
        """Every applicant's ``knot``; levers with fewer knots than others get zeros behind theirs."""
        every = [(k, i, one) for i, known in self.levers.knots.items() for k, one in enumerate(known)]
        most = max([1, *(one.shape[1] for _, _, one in every)])
        made = np.zeros((len(self.levers.x), 2, self.levers.x.shape[1], most))
        for k, i, one in every:
            made[k, :, i, : one.shape[1]] = one
        return made

    def _base(self) -> Array:
        """What acting on the levers that others move costs each in every configuration, (n, C, 1)."""
        base = np.zeros((len(self.levers.x), len(self.effects.acts), 1))
        for k in range(len(base) if any(fixed[0] for fixed in self.levers.fixed) else 0):
            for c, acts in enumerate(self.effects.acts.tolist()):
                held = (fixed[k] for fixed, a in zip(self.levers.fixed, acts, strict=True) if a)
                base[k, c] = round_down(sum(held, Fraction(0)))
        return base

    def _at_rest(self, given: Array) -> Array:
        """Everybody's constants of the problem's own rows, and the sums of absolute terms behind them,
        (n, C, 2, R); ``given`` are the factuals."""
        names = [f.name for f in self.instances[0].features]
        made = np.zeros((len(given), len(self.effects.acts), 2, len(self.ends)))
        for r, (f, side, end) in enumerate(self.ends):
            one, settled = self.effects.stated[f], self.effects.holds[:, f]
            if one.feature is None:  # a condition's row, whose instance is alone
                x = one.value
                if isinstance(x, Enclosure):
                    x = x.upper if side > 0.0 else x.lower
                rest, x = np.array([round_up(Fraction(side) * (x - Fraction(end)))]), np.array([float(x)])
            else:
                x = given[:, names.index(one.feature.name)]
                rest = -(difference_below(end, x) if side > 0.0 else difference_below(x, end))
            size = np.abs(x) + abs(end)
            made[:, :, 0, r] = np.where(settled == 0, rest[:, None], settled)
            made[:, :, 1, r] = np.where(settled == 0, size[:, None], 0.0)
        return made

    def _measured_in(self, form: Array, chosen: Sequence[int]) -> Array:
        """A form over actions' values and labels as one over each applicant's coordinates: changes in units,
        labels less their own. Units are powers of two, so that many applicants have the same."""
        made, label = form * np.expand_dims(self.unit[chosen], tuple(range(1, form.ndim))), self.label
        for result, k in zip(made, chosen if self.has_labels else (), strict=False):
            own = self.own[k][label]
            result[:, 0][..., label] -= form[:, 0][..., own]
            result[:, 1][..., label] += form[:, 1][..., own]
            result[:, 1][..., own] = 0.0
        return made


def _ends(stated: Sequence[Stated]) -> list[tuple[int, float, float]]:
    """Position, side (1: value - end, -1: end - value) and end of every finite end of a row."""
    sides = [(f, [(1.0, one.lower), (-1.0, one.upper)]) for f, one in enumerate(stated)]
    return [(f, side, end) for f, own in sides for side, end in own if math.isfinite(end)]


Ends = Mapping[str, tuple[float, float]]
"""Domains of features."""


def binding_rows(group: Lowered, case: int, k: int = 0) -> list[tuple[int, float, str, float]]:
    """The rows of domains that may fail in a configuration of one of the applicants: number, side (1: value -
    end, -1: end - value), feature and its factual value."""
    stated, holds = group.effects.stated, group.effects.holds[case]
    rows = ((r, side, stated[f].feature) for r, (f, side, _) in enumerate(group.ends) if holds[f] == 0)
    factual = group.instances[k].factual
    return [(r, side, f.name, factual[f.name]) for r, side, f in rows if f is not None]


def set_domains(const: Array, rows: Iterable[tuple[int, float, str, float]], domains: Ends) -> None:
    """Write other domains into a configuration's constants of rows and the sums behind these, (2, R)."""
    for r, side, name, x in rows:
        if name in domains:
            end = domains[name][0 if side > 0 else 1]
            rest = difference_below(end, x) if side > 0 else difference_below(x, end)
            const[:, r] = -rest, abs(x) + abs(end)


def between(problem: Problems, low: Array, high: Array) -> Problems:
    """The problem with all levers acted on inside a box of their values, (d,) each."""
    x, unit, label = (problem.lever[name] for name in ("factual", "unit", "label"))
    box, allowed, acts = problem.box.copy(), problem.allowed.copy(), np.ones_like(problem.acts)
    box["mode"] = ACTED
    box["lo"], box["hi"] = np.where(label > 0.0, 0.0, in_units(low, high, x, unit))
    for i in np.flatnonzero(label > 0.0).tolist():
        numbers = np.arange(problem.start[i + 1] - problem.start[i])
        allowed[:, problem.start[i] : problem.start[i + 1]] &= (low[i] <= numbers) & (numbers <= high[i])
    return problem._replace(box=box, allowed=allowed, acts=acts)


def coordinates(instance: Instance, problem: Problem, rows: Array) -> Array:
    """Feature rows (n, features) as coordinates (n, d): the levers' values, labels as they are."""
    names = [f.name for f in instance.features]
    values = rows[:, [names.index(name) for name in instance.levers]]
    label, factual, unit = (problem.lever[name] for name in ("label", "factual", "unit"))
    return np.where(label > 0.0, values, (values - factual) / unit)


def decode(instance: Instance, lever: Records, acts: Array, ends: Array, values: Array) -> dict[str, float]:
    """The action that coordinates stand for in a configuration, whose ``acts`` are given.

    Levers that stay where they are are not acted on, unless they are held against what moves them.
    """
    action, rows = {}, (lever[name].tolist() for name in ("label", "factual", "unit", "grid"))
    columns = zip(instance.levers, values.tolist(), *rows, acts.tolist(), *ends.tolist(), strict=True)
    for name, value, label, factual, unit, grid, held, low, high in columns:
        a = value
        if not label:
            a = min(max(factual + unit * value, low), high)
            lattice = instance.by_name[name].lattice
            a = factual if value == 0.0 else lattice.nearest(a) if grid and lattice else a
        if a != factual or held:
            action[name] = a
    return action
