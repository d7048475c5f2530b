r"""Certificates for trees inside a causal model: a tree over cells, and proofs without trees under it.

The space of values is split, cell by cell, into parts. A part is done when its largest score is rejected, or
when no action in it costs less than the target even if the trees accept everything there. In the second case
the part is a problem with domains in place of trees (:mod:`milp_recourse.engine.forests.cell_problem`), and
the engine's second search proves it for each configuration.

In the document the first splits are ``["s", i, t]`` where the configuration acts on the feature and
``["c", feature, t]`` where it does not (docs/certificate_spec_v2.md, section 6).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.certificates.acted_sets import acted_sets
from milp_recourse.certificates.engine_proofs import proofs
from milp_recourse.engine.forests.axes import factual_cells
from milp_recourse.engine.forests.causal_pieces import Column
from milp_recourse.engine.forests.cell_problem import region
from milp_recourse.engine.forests.table import LeafTable, best_cuts
from milp_recourse.engine.networks import layout as at
from milp_recourse.engine.networks.nearby import proven
from milp_recourse.engine.networks.problem_arrays import impossible, lowered
from milp_recourse.engine.networks.propose import Run, ready
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock, OutOfTime
from milp_recourse.program.cost_units import cost_units

EVERY = 3
"""Every so many levels of splits, all open parts are tested for actions that cost less than the target. A
test takes as long as splitting a few levels further."""

NODE_LIMIT = 2_000
"""Most nodes of such a test; a part that needs more is split."""

MOST_LABELS = 256
"""Most combinations of labels that are proven one by one."""

MOST_PARTS = 20_000
"""Most parts of the space of values; a checker need not read more."""

Cells = NDArray[np.int64]
Box = list[tuple[float, float]]

Ends = dict[str, tuple[bool, bool]]
"""Whether values of a feature have a lower and an upper end."""


@dataclass
class _Split:
    """A part that is split: ``first`` and ``second`` are the numbers of the parts in which a feature's value
    is at most ``at``, and above it."""

    feature: str
    at: float
    first: int
    second: int


Part = _Split | int | None
"""A split; the number of a region to be proven; or None where the trees reject everything."""


def why_not_causal(instance: Instance) -> str | None:
    """Why no certificate can be had for trees whose inputs cause each other, or None."""
    count = math.prod(len(labels) for labels in _labels(instance).values())
    if count > MOST_LABELS:
        return (
            f"trees inside a causal model need a proof for each combination of labels that enter by numbers "
            f"of their own: {count} combinations, and a certificate has at most {MOST_LABELS}"
        )
    return None


def _labels(instance: Instance) -> dict[str, list[int]]:
    """For each lever whose labels have numbers of their own: its possible labels and the factual one."""
    found = {}
    for f in instance.features:
        if f.by_label and f.name in instance.levers:
            low, high = map(int, instance.levers[f.name])
            found[f.name] = sorted({*range(low, high + 1), int(instance.factual[f.name])})
    return found


Proof = tuple[list[Part], list[dict[tuple[str, ...], list[Any]]]]
"""The parts that a space of values is split into, and for each region the proof trees by configuration."""


def causal_configurations(
    instance: Instance, target: float, deadline: float | None = None
) -> list[dict[str, Any]] | None:
    """The configurations with their trees; None where the claim is false, or it took too long.

    Parameters
    ----------
    target
        The lower bound of the cost that is to be proven; inf: that there is no feasible action.
    deadline
        ``time.perf_counter()`` value to stop at, or None.
    """
    labels = _labels(instance)
    found: dict[tuple[int, ...], Proof] = {}
    for chosen in product(*labels.values()):
        proof = _proof(instance, dict(zip(labels, chosen, strict=True)), target, deadline)
        if proof is None:
            return None
        found[chosen] = proof
    configurations = []
    for acted in acted_sets(instance):
        box = [instance.levers[name] for name in acted]
        nodes = list(_label_by_label(instance, acted, list(labels), found, (), box))
        configurations.append({"acted": list(acted), "tree": nodes})
    return configurations


def _proof(instance: Instance, labels: dict[str, int], target: float, deadline: float | None) -> Proof | None:
    """The proof for one combination of labels; None without one."""
    try:
        cells = _CellTree(instance, labels, target, deadline)
    except OutOfTime:
        return None
    if not cells.grow():
        return None
    trees: list[dict[tuple[str, ...], list[Any]]] = []
    bound = target if math.isfinite(target) else None
    claims = [(problem, bound, target) for problem in cells.regions]
    for proof, _ in proofs(claims, [cells.share(len(claims))] * len(claims)):
        if proof is None:
            return None
        trees.append({tuple(one["acted"]): one["tree"] for one in proof})
    return cells.parts, trees


def _label_by_label(
    instance: Instance,
    acted: tuple[str, ...],
    labelled: list[str],
    proofs: dict[tuple[int, ...], Proof],
    chosen: tuple[int, ...],
    box: Box,
) -> Iterator[list[Any]]:
    """One configuration's nodes: labels with numbers of their own are split off one by one, then values."""
    if len(chosen) == len(labelled):
        yield from _Writer(instance, acted, *proofs[chosen]).nodes(box)
        return
    name = labelled[len(chosen)]
    if name not in acted:
        stays = (*chosen, int(instance.factual[name]))
        yield from _label_by_label(instance, acted, labelled, proofs, stays, box)
        return
    i = acted.index(name)
    low, high = map(int, box[i])
    for label in range(low, high + 1):
        if label < high:
            yield ["s", i, float(label)]
        inside = [*box[:i], (float(label), float(label)), *box[i + 1 :]]
        yield from _label_by_label(instance, acted, labelled, proofs, (*chosen, label), inside)


