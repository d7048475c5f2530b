"""A whole certificate: claim, action, coverage of the subsets, trees (sections 4 to 6)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.checks import Clock, Empty, Rejected, index
from verify.kernel.feasible import Point, impossible
from verify.kernel.forms import Configuration
from verify.kernel.leaf import Region, closed, proven, satisfied
from verify.kernel.prices import Exact, Tables
from verify.kernel.problem import FALSE, Problem, alternatives, spliced, total
from verify.kernel.trees import float64

RELATIVE_GAP, LEVER_GAP = Fraction(1e-6), Fraction(1e-12)

Read = Callable[[Configuration], Tables]
"""Reads a certificate's tables of prices for a configuration."""

Trees = Sequence[tuple[int | None, Iterable[Any], Read | None]]
"""Of each tree the number of the ensemble's part, the nodes, and what reads its prices, as in a Proof."""


class Proof(NamedTuple):
    """The proof for one configuration.

    Attributes
    ----------
    acted
        The features acted on.
    trees
        A tree, or one for each part of the ensemble (section 7.4): the part's number, None for the whole
        classifier; the nodes in preorder; what reads the tables of prices, None where there are none.
    """

    acted: list[str]
    trees: Trees


@dataclass
class Stated:
    """What a certificate states (section 4).

    ``cost`` and ``lower_bound`` are finite; where the claim is infeasible, both are None. ``conditions`` are
    the positions of the conditions that the bound rests on; None: all.
    """

    claim: str
    cost: float | None
    lower_bound: float | None
    proofs: Sequence[Proof]
    conditions: Sequence[float] | None = None


def check(
    stated: Stated,
    action: Mapping[str, Fraction],
    problem: Problem,
    arithmetics: Any = lambda one: [Exact(one)],
    tree: Any = lambda _, moved, ways, *given: Tree(ways(moved), *given),
) -> None:
    """Return if a certificate proves its claim about the problem; raise :class:`Rejected` if not.

    Parameters
    ----------
    action
        The certificate's, labels by their numbers; nothing where the claim is infeasible.
    arithmetics
        For a configuration, the ways to bound its boxes. They are tried in order until one closes a leaf;
        bounds by prices are the first one's.
    tree
        From a configuration's number, the configuration, ``arithmetics`` and what else :class:`Tree` takes,
        what checks one of its trees. Claims about certain actions have another (``verify/certain``).
    """
    bound, model = None, problem.model
    if stated.claim != "infeasible":
        bound, cost, power = Fraction(stated.lower_bound or 0), Fraction(stated.cost or 0), problem.power
        check_action(problem, action, stated.cost or 0.0)
        if not 0 <= bound <= cost:
            raise Rejected(f"lower_bound: got {float(bound)}; allowed: from 0 to the cost, {stated.cost}")
        excess = max(cost - bound - RELATIVE_GAP * cost, Fraction(0))
        if stated.claim == "optimal" and excess**power > allowance(problem):
            raise Rejected("claim: optimal, but cost and lower_bound are too far apart for it (section 4)")
        bound = bound**power  # where the cost is a root, trees bound its square
    if (bound is None or bound > 0) and not Point(problem, {}).why_not():
        raise Rejected("claim: false, as doing nothing is feasible and costs nothing")
    if stated.conditions is not None and problem.under:  # a bound under fewer conditions holds under all
        problem = problem.under(stated.conditions)
    configured = lru_cache(2**8)(lambda part, *acted: Configuration(problem, list(acted), part))
    cubes = [(frozenset[str](), frozenset[str]())]  # the empty set, which was checked just now
    for k, (acted, trees) in enumerate(stated.proofs):
        if not acted or acted != [f for f in problem.levers if f in acted]:
            raise Rejected(f"configurations.{k}.acted: allowed: some, in order, of {[*problem.levers]!r:.99}")
        parts, every = [part for part, _, _ in trees], list(range(len(model.forests)))
        if parts != [None] and not (model.one_suffices and parts == every):
            raise Rejected(f"configurations.{k}.cases: allowed: one per sum, where combine is 'largest'")
        cubes.append((frozenset(acted) - idle(configured(None, *acted)), frozenset(acted)))
    check_coverage(problem, cubes)
    for k, (acted, trees) in enumerate(stated.proofs):
        for part, nodes, read in trees:
            configuration = configured(part, *acted)
            target = configuration.costs(configuration.box)[1] + 1 if bound is None else bound
            tree(k, configuration, arithmetics, read, target).check(nodes)


