"""A whole certificate: claim, action, coverage of the subsets, trees (sections 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.checks import Clock, Rejected, index, placed
from verify.kernel.configuration import Configuration, Region
from verify.kernel.feasible import Point
from verify.kernel.leaf import closed, proven
from verify.kernel.prices import Exact, Prices, Tables
from verify.kernel.problem import FALSE, Problem, alternatives, total
from verify.kernel.trees import float64

RELATIVE_GAP, LEVER_GAP = Fraction(1e-6), Fraction(1e-12)


Read = Callable[[Configuration], Tables]
"""Tables of prices, to be read for a configuration."""


class Proof(NamedTuple):
    """Of one configuration: the features acted on, and a tree, or one for each of several sums.

    ``trees``: nodes in preorder, and tables where there are any; ``cases``: one per sum (section 7.4).
    """

    acted: list[str]
    trees: Sequence[tuple[Iterable[Any], Read | None]]
    cases: bool


@dataclass
class Stated:
    """What a certificate states (section 4); its numbers are finite, and None where there is no action."""

    claim: str
    cost: float | None
    lower_bound: float | None
    proofs: Sequence[Proof]


def check(
    stated: Stated,
    action: Mapping[str, Fraction],
    problem: Problem,
    arithmetic: Callable[[Configuration], Exact] = Exact,
) -> None:
    """Return if a certificate proves its claim about the problem; raise :class:`Rejected` if not.

    Parameters
    ----------
    action
        The certificate's, labels by their numbers; nothing where the claim is infeasible.
    arithmetic
        How boxes are bounded: the kernel's own way, or the fast path's.
    """
    bound = None
    if stated.claim != "infeasible":
        assert stated.cost is not None and stated.lower_bound is not None
        bound, cost, power = Fraction(stated.lower_bound), Fraction(stated.cost), problem.power
        check_action(problem, action, stated.cost)
        if not 0 <= bound <= cost:
            raise Rejected("lower_bound: above the cost, or below 0")
        excess = max(cost - bound - RELATIVE_GAP * cost, Fraction(0))
        if stated.claim == "optimal" and excess**power > allowance(problem):
            raise Rejected("claim: optimal, but the gap is open")
        bound = bound**power  # what trees prove is of squares where the cost is a root
    if (bound is None or bound > 0) and not Point(problem, {}).why_not():
        raise Rejected("claim: doing nothing is feasible and costs nothing")
    check_coverage(problem, [proof.acted for proof in stated.proofs])
    for k, (acted, trees, cases) in enumerate(stated.proofs):
        where, model = f"configurations.{k}", problem.model
        if cases and not (model.one_suffices and len(trees) == len(model.forests)):
            raise Rejected(f"{where}.cases: allowed: one per sum, where the classifier takes the largest sum")
        for part, (nodes, tables) in enumerate(trees):
            configuration = Configuration(problem, acted, part if cases else None)
            target = configuration.costs(configuration.box)[1] + 1 if bound is None else bound
            here = f"{where}.cases.{part}" if cases else where
            with placed(f"{here}.prices"):
                tree = Tree(configuration, arithmetic(configuration), tables, target)
            tree.check(nodes, f"{here}.tree")


def allowance(problem: Problem) -> Fraction:
    """The cost of moving every lever by 1e-12 of its interval, l0 left out; a root's square (section 4)."""
    ends = ((problem.terms[f], *both) for f, both in problem.levers.items())
    return total(term.paid(LEVER_GAP * term.variation(low, high)) for term, low, high in ends)


def check_action(problem: Problem, action: Mapping[str, Fraction], cost: float) -> None:
    """The action is permitted, feasible, and costs what is stated (section 4)."""
    problem.check_permitted(action)
    point = Point(problem, action)
    if reason := point.why_not():
        raise Rejected(f"action: {reason}")
    if not point.deployed():
        raise Rejected("action: the network, computed in its dtype, does not accept (section 4)")
    exact, below = problem.cost(action), cost
    for _ in range(problem.power):  # the least double, or the next where a root was rounded up before
        below = nextafter(below, -inf)
    least = below < 0 or Fraction(below) ** problem.power < exact
    if not least or Fraction(cost) ** problem.power < exact:
        raise Rejected(f"cost: not the action's, {float64(exact)!r}")


def check_coverage(problem: Problem, configurations: list[list[str]]) -> None:
    """Every non-empty set of levers is stood for by some set that is acted on (section 5).

    Sets that conditions rule out need not be (section 11). A configuration stands for a cube: the sets from
    what it acts on without its idle levers to all of it. The cube of all sets is halved, by a lever that is
    in or not, until one stands for all of each.
    """
    levers, cubes = list(problem.levers), [(frozenset[str](), frozenset[str]())]  # nothing: checked by itself
    for k, acted in enumerate(configurations):
        Clock.look()
        chosen = frozenset(acted)
        if not acted or acted != [f for f in levers if f in chosen]:
            raise Rejected(f"configurations.{k}.acted: not levers in the order of the features, or none")
        cubes.append((chosen - Configuration(problem, acted).idle, chosen))
    waiting = [(frozenset[str](), frozenset(levers), cubes)]  # sets from one to another, cubes that meet them
    while waiting:
        Clock.look()
        least, most, close = waiting.pop()
        met = [(low, high) for low, high in close if low <= most and least <= high]
        if any(low <= least and most <= high for low, high in met):
            continue
        open_ = most - least
        parts = (open_ & low | open_ - high for low, high in met)
        if apart := next(filter(None, parts), open_ & problem.asked_about):
            f = min(apart, key=levers.index)
            waiting += [(least | {f}, most, met), (least, most - {f}, met)]
        elif problem.demand(least) != FALSE:
            names = ", ".join(f for f in levers if f in (least or most))
            raise Rejected(f"configurations: nothing stands for acting on exactly {names}")


