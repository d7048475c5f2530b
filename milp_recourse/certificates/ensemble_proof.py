"""Ensembles whose levers cause nothing else, proven by prices (section 7.3 of the document)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.certificates.conditions import Case
from milp_recourse.certificates.limits import (
    MOST_NODES,
    MOST_SECONDS,
    acted_sets,
    check_seconds,
    counted,
    tied,
)
from milp_recourse.certificates.price_tables import PriceWriter
from milp_recourse.certificates.single_tree import single_tree_configurations
from milp_recourse.engine.forests.axes import Axis, axes_of, factual_cells, with_cells
from milp_recourse.engine.forests.goal import window
from milp_recourse.engine.forests.parts import each_part
from milp_recourse.engine.forests.table import Budget, LeafTable, TooLarge
from milp_recourse.problem.conditions import FALSE, TRUE, Row, factors, unlabelled
from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import exact_cost
from milp_recourse.problem.options import Clock, OutOfTime
from milp_recourse.program.demands import for_acted
from milp_recourse.program.presolve import without_conditions

Array = NDArray[np.float64]
Node = list[Any]

MOST_PRICES = 16_000_000
"""Most prices for one case of one configuration;
:func:`~milp_recourse.certificates.limits.fits` checks the whole file against ``LARGEST_FILE``."""


def ensemble_configurations(
    instance: Instance,
    bound: float | None,
    clock: Clock,
    proofs: Callable[..., PriceProofs] | None = None,
    priced: bool = True,
) -> list[dict[str, Any]] | None:
    """Configurations that prove that no action costs less than ``bound`` (None: none exists).

    The proof is by prices; a single tree without conditions whose leaves are not too many is proven leaf by
    leaf. None if a limit was reached, or the claim is false.

    Parameters
    ----------
    proofs
        What makes the proofs of a configuration, if not :class:`PriceProofs`.
    priced
        Whether prices may count the actions, which they may not beside the key ``withstands``.
    """
    priced = priced and proofs is None
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    demand, plain = unlabelled(instance.demand), without_conditions(instance)
    limit, rest = counted(instance) if priced else (None, demand)
    if len(forest.trees) == 1 and demand == TRUE and proofs is None:
        found = single_tree_configurations(instance, bound, clock)
        if found is not None:
            return found
    configurations, left, seconds = [], MOST_NODES, 0.0
    for acted in acted_sets(instance, priced):
        remaining, most = for_acted(rest, acted), None if limit is None or len(acted) <= limit else limit
        if remaining == FALSE:
            continue
        if _outside_domain(instance, acted):
            configurations.append({"acted": list(acted), "tree": [["e"]]})
            continue
        cases = []
        for part in each_part(plain):
            own = part, acted, bound, clock
            prover = proofs(*own) if proofs else PriceProofs(*own, most)
            proof = prover.of(Case().joined(remaining), left)
            seconds += prover.seconds
            if proof is None or len(proof["tree"]) > left or seconds > MOST_SECONDS:
                return None
            left -= len(proof["tree"])
            cases.append(proof)
        configurations.append({"acted": list(acted), **(cases[0] if len(cases) == 1 else {"cases": cases})})
    return configurations


def _outside_domain(instance: Instance, acted: tuple[str, ...]) -> bool:
    """Whether a feature that is not acted on has a factual value outside its domain, so that no action on
    ``acted`` is feasible."""
    return any(
        f.domain is not None
        and f.name not in {*acted, *instance.missing}
        and not f.domain[0] <= instance.factual[f.name] <= f.domain[1]
        for f in instance.features
    )


@dataclass
class PriceProofs:
    """The proofs of one configuration, one for each case of its conditions.

    Parameters
    ----------
    instance
        Without conditions. If its score is the largest of several sums, an instance of one of them
        (:func:`~milp_recourse.engine.forests.parts.each_part`).
    acted
        The levers that are acted on.
    bound
        The lower bound to prove (None: that there is no action).
    most
        How many of the levers may change their values, or None.

    Attributes
    ----------
    seconds
        About how long a check of the boxes that are proven by prices takes.
    """

    instance: Instance
    acted: tuple[str, ...]
    bound: float | None
    clock: Clock
    most: int | None = None
    seconds: float = field(default=0.0, init=False)

    def of(self, root: Case, most_nodes: int) -> dict[str, Any] | None:
        """The configuration's tree and tables of prices; None if a case is not proven."""
        self.nodes, self.tables = list[Node](), list[dict[str, Any]]()
        waiting: list[Case | Node] = [root]
        while waiting:
            case = waiting.pop()
            if not isinstance(case, Case):
                self.nodes.append(case)
            elif case.open:
                self.nodes.append(["o"])
                waiting += reversed(case.alternatives())
            else:
                ranges, after = self._cut(case.rows)
                if ranges is not None and not self.prove(ranges, self._loose(case.rows), most_nodes):
                    return None
                waiting += reversed(after)
        # a merging makes it a proof by prices even if there is no table
        priced = any(node[0] in ("p", "t", "m") for node in self.nodes)
        return {"tree": self.nodes, **({"prices": self.tables} if priced else {})}

    def _cut(self, rows: Sequence[Row]) -> tuple[dict[str, tuple[float, float]] | None, list[Case | Node]]:
        """Cut the levers' intervals to what rows about one action leave, and append these cuts as nodes.

        Each row is about one action (:func:`~milp_recourse.certificates.limits.by_prices`).

        Returns
        -------
        (ranges, after)
            The intervals, None if a row cannot be met; the nodes that follow in preorder once the rest is
            proven.
        """
        ranges, after = {name: self.instance.levers[name] for name in self.acted}, list[Case | Node]()
        for row in rows:
            moved, constant = _split_row(row, self.instance.factual, ranges)
            if not moved and constant < row.at_least:
                self.nodes.append(["e"])
                return None, after
            if len(moved) != 1:
                continue
            [(name, c)] = moved
            feature, (low, high) = self.instance.by_name[name], ranges[name]
            end = (row.at_least - constant) / c
            if (end > high) if c > 0 else (end < low):
                self.nodes.append(["e"])
                return None, after
            inward = feature.ceil(round_up(end)) if c > 0 else feature.floor(round_down(end))
            if c > 0 and inward > low:
                self.nodes += [["s", self.acted.index(name), feature.before(inward)], ["e"]]
                low = inward
            elif c < 0 and inward < high:
                self.nodes.append(["s", self.acted.index(name), inward])
                after.insert(0, ["e"])
                high = inward
            ranges[name] = low, high
        return ranges, after

    def _loose(self, rows: Sequence[Row]) -> bool:
        """Whether some row is about several actions, so that it may fail within the levers' cut intervals."""
        return any(tied(row, self.acted) for row in rows)

    def prove(self, ranges: dict[str, tuple[float, float]], demanded: bool, most_nodes: int) -> bool:
        """Append the nodes that prove the box of these ranges; returns whether there is a proof.

        ``demanded``: whether rows of conditions may fail there, so that no cell may stand for another.
        """
        from milp_recourse.certificates.price_proof import PriceProof, paid_for  # loads numba
        from milp_recourse.engine.forests.priced import LARGEST_TABLE

        instance, acted = self.instance, self.acted
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        everything = axes_of(instance)
        narrowed = {**instance.preferences.ranges, **ranges}
        inside = replace(instance, preferences=replace(instance.preferences, ranges=narrowed))
        axes = axes_of(inside)
        if axes is None or everything is None:
            self.nodes.append(["e"])
            return True
        whole = [self._cells(axis) for axis in everything if axis.feature in acted]
        axes = [self._cells(axis) for axis in axes if axis.feature in acted]
        costs, widest = zip(*(_paid(instance, axis) for axis in axes), strict=True)
        fixed = _fixed(instance, acted)
        exact = _dearest(instance, acted) - fixed + 1 if self.bound is None else Fraction(self.bound) - fixed
        target = math.nextafter(float(exact), math.inf) if exact > 0 else 0.0
        kept = paid_for(costs, widest, target)
        if kept is None:
            self.nodes.append(["e"])
            return True
        after = self._cut_to(axes, kept)
        cost, wide = (
            np.concatenate([own[a : b + 1] for own, (a, b) in zip(each, kept, strict=True)])
            for each in (costs, widest)
        )
        axes = [window(axis, *ends) for axis, ends in zip(axes, kept, strict=True)]
        above, room = instance.accept.above, most_nodes - len(self.nodes)
        rank = None if demanded else np.concatenate([_ranks(instance, axis) for axis in axes])
        try:
            split = np.cumsum([len(axis) for axis in axes])[:-1]
            budget = Budget(np.split(cost, split), np.split(0.0 * wide, split), target)
            table = LeafTable(
                forest, factual_cells(instance, forest), axes, LARGEST_TABLE, self.clock, budget
            )
            proof = PriceProof(table, axes, cost, wide, above, target, room, rank, self.most)
            if not proof.run():
                return False
        except (TooLarge, OutOfTime):
            return False
        writer = PriceWriter(inside, axes, whole, proof.factors, len(self.tables))
        tables = [writer.table(one) for one in proof.tables]
        nodes = [writer.node(step) for step in proof.steps]
        self.seconds += check_seconds(instance, len(acted), nodes, tables, len(proof.factors.value))
        self.tables, self.nodes = self.tables + tables, [*self.nodes, *nodes, *after]
        return writer.numbers <= MOST_PRICES and self.seconds <= MOST_SECONDS

    def _cut_to(self, axes: Sequence[Axis], kept: Sequence[tuple[int, int]]) -> list[Node]:
        """Cut the axes to their cells of these numbers, and close the other parts by cost: append the nodes
        that come before the rest in preorder, and return those that follow it."""
        after: list[Node] = []
        for i, (axis, (first, last)) in enumerate(zip(axes, kept, strict=True)):
            if first > 0:
                self.nodes += [["s", i, float(axis.high[first - 1])], ["e"]]
            if last < len(axis) - 1:
                self.nodes.append(["s", i, float(axis.high[last])])
                after.append(["e"])
        return after

    def _cells(self, axis: Axis) -> Axis:
        """An axis with the document's cells."""
        axis = _acted_on(self.instance, with_cells(axis, axis.settable))
        return axis if self.instance.by_name[axis.feature].by_label else _merged(axis)


