"""A whole certificate: claim, action, coverage of the subsets, trees (sections 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.checks import Clock, Rejected, index, near
from verify.kernel.conditions import FALSE, alternatives
from verify.kernel.configuration import Configuration, Region
from verify.kernel.costs import Interval, total
from verify.kernel.leaf import closed, proven
from verify.kernel.prices import Exact, Prices, Tables
from verify.kernel.problem import Problem

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
    if (bound is None or bound > 0) and not problem.why_not({}):
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
            Tree(configuration, arithmetic(configuration), tables, target, here).check(nodes)


def allowance(problem: Problem) -> Fraction:
    """The cost of moving every lever by 1e-12 of its interval, l0 left out; a root's square (section 4)."""
    ends = ((problem.terms[f], *both) for f, both in problem.levers.items())
    return total(term.paid(LEVER_GAP * term.variation(low, high)) for term, low, high in ends)


def check_action(problem: Problem, action: Mapping[str, Fraction], cost: float) -> None:
    """The action is permitted, feasible, and costs what is stated (section 4)."""
    problem.check_permitted(action)
    if reason := problem.why_not(action):
        raise Rejected(f"action: {reason}")
    if not problem.deployed(action):
        raise Rejected("action: the network, computed in its dtype, does not accept (section 4)")
    exact, below = problem.cost(action), cost
    for _ in range(problem.power):  # the least double, or the next where a root was rounded up before
        below = nextafter(below, -inf)
    least = below < 0 or Fraction(below) ** problem.power < exact
    if not least or Fraction(cost) ** problem.power < exact:
        raise Rejected(f"cost: not the action's, {near(exact)}")


def check_coverage(problem: Problem, configurations: list[list[str]]) -> None:
    """Every non-empty set of levers is stood for by some set that is acted on (section 5).

    Sets that conditions rule out need not be (section 11). A configuration stands for a cube: the sets from
    what it acts on without its idle levers to all of it. The cube of all sets is halved, by a lever that is
    in or not, until one stands for all of each.
    """
    levers = {f: 1 << k for k, f in enumerate(problem.levers)}
    cubes = [(0, 0)]  # the empty set is checked by itself
    for k, acted in enumerate(configurations):
        Clock.look()
        chosen = set(acted)
        if not acted or acted != [f for f in levers if f in chosen]:
            raise Rejected(f"configurations.{k}.acted: not levers in the order of the features, or none")
        idle = Configuration(problem, acted).idle
        cubes.append((sum(levers[f] for f in acted if f not in idle), sum(levers[f] for f in acted)))
    asked = sum(levers[f] for f in problem.asked_about)
    waiting = [(0, (1 << len(levers)) - 1, cubes)]  # all sets from one to another, cubes that meet these
    while waiting:
        Clock.look()
        least, most, close = waiting.pop()
        met = [(low, high) for low, high in close if low & ~most == 0 == least & ~high]
        if any(low & ~least == 0 == most & ~high for low, high in met):
            continue
        open_ = most & ~least
        apart = next((part for low, high in met if (part := open_ & (low | ~high))), open_ & asked)
        if apart:
            bit = apart & -apart
            waiting += [(least | bit, most, met), (least, most & ~bit, met)]
        elif problem.demand([f for f, bit in levers.items() if least & bit]) != FALSE:
            names = ", ".join(f for f, bit in levers.items() if (least or most) & bit)
            raise Rejected(f"configurations: nothing stands for acting on exactly {names}")