Step = tuple[Any, str, Any, Any]
"""To a node: the step to its parent, and what the split changes: a part of the state, of what, to what."""


class Tree:
    """A configuration's tree: its leaves cover the whole box, and each of them holds (section 6)."""

    def __init__(
        self, configuration: Configuration, arithmetic: Exact, read: Read | None, target: Fraction
    ) -> None:
        if read and not configuration.forests:
            raise Rejected("allowed: only where the classifier is made of trees")
        self.configuration, self.arithmetic, self.target = configuration, arithmetic, target
        self.prices = arithmetic.prices(read(configuration)) if read else None
        self.made: list[tuple[Step, str, Any, Any]] = []
        self.state: dict[str, dict[Any, Any]] = {"signs": {}, "cells": {}, "case": {0: configuration.case}}
        self.state["ends"] = dict(enumerate(configuration.box))
        self.state["gone"] = {0: self.prices and self.prices.start()}

    def check(self, nodes: Iterable[Any], where: str) -> None:
        """Raise :class:`Rejected` unless the nodes, in preorder, prove the target."""
        waiting: list[Step | None] = [None]
        for k, node in enumerate(nodes):
            Clock.look()
            with placed(f"{where}.{k}"):
                if not waiting:
                    raise Rejected("the tree was complete before this node")
                step = waiting.pop()
                children = self.children(node, self.region(step))
            waiting += [(step, *child) for child in reversed(children)]
        if waiting:
            raise Rejected(f"{where}: ends before all of the box is covered")

    def region(self, step: Step | None) -> Region:
        """What is left after a step: the steps since its parent's are undone, and it is made."""
        while self.made and self.made[-1][0] is not (step and step[0]):
            _, part, which, before = self.made.pop()
            self.state[part][which] = before
            if before is None:
                del self.state[part][which]
        if step:
            _, part, which, value = step
            self.made.append((step, part, which, self.state[part].get(which)))
            self.state[part][which] = value
        ends, signs, cells = self.state["ends"], self.state["signs"], self.state["cells"]
        return Region(list(ends.values()), signs, cells, self.state["case"][0], self.state["gone"][0])

    def children(self, node: Any, region: Region) -> Sequence[tuple[str, Any, Any]]:
        """What each child has of what a node divides; nothing of a leaf, which is checked."""
        configuration = self.configuration
        match node:
            case ["a" | "s" as kind, place, at]:
                i, t = index(place, len(configuration.box)), Fraction(at)
                low, high = region.ends[i]
                if not low <= t < high or (kind == "a" and t == low):
                    raise Rejected(f"splits at {at!r}, outside its box")
                left, right = t, Fraction(nextafter(at, inf)) if kind == "s" else t
                if configuration.whole[i]:
                    left, right = Fraction(floor(t)), Fraction(floor(t) + 1)
                return [("ends", i, (low, left)), ("ends", i, (right, high))]
            case ["n", layer, place]:
                k = index(layer, len(configuration.widths))
                neuron = sum(configuration.widths[:k]) + index(place, configuration.widths[k])
                if neuron in region.signs:
                    raise Rejected("splits on a sign that is settled above")
                return [("signs", neuron, -1), ("signs", neuron, 1)]
            case ["c", f, at]:
                if f not in configuration.splittable:
                    raise Rejected(f"got {f[:40]!r}; allowed: one of {sorted(configuration.splittable)}")
                least, most = region.cells.get(f, (-inf, inf))
                return [
                    ("cells", f, (least, min(most, at))),
                    ("cells", f, (max(least, nextafter(at, inf)), most)),
                ]
            case ["o"]:
                if not region.case[1]:
                    raise Rejected("no alternative of the conditions is open")
                return [("case", 0, one) for one in alternatives(region.case)]
            case ["t", k]:
                return [("gone", 0, self.tables.taken_out(k, region.ends, region.gone, self.target))]
            case ["m"]:
                if configuration.problem.model.plausible or any(region.case):
                    raise Rejected("cells stand for others only where nothing else is asked")
                return [("gone", 0, self.tables.merged(region.ends, region.gone))]
        self.leaf(node, region)
        return []

    def leaf(self, node: Any, region: Region) -> None:
        """Raise :class:`Rejected` unless a leaf of one of the three kinds holds (section 7)."""
        bound = None  # nothing is left
        match node:
            case ["e"]:
                if not closed(self.configuration, self.arithmetic, region, self.target):
                    raise Rejected("an 'e' leaf that none of the rules closes")
            case ["p", k]:
                bound = self.tables.bound(k, region.ends, region.gone)
            case ["d", *leaf]:
                bound = proven(self.configuration, self.arithmetic, region, leaf, self.target)
            case _:
                raise Rejected("no node that there is (section 6)")
        if bound is not None and bound < self.target:
            raise Rejected("a leaf that proves less than is claimed")

    @property
    def tables(self) -> Prices:
        """The tables of prices."""
        if self.prices is None:
            raise Rejected("a node of prices in a configuration without prices")
        return self.prices
