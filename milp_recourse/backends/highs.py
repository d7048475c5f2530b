r"""The MILP back end: HiGHS on one small problem per configuration and box.

HiGHS has no mixed-integer quadratic solver, so "is there an action cheaper than the incumbent?"
is asked instead of "what is the cheapest?": cost and plausibility become tangents, the box shrinks
to what the incumbent's cost leaves, bounds are back-substituted and then tightened by linear
programs, and what is left is usually one MILP that is infeasible at once. A point it returns
improves the incumbent, or its tangents are added, or the box is split.

The bound rests on HiGHS' floating-point verdicts: ``proof: solver``.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.highs_model import HighsModel
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.bounds.contract import contract, least_cost
from milp_recourse.bounds.lagrangian import ball_bound
from milp_recourse.bounds.program import ProgramBounds
from milp_recourse.bounds.tape import Bounds, Tape
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.encodings import MixedInteger, encode
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.program import lower
from milp_recourse.result import gap_tolerance
from milp_recourse.search.local import descend
from milp_recourse.search.sample import first_incumbent

Array = NDArray[np.float64]

LP_UNSTABLE = 24  # more open ReLUs than this and the box is split before linear programs tighten it
MANY_UNSTABLE = 20  # more than this after tightening and it is split before a MILP is tried
FEW_UNSTABLE = 6  # no more than this and tightening stops
PASSES = 3


class HighsBackend:
    """MILP through HiGHS; networks of any size, every cost and plausibility the program can say."""

    name = "highs"

    def unavailable(self) -> str | None:
        """HiGHS is a core dependency; says so if it is missing all the same."""
        try:
            import highspy  # noqa: F401
        except ImportError:
            return "highspy is not installed; pip install highspy"
        return None

    def why_not(self, instance: Instance) -> str | None:
        """Networks only."""
        if not isinstance(instance.classifier, ReluNetwork):
            return "highs solves ReLU networks; this classifier is a tree ensemble"
        return None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Search every configuration; see the module's docstring."""
        return _Search(instance, options).run()


@dataclass(order=True)
class _Node:
    """A box of one configuration; ordered by its lower bound."""

    lower_bound: float
    order: int
    tape: Tape = field(compare=False)
    low: Array = field(compare=False)
    high: Array = field(compare=False)
    known: Bounds | None = field(compare=False, default=None)


