"""The baseline oracle of the literature: a grid over the action space, and no proof.

Per continuous feature 25 bins ``linspace(x - 2 (x - min), x + 2 (max - x))``, min and max being
the feature's bounds, plus "no action"; every value is clipped to [min, max]; the full product
over the applicant's features; the cheapest plausible accepted point (Karimi et al. 2021,
https://doi.org/10.1145/3442188.3445899, appendix; Majumdar and Valera 2024). The released
script neither clips nor checks plausibility: this reading reproduces the published rows best.

Every part of a cost grows with the size of a feature's own change, so
candidates come in order of cost, block by block, and the first feasible one is the answer of
the full product. Nothing is claimed about points between the bins.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import judge
from milp_recourse.problem.features import WHOLE
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.solvers.protocol import Options, Proposal

BINS = 25  # values per feature in the paper
BLOCK = 2**19  # candidates whose cost is held at a time (26^4 fits)
FIRST_CHUNK, LARGEST_CHUNK = 2**10, 2**15  # candidates evaluated at a time
TOLERANCE = 1e-9  # the float check is this lenient; the exact one decides


class GridBackend:
    """Exhaustive search over a grid: ``found`` or ``not-found``, never a proof.

    Parameters
    ----------
    bins
        Values per continuous or integer feature, before clipping.
    """

    name = "grid"
    proves = False

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def unavailable(self) -> str | None:
        """None: numpy is all it needs."""
        return None

    def why_not(self, instance: Instance) -> str | None:
        """None: every instance has a grid."""
        return None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """The cheapest feasible grid point, or none; ``lower_bound`` is always None."""
        clock = Clock.start(options.time_limit)
        axes = [_axis(instance, name, self.bins) for name in instance.levers]
        prefix, suffix = _split(axes)
        block = _Block.product(suffix)
        best: dict[str, float] | None = None
        best_cost = math.inf
        for start in _in_order(prefix):
            if start.total >= best_cost:
                break
            totals = block.totals(start)
            order = np.argsort(totals, kind="stable")
            order = order[totals[order] < best_cost]
            for chunk in _chunks(order):
                if clock.over:
                    return Proposal(best, None, message="time limit reached before the grid was searched")
                actions = _actions(instance, axes, start, block, chunk)
                hit = _first_feasible(instance, actions)
                if hit is not None:
                    best, best_cost = as_action(instance, actions[hit]), float(totals[chunk[hit]])
                    break
        if best is None:
            return Proposal(None, None, message="no grid point is feasible; points between the bins may be")
        return Proposal(best, None)


def grid_values(instance: Instance, name: str, bins: int = BINS) -> NDArray[np.float64]:
    """Distinct values the grid tries for one lever, ascending ("no action" not among them).

    All that an action may set, where that is labels, or steps or values that are at most ``bins``. Otherwise
    ``bins`` values between x - 2 (x - min) and
    x + 2 (max - x), clipped to the feature's bounds and rounded to what may be set; what the
    applicant's own range, domain or monotonicity forbids is left out. x is the middle where it is missing.
    """
    feature = instance.by_name[name]
    low, high = feature.action_bounds
    lattice = feature.lattice
    few = feature.only is not None and feature.only.count(low, high) <= bins
    if lattice is not None and (feature.labelled or few):
        values = lattice.within(low, high)
    else:
        x = instance.factual[name] if name not in instance.missing else 0.5 * (low + high)
        values = np.clip(np.linspace(x - 2 * (x - low), x + 2 * (high - x), bins), low, high)
        if lattice is not None:
            values = np.round(values) if lattice == WHOLE else lattice.nearests(values)
    smallest, largest = instance.levers[name]
    return np.unique(values[(values >= smallest) & (values <= largest)])


@dataclass(frozen=True)
class _Axis:
    """One lever's choices in order of cost; choice 0 is "no action" (nan).

    ``added`` enters the cost as a sum, ``widest`` as a maximum.
    """

    name: str
    values: NDArray[np.float64]
    added: NDArray[np.float64]
    widest: NDArray[np.float64]


@dataclass(frozen=True)
class _Start:
    """A choice on each axis of the prefix, with its cost parts."""

    choice: tuple[int, ...]
    added: float
    widest: float

    @property
    def total(self) -> float:
        """The cost."""
        return self.added + self.widest


@dataclass(frozen=True)
class _Block:
    """The full product of some axes: shape and cost parts, flattened."""

    shape: tuple[int, ...]
    added: NDArray[np.float64]
    widest: NDArray[np.float64]

    @staticmethod
    def product(axes: list[_Axis]) -> _Block:
        """The block of all combinations of choices on some axes."""
        added, widest = np.zeros(1), np.zeros(1)
        for axis in axes:
            added = np.add.outer(added, axis.added).ravel()
            widest = np.maximum.outer(widest, axis.widest).ravel()
        return _Block(tuple(len(axis.values) for axis in axes), added, widest)

    def totals(self, start: _Start) -> NDArray[np.float64]:
        """The costs of the block's entries together with the choices of ``start``."""
        return self.added + start.added + np.maximum(self.widest, start.widest)


def _axis(instance: Instance, name: str, bins: int) -> _Axis:
    """The grid values of a lever with their parts of the cost, cheapest first."""
    values = grid_values(instance, name, bins)
    added, widest = instance.lever_costs[name].evaluate(values)
    order = np.argsort(added + widest, kind="stable")
    return _Axis(
        name,
        np.concatenate([[np.nan], values[order]]),
        np.concatenate([[0.0], added[order]]),
        np.concatenate([[0.0], widest[order]]),
    )