def allowance(problem: Problem) -> Fraction:
    """The cost, without its l0 part, of moving every lever by 1e-12 of its interval (section 4).

    For a cost that is a root, the square of that cost.
    """
    ends = ((problem.terms[f], *both) for f, both in problem.levers.items())
    return total(term.paid(LEVER_GAP * term.variation(low, high)) for term, low, high in ends)


def check_action(problem: Problem, action: Mapping[str, Fraction], cost: float) -> None:
    """Reject an action that is not permitted or not feasible, or does not cost what is stated."""
    lattices = {f.name: f.lattice for f in problem.model.features if f.lattice}
    for name, value in action.items():
        if name not in problem.levers:
            raise Rejected(f"action: {name[:40]} is not for this applicant to act on, or no value is allowed")
        low, high = problem.levers[name]
        if not low <= value <= high:
            raise Rejected(f"action.{name}: outside [{float(low)}, {float(high)}] (labels: numbers from 0)")
        if name in lattices and lattices[name].floor(value) != value:
            raise Rejected(f"action.{name}: {float(value)!r} is not a value that may be set (section 2)")
    point = Point(problem, action)
    if reason := point.why_not():
        raise Rejected(f"action: {reason}")
    if problem.model.layers and not point.deployed():  # the score of trees is the deployed one
        raise Rejected("action: the network, computed in its dtype, does not accept (section 4)")
    exact, below = point.configuration.costs(point.ends)[0], cost
    for _ in range(problem.power):  # the least double, or the next where a root was rounded up before
        below = nextafter(below, -inf)
    if (below >= 0 and Fraction(below) ** problem.power >= exact) or Fraction(cost) ** problem.power < exact:
        raise Rejected(f"cost: not the action's cost, {float64(exact) ** (1 / problem.power)!r}, rounded up")


def idle(moved: Configuration) -> set[str]:
    """The idle levers of a configuration: not acting on one is the same as holding it, and as cheap."""
    problem, x = moved.problem, moved.problem.factual
    barred = problem.missing | problem.asked_about | impossible(problem)
    inside = {f for f, (low, high) in zip(moved.acted, moved.box, strict=True) if low <= x[f] <= high}
    pairs = zip(moved.acted, moved.lattices, strict=True)
    between = {f for f, lattice in pairs if lattice and lattice.floor(x[f]) != x[f]}
    free = {f for f in inside - barred - between if not problem.fixed[f]}
    return {f for f in free if moved.equations[f][0] == moved.equations[f][1]}


def check_coverage(problem: Problem, cubes: list[tuple[frozenset[str], frozenset[str]]]) -> None:
    """Reject a certificate in which no configuration stands for some set of levers (section 5).

    Sets that conditions rule out need not be stood for (section 11). A cube is a pair of sets: it holds all
    sets between the two. The sets that a configuration stands for are the cube from its levers that are not
    idle to all its levers. The cube of all sets is halved, by whether a lever is in the set, until each part
    lies in one of the given cubes.
    """
    waiting = [(frozenset[str](), frozenset(problem.levers), cubes)]  # the third: cubes that may meet it
    while waiting:
        Clock.look()
        least, most, candidates = waiting.pop()
        met = [(low, high) for low, high in candidates if low <= most and least <= high]
        if any(low <= least and most <= high for low, high in met):
            continue
        open_ = most - least
        parts = (open_ & low | open_ - high for low, high in met)
        if apart := next(filter(None, parts), open_ & problem.asked_about):
            f = min(apart, key=list(problem.levers).index)
            waiting += [(least | {f}, most, met), (least, most - {f}, met)]
        elif len(least) <= problem.most and problem.demand(least) != FALSE:
            names = ", ".join(f for f in problem.levers if f in (least or most))
            raise Rejected(f"configurations: none covers acting on exactly {names} (section 5)")