class _Search:
    def __init__(self, instance: Instance, options: Options) -> None:
        self.instance = instance
        self.deadline = None if options.time_limit is None else time.perf_counter() + options.time_limit
        self.best: dict[str, float] | None = None
        self.best_cost = np.inf
        self.queue: list[_Node] = []
        self.created = 0
        self.milp_nodes = 0
        self.stuck = np.inf  # least lower bound among boxes too small to split further

    def run(self) -> Proposal:
        program = lower(self.instance)
        tapes = []
        for acted in program.configurations():
            fixed = program.fix(acted)
            tape = Tape(fixed)
            self._settle_constant(tape)
            tapes.append(tape)
        start = first_incumbent(tapes)
        if start is not None:
            self._offer(*start)
        for tape in tapes:
            if len(tape.actions):
                self._push(tape, tape.lower, tape.upper, tape.fixed_cost)
        while self.queue:
            if self._late():
                return self._stopped("the time limit was reached")
            node = heapq.heappop(self.queue)
            if node.lower_bound > self._target():
                continue
            self._process(node)
        if self.stuck < self._target():
            return Proposal(self.best, self.stuck, "solver", self._nodes(), "a box became too small to split")
        bound = np.inf if self.best is None else self._target()
        return Proposal(self.best, bound, "solver", self._nodes())

    # -- incumbent -----------------------------------------------------------------------

    def _target(self) -> float:
        """Costs above this need no further proof: the incumbent's less half the allowed gap."""
        return self.best_cost - 0.5 * gap_tolerance(self.best_cost) if self.best is not None else np.inf

    def _offer(self, tape: Tape, a: Array | None) -> bool:
        """Make a point the incumbent if it is cheaper and exactly feasible."""
        if a is None:
            return False
        cost = float(tape.costs(tape.evaluate(a[None]))[0])
        if cost >= self.best_cost:
            return False
        action = tape.program.decode(a)
        verdict = judge(self.instance, action)
        if not verdict.feasible:
            return False
        self.best, self.best_cost = action, float(verdict.cost)
        return True

    def _settle_constant(self, tape: Tape) -> None:
        """A configuration without actions is one point."""
        if not len(tape.actions) and judge(self.instance, {}).feasible:
            self.best, self.best_cost = {}, 0.0

    # -- tree ----------------------------------------------------------------------------

    def _push(self, tape: Tape, low: Array, high: Array, bound: float, known: Bounds | None = None) -> None:
        self.created += 1
        heapq.heappush(self.queue, _Node(bound, self.created, tape, low, high, known))

    def _process(self, node: _Node) -> None:
        tape, target = node.tape, self._target()
        low, high = shave(tape, node.low, node.high, target)
        bound = node.lower_bound
        if (low > high).any():
            return
        bound = max(bound, float(least_cost(tape, low[None], high[None])[0]))
        if bound > target:
            return
        if self._split_at_kink(tape, low, high, bound):
            return
        known = tape.bounds(low[None], high[None], node.known)
        if known.logit_high[0] < tape.threshold:
            return
        bound = max(bound, float(ball_bound(tape, low[None], high[None], known, target)[0]))
        if bound > target:
            return
        if known.unstable()[0] > LP_UNSTABLE and self._split(tape, low, high, bound, known):
            return
        pieces = 8
        for _ in range(PASSES):
            relaxation = _Relaxation(tape, known, low, high, target, self.best, pieces)
            tightened = relaxation.tighten(self._late)
            if tightened is None:
                return
            before = int(known.unstable()[0])
            shrunk = float(np.prod((relaxation.high - relaxation.low + 1e-12) / (high - low + 1e-12)))
            low, high, known, bound = relaxation.low, relaxation.high, tightened, max(bound, relaxation.bound)
            if bound > target:
                return
            known = tape.bounds(low[None], high[None], known)
            if known.logit_high[0] < tape.threshold:
                return
            after = int(known.unstable()[0])
            if after <= FEW_UNSTABLE or (shrunk > 0.7 and after > 0.8 * before) or self._late():
                break
        if known.unstable()[0] > MANY_UNSTABLE and self._split(tape, low, high, bound, known):
            return
        self._milp(tape, low, high, bound, known, relaxation, pieces)

    def _split_at_kink(self, tape: Tape, low: Array, high: Array, bound: float) -> bool:
        """Split where a structural ReLU of one action changes sign, so that it is stable on both sides."""
        for _, unit, row, offset in tape.units:
            active = np.flatnonzero(row[0])
            if unit.function != "relu" or len(active) != 1 or active[0] not in tape.actions:
                continue
            k = int(np.flatnonzero(tape.actions == active[0])[0])
            kink = -offset[0] / row[0, active[0]]
            if low[k] < kink < high[k] and not tape.integral[k]:
                left, right = high.copy(), low.copy()
                left[k] = right[k] = kink
                self._push(tape, low, left, bound)
                self._push(tape, right, high, bound)
                return True
        return False

    def _milp(
        self,
        tape: Tape,
        low: Array,
        high: Array,
        bound: float,
        known: Bounds,
        relaxation: _Relaxation,
        pieces: int,
    ) -> None:
        model = encode(tape.program, program_bounds(tape, known), pieces)
        highs = HighsModel(model, self._cutoff(), relaxed=False)
        seed_tangents(highs, tape, model, self.best)
        for values in relaxation.tangent_points:
            _copy_tangents(highs, relaxation.highs, values)
        for _ in range(40):
            seconds = None if self.deadline is None else self.deadline - time.perf_counter()
            outcome = highs.solve(seconds)
            self.milp_nodes += outcome.nodes
            if outcome.kind == "infeasible":
                return
            if outcome.values is None:
                self._push(tape, low, high, bound, known)  # the deadline; its bound still counts
                return
            values = outcome.values
            a = np.array([values[model.actions[x.feature]] for x in tape.program.actions])
            a[tape.integral] = np.round(a[tape.integral])
            if self._offer(tape, descend(tape, np.clip(a, tape.lower, tape.upper), hops=6)):
                self._push(tape, low, high, bound, known)
                return
            violated = max(
                highs.ball_excess(values), highs.cost_excess(values) if self.best is not None else -np.inf
            )
            if violated < 1e-8:
                break
            highs.cost_tangent(values)
            highs.ball_tangent(values)
        if not self._split(tape, low, high, bound, known):
            self.stuck = min(self.stuck, bound)

    def _split(self, tape: Tape, low: Array, high: Array, bound: float, known: Bounds) -> bool:
        """Halve the box where it is widest, measured in cost; False when it is a point."""
        unit = np.array([t.scale / np.sqrt(t.weight) for t in map(float_term, tape.program.cost_terms)])
        width = (high - low) / unit
        k = int(np.argmax(width))
        if high[k] - low[k] <= 1e-9 * (1 + abs(low[k])):
            return False
        middle = (low[k] + high[k]) / 2
        left, right = high.copy(), low.copy()
        if tape.integral[k]:
            left[k], right[k] = np.floor(middle), np.floor(middle) + 1
        else:
            left[k] = right[k] = middle
        self._push(tape, low, left, bound, known)
        self._push(tape, right, high, bound, known)
        return True

    # -- ending --------------------------------------------------------------------------

    def _cutoff(self) -> float | None:
        target = self._target()
        return target if np.isfinite(target) and target > 0 else None

    def _late(self) -> bool:
        return self.deadline is not None and time.perf_counter() > self.deadline

    def _nodes(self) -> int:
        return self.created + self.milp_nodes

    def _stopped(self, why: str) -> Proposal:
        open_bounds = [n.lower_bound for n in self.queue]
        bound = min([self.stuck, self._target(), *open_bounds])
        return Proposal(self.best, max(0.0, bound), "solver", self._nodes(), why)


