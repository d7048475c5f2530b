"""Certificates for trees inside a causal model: a tree over cells, and proofs without trees under it.

As in the search (:mod:`milp_recourse.engine.forests.causal_search`), boxes of actions and of cells are split
until the largest score is rejected, or the engine proves that no action in the box costs less than the target
even if the trees accept everything there. In the second case the box is a problem with domains in place of
trees, and the engine's search for proofs writes its tree. A reader does not know what the search has learnt
before: a box is what the splits on the way to it leave, and its cells are those that it leads to; it does not
shrink by its cells, its rows or its cost.

In the document the first splits are ``["s", i, t]`` where the configuration acts on the feature and
``["c", feature, t]`` where it does not (docs/certificate_spec_v2.md, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from milp_recourse.certificates.conditions import cases_of, programs_below, without_demand
from milp_recourse.certificates.engine_proofs import Effort, Nodes, Trees, ready
from milp_recourse.certificates.limits import MOST_NODES, acted_sets
from milp_recourse.engine.box_bounds import EngineBox
from milp_recourse.engine.forests.causal_pieces import Piece, without_signs
from milp_recourse.engine.forests.causal_search import Engines
from milp_recourse.engine.forests.cell_problem import with_domains
from milp_recourse.engine.forests.piece_cells import Array, Cells, PieceCells
from milp_recourse.engine.forests.table import best_cuts
from milp_recourse.engine.networks.causes import Effects
from milp_recourse.engine.networks.problem_arrays import Ends, Lowered, impossible, lowered
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import NEVER, Clock, OutOfTime
from milp_recourse.program.lower import lower
from milp_recourse.program.magnitude import cost_units

SPARE = 1e-9
"""How far outside what a lever's interval is cut to by cost it is cut in a tree, in its lengths."""

Box = tuple[Array, Array, Cells, Cells]
"""Intervals of actions, (d,) each, and cells of the columns, (columns,) each."""


def causal_configurations(
    instance: Instance, target: float, clock: Clock = NEVER, acting: Sequence[tuple[str, ...]] = ()
) -> list[dict[str, Any]] | None:
    """The configurations with their trees; None where the claim is false, or it took too long.

    Parameters
    ----------
    target
        The lower bound of the cost that is to be proven; inf: that there is no feasible action.
    acting
        The sets of levers to make configurations of; none: those that stand for all sets.
    """
    ready()
    if instance.demand != TRUE:
        return _under_conditions(instance, target, clock)
    own, factor = cost_units(with_domains(instance))
    sets, program, engines = list(acting or acted_sets(instance)), lower(instance), Engines(instance)
    for _, group in lowered([own]):
        if impossible(own, group.moved):
            return [{"acted": list(acted), "tree": [["e"]]} for acted in sets]
        found = []
        with closing(Trees(own, group, 0, factor)) as trees:
            for acted in sets:
                piece, engine = without_signs(instance, program.fix(frozenset(acted))), engines.of(acted)
                nodes: Nodes | None = None if engine is None else [["e"]]
                if engine is not None and piece is not None:
                    try:
                        nodes = _CellTree(instance, acted, piece, engine, trees, target, clock).nodes()
                    except OutOfTime:
                        return None
                if nodes is None:
                    return None
                found.append({"acted": list(acted), "tree": nodes})
        return found
    return None


def _under_conditions(instance: Instance, target: float, clock: Clock) -> list[dict[str, Any]] | None:
    """The same under conditions: in each configuration, the trees of its cases."""
    plain, effort, found = with_domains(instance), Effort(), []
    own, factor = cost_units(plain)
    programs = [without_demand(one) for one in (instance, plain, own)]
    for chosen, root in cases_of(instance):
        acted = tuple(f.name for f in instance.features if f.name in chosen)
        alone = replace(own, preferences=replace(own.preferences, actionable=acted))
        nodes: Nodes = []
        cases = (programs_below(one.fix(chosen), root) for one in programs)
        for with_trees, bare, scaled in zip(*cases, strict=True):
            if with_trees is None or bare is None or scaled is None:
                nodes.append(["o"])
                continue
            piece, engine = without_signs(instance, with_trees), EngineBox.of(plain, bare)
            if piece is None or engine is None:
                nodes.append(["e"])
                continue
            units = [row.unit for row in scaled.rows if row.name.startswith("condition_")]
            with closing(
                Trees(alone, Lowered([alone], Effects([alone], scaled)), 0, factor, units, effort)
            ) as trees:
                try:
                    own_nodes = _CellTree(instance, acted, piece, engine, trees, target, clock).nodes()
                except OutOfTime:
                    return None
            if own_nodes is None:
                return None
            nodes += own_nodes
        found.append({"acted": list(acted), "tree": nodes})
    return found


