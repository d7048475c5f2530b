"""Checks a claim about certain actions: their outcomes, and the lower bound (section 12)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, inf
from typing import Any

from verify.certain.outcomes import (
    InScenarios,
    Withstood,
    causes,
    check_scenarios,
    raised,
    refusal,
    told_apart,
)
from verify.kernel import certificate as kernel
from verify.kernel.certificate import Stated, Trees, check_action, idle
from verify.kernel.checks import Rejected, index
from verify.kernel.forms import Configuration
from verify.kernel.leaf import Region, proven
from verify.kernel.prices import Exact
from verify.kernel.problem import Problem
from verify.kernel.trees import Range, float64


def check(
    stated: Stated,
    withstood: Withstood,
    action: Mapping[str, Fraction],
    problem: Problem,
    arithmetics: Any = lambda one: [Exact(one)],
) -> None:
    """As :func:`verify.kernel.certificate.check`, of a claim about actions that withstand so much."""
    check_scenarios(problem, withstood)
    problem = raised(problem, withstood.threshold)
    count = len(withstood.scenarios)
    chosen = [[withstood.scenarios[index(k, count)] for k in numbers] for numbers in withstood.chosen]
    if stated.claim != "infeasible":
        check_action(problem, action, stated.cost or 0.0)
        check_outcomes(problem, withstood, action, arithmetics)

    def tree(k: int, planned: Configuration, ways: Any, *given: Any) -> kernel.Tree:
        """What checks a tree of configuration k."""
        if chosen[k]:
            return kernel.Tree(ways(InScenarios(planned, chosen[k])), *given)
        return BoxTree(withstood.missed, ways(planned), *given)

    asked = problem.asked_about | told_apart(problem.model, [one for some in chosen for one in some])
    if problem.most < inf:  # the number of actions is told from what is acted on (section 12.3)
        asked |= problem.levers.keys()
    kernel.check(stated, action, replace(problem, asked_about=asked), arithmetics, tree)


def check_outcomes(
    problem: Problem, withstood: Withstood, action: Mapping[str, Fraction], arithmetics: Any
) -> None:
    """Reject an action of which it is not proven that no outcome is refused (section 12.5)."""
    refusing, where = refusal(problem, withstood, action), "withstands.outcomes"
    if (refusing is None) != (withstood.outcomes is None):
        raise Rejected(f"{where}: needed where the action has several outcomes, and allowed only there")
    if refusing is not None and withstood.outcomes is not None:
        check_none_refused(refusing, withstood.outcomes, where, arithmetics)


def check_none_refused(refusing: Problem, trees: Trees, where: str, arithmetics: Any) -> None:
    """Reject trees that do not prove that nothing is feasible where all levers are acted on."""
    parts, every = [part for part, _, _ in trees], list(range(len(refusing.model.forests)))
    if parts != [None] and not (refusing.model.one_suffices and parts == every):
        raise Rejected(f"{where}.cases: allowed: one per sum, where refusing one of them suffices")
    for part, nodes, read in trees:
        configuration = Configuration(refusing, list(refusing.levers), part)
        StrictTree(arithmetics(configuration), read, Fraction(1)).check(nodes)


class StrictTree(kernel.Tree):
    """Checks a tree about outcomes: a network refuses only what is *below* what it needs (section 12.5)."""

    def leaf(self, node: Any) -> None:
        """As that of the kernel, but where a network's logit counts, a bound of 0 closes a leaf."""
        match node:
            case ["d", _, terms, *_] if any(term.get("g", 0.0) > 0 for term in terms):
                given = self.region, node[1:], self.target
                if not any(proven(one, *given) >= 0 for one in self.arithmetics):
                    raise Rejected("leaf 'd' proves less than is claimed: no rule of section 12.5 closes it")
            case _:
                super().leaf(node)


@dataclass
class Merged(Region):
    """A region in which cells stand for others that were taken out (section 7.5)."""


class BoxTree(kernel.Tree):
    """Checks a tree about certain actions, leaves of which may be closed by refused boxes (section 12.4).

    Attributes
    ----------
    missed
        By feature, by how much its target may be missed.
    whole, idle
        The configuration with all parts of the ensemble, also where the tree is about one of them; its idle
        levers.
    integral
        The features whose values are whole numbers.
    """

    def __init__(self, missed: Mapping[str, Fraction], *given: Any) -> None:
        super().__init__(*given)
        own = self.configuration
        self.missed, self.whole = missed, Configuration(own.problem, own.acted)
        self.integral = {f.name for f in own.model.features if f.whole}
        self.idle: Collection[str] = idle(self.whole)

    def split(self, node: Any) -> Any:
        """As that of the kernel; below ``["m"]`` the region is :class:`Merged`."""
        found, region = super().split(node), self.region
        if not found or node[0] != "m":
            return found
        below = Merged([*region.ends], region.case, region.signs, {**region.cells}, found[3][0])
        return vars(self), "region", region, [below]

    def leaf(self, node: Any) -> None:
        """As that of the kernel, and ``["x", box]``."""
        match node:
            case ["x", box]:
                if isinstance(self.region, Merged):
                    raise Rejected("got ['x'] below ['m'] (section 12.4)")
                self.box(box)
            case _:
                super().leaf(node)

    def box(self, within: Mapping[str, Range]) -> None:
        """Reject a leaf unless every action of its region has an outcome in a box that the trees refuse.

        ``within``: for features whose targets are missed, the ends of their values in the box.
        """
        one, region = self.whole, self.region
        if not one.forests:
            raise Rejected("got ['x']; allowed: with trees (section 12.4)")
        box, behind = self.arithmetics[-1].box(region.ends, "", {}), causes(one.model)
        ends = {f: box.interval(value) for f, value in one.values.items()}
        values: dict[str, Range] = {f: (float64(low), float64(high)) for f, (low, high) in ends.items()}
        for f, (first, last) in within.items():
            if not (f in one.acted and self.missed.get(f)):
                raise Rejected(f"{f[:40]} is not acted on, or its target is not missed (section 12.4)")
            k, by, x = one.acted.index(f), self.missed[f], one.problem.factual[f]
            low, high = region.ends[k]
            if f in self.idle and low <= x <= high and not first <= x <= last:
                raise Rejected(f"{f[:40]} need not be acted on here (section 12.4)")
            if any(f in behind[g] for g in behind if g not in one.acted):
                raise Rejected(f"{f[:40]} moves others (section 12.4)")
            fraction = f in self.integral and not (first == floor(first) and last == floor(last))
            if not first <= last or fraction:
                raise Rejected(f"{f[:40]} has no values from {first} to {last} (section 12.4)")
            if float64(low + by) < first or float64(high - by) > last:
                raise Rejected(f"{f[:40]}: some target is too far from {first} to {last} (section 12.4)")
            values[f] = min(max(low, first), last), min(max(high, first), last)
        if one.accepts(values, max):
            raise Rejected("leaf 'x' proves less than is claimed: the trees may accept (section 12.4)")
