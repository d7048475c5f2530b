r"""The cheapest certain action of a tree ensemble: it keeps out of all cells that outcomes show refused.

The cheapest action is asked how it could fail (:mod:`~milp_recourse.robust.outcomes`). The outcome found
lies in a cell that is refused, and so does every point of the largest box around it that can be proven to be
(:mod:`~milp_recourse.robust.refused`). No certain action may reach into that box: some target stays far
enough from one of its sides, or is not acted on. The search branches over these ways out, the cheapest case
first; a case is an ordinary problem under a few conditions. Where its action cannot fail, nothing in it is
cheaper. Where no feature moves another there are finitely many boxes, so it ends.

With causes an action's outcomes are no box. A condition then holds for one set of features acted on and one
outcome, shifted by what was missed; effects have to be sums for that. Values that are moved are rational, and
what rounds to a double on the other side of a cut is shut out with the box, so that the bound is not rigorous
to the last digit: ``proof`` is ``solver``.

References
----------
Codato and Fischetti (2006), https://doi.org/10.1287/opre.1060.0286 (combinatorial cuts from what a
subproblem refutes).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from milp_recourse.backends.protocol import Proposal
from milp_recourse.domain.conditions import Acted, Condition, Demand, LabelIn, Not, Sum, meaning
from milp_recourse.domain.conditions import Any as AnyOf
from milp_recourse.domain.conditions import holds as satisfied
from milp_recourse.domain.expression import Constant, Expression, Product, Variable, as_fraction
from milp_recourse.domain.expression import Sum as Added
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.scenario import Scenario
from milp_recourse.errors import Unsupported
from milp_recourse.instance import Instance, demanding
from milp_recourse.judge import known_factual
from milp_recourse.options import Clock
from milp_recourse.program.lower import reachable
from milp_recourse.result import Result, Status
from milp_recourse.robust.certain_search import CertainSearch
from milp_recourse.robust.outcomes import Outcomes, outcomes_of
from milp_recourse.robust.refused import Refusals, RefusedBox, keeping_out
from milp_recourse.robust.uncertainty import Uncertainty


@dataclass(order=True)
class _Case:
    """The ways out taken so far; ordered by the bound proven for the case it was split from."""

    bound: float
    order: int
    ways: tuple[Condition, ...] = field(compare=False)


class TreeSearch(CertainSearch):
    """The search over a tree ensemble.

    Raises
    ------
    Unsupported
        A lever's value is missing; or a lever moves other features, and one whose causes move does not follow
        them by a sum of multiples. What is uncertain is not looked at.
    """

    def __init__(
        self, instance: Instance, uncertainty: Uncertainty, backend: str | None, clock: Clock
    ) -> None:
        super().__init__(instance, uncertainty, backend, clock)
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        gone = next((name for name in instance.levers if name in instance.missing), None)
        if gone is not None:
            raise Unsupported(
                f"certainty for trees: the value of {gone!r}, which can be acted on, is missing"
            )
        self.forest = forest
        self.alone = all(instance.scm.descendants({name}) == {name} for name in instance.levers)
        if not self.alone:
            _check_sums(instance)
        self.refusals = Refusals(forest, instance.accept.above)
        reach = reachable(instance)
        self.columns: dict[str, list[int]] = {}
        column = 0
        for feature in instance.features:
            width = len(feature.columns)
            ends = reach[feature.name]
            if ends.lower < ends.upper or feature.name in instance.levers:
                self.columns[feature.name] = list(range(column, column + width))
            column += width
        self._boxes: list[tuple[AnyOf, Demand]] = []
        self._heap: list[_Case] = []
        self._filed: set[frozenset[Condition]] = set()
        self._closed = math.inf  # least lower bound of the cases that need no more search
        self._features = {f.name: f for f in instance.features}
        self.proof = "rigorous" if self.alone else "solver"
        self._seen_worst: tuple[float, Scenario] | None = None

    @property
    def cuts(self) -> int:
        """Refused boxes."""
        return len(self._boxes)

    def run(self) -> Proposal:
        """Branch over the ways out of refused boxes, the cheapest case first."""
        self._push(0.0, ())
        while self._heap and self._heap[0].bound < self.best.target:
            result = self.ask(demanding(self.instance, self._heap[0].ways))
            if result is None:
                break
            case = heapq.heappop(self._heap)
            if result.status is Status.INFEASIBLE:
                continue
            bound = max(case.bound, result.lower_bound or 0.0)
            if bound >= self.best.target or not self._take(case, bound, result):
                self._closed = min(self._closed, bound)
        bound = min([self._closed, self.best.cost, *(case.bound for case in self._heap)])
        return self.proposal(bound, bound >= self.best.target or bound == math.inf)

    def _take(self, case: _Case, bound: float, result: Result) -> bool:
        """Split a case over what its optimum breaks; False: nothing is left to split."""
        if result.action is None:
            self.message = result.message or result.status.sentence
            return False
        action = self.instance.numbers(result.action)
        broken = self._broken(action)
        if broken is None:
            outcomes = outcomes_of(self.instance, action, self.uncertainty)
            refuted = self._refuted(outcomes)
            if refuted is None:
                return False
            if not refuted:
                self.take(action, self._seen_worst)
                self.message = result.message
                return False
            broken = self._keep_out(outcomes, refuted)
            self._boxes.append((broken, meaning(broken, self._features, self.instance.factual)))
        for way in broken.parts:
            self._push(bound, (*case.ways, way))
        return True

    def _push(self, bound: float, ways: tuple[Condition, ...]) -> None:
        key = frozenset(ways)
        if key not in self._filed:
            self._filed.add(key)
            heapq.heappush(self._heap, _Case(bound, len(self._filed), ways))

    def _broken(self, action: Mapping[str, float]) -> AnyOf | None:
        """A known refused box that some outcome of the action may reach."""
        values = self.instance.scm.counterfactual_exact(known_factual(self.instance), action)
        for condition, demand in self._boxes:
            if not satisfied(demand, values, action):
                return condition
        return None

    def _refuted(self, outcomes: Outcomes) -> Mapping[str, float] | None:
        """An outcome that is refused, by its levers; {}: there is none; None: that stayed open."""
        problem, self._seen_worst = outcomes.refusal, None
        if problem is None:
            return {}
        [(score, point)] = outcomes.worst(1, self.rng)
        if score <= self.instance.accept.above:
            return point
        found = self.refused_outcome(problem)
        if found == {}:
            self._seen_worst = score, outcomes.scenario(point, self.uncertainty)
        return found

    def _keep_out(self, outcomes: Outcomes, point: Mapping[str, float]) -> AnyOf:
        """The condition that no outcome reaches into the refused box around this one: the ways to meet it."""
        problem = outcomes.refusal
        assert problem is not None
        row = np.full(len(problem.features), np.nan)
        for k, feature in enumerate(problem.features):
            row[k] = point.get(feature.name, np.nan)
        after = problem.model_rows(problem.scm.counterfactual(problem.factual_row, row))[: self.forest.inputs]
        box = self.refusals.around(after, [self.columns[name] for name in self._order(outcomes)])
        ways: list[Condition] = []
        if not self.alone:
            ways += [Not(Acted(name)) for name in outcomes.action]
            ways += [Acted(name) for name in self.instance.levers if name not in outcomes.action]
        shifts = self._shifts(outcomes, outcomes.scenario(point, self.uncertainty))
        for name, columns in self.columns.items():
            ways += self._ways_out(name, columns, box, point, shifts[name])
        return AnyOf(tuple(ways))

    def _order(self, outcomes: Outcomes) -> list[str]:
        """The order in which features are widened in a refused box: those not acted on first."""
        return sorted(self.columns, key=lambda name: name in outcomes.action)

    def _ways_out(
        self,
        name: str,
        columns: list[int],
        box: RefusedBox,
        point: Mapping[str, float],
        shift: tuple[Fraction, Fraction],
    ) -> Iterator[Condition]:
        feature, x = self.instance.feature(name), self.instance.factual[name]
        intervals = [box.interval(self.forest, c) for c in columns]
        if all(interval == (-math.inf, math.inf) for interval in intervals):
            return
        if feature.by_label:
            label = round(point.get(name, x))
            others = tuple(k for k in range(len(feature.categories or ())) if k != label)
            yield LabelIn(name, "counterfactual", others)
            return
        [interval] = intervals
        for side, end in keeping_out(interval, shift):
            yield Sum(((name, 1.0),), "counterfactual", **{side: end})
        if self.alone and shift != (0, 0) and not interval[0] < x <= interval[1]:
            yield Not(Acted(name))

    def _shifts(self, outcomes: Outcomes, scenario: Scenario) -> dict[str, tuple[Fraction, Fraction]]:
        """Per feature, what its value in the outcome, or in any of its own, is above planned."""
        limits = self.uncertainty
        if self.alone:
            missed = {name: Fraction(limits.missed.get(name, 0.0)) for name in self.columns}
            return {name: (-by, by) for name, by in missed.items()}
        scm, factual = self.instance.scm, known_factual(self.instance)
        planned = scm.counterfactual_exact(factual, outcomes.action)
        turned = scm.counterfactual_exact(factual, outcomes.action, scenario)
        made = {}
        for name in self.columns:
            by = turned[name].midpoint - planned[name].midpoint
            ends = by, by
            followers = scm.descendants({name}) - {name} - set(outcomes.action)
            if not followers and name in outcomes.action:
                most = Fraction(limits.missed.get(name, 0.0))
                ends = -most, most
            elif not followers and name in outcomes.noisy:
                own = by - Fraction(scenario.noise.get(name, 0.0))
                least, most_ = (Fraction(end) for end in limits.noise[name])
                ends = own + least, own + most_
            made[name] = ends
        return made


def _check_sums(instance: Instance) -> None:
    """Effects that can occur add up: what is missed shifts them by a constant."""
    moved = instance.scm.descendants(set(instance.levers))
    for name in instance.scm.order:
        mechanism = instance.scm.mechanisms[name]
        adds_up = mechanism.link.kind == "identity" and _is_sum(mechanism.equation)
        if name in moved and instance.scm.parents(name) & moved and not adds_up:
            raise Unsupported(
                f"certainty for trees: {name!r} is moved, and not by a sum of multiples of its causes"
            )


def _is_sum(equation: Expression) -> bool:
    match equation:
        case Constant() | Variable():
            return True
        case Added():
            return all(_is_sum(part) for part in equation.children())
        case Product():
            moving = [part for part in equation.children() if as_fraction(part) is None]
            return len(moving) <= 1 and all(_is_sum(part) for part in moving)
    return False