class _CellTree(PieceCells):
    """The tree of one configuration.

    Parameters
    ----------
    acted
        What it acts on.
    piece
        The configuration, no sign of a ReLU known.
    engine
        Bounds what actions in its boxes cost.
    trees
        Writes proofs about boxes without trees.
    """

    def __init__(
        self,
        instance: Instance,
        acted: Sequence[str],
        piece: Piece,
        engine: EngineBox,
        trees: Trees,
        target: float,
        clock: Clock,
    ) -> None:
        super().__init__(instance, piece, clock)
        self.instance, self.acted, self.engine, self.trees = instance, acted, engine, trees
        self.clock, self.target, self.place = clock, target, [acted.index(name) for name in piece.names]
        self.written: Nodes = []

    def nodes(self) -> Nodes | None:
        """The nodes in preorder; None if time or nodes run out, or the claim is false."""
        low, high = self.piece.low.copy(), self.piece.high.copy()
        after = self._cut_to_paid(low, high)
        waiting: list[Box] = [(low, high, *(ends[0] for ends in self.every_cell()))]
        while waiting:
            parts = self._visited(waiting.pop())
            self.trees.effort.nodes += 1
            if parts is None or self.clock.over or self.trees.effort.nodes > MOST_NODES:
                return None
            waiting += reversed(parts)
        return self.written + [["e"]] * after

    def _visited(self, box: Box) -> list[Box] | None:
        """Write a box's node, or the tree that closes it; the parts it is split into, None where the engine
        fails to prove it."""
        low, high, first, last = box
        reached, sure = self.cells(*self.columns.range(low[None], high[None])), self.piece.sure
        least = np.where(sure, np.maximum(first, reached[0]), first)
        most = np.where(sure, np.minimum(last, reached[1]), last)
        masks = self.table.met(least, most)
        score = self.table.bound(masks)
        if (least > most).any() or not score[0] > self.threshold:
            self.written.append(["e"])
            return []
        domains = self.domains(*(ends[0] for ends in self.ends(first[None], last[None])))
        decided = self.decided(masks, least, most)[0]
        if decided or self.engine.bound(low, high, self.target, (), domains) is None:
            return self._proven(low, high, domains)
        axis, cut, _, _ = best_cuts(self.table, least, most, masks, score, self.threshold)
        return self._split(box, int(axis[0]), int(cut[0]))

    def _proven(self, low: Array, high: Array, domains: Ends) -> list[Box] | None:
        """Write the engine's proof that nothing in a box costs less than the target, whatever trees say."""
        target, box = self.target * self.trees.factor, self._intervals(low, high)
        found = self.trees.configuration(self.acted, target, target, self.clock, box, domains)
        if found is None:
            return None
        self.written += [_without_logit(node) for node in found["tree"]]
        return []

    def _intervals(self, low: Array, high: Array) -> dict[str, tuple[float, float]]:
        """The actions' intervals, by feature."""
        return dict(zip(self.piece.names, zip(low.tolist(), high.tolist(), strict=True), strict=True))

    def _split(self, box: Box, k: int, cut: int) -> list[Box]:
        """Split a box after a cell of a column: by the action that the column is, or by its value."""
        low, high, first, last = box
        at = float(self.piece.columns[k].cuts[cut])
        if self.columns.exact[k]:
            i = int(np.flatnonzero(self.columns.matrix[k])[0])
            below, above = self._around(i, at)
            self.written.append(["s", self.place[i], below])
            return [(low, _with(high, i, below), first, last), (_with(low, i, above), high, first, last)]
        self.written.append(["c", self.moved[k].name, at])
        return [(low, high, first, _with(last, k, cut)), (low, high, _with(first, k, cut + 1), last)]

    def _around(self, i: int, at: float) -> tuple[float, float]:
        """The largest value up to ``at`` that action i may take, and the next."""
        feature = self.instance.by_name[self.piece.names[i]]
        return feature.floor(at), feature.after(at)

    def _cut_to_paid(self, low: Array, high: Array) -> int:
        """Cut a box, in place, to about what the target pays for, and write the cuts; returns how many leaves
        have to follow the rest."""
        found, after = self.engine.bound(low, high, self.target), 0
        if found is None or math.isinf(self.target):
            return 0
        for i, name in enumerate(self.piece.names):
            room = SPARE * (high[i] - low[i])
            below, least = self._around(i, math.nextafter(found.low[i] - room, -math.inf))
            most, above = self._around(i, found.high[i] + room)
            if low[i] <= below and self._is_dear(low, high, name, (low[i], below)):
                self.written += [["s", self.place[i], below], ["e"]]
                low[i] = least
            if low[i] <= most < high[i] and self._is_dear(low, high, name, (above, high[i])):
                self.written.append(["s", self.place[i], most])
                high[i], after = most, after + 1
        return after

    def _is_dear(self, low: Array, high: Array, name: str, ends: tuple[float, float]) -> bool:
        """Whether actions in a box that set a lever between two values cost the target or more."""
        box = self._intervals(low, high) | {name: (float(ends[0]), float(ends[1]))}
        return self.instance.least_cost(box) >= Fraction(self.target)


def _with(values: Array | Cells, k: int, value: float) -> Any:
    """The same with another value at one place."""
    made = values.copy()
    made[k] = value
    return made


def _without_logit(node: list[Any]) -> list[Any]:
    """A leaf without multipliers of the logit of the classifier that accepts everything."""
    if node[0] != "d":
        return node
    kind, slopes, terms, *shares = node
    kept = ({key: term[key] for key in ("r", "q", "b") if key in term} for term in terms)
    return [kind, slopes, [term for term in kept if term], *shares]