def _split_row(
    row: Row, factual: Mapping[str, float], acted: Collection[str]
) -> tuple[list[tuple[str, Fraction]], Fraction]:
    """The terms of a row on features acted on, and what its other terms add up to."""
    moved, constant = list[tuple[str, Fraction]](), Fraction(0)
    for of, c in row.terms:
        names = [f for f in factors(of) if f in acted]
        size = c * math.prod(Fraction(factual[f]) for f in factors(of) if f not in acted)
        if names:
            moved.append((names[0], size))
        else:
            constant += size
    return moved, constant


def _acted_on(instance: Instance, axis: Axis) -> Axis:
    """The axis of a lever that is acted on: where an action may not set the factual value, its cell stands
    for the cheapest value in it that an action may set."""
    name, held = axis.feature, np.flatnonzero(np.isnan(axis.values))
    x, lattice = instance.factual[name], instance.by_name[name].lattice
    if lattice is None or name in instance.missing or instance.may_hold(name) or not len(held):
        return axis
    values, cost = axis.values.copy(), instance.lever_costs[name]
    for k in held:
        near = (min(max(v, axis.low[k]), axis.high[k]) for v in (lattice.floor(x), lattice.ceil(x)))
        values[k] = min(near, key=cost.size)
    added, widest = cost.evaluate(values)
    return replace(axis, values=values, added=added, widest=widest, start=int(np.argmin(added + widest)))