@dataclass(frozen=True)
class FloatTerm:
    """A cost term's numbers as floats."""

    weight: float
    scale: float


def float_term(term) -> FloatTerm:  # type: ignore[no-untyped-def]
    """The term's weight and scale as floats."""
    return FloatTerm(max(float(term.weight), 1e-12), float(term.scale))


def shave(tape: Tape, low: Array, high: Array, cutoff: float, slabs: int = 6) -> tuple[Array, Array]:
    """Cut slabs off the sides of a box where back-substituted bounds prove that nothing is accepted.

    All slabs of all sides are bounded in one batch; each is first contracted by cost and ball,
    which near the box's sides leaves little of it.
    """
    d = len(low)
    for _ in range(4):
        box_low, box_high = contract(tape, low[None], high[None], cutoff)
        low, high = box_low[0], box_high[0]
        if (low > high).any():
            return low, high
        cuts = np.linspace(low, high, slabs + 1)  # (slabs + 1, d)
        slab_low, slab_high = np.tile(low, (d, slabs, 1)), np.tile(high, (d, slabs, 1))
        for k in range(d):
            slab_low[k, :, k], slab_high[k, :, k] = cuts[:-1, k], cuts[1:, k]
        flat_low, flat_high = contract(tape, slab_low.reshape(-1, d), slab_high.reshape(-1, d), cutoff)
        alive: NDArray[np.bool_] = np.asarray(~(flat_low > flat_high).any(axis=1))
        if alive.any():
            bounds = tape.bounds(flat_low[alive], flat_high[alive])
            accepted = bounds.logit_high >= tape.threshold
            cost = ball_bound(tape, flat_low[alive], flat_high[alive], bounds, cutoff)
            alive[alive] = accepted & (cost <= cutoff)
        alive = alive.reshape(d, slabs)
        if not alive.any(axis=1).all():
            return tape.upper + 1.0, tape.lower - 1.0
        first, last = alive.argmax(axis=1), slabs - 1 - alive[:, ::-1].argmax(axis=1)
        new_low, new_high = cuts[first, np.arange(d)], cuts[last + 1, np.arange(d)]
        whole = tape.integral
        new_low[whole], new_high[whole] = np.ceil(new_low[whole] - 1e-9), np.floor(new_high[whole] + 1e-9)
        done = np.prod((new_high - new_low + 1e-12) / (high - low + 1e-12)) > 0.6
        low, high = new_low, new_high
        if done:
            break
    return low, high


