"""Proof trees of the compiled engine as JSON values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.certificates.conditions import case_programs
from milp_recourse.certificates.limits import MOST_NODES, MOST_SECONDS, acted_sets, check_seconds
from milp_recourse.engine.compiling import announced
from milp_recourse.engine.networks import proof_search
from milp_recourse.engine.networks.causes import Effects, is_label
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.problem_arrays import (
    MOST_LINES,
    Ends,
    Lowered,
    Problems,
    binding_rows,
    impossible,
    lowered,
    set_domains,
)
from milp_recourse.engine.networks.search import Spare, clear
from milp_recourse.engine.networks.work import Work, workspace
from milp_recourse.engine.smallest_instance import smallest
from milp_recourse.judge import judge
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import NEVER, Clock
from milp_recourse.program.largest import largest_logit
from milp_recourse.program.lower import lower
from milp_recourse.program.magnitude import Made, cost_units

Nodes = list[list[Any]]

Claim = tuple[Instance, float | None, float]
"""An instance, the lower bound that is claimed (None: that there is no action), and the one, no lower, that
leaves have to prove."""

Configurations = list[dict[str, Any]]

Intervals = dict[str, tuple[float, float]]
"""By lever, the values between which an action sets it."""

SHARE, STEPS = 2**17, 40
"""Nodes between looks at the clock, times the units of the widest layer; most steps of the interior-point
method in a node."""

RECORDS, LEAVES, OPEN = 4096, 128, 256
"""Nodes and leaves that a record holds, and open nodes that there is room for at first."""

_ALL: Ends = {}
"""Of levers or domains: those of the instance."""


def proofs(
    claims: Sequence[Claim], limits: Sequence[float | None]
) -> list[tuple[Configurations | None, float]]:
    """The configurations of networks with their trees, None without a proof, and the seconds that each took.

    Parameters
    ----------
    limits
        Seconds for each, or None.
    """
    found: list[tuple[Configurations | None, float]]
    found = [(None if one.levers else [], 0.0) for one, _, _ in claims]
    if not claims:
        return found
    ready()
    free = [k for k, (one, _, _) in enumerate(claims) if one.demand == TRUE and one.levers]
    for k, configurations, seconds in _together([claims[k] for k in free], [limits[k] for k in free]):
        found[free[k]] = configurations, seconds
    for k in (k for k, (one, _, _) in enumerate(claims) if one.demand != TRUE and one.levers):
        start = time.perf_counter()
        configurations = _under_conditions(claims[k], Clock.start(limits[k]))
        found[k] = configurations, time.perf_counter() - start
    return found


def no_action(instance: Instance, acted: Sequence[str], clock: Clock) -> Nodes | None:
    """The tree that proves that no action on exactly these levers is feasible; None without a proof."""
    ready()
    own, factor = cost_units(instance)
    for _, group in lowered([own]):
        with closing(Trees(own, group, 0, factor)) as trees:
            found = trees.configuration(acted, math.inf, math.inf, clock)
        return None if found is None else found["tree"]
    return None


def _together(
    claims: Sequence[Claim], limits: Sequence[float | None]
) -> Iterator[tuple[int, Configurations | None, float]]:
    """(position, configurations, seconds) of instances without conditions, lowered together."""
    begun = time.perf_counter()
    made: Made = {}
    scaled = [cost_units(instance, made) for instance, _, _ in claims]
    for people, group in lowered([instance for instance, _ in scaled]):
        share = (time.perf_counter() - begun) / len(people)
        for k, person in enumerate(people):
            (instance, bound, target), (own, factor) = claims[person], scaled[person]
            start = time.perf_counter() - share
            clock = Clock.start(limits[person], start)
            sets = acted_sets(instance)
            if impossible(instance, group.moved):
                yield person, [{"acted": list(names), "tree": [["e"]]} for names in sets], share
                continue
            claimed = math.inf if bound is None else bound * factor
            with closing(Trees(own, group, k, factor)) as trees:
                configurations = trees.configurations(sets, target * factor, claimed, clock)
            yield person, configurations, time.perf_counter() - start
        begun = time.perf_counter()


def _under_conditions(claim: Claim, clock: Clock) -> Configurations | None:
    """The configurations of an instance with conditions: in each, the trees of its cases."""
    instance, bound, target = claim
    own, factor = cost_units(instance)
    claimed = math.inf if bound is None else bound * factor
    names, configurations, effort = [f.name for f in own.features], [], Effort()
    for chosen, cases in case_programs(own):
        acted = sorted(chosen, key=names.index)
        restricted = replace(own, preferences=replace(own.preferences, actionable=tuple(acted)))
        nodes: Nodes = []
        for program in cases:
            if program is None:
                nodes.append(["o"])
                continue
            units = [row.unit for row in program.rows if row.name.startswith("condition_")]
            group = Lowered([restricted], Effects([restricted], program))
            with closing(Trees(restricted, group, 0, factor, units, effort)) as trees:
                found = trees.configuration(acted, target * factor, claimed, clock)
            if found is None:
                return None
            nodes += found["tree"]
        configurations.append({"acted": acted, "tree": nodes})
    return configurations


def _memory(p: Problems) -> tuple[Work, proof_search.Open, proof_search.Record]:
    """New memory for the proofs of a problem."""
    d = len(p.lever)
    return workspace(p, False), *proof_search.memory(p, OPEN + 2 * d, RECORDS + 4 * d, LEAVES)


_SPARE = Spare(_memory)
"""Of all proofs of this process."""


@dataclass
class Effort:
    """What went into the trees of one applicant: nodes, and the seconds that checking them takes."""

    nodes: int = 0
    seconds: float = 0.0


def _gaps(instance: Instance, name: str) -> list[float]:
    """The values of a lever behind which the engine would take more for values than there are: all but the
    last of an uneven list, and labels before those that are left out."""
    feature, (low, high) = instance.by_name[name], instance.levers[name]
    if feature.only is None or (feature.only.spaced is not None and not is_label(feature)):
        return []
    pairs = pairwise(feature.only.within(low, high).tolist())
    return [v for v, after in pairs if not is_label(feature) or after > v + 1]


class Trees:
    """The proof trees of one applicant.

    Parameters
    ----------
    instance
        With costs of usual size (:func:`~milp_recourse.program.magnitude.cost_units`).
    group, k
        Its arrays: those of applicant k of a group that was lowered together.
    factor
        These costs divided by the applicant's own.
    units
        What the rows of conditions, which come last, were divided by.
    effort
        What went into this applicant's trees so far.
    """

    def __init__(
        self,
        instance: Instance,
        group: Lowered,
        k: int,
        factor: float,
        units: Sequence[float] = (),
        effort: Effort | None = None,
    ) -> None:
        self.instance, self.factor, self.units = instance, factor, units
        self.effort = effort or Effort()
        problem, effects = group.problems(k), group.effects
        self.moved = (effects.acts[0] | effects.follows[0]).astype(bool)
        stated = [(effects.stated[f].feature, side) for f, side, _ in group.ends]
        self.domains = [(feature.name, side) for feature, side in stated if feature is not None]
        self.levers = list(instance.levers)
        self.bound_to_act = [
            name
            for name, moved in zip(self.levers, self.moved, strict=True)
            if not moved and not _inside(instance.by_name[name], float(instance.factual[name]))
        ]
        self.rows = [binding_rows(group, c, k) for c in range(len(problem.box))]
        self.owners = np.searchsorted(problem.start, problem.owner, side="right") - 1
        self.normal = np.arange(len(self.owners)) < len(self.owners) - problem.bent  # the last is no square
        self.precision, self.row_const = problem.precision, problem.row_const
        own = "box", "precision", "column", "row_const"
        copies = {name: getattr(problem, name).copy() for name in own}
        problem = problem._replace(**copies)
        # levers with labels: the lever, the column of its own label, and what acting costs whatever the label
        self.kept = [
            (i, int(problem.start[i] + problem.lever[i].factual), max(0.0, round_down(held[k])))
            for i, held in enumerate(group.levers.fixed)
            if problem.lever[i].label and not self.moved[i]
        ]
        self.gaps = {name: gaps for name in self.levers if (gaps := _gaps(instance, name))}
        plain = problem.lever.copy()
        plain["grid"] = 0.0
        self.problem, self.relaxed = problem, problem._replace(lever=plain)
        self.work, self.open, self.record = self._memory = _SPARE.take(problem)
        self.work.learned[:] = 0.0  # pseudo-costs serve all configurations of the applicant
        self.work.gained[:], self.work.promised[:] = 0.0, 0.0
        self.widths = [int(k) for k in problem.widths[1:]]
        self._fixed = cache(lambda names: lower(instance).fix(names))

    def close(self) -> None:
        """Give the memory to later proofs, after which nothing more can be proven here."""
        _SPARE.give(self.problem, self._memory)
        del self.work, self.open, self.record, self._memory

    def configurations(
        self, sets: Iterable[Sequence[str]], target: float, claimed: float, clock: Clock
    ) -> Configurations | None:
        """All configurations; None where one has no proof."""
        found = []
        for acted in sets:
            configuration = self.configuration(acted, target, claimed, clock)
            if configuration is None:
                return None
            found.append(configuration)
        return found

    def configuration(
        self,
        acted: Sequence[str],
        target: float,
        claimed: float,
        clock: Clock,
        box: Ends = _ALL,
        domains: Ends = _ALL,
    ) -> dict[str, Any] | None:
        """The configuration in which these levers are acted on, with its tree; None without a proof.

        Parameters
        ----------
        box
            Intervals of levers that are acted on, inside those of the instance.
        domains
            Other domains of features that follow from actions.
        """
        if any(name not in acted for name in self.bound_to_act):
            return {"acted": list(acted), "tree": [["e"]]}  # a domain rules out the factual value
        intervals = {name: box.get(name, self.instance.levers[name]) for name in acted}

        def within(part: Intervals) -> Nodes | None:
            return self._in_box(acted, target, claimed, clock, part, domains)

        found = self._in_parts(acted, intervals, target, within)
        return None if found is None else {"acted": list(acted), "tree": found}

    def _in_parts(
        self, acted: Sequence[str], box: Intervals, target: float, prove: Callable[[Intervals], Nodes | None]
    ) -> Nodes | None:
        """The tree of a box that is split, lever by lever, until the engine knows the values that are left:
        it counts steps, and takes all numbers and labels between the ends of other intervals."""
        for name, (low, high) in box.items():
            cuts = [v for v in self.gaps.get(name, ()) if low <= v < high]
            if not cuts:
                continue
            self.effort.nodes += 1
            if self.effort.nodes > MOST_NODES:
                return None
            if self.instance.least_cost(box) >= target:
                return [["e"]]
            at = cuts[len(cuts) // 2]
            nodes: Nodes = [["s", acted.index(name), at]]
            for ends in ((low, at), (self.instance.by_name[name].after(at), high)):
                part = self._in_parts(acted, {**box, name: ends}, target, prove)
                if part is None:
                    return None
                nodes += part
            return nodes
        return prove(box)

    def _in_box(
        self,
        acted: Sequence[str],
        target: float,
        claimed: float,
        clock: Clock,
        box: Intervals,
        domains: Ends,
    ) -> Nodes | None:
        """The tree of a box of actions; None without a proof."""
        p, o, t = self.problem, self.open, self.record
        place = [acted.index(name) if name in acted else -1 for name in self.levers]
        chosen = np.array(place) >= 0
        c = self._case(chosen)
        numeric = p.lever["label"] == 0
        p.box[c]["mode"] = np.where(chosen | ~numeric, ACTED, IDLE)
        for i, column, held in self.kept:  # a search does not charge for the own label; here it is acted on
            p.column[column].cost = held if chosen[i] else 0.0
        p.row_const[c] = self.row_const[c]
        set_domains(p.row_const[c], self.rows[c], domains)
        p.precision[c] = np.where(chosen[self.owners], self.precision[c], 0.0)
        self.squares = np.flatnonzero(chosen[self.owners] & self.normal)
        self.squares = self.squares[np.argsort([place[i] for i in self.owners[self.squares]])]
        base = float(p.base[c, 0])
        if math.isinf(target):
            held_costs = sum(held for i, _, held in self.kept if chosen[i])
            target = (1.0 + 1e-6) * (self.factor + p.ceiling + held_costs)
        else:
            claimed = claimed - base + p.slacks.cost * (abs(claimed) + base)
        target = target - base + p.slacks.cost * (abs(target) + base)
        self._root(chosen, box)
        nodes: Nodes = []
        effort, before = self.effort, self.effort.nodes
        share = max(1, min(2000, SHARE // p.weights.shape[1]))
        while not clock.over:
            why = proof_search.prove(p, self.relaxed, self.work, o, t, c, target, claimed, share, STEPS)
            if why == proof_search.EDGE:
                self._close_on_edge(acted, target)
            written = self._written(place)
            nodes += written
            effort.nodes = before + int(o.now.examined)
            effort.seconds += check_seconds(self.instance, len(acted), written)
            if effort.seconds > MOST_SECONDS:
                return None
            if why == proof_search.PROVEN:
                return nodes
            if why == proof_search.FALSE or effort.nodes > MOST_NODES:
                return None
            if why == proof_search.SINGLE:
                leaf = self._single(chosen, target)
                if leaf is None:
                    return None
                nodes.append(leaf)
            if why == proof_search.FULL and o.now.open + 2 * len(self.levers) + 4 > len(o.ends):
                o = self.open = _larger(o)
        return None

    def _case(self, chosen: NDArray[np.bool_]) -> int:
        """The engine's number of the configuration in which the levers ``chosen`` are acted on."""
        acts = self.problem.acts.astype(bool)[:, self.moved]
        return int(np.flatnonzero((acts == chosen[self.moved]).all(axis=1))[0])

    def _root(self, chosen: NDArray[np.bool_], box: Ends) -> None:
        """Make the whole box the one open node; levers that are not ``chosen`` keep their factual values."""
        o = self.open
        for i, name in enumerate(self.levers):
            low, high = box.get(name, self.instance.levers[name])
            if not chosen[i]:
                low = high = float(self.instance.factual[name])
            o.ends[0, :, i] = low, high
        o.order[0] = 0
        o.promise[0] = 0.0
        o.now.open, o.now.recorded, o.now.leaves, o.now.examined, o.now.asked = 1, 0, 0, 0, 0
        clear(self.work)
        self.work.now.allowance, self.work.now.ceiling = 0.0, 0.0  # nothing is forgiven
        self.work.row_coefficients[:] = 0.0

    def _single(self, chosen: NDArray[np.bool_], target: float) -> list[Any] | None:
        """A leaf for an open node that is a single action: its exact logit is too low, by however little.
        None if the node is no single action, or the action is accepted."""
        ends = self.open.ends[int(self.open.now.open)].copy()
        for i, name in enumerate(self.levers):
            lattice = self.instance.by_name[name].lattice
            if lattice is not None and chosen[i]:  # the search counts steps in doubles
                ends[:, i] = lattice.nearests(ends[:, i])
        if not (ends[0] == ends[1]).all():
            return None
        action = {n: float(a) for n, a, c in zip(self.levers, ends[0], chosen, strict=True) if c}
        logit = judge(self.instance, action).logit
        g = None if logit is None else self._weight(logit.upper, target)
        return None if g is None else ["d", "0" * sum(self.widths), [{"g": g}]]

    def _weight(self, logit: Fraction, target: float) -> float | None:
        """The multiplier, as it is written, with which a leaf whose logit is at most this proves the target;
        None if the logit is not too low, or is so by so little that no double is large enough."""
        missed = float(self.instance.accept.needed - logit)
        g = 2.0 * (target + 1.0) / self.factor / missed if missed > 0.0 else math.inf
        return g if math.isfinite(g) else None

    def _close_on_edge(self, acted: Sequence[str], target: float) -> None:
        """Record a leaf for the open node on top if its largest logit is too low, by however little: with a
        multiplier large enough for the target. Else it is to be split."""
        o, t, w = self.open, self.record, self.work
        o.now.asked = o.now.open
        low, high = o.ends[int(o.now.open) - 1]
        values = {}
        for i, name in enumerate(self.levers):
            if name in acted:
                lattice, ends = self.instance.by_name[name].lattice, np.array([low[i], high[i]])
                if self.problem.lever[i].label > 0.0:
                    ends = np.arange(low[i], high[i] + 1.0)
                elif lattice is not None:  # the search counts steps in doubles
                    ends = lattice.nearests(ends)
                values[name] = ends.tolist()
        active = [w.unit.low[k, :n] >= 0.0 for k, n in enumerate(self.widths, 1)]
        most = largest_logit(self._fixed(frozenset(acted)), active, values)
        g = None if most is None else self._weight(most, target)
        if g is None or math.isinf(g * self.factor):
            return
        leaf, node = int(o.now.leaves), int(o.now.recorded)
        t.lines[leaf], t.multipliers[leaf], t.ball[leaf], t.shares[leaf] = 1, 0.0, 0.0, 0.0
        t.multipliers[leaf, 0] = g * self.factor
        t.kind[node], t.where[node], t.at[node] = proof_search.LEAF, (leaf, 0), 0.0
        o.now.open, o.now.recorded, o.now.leaves, o.now.asked = o.now.open - 1, node + 1, leaf + 1, 0

    # -- as written --------------------------------------------------------------------------

    def _written(self, place: Sequence[int]) -> Nodes:
        """The recorded nodes as the document has them; empties the record. ``place``: for each lever its
        number among those acted on, -1 for the others."""
        o, t = self.open, self.record
        count = int(o.now.recorded)
        kinds, where, at = t.kind[:count].tolist(), t.where[:count].tolist(), t.at[:count].tolist()
        nodes: Nodes = []
        for kind, (a, b), value in zip(kinds, where, at, strict=True):
            if kind == proof_search.EMPTY:
                nodes.append(["e"])
            elif kind == proof_search.CUT:
                nodes.append(["a", place[a], value])
            elif kind == proof_search.SIGN:
                nodes.append(["n", a, b])
            else:
                nodes.append(self._leaf(a, place))
        o.now.recorded = o.now.leaves = 0
        return nodes

    def _leaf(self, k: int, place: Sequence[int]) -> list[Any]:
        """Leaf number k of the record as the document has it."""
        t = self.record
        slopes = [self._string(k, line) for line in range(max(1, int(t.lines[k])))]
        terms: list[dict[str, Any]] = []
        for line in range(int(t.lines[k])):
            g = float(t.multipliers[k, line]) / self.factor
            term = {"s": slopes[line]} if g and slopes[line] != slopes[0] else {}
            terms.append(term | ({"g": g} if g else {}))
        if terms:
            terms[0] |= self._others(k)
        written = ["d", slopes[0], [term for term in terms if term]]
        shares = [0.0] * sum(at >= 0 for at in place)
        for i, share in enumerate(t.shares[k].tolist()):
            if place[i] >= 0:
                shares[place[i]] = share
        theta = t.theta[k]
        if theta.any():
            pairs = np.concatenate([theta[:, h + 1, :n].T.ravel() for h, n in enumerate(self.widths)])
            return [*written, shares, _without_zeros((pairs * self.factor).tolist())]
        return [*written, shares] if any(shares) else written

    def _others(self, k: int) -> dict[str, Any]:
        """The multipliers of the first term other than the logit's."""
        t, factor, found = self.record, self.factor, {}
        order, multipliers = t.order[k].ravel(), t.multipliers[k, MOST_LINES:]
        split = np.flatnonzero(order)
        signs = (multipliers[split[np.argsort(np.abs(order[split]))]] / factor).tolist()
        if any(signs):
            found["n"] = signs
        rows: dict[str, list[float]] = {}
        stated = multipliers[len(order) :].tolist()
        rest = zip(stated[len(self.domains) :], self.units, strict=True)
        conditions = [multiplier / (unit * factor) for multiplier, unit in rest]
        if any(conditions):
            found["q"] = conditions
        for (name, side), multiplier in zip(self.domains, stated, strict=False):
            if multiplier:
                rows.setdefault(name, [0.0, 0.0])[0 if side > 0 else 1] = multiplier / factor
        if rows:
            found["r"] = rows
        if t.ball[k, 0]:
            found["b"] = [float(t.ball[k, 0]) / factor, *t.ball[k, 1 + self.squares].tolist()]
        return found

    def _string(self, k: int, line: int) -> str:
        """The lower slopes of a leaf's line as a string of 0 and 1, neuron by neuron."""
        slopes = self.record.slopes[k, line]
        bits = [slopes[h + 1, :n] for h, n in enumerate(self.widths)]
        return (np.concatenate(bits).astype(np.uint8) + ord("0")).tobytes().decode() if bits else ""


def _without_zeros(numbers: Sequence[float]) -> list[float]:
    """The numbers, -n for every n zeros in a row."""
    runs = ((zero, list(run)) for zero, run in groupby(numbers, key=lambda v: v == 0))
    return [v for zero, run in runs for v in ([-len(run)] if zero else run)]


def _inside(feature: Feature, value: float) -> bool:
    """Whether a value is in a feature's domain."""
    return feature.domain is None or feature.domain[0] <= value <= feature.domain[1]


def _larger(o: proof_search.Open) -> proof_search.Open:
    """The same open nodes with room for twice as many."""
    ends, order, promise = (np.concatenate([a, np.zeros_like(a)]) for a in o[:3])
    return proof_search.Open(ends, order, promise, o.now)


@cache
def ready() -> None:
    """Compile the proof search, or load it from disk, once per process. Compiling is announced."""
    instance = smallest()
    with announced("the search for proofs"):
        group = next(group for _, group in lowered([instance]))
        with closing(Trees(instance, group, 0, 1.0)) as trees:
            trees.configuration(["x"], 0.01, 0.01, NEVER)