class Tree:
    """A configuration's tree: its leaves cover the whole box, and each of them holds (section 6).

    What the splits on the way to a node leave is one ``state``, changed on the way down and back, so that a
    tree takes memory for its deepest path once. Its keys: ``("a", i)`` for the ends of an action,
    ``("n", neuron)`` for a sign, ``("c", feature)`` for the least and the largest double, ``("o",)`` for the
    conditions' case, ``("t",)`` for what is gone.
    """

    def __init__(
        self,
        configuration: Configuration,
        arithmetic: Exact,
        read: Read | None,
        target: Fraction,
        where: str,
    ) -> None:
        if read and not configuration.forests:
            raise Rejected(f"{where}.prices: allowed: only where the classifier is made of trees")
        self.configuration, self.arithmetic = configuration, arithmetic
        self.target, self.where = target, where
        self.prices = read and arithmetic.prices(read(configuration), where)
        self.state: dict[Any, Any] = {("a", i): ends for i, ends in enumerate(configuration.box)}
        self.state |= {("o",): configuration.case, ("t",): self.prices and self.prices.start()}

    def check(self, nodes: Iterable[Any]) -> None:
        """Raise :class:`Rejected` unless the nodes, in preorder, prove the target."""
        waiting: list[tuple[Any, Any, bool]] = [((), None, False)]  # what to set, and whether that is to undo
        for k, node in enumerate(nodes):
            Clock.look()
            here = f"{self.where}.tree.{k}"
            self._undo(waiting)
            if not waiting:
                raise Rejected(f"{here}: the tree was complete before this node")
            key, value, _ = waiting.pop()
            waiting.append((key, self.state.get(key), True))
            self.state[key] = value
            key, children = self.children(node, here)
            waiting += [(key, child, False) for child in reversed(children)]
        self._undo(waiting)
        if waiting:
            raise Rejected(f"{self.where}.tree: ends before all of the box is covered")

    def _undo(self, waiting: list[tuple[Any, Any, bool]]) -> None:
        """Go back up to the last node that has a child left."""
        while waiting and waiting[-1][2]:
            key, before, _ = waiting.pop()
            self.state[key] = before
            if before is None:
                del self.state[key]

    def children(self, node: Any, here: str) -> tuple[Any, Sequence[Any]]:
        """What a node divides, and what each child has of it; nothing of a leaf, which is checked."""
        configuration, state = self.configuration, self.state
        match node:
            case ["a" | "s" as kind, place, at]:
                i, t = index(place, len(configuration.box), here), Fraction(at)
                low, high = state["a", i]
                if not low <= t < high or (kind == "a" and t == low):
                    raise Rejected(f"{here}: splits at {at!r}, outside its box")
                left, right = t, Fraction(nextafter(at, inf)) if kind == "s" else t
                if configuration.whole[i]:
                    left, right = Fraction(floor(t)), Fraction(floor(t) + 1)
                return ("a", i), [(low, left), (right, high)]
            case ["n", layer, place]:
                k = index(layer, len(configuration.widths), here)
                neuron = k, index(place, configuration.widths[k], here)
                if ("n", neuron) in state:
                    raise Rejected(f"{here}: splits on a sign that is settled above")
                return ("n", neuron), [-1, 1]
            case ["c", f, at]:
                if f not in configuration.splittable:
                    raise Rejected(
                        f"{here}: got {f[:40]!r}; allowed: one of {sorted(configuration.splittable)}"
                    )
                least, most = state.get(("c", f), (-inf, inf))
                return ("c", f), [(least, min(most, at)), (max(least, nextafter(at, inf)), most)]
            case ["o"]:
                if not state["o",][1]:
                    raise Rejected(f"{here}: no alternative of the conditions is open")
                return ("o",), alternatives(state["o",])
            case ["t", k]:
                return ("t",), [self.tables.taken_out(k, self.ends, state["t",], self.target)]
            case ["m"]:
                if configuration.problem.model.plausible or any(state["o",]):
                    raise Rejected(f"{here}: cells stand for others only where nothing else is asked")
                return ("t",), [self.tables.merged(self.ends, state["t",])]
        self.leaf(node, here)
        return (), []

    @property
    def ends(self) -> list[Interval]:
        """The box of the node."""
        return [self.state["a", i] for i in range(len(self.configuration.box))]

    @property
    def tables(self) -> Prices:
        """The tables of prices."""
        if self.prices is None:
            raise Rejected(f"{self.where}: a node of prices in a configuration without prices")
        return self.prices

    def leaf(self, node: Any, here: str) -> None:
        """Raise :class:`Rejected` unless a leaf of one of the three kinds holds (section 7)."""
        signs, cells = ({key[1]: v for key, v in self.state.items() if key[:1] == (kind,)} for kind in "nc")
        region, target = Region(self.ends, signs, cells, self.state["o",][0]), self.target
        match node:
            case ["e"]:
                if not closed(self.configuration, self.arithmetic, region, target):
                    raise Rejected(f"{here}: an 'e' leaf that none of the rules closes")
            case ["p", k]:
                bound = self.tables.bound(k, self.ends, self.state["t",])
                if bound is not None and bound < target:
                    raise Rejected(f"{here}: prices that prove less than is claimed")
            case ["d", *_]:
                bound = proven(self.configuration, self.arithmetic, region, node, target, here)
                if bound is not None and bound < target:
                    raise Rejected(f"{here}: proves a cost of {near(bound)} only, of {near(target)}")
            case _:
                raise Rejected(f"{here}: no node that there is (section 6)")