def program_bounds(tape: Tape, bounds: Bounds) -> ProgramBounds:
    """One box's bounds in the form the encoding asks for, a hair wider."""

    def wide(low: Array, high: Array) -> Array:
        slack = 1e-9 * (1 + np.abs(low) + np.abs(high))
        return np.stack([low - slack, high + slack], axis=-1)

    atoms = np.stack([bounds.atoms_low[0], bounds.atoms_high[0]], axis=-1)
    units = [k for k, *_ in tape.units]
    atoms[units] = wide(bounds.atoms_low[0], bounds.atoms_high[0])[units]
    return ProgramBounds(
        atoms,
        wide(bounds.arguments_low[0], bounds.arguments_high[0]),
        {},
        [wide(l[0], h[0]) for l, h in zip(bounds.hidden_low, bounds.hidden_high, strict=True)],
        (float(bounds.logit_low[0]), float(bounds.logit_high[0])),
    )


class _Relaxation:
    """The linear relaxation of one box, and bounds tightened with it (OBBT)."""

    def __init__(
        self,
        tape: Tape,
        bounds: Bounds,
        low: Array,
        high: Array,
        target: float,
        best: dict[str, float] | None,
        pieces: int,
    ) -> None:
        self.tape, self.bounds = tape, bounds
        self.low, self.high = low.copy(), high.copy()
        self.model = encode(tape.program, program_bounds(tape, bounds), pieces)
        cutoff = target if np.isfinite(target) and target > 0 else None
        self.highs = HighsModel(self.model, cutoff, relaxed=True)
        seed_tangents(self.highs, tape, self.model, best)
        self.tangent_points: list[Array] = []
        self.bound = 0.0

    def tighten(self, late) -> Bounds | None:  # type: ignore[no-untyped-def]
        """Tighter bounds, or None when the relaxation is empty."""
        b = self.bounds
        if not self._theta():
            return None
        for k, action in enumerate(self.tape.program.actions):
            ends = self._range(self.model.actions[action.feature])
            if ends is None:
                return None
            l, h = ends
            if self.tape.integral[k]:
                l, h = np.ceil(l - 1e-6), np.floor(h + 1e-6)
            self.low[k], self.high[k] = max(self.low[k], l), min(self.high[k], h)
            if self.low[k] > self.high[k]:
                return None
        index = {name: k for k, name in enumerate(self.model.names)}
        for layer, (low, high) in enumerate(zip(b.hidden_low, b.hidden_high, strict=True)):
            for j in np.flatnonzero((low[0] < 0) & (high[0] > 0)):
                if late():
                    return b
                column = index.get(f"pre_{layer}_{j}")
                if column is None:
                    continue
                ends = self._range(column)
                if ends is None:
                    return None
                low[0, j], high[0, j] = max(low[0, j], ends[0]), min(high[0, j], ends[1])
        return b

    def _theta(self) -> bool:
        """Bound the cost from below; a few tangents where the relaxation's minimum asks for them."""
        for _ in range(6):
            kind, values = self.highs.extreme(self.highs.theta, 1.0)
            if kind == "infeasible":
                return False
            if values is None:
                return True
            self.bound = max(
                self.bound, float(values[self.highs.theta]) * self.highs.scale * (1 - 1e-9) - 1e-12
            )
            if not self._sharpen(values, 1e-3):
                return True
        return True

    def _sharpen(self, values: Array, tolerance: float) -> bool:
        """Add tangents where the point violates a quadratic; whether any was."""
        cost = self.highs.cost_excess(values) > tolerance
        ball = self.highs.ball_excess(values) > tolerance
        if (cost or ball) and len(self.tangent_points) < 60:
            self.tangent_points.append(values)
            if cost:
                self.highs.cost_tangent(values)
            if ball:
                self.highs.ball_tangent(values)
            return True
        return False

    def _range(self, column: int) -> tuple[float, float] | None:
        """The column's range over the relaxation, outward by a hair; None when empty."""
        ends = [self.highs.lower[column], self.highs.upper[column]]
        for side, sense in enumerate((1.0, -1.0)):
            kind, values = self.highs.extreme(column, sense)
            if kind == "infeasible":
                return None
            if values is None:
                continue
            if self._sharpen(values, 0.003):
                kind, sharper = self.highs.extreme(column, sense)
                if kind == "infeasible":
                    return None
                values = sharper if sharper is not None else values
            hair = 1e-8 * (1 + abs(values[column]))
            ends[side] = (
                max(ends[0], values[column] - hair) if side == 0 else min(ends[1], values[column] + hair)
            )
        low, high = float(ends[0]), float(max(ends))
        self.highs.bound(column, low, high)
        return low, high