def _fixed(instance: Instance, acted: tuple[str, ...]) -> Fraction:
    """What acting on these levers costs whatever their values."""
    return sum((instance.lever_costs[f].prices.fixed for f in acted), Fraction(0))


def _dearest(instance: Instance, acted: Sequence[str]) -> Fraction:
    """At least what any action on these levers costs: the sum of each alone at its dearer end (more than the
    most where the cost has a maximum)."""
    ends = ([exact_cost([(instance.lever_costs[f], end)]) for end in instance.levers[f]] for f in acted)
    return sum(map(max, ends), Fraction(0))


def _merged(axis: Axis) -> Axis:
    """The axis with neighbouring cells that no tree tells apart made one cell, whose cost is the least.

    So the document counts cells. In an axis, ordinal labels that enter by their index are a cell each.
    """
    [(column, cells)] = axis.columns
    begins = np.concatenate([[True], cells[1:] != cells[:-1]])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(cells)) - 1
    paid = axis.added + axis.widest  # neither falls with the distance
    cheapest = np.array([a + int(np.argmin(paid[a : b + 1])) for a, b in zip(first, last, strict=True)])
    arrays = {name: getattr(axis, name)[cheapest] for name in ("values", "added", "widest", "settable")}
    start = int(np.argmin(arrays["added"] + arrays["widest"]))
    columns = ((column, cells[first]),)
    return replace(axis, low=axis.low[first], high=axis.high[last], start=start, columns=columns, **arrays)


def _paid(instance: Instance, axis: Axis) -> tuple[Array, Array]:
    """Lower bounds of what acting in each cell costs besides what is fixed, and of its entry in the maximum;
    rounded down."""
    fixed = float(instance.lever_costs[axis.feature].prices.fixed)
    held = np.isnan(axis.values)
    paid = axis.added - fixed - 2.0**-48 * (axis.added + fixed)
    most = axis.widest * (1 - 2.0**-48)
    paid, most = (np.where(held, 0.0, np.maximum(each - 2.0**-1000, 0.0)) for each in (paid, most))
    return paid, most


def _ranks(instance: Instance, axis: Axis) -> NDArray[np.int64]:
    """The places of an axis' cells by what they cost exactly, then by what enters the maximum, then in order:
    as the checker compares them. Both rise with the size."""
    cost = instance.lever_costs[axis.feature]
    free = not cost.graded
    sizes = [Fraction(0) if free or math.isnan(v) else cost.size(v) for v in axis.values.tolist()]
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[sorted(range(len(sizes)), key=lambda k: (sizes[k], k))] = np.arange(len(sizes))
    return rank