class Tree:
    """Checks a configuration's tree: its leaves must cover the box, and each must be closed (section 6)."""

    def __init__(self, arithmetics: Sequence[Exact], read: Read | None, target: Fraction) -> None:
        self.arithmetics, self.target, self.configuration = arithmetics, target, arithmetics[0].configuration
        self.prices: Any = arithmetics[0].prices(read(self.configuration), target) if read else None
        self.region = Region(list(self.configuration.box), spliced(self.configuration.demand))

    def check(self, nodes: Iterable[Any]) -> None:
        """Raise :class:`Rejected` unless the nodes, in preorder, prove the target."""
        waiting: list[tuple[Any, Any, Any, bool]] = [(vars(self.region), "case", self.region.case, True)]
        for node in nodes:
            Clock.look()
            self.enter(waiting)
            if split := self.split(node):
                part, which, before, children = split
                waiting.append((part, which, before, False))
                waiting += [(part, which, child, True) for child in reversed(children)]
        if any(is_child for *_, is_child in waiting):
            raise Rejected("ends before all of the box is covered")

    def enter(self, waiting: list[tuple[Any, Any, Any, bool]]) -> None:
        """Change the region into the next child's; splits whose children are all checked are undone."""
        while waiting:
            part, which, value, is_child = waiting.pop()
            part[which] = value
            if value is None:
                del part[which]
            if is_child:
                return
        raise Rejected("the tree was complete before this node")

    def split(self, node: Any) -> tuple[Any, Any, Any, Sequence[Any]] | None:
        """How a node splits the region; None for a leaf, which is checked instead.

        Returns (container, key, value, values): the entry of the region that the split changes, as
        ``container[key]``, its value now, and its value for each child.
        """
        configuration, region = self.configuration, self.region
        match node:
            case ["a" | "s" as kind, place, at]:
                i, t = index(place, len(region.ends)), Fraction(at)
                low, high = region.ends[i]
                if not low <= t < high or (kind == "a" and t == low):
                    raise Rejected(f"splits at {at!r}, which is not between {float(low)} and {float(high)}")
                left: Any = t
                right: Any = Fraction(nextafter(at, inf)) if kind == "s" else t
                if lattice := configuration.lattices[i]:
                    left, right = lattice.floor(t), lattice.ceil(nextafter(at, inf))
                return region.ends, i, (low, high), [(low, left), (right, high)]
            case ["n", layer, place]:
                k = index(layer, len(configuration.widths))
                neuron = sum(configuration.widths[:k]) + index(place, configuration.widths[k])
                if neuron in region.signs:
                    raise Rejected("splits on the sign of a neuron on which a node above splits")
                return region.signs, neuron, None, [-1, 1]
            case ["c", f, at]:
                tables = {one.name for one in configuration.model.features if one.table}
                out = tables.union(configuration.acted, configuration.missing)
                if not configuration.forests or f in out or f not in configuration.values:
                    raise Rejected(f"got {f[:40]!r}; allowed: with trees, a feature not acted on (section 6)")
                least, most = region.cells.get(f, (-inf, inf))
                halves = [(least, min(most, at)), (max(least, nextafter(at, inf)), most)]
                return region.cells, f, region.cells.get(f), halves
            case ["o"]:
                return vars(region), "case", region.case, alternatives(region.case)
            case ["t", k]:
                left = self.prices.taken_out(k, region.ends, region.removed)
                return vars(region), "removed", region.removed, [left]
            case ["m"]:
                box = self.arithmetics[-1].box(region.ends, "", {})
                if configuration.model.plausible or not all(satisfied(box, configuration, region)):
                    raise Rejected("got ['m']; allowed: without plausibility, and where conditions hold")
                merged = self.prices.merged(region.ends, region.removed)
                return vars(region), "removed", region.removed, [merged]
        with suppress(Empty):  # the box holds nothing, which closes the leaf
            self.leaf(node)
        return None

    def leaf(self, node: Any) -> None:
        """Raise :class:`Rejected` unless section 7 closes a leaf; Empty where its box holds nothing."""
        region, target, holds = self.region, self.target, False
        match node:
            case ["e"]:
                holds = any(closed(one, region, target) for one in self.arithmetics)
            case ["p", k]:
                holds = self.prices.bound(k, region.ends, region.removed) >= target
            case ["d", *leaf]:
                holds = any(proven(one, region, leaf, target) >= target for one in self.arithmetics)
        if not holds:
            raise Rejected(f"leaf {node[0]!r} proves less than is claimed: no rule of section 7 closes it")