class _CellTree:
    """Parts of the space of values, split until each is rejected or proven."""

    def __init__(
        self, instance: Instance, labels: dict[str, int], target: float, deadline: float | None
    ) -> None:
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        self.instance, self.forest, self.target, self.deadline = instance, forest, target, deadline
        moving = instance.scm.descendants(set(instance.levers))
        self.axes, self.names, column = list[Column](), list[str](), 0
        self.labels = {
            f.name: int(instance.factual[f.name]) for f in instance.features if f.by_label
        } | labels
        for f in instance.features:
            if not f.by_label and f.name in moving and len(forest.cuts[column]):
                cuts = forest.cuts[column]
                self.axes.append(Column(((column, np.arange(len(cuts) + 1)),), cuts))
                self.names.append(f.name)
            column += len(f.columns)
        self.cells = factual_cells(instance, forest, labels)
        self.table = LeafTable(forest, self.cells, self.axes, clock=Clock(deadline))
        self.parts: list[Part] = [None]
        self.regions: list[Instance] = []

    def share(self, count: int) -> float | None:
        """The seconds until the deadline, divided by ``count``; None without a deadline."""
        left = None if self.deadline is None else max(self.deadline - time.perf_counter(), 0.0)
        return None if left is None else max(left / max(1, count), 1e-4)

    def grow(self) -> bool:
        """Split level by level until every part is rejected or a region; False if time or parts run out."""
        number = np.zeros(1, dtype=np.int64)
        first = np.zeros((1, len(self.axes)), dtype=np.int64)
        last = np.array([[len(axis) - 1 for axis in self.axes]], dtype=np.int64).reshape(first.shape)
        level = 0
        while True:
            late = self.deadline is not None and time.perf_counter() > self.deadline
            if late or len(self.parts) > MOST_PARTS:
                return False
            masks = self.table.met(first, last)
            bound = self.table.bound(masks)
            open_ = bound > self.instance.accept.above  # the others stay None: rejected
            number, first, last = number[open_], first[open_], last[open_]
            masks, bound = masks[open_], bound[open_]
            if not len(number):
                return True
            decided = self.table.decided(masks) | (first == last).all(axis=1)
            tested = np.flatnonzero(decided if level % EVERY else np.ones_like(decided))
            problems = {int(k): self._region(first[k], last[k]) for k in tested}
            left = ~decided
            left[self._proven({k: p for k, p in problems.items() if left[k]})] = False
            for k, problem in problems.items():
                if not left[k] and problem is not None:
                    self.parts[number[k]] = len(self.regions)
                    self.regions.append(problem)
            axis, cut, _, _ = best_cuts(
                self.table, first[left], last[left], masks[left], bound[left], self.instance.accept.above
            )
            number, first, last = self._split(number[left], first[left], last[left], axis, cut)
            level += 1

    def _split(
        self, number: Cells, first: Cells, last: Cells, axis: Cells, cut: Cells
    ) -> tuple[Cells, Cells, Cells]:
        """Split every part after its cell ``cut`` on ``axis``; returns the numbers and cells of both
        halves."""
        rows, start = np.arange(len(number)), len(self.parts)
        for k, i, c in zip(number, axis, cut, strict=True):
            halves = len(self.parts), len(self.parts) + 1
            self.parts[k] = _Split(self.names[i], float(self.axes[i].cuts[c]), *halves)
            self.parts += [None, None]
        low, high = np.repeat(first, 2, axis=0), np.repeat(last, 2, axis=0)
        high[2 * rows, axis], low[2 * rows + 1, axis] = cut, cut + 1
        return start + np.arange(2 * len(number)), low, high

    def _region(self, first: Cells, last: Cells) -> Instance | None:
        """The problem of a box of cells without trees; None where a domain is empty."""
        low, high = self.cells.copy(), self.cells.copy()
        for i, axis in enumerate(self.axes):
            [(column, _)] = axis.columns
            low[column], high[column] = first[i], last[i]
        return region(self.instance, low, high, self.labels, outward=True)

    def _proven(self, problems: dict[int, Instance | None]) -> list[int]:
        """Which of the problems hold nothing that costs less than the target; None stands for an empty
        one."""
        given = {k: problem for k, problem in problems.items() if problem is not None}
        # the engine proves a bound that is lower than the cost it is given, by half the gap or less
        beyond = (
            self.target + self.instance.gap_tolerance(self.target) if math.isfinite(self.target) else math.inf
        )
        share = self.share(len(given))
        proven = []
        for problem in given.values():
            own, factor = cost_units(problem)
            proven.append(none_below(own, beyond * factor, share, NODE_LIMIT))
        return [k for k in problems if k not in given] + [k for k, p in zip(given, proven, strict=True) if p]