def _split(axes: list[_Axis]) -> tuple[list[_Axis], list[_Axis]]:
    """Leading axes, whose choices are walked one by one, and trailing ones, whose product fits into a
    block."""
    size, cut = 1, len(axes)
    while cut > 0 and size * len(axes[cut - 1].values) <= BLOCK:
        cut -= 1
        size *= len(axes[cut].values)
    return axes[:cut], axes[cut:]


def _in_order(axes: list[_Axis]) -> Iterator[_Start]:
    """Every choice on the axes by increasing cost, from a heap of successors."""

    def start(choice: tuple[int, ...]) -> _Start:
        added = math.fsum(axis.added[c] for axis, c in zip(axes, choice, strict=True))
        widest = max((float(axis.widest[c]) for axis, c in zip(axes, choice, strict=True)), default=0.0)
        return _Start(choice, added, widest)

    first = start((0,) * len(axes))
    heap = [(first.total, first.choice)]
    while heap:
        _, choice = heapq.heappop(heap)
        yield start(choice)
        last = max((k for k, c in enumerate(choice) if c), default=0)
        for k in range(last, len(axes)):  # each choice has one predecessor: no duplicates
            if choice[k] + 1 < len(axes[k].values):
                after = start((*choice[:k], choice[k] + 1, *choice[k + 1 :]))
                heapq.heappush(heap, (after.total, after.choice))


def _chunks(order: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Slices of the candidates, each larger than the one before: often the first ones, the cheapest, do."""
    begin, size = 0, FIRST_CHUNK
    while begin < len(order):
        yield order[begin : begin + size]
        begin, size = begin + size, min(2 * size, LARGEST_CHUNK)


def _actions(
    instance: Instance,
    axes: list[_Axis],
    start: _Start,
    block: _Block,
    chunk: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Action rows of block entries, shape (n, d): nan where not acted on."""
    position = {f.name: k for k, f in enumerate(instance.features)}
    rows = np.full((len(chunk), len(position)), np.nan)
    inner = np.unravel_index(chunk, block.shape) if block.shape else ()
    every: tuple[Any, ...] = (*start.choice, *inner)
    for axis, choices in zip(axes, every, strict=True):
        rows[:, position[axis.name]] = axis.values[choices]
    return rows


def as_action(instance: Instance, row: NDArray[np.float64]) -> dict[str, float]:
    """A row of values in the order of features, nan where not acted on, as an action."""
    return {f.name: float(v) for f, v in zip(instance.features, row, strict=True) if not math.isnan(v)}


def _first_feasible(instance: Instance, actions: NDArray[np.float64]) -> int | None:
    """Index of the first row that passes the float check and then the exact one."""
    for k in np.flatnonzero(looks_feasible(instance, actions)):
        if judge(instance, as_action(instance, actions[k])).feasible:
            return int(k)
    return None


def looks_feasible(instance: Instance, actions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which action rows keep the domains and are accepted and plausible, in float64 within TOLERANCE;
    (n,)."""
    x = instance.factual_row
    rows = instance.scm.counterfactual(x, actions)
    good = np.ones(len(rows), dtype=bool)
    for k, f in enumerate(instance.features):
        if f.domain is not None:
            good &= ~((rows[:, k] < f.domain[0] - TOLERANCE) | (rows[:, k] > f.domain[1] + TOLERANCE))
    kept = np.flatnonzero(good)
    good[kept] = looks_accepted(instance, rows[kept])
    if instance.plausible:
        kept = np.flatnonzero(good)
        gain = log_density_gain(instance.scm, x, rows[kept], ~np.isnan(actions[kept]))
        good[kept] = gain >= instance.offset - TOLERANCE
    return good


def looks_accepted(instance: Instance, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the classifier accepts rows, in float64, within TOLERANCE; shape (n,)."""
    accept, scores = instance.accept, instance.classifier.scores(instance.model_rows(rows))
    if isinstance(instance.classifier, TreeEnsemble):
        return scores > accept.above
    needed = accept.threshold + accept.margin
    return scores >= needed - TOLERANCE * (1 + abs(needed))


def log_density_gain(
    scm: StructuralCausalModel, x: NDArray[np.float64], rows: NDArray[np.float64], acted: NDArray[np.bool_]
) -> NDArray[np.float64]:
    r"""log p(x_cf) - log p(x), shape (n,).

    A feature not acted on keeps its noise, so only the Jacobian of its link can differ. -inf where
    either density vanishes through a feature that moved.
    """
    before, after = scm.abduct(x), scm.abduct(rows)
    gain = np.zeros(len(rows))
    for k, f in enumerate(scm.features):
        m = scm.mechanisms[f]
        if m.noise is not None and acted[:, k].any():
            old, new = m.noise.log_density(before[k]), m.noise.log_density(after[:, k])
            change = new - old if np.isfinite(old) else np.full(len(rows), -np.inf)
            gain += np.where(acted[:, k] & (after[:, k] != before[k]), change, 0.0)
        if m.link.kind == "sigmoid":
            shares = [(v - m.link.offset) / m.link.scale for v in (x[k], rows[:, k])]
            with np.errstate(divide="ignore", invalid="ignore"):
                old, new = (-np.log(s) - np.log1p(-s) for s in shares)
                gain += np.where(rows[:, k] == x[k], 0.0, new - old)
    return gain
