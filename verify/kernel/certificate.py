"""A whole certificate: claim, action, coverage of the subsets, trees (sections 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any

from verify.kernel.conditions import FALSE, Case, alternatives, settled
from verify.kernel.configuration import Configuration, Region
from verify.kernel.leaf import closed, proven
from verify.kernel.prices import Exact, Gone, Prices
from verify.kernel.problem import Interval, Problem, total
from verify.kernel.shapes import Clock, Rejected, anything, conform, index, maybe, near, not_negative, refuse

SHAPE = {
    "format": {"milp-recourse/certificate-1"},
    "claim": {"optimal", "infeasible", "bounds"},
    "instance_sha256": str,
    "index?": float,
    "action": maybe({str: anything}),
    "cost": maybe(not_negative),
    "lower_bound": maybe(not_negative),
    "configurations": [
        {"acted": [str], "tree?": list, "prices?": list, "cases?": maybe([{"tree": list, "prices?": list}])}
    ],
}
RELATIVE_GAP, LEVER_GAP = Fraction(1e-6), Fraction(1e-12)
KINDS = {"a", "s", "n", "c", "e", "d", "p", "t", "m", "o"}


class Certificate:
    """What a file claims, its shape checked (section 4)."""

    def __init__(self, data: Any) -> None:
        given = conform(data, SHAPE, "certificate")
        self.claim, self.digest, self.index = given["claim"], given["instance_sha256"], given["index"]
        self.action, self.cost, self.lower_bound = (given[key] for key in ("action", "cost", "lower_bound"))
        for key in ("action", "cost", "lower_bound"):
            if (given[key] is None) != (self.claim == "infeasible"):
                refuse(key, given[key], "null where the claim is infeasible, and only there")
        self.configurations = given["configurations"]
        for k, one in enumerate(self.configurations):
            if (one["tree"] is None) == (one["cases"] is None) or (one["cases"] and one["prices"]):
                raise Rejected(f"configurations.{k}: allowed: a tree with its prices, or cases")


def check(
    certificate: Certificate,
    action: Mapping[str, Fraction],
    problem: Problem,
    arithmetic: Callable[[Configuration], Exact] = Exact,
) -> None:
    """Return if the certificate proves its claim about the problem; raise :class:`Rejected` if not.

    Parameters
    ----------
    action
        The certificate's, labels by their numbers; nothing where the claim is infeasible.
    arithmetic
        How boxes are bounded: the kernel's own way, or the fast path's.
    """
    bound, power = None, problem.power
    if certificate.claim != "infeasible":
        bound, cost = Fraction(certificate.lower_bound), Fraction(certificate.cost)
        check_action(problem, action, certificate.cost)
        if bound > cost:
            raise Rejected("lower_bound: above the cost")
        excess = max(cost - bound - RELATIVE_GAP * cost, Fraction(0))
        if certificate.claim == "optimal" and excess**power > allowance(problem):
            raise Rejected("claim: optimal, but the gap is open")
        bound = bound**power  # what trees prove is of squares where the cost is a root
    if (bound is None or bound > 0) and not problem.why_not({}):
        raise Rejected("claim: doing nothing is feasible and costs nothing")
    check_coverage(problem, [one["acted"] for one in certificate.configurations])
    for k, given in enumerate(certificate.configurations):
        where, cases, forest = f"configurations.{k}", given["cases"], problem.model.trees
        if cases is not None and not (forest and forest.largest and len(cases) == len(set(forest.parts))):
            raise Rejected(f"{where}.cases: allowed: one per sum, where the classifier takes the largest sum")
        for part, case in enumerate(cases or [given]):
            configuration = Configuration(problem, given["acted"], None if cases is None else part)
            target = configuration.largest_cost() + 1 if bound is None else bound
            here = where if cases is None else f"{where}.cases.{part}"
            Tree(configuration, arithmetic(configuration), case["prices"], target, here).check(case["tree"])


def allowance(problem: Problem) -> Fraction:
    """The cost of moving every lever by 1e-12 of its interval, l0 left out; a root's square (section 4)."""
    terms = [(term, *problem.levers[f]) for f, term in problem.terms(problem.levers).items()]
    moves = [(term, term.position(high) - term.position(low)) for term, low, high in terms]
    return total(term.paid(LEVER_GAP * move) for term, move in moves if not term.label)


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
    cubes, seen = [(0, 0)], set()  # the empty set is checked by itself
    for k, acted in enumerate(configurations):
        Clock.look()
        chosen = set(acted)
        if not acted or acted != [f for f in levers if f in chosen]:
            raise Rejected(f"configurations.{k}.acted: not levers in the order of the features, or none")
        if tuple(acted) in seen:
            raise Rejected(f"configurations.{k}.acted: given before")
        seen.add(tuple(acted))
        idle = Configuration(problem, acted).idle
        cubes.append((sum(levers[f] for f in acted if f not in idle), sum(levers[f] for f in acted)))
    asked, waiting = sum(levers[f] for f in problem.asked_about), [(0, (1 << len(levers)) - 1, cubes)]
    while waiting:
        Clock.look()
        least, most, close = (
            waiting.pop()
        )  # all sets from the one to the other, and the cubes that meet these
        met = [(low, high) for low, high in close if low & ~most == 0 == least & ~high]
        if any(low & ~least == 0 == most & ~high for low, high in met):
            continue
        apart = next(
            (part for low, high in met if (part := most & ~least & (low | ~high))), most & ~least & asked
        )
        if apart:
            bit = apart & -apart
            waiting += [(least | bit, most, met), (least, most & ~bit, met)]
        elif settled(problem.demand, [f for f, bit in levers.items() if least & bit]) != FALSE:
            names = ", ".join(f for f, bit in levers.items() if (least or most) & bit)
            raise Rejected(f"configurations: nothing stands for acting on exactly {names}")