class _Writer:
    """The tree of one configuration, in preorder."""

    def __init__(
        self,
        instance: Instance,
        acted: tuple[str, ...],
        parts: list[Part],
        trees: list[dict[tuple[str, ...], list[Any]]],
    ) -> None:
        self.instance, self.acted, self.parts, self.trees = instance, acted, parts, trees
        self.moving = instance.scm.descendants(set(acted)) - set(acted)
        self.whole = [instance.feature(name).integral for name in acted]

    def nodes(self, box: Box) -> Iterator[list[Any]]:
        """Splits of values, with the proofs of regions below them."""
        ends = {f.name: (f.domain is not None, f.domain is not None) for f in self.instance.features}
        todo: list[tuple[int, Box, Ends]] = [(0, box, ends)]
        while todo:
            number, box, ends = todo.pop()
            part = None if number == _NOTHING else self.parts[number]
            if part is None:
                yield ["e"]
            elif isinstance(part, int):
                proof = self.trees[part].get(self.acted, [["e"]])
                yield from self._fitted(proof, box, ends)
            elif part.feature in self.acted:
                i = self.acted.index(part.feature)
                halves = _halves(box, i, part.at, math.nextafter(part.at, math.inf), self.whole[i])
                both = zip((part.first, part.second), halves, strict=True)
                inside = [(child, half, ends) for child, half in both if half is not None]
                if len(inside) == 2:
                    yield ["s", i, part.at]
                todo += reversed(inside)
            else:
                yield ["c", part.feature, part.at]
                children, (low, high) = [part.first, part.second], ends[part.feature]
                if part.feature not in self.moving:  # it stays, and one half is empty
                    children[self.instance.factual[part.feature] <= part.at] = _NOTHING
                todo.append((children[1], box, {**ends, part.feature: (True, high)}))
                todo.append((children[0], box, {**ends, part.feature: (low, True)}))

    def _fitted(self, nodes: list[list[Any]], box: Box, ends: Ends) -> Iterator[list[Any]]:
        """A region's proof, without splits outside of ``box``, which may be smaller than the region by a
        double."""
        todo: list[Box | None] = [box]
        for node in nodes:
            part = todo.pop()
            if node[0] == "a":
                _, i, at = node
                halves: tuple[Box | None, Box | None] = (None, None)
                if part is not None:
                    halves = _halves(part, i, at, at, self.whole[i])
                    if None not in halves:
                        yield node
                todo += reversed(halves)
            elif part is not None:
                yield node if node[0] == "e" else self._leaf(node, ends)

    def _leaf(self, leaf: list[Any], ends: Ends) -> list[Any]:
        """A leaf without the multipliers of rows that always hold; without them its bound is no lower.

        Such rows are the logit of the classifier that accepts everything, domains of features that are acted
        on or stay, and ends that a domain does not have.
        """
        kind, slopes, terms, *shares = leaf
        kept = []
        for term in terms:
            rows = {
                f: [m if end else 0.0 for m, end in zip(pair, ends[f], strict=True)]
                for f, pair in term.get("r", {}).items()
                if f in self.moving
            }
            rows = {f: pair for f, pair in rows.items() if any(pair)}
            kept.append(({"r": rows} if rows else {}) | ({"b": term["b"]} if "b" in term else {}))
        return [kind, slopes, [term for term in kept if term], *shares]


_NOTHING = -1
"""The number of a part that holds nothing."""


def _halves(box: Box, i: int, at: float, after: float, whole: bool) -> tuple[Box | None, Box | None]:
    """The box with action i up to ``at``, and from ``after`` on; None for a half that is empty, or that is a
    single value which both halves would have."""
    low, high = box[i]
    if whole:
        at, after = math.floor(at), math.floor(at) + 1
    outside = low > at or (low == at == after), high < after or (high == at == after)
    ends = (low, min(at, high)), (max(after, low), high)
    parts = (None if out else [*box[:i], end, *box[i + 1 :]] for out, end in zip(outside, ends, strict=True))
    first, second = parts
    return first, second


def none_below(instance: Instance, cost: float, time_limit: float | None, nodes: int) -> bool:
    """Whether it is proven within so many nodes that no action is cheaper than ``cost`` by half the gap or
    more.

    Parameters
    ----------
    cost
        inf: that there is no action at all.
    """
    ready()
    for _, group in lowered([instance]):
        if impossible(instance, group.moved):
            return True
        state = Run(instance, group.problems(0))
        state.few = True  # no good actions are looked for
        state.least = state.confirmed = state.work.scalar[at.BEST_COST] = cost
        late = math.inf if time_limit is None else time.perf_counter() + time_limit
        return proven(state, nodes, late, first=True) and state.least == cost
    return False