def seed_tangents(highs: HighsModel, tape: Tape, model: MixedInteger, best: dict[str, float] | None) -> None:
    """Tangents at the incumbent and around the cost's and the ball's surface, in every diagonal direction."""
    n = len(model.names) + 1
    for columns, weights, room, add in _quadratics(highs, model):
        for direction in _directions(len(columns)):
            values = np.zeros(n)
            length = np.sqrt(room / max(float((weights * direction**2).sum()), 1e-300))
            values[columns] = direction * length
            add(values)
    if best is not None and set(best) == {a.feature for a in tape.program.actions}:
        values = _column_values(tape, model, np.array([best[a.feature] for a in tape.program.actions]), n)
        highs.cost_tangent(values)
        highs.ball_tangent(values)
    elif not model.squares:
        highs.cost_tangent(np.zeros(n))


def _quadratics(highs: HighsModel, model: MixedInteger) -> Iterator[tuple]:
    if model.squares:
        room = max(highs.scale - model.offset, 1e-12)
        yield np.array(list(model.squares)), np.array(list(model.squares.values())), room, highs.cost_tangent
    if model.ball is not None and model.ball.squares and model.ball.upper > 0:
        squares = model.ball.squares
        yield np.array(list(squares)), np.array(list(squares.values())), model.ball.upper, highs.ball_tangent


def _directions(n: int) -> Array:
    """Axes and, while few, every sign pattern, in units where the quadratic is a sphere."""
    axes = np.concatenate([np.eye(n), -np.eye(n)])
    if n > 5 or n == 1:
        return axes
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * n)).reshape(n, -1).T
    return np.concatenate([axes, signs])


def _column_values(tape: Tape, model: MixedInteger, a: Array, n: int) -> Array:
    """Values of delta and residual columns at an action."""
    v = tape.evaluate(a[None])[0]
    index = {name: k for k, name in enumerate(model.names)}
    values = np.zeros(n)
    for term, delta in zip(tape.program.cost_terms, tape.deltas @ v + tape.delta_offset, strict=True):
        values[index[f"delta_{term.feature}"]] = delta
    for j, r in enumerate(tape.residuals @ v + tape.residual_offset):
        if f"residual_{j}" in index:
            values[index[f"residual_{j}"]] = r
    return values


def _copy_tangents(highs: HighsModel, source: HighsModel, values: Array) -> None:
    """Add a relaxation's tangents to the MILP: columns of delta and residuals go by name."""
    index = {name: k for k, name in enumerate(highs.model.names)}
    moved = np.zeros(len(highs.model.names) + 1)
    for k, name in enumerate(source.model.names):
        if name in index:
            moved[index[name]] = values[k]
    highs.cost_tangent(moved)
    highs.ball_tangent(moved)