class Walk:
    """What the splits on the way to a node leave: one state, changed on the way down and back.

    What a node adds is undone before the next one that is not below it, so that a tree takes memory for its
    deepest path once, however deep.
    """

    def __init__(self, box: Iterable[Interval], case_: Case, gone: Any) -> None:
        self.ends: dict[int, Interval] = dict(enumerate(box))
        self.signs: dict[tuple[int, int], int] = {}
        self.cells: dict[str, tuple[float, float]] = {}
        self.case: dict[int, Case] = {0: case_}
        self.gone: dict[int, Any] = {0: gone}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self.waiting: list[tuple[int, dict[Any, Any], Any, Any]] = [(0, {}, None, None)]

    def next(self) -> None:
        """Go to the next node in preorder."""
        depth, part, key, value = self.waiting.pop()
        while len(self._undo) > depth:
            changed, which, before = self._undo.pop()
            changed[which] = before
            if before is None:
                del changed[which]
        self._undo.append((part, key, part.get(key)))
        part[key] = value

    def fork(self, part: dict[Any, Any], key: Any, children: Iterable[Any]) -> None:
        """Children which differ in one entry of one part."""
        self.waiting += [(len(self._undo), part, key, value) for value in reversed(list(children))]


class Tree:
    """A configuration's tree: its leaves cover the whole box, and each of them holds (section 6)."""

    def __init__(
        self, configuration: Configuration, arithmetic: Exact, prices: Any, target: Fraction, where: str
    ) -> None:
        if prices is not None and configuration.trees is None:
            raise Rejected(f"{where}.prices: allowed: only where the classifier is made of trees")
        self.configuration, self.arithmetic, self.target, self.where = (
            configuration,
            arithmetic,
            target,
            where,
        )
        self.tables = len(prices or ())
        self.prices = None if prices is None else arithmetic.prices(prices, where)

    def check(self, nodes: list[Any]) -> None:
        """Raise :class:`Rejected` unless the nodes, in preorder, prove the target."""
        configuration = self.configuration
        gone = None if self.prices is None else self.prices.start()
        walk, widths = Walk(configuration.box, configuration.case, gone), configuration.widths
        for k, node in enumerate(nodes):
            Clock.look()
            here = f"{self.where}.tree.{k}"
            if not walk.waiting:
                raise Rejected(f"{here}: the tree was complete before this node")
            walk.next()
            kind = conform(node[0] if conform(node, list, here) else None, KINDS, here)
            if kind in ("a", "s"):
                _, i, at = conform(node, (str, index(len(configuration.box)), float), here)
                (low, high), t = walk.ends[i], Fraction(at)
                if not low <= t < high or (kind == "a" and t == low):
                    raise Rejected(f"{here}: splits at {at!r}, outside its box")
                left, right = t, Fraction(nextafter(at, inf)) if kind == "s" else t
                if configuration.whole[i]:
                    left, right = Fraction(floor(t)), Fraction(floor(t) + 1)
                walk.fork(walk.ends, i, ((low, left), (right, high)))
            elif kind == "n":
                _, layer, neuron = conform(node, (str, index(len(widths)), float), here)
                key = layer, index(widths[layer])(neuron, here)
                if key in walk.signs:
                    raise Rejected(f"{here}: splits on a sign that is settled above")
                walk.fork(walk.signs, key, (-1, 1))
            elif kind == "c":
                _, f, at = conform(node, (str, configuration.splittable, float), here)
                least, most = walk.cells.get(f, (-inf, inf))
                walk.fork(walk.cells, f, ((least, min(most, at)), (max(least, nextafter(at, inf)), most)))
            elif kind == "o":
                walk.fork(walk.case, 0, self.opened(walk.case[0], node, here))
            elif kind in ("t", "m"):
                walk.fork(walk.gone, 0, [self.less(walk, kind, node, here)])
            else:
                region = Region(list(walk.ends.values()), walk.signs, walk.cells, walk.case[0][0])
                self.leaf(region, walk.gone[0], kind, node, here)
        if walk.waiting:
            raise Rejected(f"{self.where}.tree: ends before all of the box is covered")

    def opened(self, case_: Case, node: Any, here: str) -> list[Case]:
        """The parts of a node's first open alternative."""
        conform(node, (str,), here)
        if not case_[1]:
            raise Rejected(f"{here}: no alternative of the conditions is open")
        return alternatives(case_)

    def table(self, node: Any, here: str) -> tuple[Prices, int]:
        """The tables of prices, and the number of one of them where the node names one."""
        if self.prices is None:
            raise Rejected(f"{here}: a node of prices in a configuration without prices")
        shape = (str,) if node[0] == "m" else (str, index(self.tables))
        return self.prices, conform(node, shape, here)[-1]

    def less(self, walk: Walk, kind: str, node: Any, here: str) -> Gone:
        """What is gone below a node that takes something out (section 7.5)."""
        (prices, k), ends = self.table(node, here), list(walk.ends.values())
        if kind == "t":
            return prices.taken_out(k, ends, walk.gone[0], self.target)
        if self.configuration.problem.model.plausible or any(walk.case[0]):
            raise Rejected(f"{here}: cells stand for others only where nothing else is asked")
        return prices.merged(ends, walk.gone[0])

    def leaf(self, region: Region, gone: Any, kind: str, node: Any, here: str) -> None:
        """Raise :class:`Rejected` unless a leaf of one of the three kinds holds (section 7)."""
        if kind == "e":
            conform(node, (str,), here)
            if not closed(self.configuration, self.arithmetic, region, self.target):
                raise Rejected(f"{here}: an 'e' leaf that none of the rules closes")
        elif kind == "p":
            prices, k = self.table(node, here)
            bound = prices.bound(k, region.ends, gone)
            if bound is not None and bound < self.target:
                raise Rejected(f"{here}: prices that prove less than is claimed")
        else:
            bound = proven(self.configuration, self.arithmetic, region, node, self.target, here)
            if bound is not None and bound < self.target:
                raise Rejected(f"{here}: proves a cost of {near(bound)} only, of {near(self.target)}")
