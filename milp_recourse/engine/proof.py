r"""Proof trees: branch and bound with the target frozen, where every leaf keeps its evidence.

The search proper shrinks boxes by whatever it has just learnt and changes its target as it goes, so its
nodes prove nothing to someone who was not there. Here the target is given, a shrunk end is a split whose
other side is closed by intervals alone, and a leaf is closed only by rules of docs/certificate_spec_v2.md,
evaluated in floating point with its rounding added outward, with the multipliers as they will be written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from milp_recourse.engine import evaluate
from milp_recourse.engine.branch import choose
from milp_recourse.engine.contract import (
    HAIR,
    contract,
    forms,
    least_cost,
    linear_least,
    magnitudes,
    residual_forms,
)
from milp_recourse.engine.dual import Costs, halfspace, value
from milp_recourse.engine.kernel import ball_of, costs_of, domain_rows, paid, sign_rows
from milp_recourse.engine.local import rounded
from milp_recourse.engine.node_problem import Multipliers, proven_with, solve
from milp_recourse.engine.nodes import Nodes
from milp_recourse.engine.relaxation import (
    Relaxed,
    adaptive,
    extreme,
    logit_line,
    relax,
    rounding,
    slopes_at,
)
from milp_recourse.engine.stack import Stack
from milp_recourse.engine.units import Signs, unit_forms

Array = np.ndarray

BATCH = 2048
"""Nodes examined at once."""

MOST_NODES = 300_000
"""An applicant whose proof needs more is given up: a checker need not read such a file."""

DIGITS = 9
"""Decimal digits of a multiplier as written."""

_WORTH = 0.02  # a shrunk end is a split of its own if it takes off this share of the interval


@dataclass
class Leaf:
    """A closed box.

    Attributes
    ----------
    slopes
        Lower slope (0 or 1) of every hidden neuron; None where intervals alone close it.
    terms
        Per logit line its own slopes (None: the leaf's) and multiplier.
    signs, rows, ball
        Multipliers of the sign rows, of the domain rows (lower ends, then upper ends) and of the ball
        with the points its squares are touched at; None where unused.
    shares
        Of the largest omega |delta|; None where there is none.
    """

    slopes: str | None = None
    terms: tuple[tuple[str | None, float], ...] = ()
    signs: tuple[float, ...] = ()
    rows: tuple[float, ...] = ()
    ball: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass
class Cut:
    """Action ``action`` at most ``at`` (first) or at least ``at`` (second); whole numbers: the next one."""

    action: int
    at: float
    first: int = -1
    second: int = -1


@dataclass
class Sign:
    """The argument of ``neuron`` in hidden ``layer`` at most zero (first) or at least zero (second)."""

    layer: int
    neuron: int
    first: int = -1
    second: int = -1


Record = Leaf | Cut | Sign | None

EMPTY = Leaf()


@dataclass
class _Open:
    """Open nodes of one stack with the numbers of their records."""

    number: int
    stack: Stack
    people: Array
    errors: list[Array]
    roots: Array
    nodes: Nodes
    records: Array


class Proofs:
    """Proof trees for many applicants at once.

    Parameters
    ----------
    stacks
        Fixed programs, with the number of the applicant of every column.
    targets
        What every feasible action is to be shown to cost, per applicant; inf: that there is none.
    missed
        (stack, column, values) -> how far the exact logit of an action stays below what it must reach: for
        boxes that are one action, a hair from acceptance. 0 where it does not.
    time_limit
        Seconds per applicant, as its share of every batch; None for no limit.
    """

    def __init__(
        self,
        stacks: Sequence[tuple[Stack, Array]],
        targets: Array,
        missed: Callable[[int, int, Array], float],
        time_limit: float | None = None,
    ) -> None:
        self.targets, self.time_limit, self.missed = targets, time_limit, missed
        self.seconds = np.zeros(len(targets))
        self.records: list[Record] = []
        self.failed = np.zeros(len(targets), dtype=bool)
        self.nodes = np.zeros(len(targets), dtype=np.int64)
        self.open = [self._opened(k, stack, people) for k, (stack, people) in enumerate(stacks)]

    def run(self) -> None:
        """Close every node, or give an applicant up."""
        for pool in self.open:
            while len(pool.nodes):
                start = time.perf_counter()
                count = min(BATCH, len(pool.nodes))
                nodes, records = pool.nodes.take(np.s_[-count:]), pool.records[-count:]
                pool.nodes, pool.records = pool.nodes.take(np.s_[:-count]), pool.records[:-count]
                people = pool.people[nodes.who]
                _Examination(self, pool, nodes, records).run()
                np.add.at(self.nodes, people, 1)
                np.add.at(self.seconds, people, (time.perf_counter() - start) / count)
                self.failed |= self.nodes > MOST_NODES
                if self.time_limit is not None:
                    self.failed |= self.seconds > self.time_limit
                lost = self.failed[pool.people[pool.nodes.who]]
                if lost.any():
                    pool.nodes, pool.records = pool.nodes.take(~lost), pool.records[~lost]

    def give_up(self, stack: int, people: Array) -> None:
        """Prove nothing for these applicants; ``stack`` need not be looked at."""
        self.failed[people] = True
        pool = self.open[stack]
        pool.nodes, pool.records = pool.nodes.take(np.s_[:0]), pool.records[:0]

    def new_records(self, count: int) -> Array:
        """Numbers of ``count`` records to come."""
        first = len(self.records)
        self.records += [None] * count
        return np.arange(first, first + count)

    def tree(self, stack: int, column: int) -> Iterator[Leaf | Cut | Sign]:
        """The nodes of one tree in preorder."""
        todo = [int(self.open[stack].roots[column])]
        while todo:
            record = self.records[todo.pop()]
            assert record is not None
            yield record
            if not isinstance(record, Leaf):
                todo += [record.second, record.first]

    def _opened(self, number: int, stack: Stack, people: Array) -> _Open:
        roots = Nodes.roots(stack.lower.copy(), stack.upper.copy())
        errors = rounding(stack, stack.lower, stack.upper, roots.who)
        records = self.new_records(len(roots))
        return _Open(number, stack, people, errors, records, roots, records)

    def targets_of(self, stack: Stack, people: Array, who: Array) -> Array:
        """What must be reached on each node: the applicant's target, or more than anything costs."""
        wanted = self.targets[people[who]]
        if np.isfinite(wanted).all():
            return wanted
        far = np.maximum(np.abs(stack.lower - stack.factual), np.abs(stack.upper - stack.factual))
        dearest = (stack.kappa * far * far + stack.beta * far + stack.jump).sum(axis=0) + stack.fixed
        dearest = dearest + (stack.omega * far + stack.jump_largest).max(axis=0)
        return np.where(np.isfinite(wanted), wanted, (1 + 1e-6) * (1 + dearest[who]))


class _Examination:
    """One batch of nodes: leaves are recorded, the rest is split."""

    def __init__(self, proofs: Proofs, pool: _Open, nodes: Nodes, records: Array) -> None:
        self.proofs, self.pool, self.stack = proofs, pool, pool.stack
        self.nodes, self.records = nodes, records
        self.target = proofs.targets_of(pool.stack, pool.people, nodes.who)

    def run(self) -> None:
        """Cheap rules first."""
        self._leave(self._closed(self.nodes.low, self.nodes.high, np.arange(len(self.nodes))), None)
        if len(self.nodes) and not self.stack.weights and not self.stack.units:
            self._bound_at_once()
        if len(self.nodes):
            self._shrink()
        if len(self.nodes):
            self._bound()

    # -- intervals -----------------------------------------------------------------------

    def _closed(self, low: Array, high: Array, index: Array) -> Array:
        """Which boxes intervals alone close (rule 6.1), for boxes of the nodes ``index``."""
        stack, who = self.stack, self.nodes.who[index]
        costs, _ = paid(stack, costs_of(stack, who), low, high, who)
        done = least_cost(costs, low, high) >= self.target[index]
        if not (stack.plausible or stack.rows.shape[0]):
            return done
        units = unit_forms(stack, low, high, who)
        middle, radius = (low + high) / 2, (high - low) / 2
        if stack.plausible:
            offset = stack.residual_offset[:, who]
            lower, upper = residual_forms(stack, units, offset)
            size = HAIR * magnitudes(stack.residuals, units, low, high, offset)
            l = extreme(lower, middle, radius, -1.0) - size
            h = extreme(upper, middle, radius, 1.0) + size
            nearest = np.where((l <= 0) & (h >= 0), 0.0, np.minimum(l * l, h * h))
            squares = (nearest * stack.ball_weights).sum(axis=0)
            rest, rest_size = linear_least(stack, units, low, high, who)
            done |= squares + rest > HAIR * (squares + rest_size)
        if stack.rows.shape[0]:
            offset = stack.row_offset[:, who]
            lower, upper = forms(stack.rows, stack.actions, units, offset)
            size = HAIR * magnitudes(stack.rows, units, low, high, offset)
            short = extreme(upper, middle, radius, 1.0) + size < stack.row_low[:, who]
            over = extreme(lower, middle, radius, -1.0) - size > stack.row_high[:, who]
            done |= (short | over).any(axis=0)
        return done

    def _shrink(self) -> None:
        """Cut off what the cost, the ball or a domain rules out."""
        nodes, stack = self.nodes, self.stack
        n = len(nodes)
        costs = costs_of(stack, nodes.who)
        least, most = contract(stack, costs, nodes.low.copy(), nodes.high.copy(), nodes.who, self.target)
        gone = np.zeros(n, dtype=bool)
        for i, whole in enumerate(stack.integral):
            for top in (True, False):
                low, high = nodes.low[i], nodes.high[i]
                width = high - low
                at = _rounded(most[i], width, up=True) if top else _rounded(least[i], width, up=False)
                if whole:
                    at = np.floor(most[i]) + 0.5 if top else np.ceil(least[i]) - 0.5
                off = high - at if top else at - low
                worth = (at > low) & (at < high) & (off > _WORTH * width) & ~gone
                beyond = (at <= low if top else at >= high) & ~gone
                index = np.flatnonzero(worth | beyond)
                if not len(index):
                    continue
                slab_low, slab_high = nodes.low[:, index].copy(), nodes.high[:, index].copy()
                inside, cut = worth[index], at[index]
                if top:
                    end = np.ceil(cut) if whole else cut
                    slab_low[i] = np.where(inside, end, slab_low[i])
                else:
                    end = np.floor(cut) if whole else cut
                    slab_high[i] = np.where(inside, end, slab_high[i])
                closed = self._closed(slab_low, slab_high, index)
                for k in index[closed & ~inside].tolist():
                    self.proofs.records[self.records[k]] = EMPTY
                    gone[k] = True
                chosen = index[closed & inside]
                rests = self.proofs.new_records(2 * len(chosen)).reshape(2, -1)
                for k, rest, slab in zip(chosen.tolist(), *rests.tolist(), strict=True):
                    self.proofs.records[slab] = EMPTY
                    children = (rest, slab) if top else (slab, rest)
                    self.proofs.records[self.records[k]] = Cut(i, float(at[k]), *children)
                    self.records[k] = rest
                if top:
                    nodes.high[i, chosen] = np.floor(at[chosen]) if whole else at[chosen]
                else:
                    nodes.low[i, chosen] = np.ceil(at[chosen]) if whole else at[chosen]
        self._keep(~gone)

    # -- duality -------------------------------------------------------------------------

    def _bound_at_once(self) -> None:
        """Where the logit is linear one line often closes a whole box; shrinking it first would split it."""
        stack, nodes = self.stack, self.nodes
        relaxed = relax(
            stack, nodes.low, nodes.high, nodes.who, [e[nodes.who] for e in self.pool.errors], None
        )
        costs, owned = paid(stack, costs_of(stack, nodes.who), nodes.low, nodes.high, nodes.who)
        self._line(relaxed, costs, owned, [], None)

    def _bound(self) -> None:
        """Lines above the logit, one after the other, then the convex problem of both; else split."""
        stack, nodes = self.stack, self.nodes
        used = int((nodes.signs != 0).any(axis=1).sum())
        signs = Signs(nodes.signs[:used]) if used else None
        errors = [e[nodes.who] for e in self.pool.errors]
        relaxed = relax(stack, nodes.low, nodes.high, nodes.who, errors, signs)
        costs, owned = paid(stack, costs_of(stack, nodes.who), nodes.low, nodes.high, nodes.who)
        base = [adaptive(layer) for layer in relaxed.layers]
        line, multipliers, point, left = self._line(relaxed, costs, owned, base, None)
        lines, slopes = [line[:, left]], _written(base, left)
        seconds: list[str | None] = []
        relaxed, costs, owned, point = relaxed.take(left), costs.take(left), owned[:, left], point[:, left]
        if relaxed.layers and len(self.nodes):
            alphas = slopes_at(relaxed, point)
            line, multipliers, point, left = self._line(relaxed, costs, owned, alphas, slopes)
            lines = [lines[0][:, left], line[:, left]]
            slopes = [slopes[k] for k in left]
            seconds = list(_written(alphas, left))
            relaxed, costs, owned, point = (
                relaxed.take(left),
                costs.take(left),
                owned[:, left],
                point[:, left],
            )
        multipliers = [m[:, left] for m in multipliers]
        if len(self.nodes):
            point, left = self._convex(relaxed, costs, owned, lines, slopes, seconds, point)
            if len(self.nodes):
                taken = relaxed.take(left)
                multipliers = [m[:, left] for m in multipliers]
                self._split(taken, costs.take(left), multipliers, point[:, left])

    def _line(
        self,
        relaxed: Relaxed,
        costs: Costs,
        owned: Array,
        alphas: list[Array],
        base: list[str] | None,
    ) -> tuple[Array, list[Array], Array, Array]:
        """Close what one line closes: the line, its multipliers, the point, and the nodes left (numbers)."""
        slope, offset, multipliers = logit_line(relaxed, alphas, relaxed.errors[-1])
        line = np.concatenate([slope, (offset - self.stack.threshold)[None]])
        low, high = relaxed.low, relaxed.high
        _, point, factor = halfspace(costs, low, high, line[:-1], line[-1])
        highest = line[-1] + np.maximum(line[:-1] * low, line[:-1] * high).sum(axis=0)
        factor = np.where(highest < 0, 2 * (self.target + 1e-9) / -highest, factor)
        factor = np.where((factor > 0) & (factor < np.inf), factor, 0.0)
        factor = short(np.where(highest < 0, factor, at_kinks(costs, low, high, line, factor)))
        nothing = np.zeros_like(low)
        given = Multipliers(factor[None], factor * 0.0, low[:0], nothing)
        bound, _ = proven_with(costs, low, high, line[:, None], None, given)
        done = bound >= self.target
        leaves: dict[int, Leaf] = {}
        own = _written(alphas, np.flatnonzero(done))
        for text, k in zip(own, np.flatnonzero(done).tolist(), strict=True):
            shares = tuple(owned[:, k].tolist()) if owned[:, k].any() else ()
            if base is None:
                leaves[k] = Leaf(text, ((None, float(factor[k])),), shares=shares)
            else:
                leaves[k] = Leaf(base[k], ((text, float(factor[k])),), shares=shares)
        left = np.flatnonzero(~done)
        self._leave(done, leaves)
        return line, multipliers, point, left

    def _convex(
        self,
        relaxed: Relaxed,
        costs: Costs,
        owned: Array,
        lines: list[Array],
        slopes: list[str],
        seconds: list[str | None],
        point: Array,
    ) -> tuple[Array, Array]:
        """Close what all rows and the ball together close: the relaxed optima, and the nodes left."""
        stack, signs = self.stack, self.nodes.signs
        extra = sign_rows(relaxed, signs)
        rows = np.concatenate([line[:, None] for line in lines] + extra + domain_rows(relaxed), axis=1)
        ball = ball_of(stack, relaxed) if stack.plausible else None
        low, high = relaxed.low, relaxed.high
        found = solve(costs, low, high, rows, ball, self.target)
        m = found.multipliers
        shares = m.shares / np.maximum(m.shares.sum(axis=0), 1.0)  # then multiples of 2^-40 sum to at most 1
        shares = np.where(owned.any(axis=0), 0.0, shares)  # of a maximum that one category has whole
        given = Multipliers(
            short(m.rows), short(m.ball), short(m.touching), np.floor(shares * 2.0**40) / 2.0**40
        )
        bound, _ = proven_with(costs, low, high, rows, ball, given)
        done = bound >= self.target
        leaves = {}
        used = (signs != 0).sum(axis=0)
        first, count = len(lines), len(extra)
        for k in np.flatnonzero(done).tolist():
            factors = given.rows[:, k].tolist()
            terms: list[tuple[str | None, float]] = [(None, factors[0])]
            if len(lines) > 1:
                terms.append((seconds[k], factors[1]))
            shares = given.shares[:, k] + owned[:, k]
            leaves[k] = Leaf(
                slopes[k],
                tuple(terms),
                tuple(factors[first : first + int(used[k])]),
                tuple(factors[first + count :]),
                (float(given.ball[k]), *given.touching[:, k].tolist()) if given.ball[k] > 0 else (),
                tuple(shares.tolist()) if shares.any() else (),
            )
        self._refute(relaxed, found.point, ~done)
        left = np.flatnonzero(~done)
        self._leave(done, leaves)
        return found.point, left

    def _refute(self, relaxed: Relaxed, point: Array, index: Array) -> None:
        """Give up applicants of whom a feasible action below the target is met: there is nothing to prove."""
        stack, who = self.stack, relaxed.who
        a = rounded(stack, point)
        sure, _ = evaluate.feasibility(stack, a, who, self.pool.errors[-1][who])
        jump, largest = stack.jump[:, who], stack.jump_largest[:, who]
        price = evaluate.costs_at(costs_of(stack, who), jump, largest, a)
        self.proofs.failed[self.pool.people[who[sure & (price < self.target) & index]]] = True

    # -- the tree ------------------------------------------------------------------------

    def _split(self, relaxed: Relaxed, costs: Costs, multipliers: list[Array], point: Array) -> None:
        nodes, stack, proofs = self.nodes, self.stack, self.proofs
        n = np.arange(len(nodes))
        free = (nodes.signs == 0).any(axis=0)
        choices = choose(relaxed, costs, multipliers, point, free, split_units=False)
        units = relaxed.units.count
        number, action, cut = choices.number, choices.action, choices.cut
        for k in np.flatnonzero(relaxed.units.open.any(axis=0)).tolist():
            kink = _kink(relaxed, k)
            if kink is not None:
                number[k], (action[k], cut[k]) = 0, kink
        low, high = nodes.low[action, n], nodes.high[action, n]
        whole = np.asarray(stack.integral, dtype=bool)[action]
        near = _nearest(cut, high - low)
        near = np.where((near > low) & (near < high), near, cut)
        near = np.where(whole, np.clip(np.floor(cut), low, high - 1) + 0.5, near)
        signed = number > 0
        stuck = ~signed & ~((near > low) & (near < high))
        lost = stuck.copy()
        for k in np.flatnonzero(stuck & (nodes.low == nodes.high).all(axis=0)).tolist():
            lost[k] = not self._single(k, sum(layer.low.shape[0] for layer in relaxed.layers))
        proofs.failed[self.pool.people[nodes.who[lost]]] = True
        first, second = nodes.take(n), nodes.take(n)
        left, right = np.where(whole, np.floor(near), near), np.where(whole, np.ceil(near), near)
        first.high[action, n] = np.where(signed, high, left)
        second.low[action, n] = np.where(signed, low, right)
        slot = np.argmax(nodes.signs == 0, axis=0)
        first.signs[slot, n] = np.where(signed, -number, nodes.signs[slot, n])
        second.signs[slot, n] = np.where(signed, number, nodes.signs[slot, n])
        numbers = proofs.new_records(2 * len(n)).reshape(2, -1)
        sizes = [layer.low.shape[0] for layer in relaxed.layers]
        ends = np.cumsum(sizes) if sizes else np.zeros(1)
        for k in n.tolist():
            one, two = int(numbers[0, k]), int(numbers[1, k])
            record: Record
            if signed[k]:
                neuron = int(number[k]) - 1 - units
                layer = int(np.searchsorted(ends, neuron, side="right"))
                record = Sign(layer, neuron - (int(ends[layer - 1]) if layer else 0), one, two)
            else:
                record = Cut(int(action[k]), float(near[k]), one, two)
            if not stuck[k]:
                proofs.records[self.records[k]] = record
        keep = ~stuck
        pool = self.pool
        pool.nodes = pool.nodes.joined([first.take(keep), second.take(keep)])
        pool.records = np.concatenate([pool.records, numbers[0, keep], numbers[1, keep]])

    def _single(self, k: int, neurons: int) -> bool:
        """Close a box that is one action by the exact logit, whatever little it misses."""
        nodes = self.nodes
        missed = self.proofs.missed(self.pool.number, int(nodes.who[k]), nodes.low[:, k])
        factor = 2 * (float(self.target[k]) + 1e-9) / missed if missed > 0 else np.inf
        if not np.isfinite(factor):
            return False
        self.proofs.records[self.records[k]] = Leaf("0" * neurons, ((None, factor),))
        return True

    def _leave(self, done: Array, leaves: dict[int, Leaf] | None) -> None:
        """Record leaves (None: closed by intervals) and go on with the rest."""
        for k in np.flatnonzero(done).tolist():
            self.proofs.records[self.records[k]] = EMPTY if leaves is None else leaves[k]
        self._keep(~done)

    def _keep(self, mask: Array) -> None:
        self.nodes, self.records, self.target = self.nodes.take(mask), self.records[mask], self.target[mask]


def at_kinks(costs: Costs, low: Array, high: Array, line: Array, factor: Array) -> Array:
    """A line's best multiplier, (B,), where costs grow with absolute changes.

    The bound is then concave and piecewise linear in the multiplier m (quadratic where there are squares
    too): an action starts to move where m |slope| = beta. The best of these kinks is among the two on either
    side of where the bound turns, which bisection finds.

    Parameters
    ----------
    line
        Slopes and offset, (d + 1, B).
    factor
        The multiplier to beat, (B,); kept where no kink is better.
    """
    slope, offset = line[:-1], line[-1]
    steep = np.abs(slope)
    kinks = np.sort(
        np.where((costs.beta > 0) & (steep > 0), costs.beta / np.where(steep > 0, steep, 1.0), 0.0), 0
    )
    if not kinks.any():
        return factor
    last, each = len(kinks) - 1, np.arange(len(factor))

    def bound(at: Array) -> Array:
        constant = offset + (slope * costs.x).sum(axis=0)
        size = np.abs(offset) + np.abs(slope * costs.x).sum(axis=0)
        return value(costs, at * slope, at * steep, -at * constant, at * size, low, high)[0]

    first, end = np.zeros(len(factor), dtype=np.int64), np.full(len(factor), last)
    while (first < end).any():
        middle = (first + end) // 2
        rises = bound(kinks[np.minimum(middle + 1, last), each]) >= bound(kinks[middle, each])
        first, end = np.where(rises & (first < end), middle + 1, first), np.where(rises, end, middle)
    best, most = factor, bound(factor)
    for k in (first - 1, first, first + 1):
        tried = kinks[np.clip(k, 0, last), each]
        reached = bound(tried)
        best, most = np.where(reached > most, tried, best), np.maximum(most, reached)
    return best


def short(values: Array, digits: int = DIGITS) -> Array:
    """The values at so many significant decimal digits, so that they are short when written."""
    with np.errstate(all="ignore"):
        exponent = digits - 1 - np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.clip(exponent, 0, 22)
        result = np.round(values * scale) / scale
    return np.where(np.isfinite(result), result, values)


def _rounded(at: Array, width: Array, up: bool) -> Array:
    """Shrunk ends at a thousandth of the width or so, rounded outward to a short decimal."""
    scale = 10.0 ** np.clip(np.ceil(-np.log10(np.maximum(width, 1e-300))) + 2, 0, 22)
    scaled = np.ceil(at * scale) if up else np.floor(at * scale)
    result: Array = scaled / scale
    good = (result >= at) if up else (result <= at)
    return np.where(good, result, at)


def _nearest(at: Array, width: Array) -> Array:
    """A short decimal near ``at``."""
    scale = 10.0 ** np.clip(np.ceil(-np.log10(np.maximum(width, 1e-300))) + 3, 0, 22)
    result: Array = np.round(at * scale) / scale
    return result


def _kink(relaxed: Relaxed, k: int) -> tuple[int, float] | None:
    """Which action of node k to cut, and where, so that an open structural ReLU's argument is zero there.

    None where the argument is zero only at an end: the ReLU is open by rounding alone.
    """
    low, high = relaxed.low[:, k], relaxed.high[:, k]
    middle, span = (low + high) / 2, high - low
    for unit in np.flatnonzero(relaxed.units.open[:, k]).tolist():
        form = (relaxed.units.arguments[0, :, unit, k] + relaxed.units.arguments[1, :, unit, k]) / 2
        action = int(np.argmax(np.abs(form[:-1]) * span))
        if not form[action] * span[action]:
            continue
        cut = float(middle[action] - (form[-1] + (form[:-1] * middle).sum()) / form[action])
        reach = (np.abs(form[:-1]) * span).sum() - abs(form[action]) * span[action]
        if reach:  # it depends on others too
            cut = float(np.clip(cut, low[action] + 0.2 * span[action], high[action] - 0.2 * span[action]))
        if low[action] + 1e-6 * span[action] < cut < high[action] - 1e-6 * span[action]:
            return action, cut
    return None


def _written(alphas: list[Array], index: Array) -> list[str]:
    """Slopes of nodes as strings of 0 and 1, neurons layer by layer."""
    if not alphas:
        return [""] * len(index)
    bits = np.concatenate(alphas, axis=0)[:, index].T.astype(np.uint8) + ord("0")
    return [row.tobytes().decode() for row in np.ascontiguousarray(bits)]
