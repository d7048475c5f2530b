r"""The cheapest certain action of a tree ensemble, by branch and bound over boxes that are refused.

The search takes the cheapest action and looks for an outcome of it that is refused
(:mod:`~milp_recourse.questions.robust.outcomes`). Around such an outcome it finds a large box of inputs of
which all are refused (:mod:`~milp_recourse.questions.robust.refused`). No outcome of a certain action may lie
in the box. So some target must be far enough from one of the box's sides, some label must be one that the box
does not hold, or another set of features must be acted on. The search branches over these ways out of the
box, and takes the cheapest case first; a case is an ordinary problem with a condition per way out. If the
cheapest action of a case has no refused outcome, the case is finished. If no feature causes another, there
are finitely many boxes, so the search ends.

A certain action takes one of the ways out of every box, and the action in hand takes none, so no action is
lost and every case is smaller than the one it was split from. A case that demands the same ways as an earlier
one is the same problem, so it is not solved again. The search checks that the action in hand takes no way
out; where rounding makes it take one, the case stays open and its bound counts.

If features cause others, the outcomes of an action do not form a box. A way out is then valid only for the
same set of features acted on, and shifts the box by the difference between the outcome and the plan; for
this, effects must be sums. Counterfactual values are then rationals, and a value that rounds to a double
inside the box is excluded, too. The bound is therefore not rigorous to the last digit, and ``proof`` is
``solver``.

References
----------
Codato and Fischetti (2006), https://doi.org/10.1287/opre.1060.0286 (combinatorial cuts from infeasible
subproblems).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from milp_recourse.errors import Unsupported
from milp_recourse.judge import known_factual
from milp_recourse.problem.conditions import Acted, Condition, Demand, LabelIn, Not, Sum, meaning
from milp_recourse.problem.conditions import holds as satisfied
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import Constant, Expression, Product, Variable, as_fraction
from milp_recourse.problem.expression import Sum as Added
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance, demanding
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scenario import Scenario
from milp_recourse.program.lower import reachable
from milp_recourse.questions.robust.certain_search import CertainSearch
from milp_recourse.questions.robust.outcomes import Outcomes, outcomes_of
from milp_recourse.questions.robust.refused import Case, Refusals, RefusedBox, keeping_out
from milp_recourse.questions.robust.uncertainty import Uncertainty
from milp_recourse.solvers.protocol import Proposal


class _Known(NamedTuple):
    """A refused box with the ways out of it, and what each of them demands."""

    box: RefusedBox
    ways: tuple[Condition, ...]
    demands: tuple[Demand, ...]

    def taken(self, values: Mapping[str, Enclosure], action: Mapping[str, float]) -> bool:
        """Whether an action takes a way out."""
        return any(satisfied(one, values, action) for one in self.demands)


class TreeSearch(CertainSearch):
    """The search for the cheapest certain action of a tree ensemble.

    Raises
    ------
    Unsupported
        A lever's value is missing; or some lever causes other features, and the equation of a feature whose
        causes can move is not linear in them. This does not depend on what is uncertain.
    """

    def __init__(
        self, instance: Instance, uncertainty: Uncertainty, backend: str | None, clock: Clock
    ) -> None:
        super().__init__(instance, uncertainty, backend, clock)
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        missing = next((name for name in instance.levers if name in instance.missing), None)
        if missing is not None:
            raise Unsupported(
                f"certainty for trees: the value of {missing!r}, which can be acted on, is missing"
            )
        self.forest = forest
        self.without_causes = all(instance.scm.descendants({name}) == {name} for name in instance.levers)
        if not self.without_causes:
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
        self.root = Case(())
        self._boxes: list[_Known] = []
        self.push(0.0, self.root)
        self._filed: dict[frozenset[Condition], Case] = {frozenset(): self.root}
        self.proof = "rigorous" if self.without_causes else "solver"
        self._worst_found: tuple[float, Scenario] | None = None

    @property
    def cuts(self) -> int:
        """The number of refused boxes."""
        return len(self._boxes)

    @property
    def evidence(self) -> Case:
        """The root of the cases."""
        return self.root

    def run(self) -> Proposal:
        """Search the cases, the cheapest first, until none can be cheaper than the best action."""
        while taken := self.next():
            [(least, case)] = taken
            result = self.solve(demanding(self.instance, case.ways))
            if result is None:
                break
            if result.status is Status.INFEASIBLE:
                continue
            bound = max(least, result.lower_bound or 0.0)
            if bound >= self.best.target or not self._take(case, bound, result):
                self.close(bound)
        bound = self.lower_bound
        return self.proposal(bound, bound >= self.best.target)

    def _take(self, case: Case, bound: float, result: Result) -> bool:
        """Split a case over the ways out of a box that its optimum's outcomes can reach.

        Returns False if the case is finished: its optimum is certain, or a search on the way stopped.
        """
        if result.action is None:
            self.message = result.message or result.status.sentence
            return False
        action = self.instance.numbers(result.action)
        values = self.instance.scm.counterfactual_exact(known_factual(self.instance), action)
        broken = next((one for one in self._boxes if not one.taken(values, action)), None)
        if broken is None:
            outcomes = outcomes_of(self.instance, action, self.uncertainty)
            refuted = self._refuted(outcomes)
            if refuted is None:
                return False
            if not refuted:
                self.take(action, self._worst_found)
                self.message = result.message
                return False
            broken = self._keep_out(outcomes, refuted)
            if broken.taken(values, action):
                self.message = "an action fails by less than rounding shows"
                return False
            self._boxes.append(broken)
        case.box = broken.box
        case.parts = [(way, self._filed_under(bound, (*case.ways, way))) for way in broken.ways]
        return True

    def _filed_under(self, bound: float, ways: tuple[Condition, ...]) -> Case:
        """The case of these ways out: an earlier one if there is one, else a new one, to be solved."""
        key = frozenset(ways)
        if key not in self._filed:
            self._filed[key] = Case(ways)
            self.push(bound, self._filed[key])
        return self._filed[key]

    def _refuted(self, outcomes: Outcomes) -> Mapping[str, float] | None:
        """The levers' values in an outcome that is refused; {} if there is none, None if that stayed open."""
        problem, self._worst_found = outcomes.refusal, None
        if problem is None:
            return {}
        [(score, point)] = outcomes.worst(1, self.rng)
        if score <= self.instance.accept.above:
            return point
        found = self.refused_outcome(problem)
        if found == {}:
            self._worst_found = score, outcomes.scenario(point, self.uncertainty)
        return found

    def _keep_out(self, outcomes: Outcomes, point: Mapping[str, float]) -> _Known:
        """The refused box around an outcome, and the ways to keep all outcomes out of it."""
        problem = outcomes.refusal
        assert problem is not None
        row = np.full(len(problem.features), np.nan)
        for k, feature in enumerate(problem.features):
            row[k] = point.get(feature.name, np.nan)
        after = problem.model_rows(problem.scm.counterfactual(problem.factual_row, row))[: self.forest.inputs]
        box = self.refusals.around(after, [self.columns[name] for name in self._order(outcomes)])
        ways: list[Condition] = []
        if not self.without_causes:
            ways += [Not(Acted(name)) for name in outcomes.action]
            ways += [Acted(name) for name in self.instance.levers if name not in outcomes.action]
        shifts = self._shifts(outcomes, outcomes.scenario(point, self.uncertainty))
        for name, columns in self.columns.items():
            ways += self._ways_out(name, columns, box, shifts[name])
        demands = [meaning(way, self.instance.by_name, self.instance.factual) for way in ways]
        return _Known(box, tuple(ways), tuple(demands))

    def _order(self, outcomes: Outcomes) -> list[str]:
        """The order in which a refused box is widened along features: those not acted on first."""
        return sorted(self.columns, key=lambda name: name in outcomes.action)

    def _ways_out(
        self,
        name: str,
        columns: list[int],
        box: RefusedBox,
        shift: tuple[Fraction, Fraction],
    ) -> Iterator[Condition]:
        """The conditions on one feature each of which keeps all outcomes out of the box."""
        feature, x = self.instance.by_name[name], self.instance.factual[name]
        intervals = [box.interval(self.forest, c) for c in columns]
        if feature.lookup is not None and feature.by_label:
            each = zip(feature.lookup.T, intervals, strict=True)
            inside = [(above < numbers) & (numbers <= last) for numbers, (above, last) in each]
            others = np.flatnonzero(~np.all(inside, axis=0)).tolist()
            if others:
                yield LabelIn(name, "counterfactual", tuple(others))
            return
        [interval] = intervals
        for side, end in keeping_out(interval, shift):
            yield Sum(((name, 1.0),), "counterfactual", **{side: end})
        if self.without_causes and any(shift) and not interval[0] < x <= interval[1]:
            yield Not(Acted(name))

    def _shifts(self, outcomes: Outcomes, scenario: Scenario) -> dict[str, tuple[Fraction, Fraction]]:
        """For each feature, the least and largest difference between its outcome and its planned value.

        If features cause others, it is the difference in the given scenario, except for a feature that moves
        no other: for it the full interval of its own uncertainty is taken.
        """
        limits = self.uncertainty
        if self.without_causes:
            missed = {name: Fraction(limits.missed.get(name, 0.0)) for name in self.columns}
            return {name: (-by, by) for name, by in missed.items()}
        scm, factual = self.instance.scm, known_factual(self.instance)
        planned = scm.counterfactual_exact(factual, outcomes.action)
        actual = scm.counterfactual_exact(factual, outcomes.action, scenario)
        shifts = {}
        for name in self.columns:
            by = actual[name].midpoint - planned[name].midpoint
            ends = by, by
            followers = scm.descendants({name}) - {name} - set(outcomes.action)
            if not followers and name in outcomes.action:
                most = Fraction(limits.missed.get(name, 0.0))
                ends = -most, most
            elif not followers and name in outcomes.noisy:
                own = by - Fraction(scenario.noise.get(name, 0.0))
                least, most_ = (Fraction(end) for end in limits.noise[name])
                ends = own + least, own + most_
            shifts[name] = ends
        return shifts


def _check_sums(instance: Instance) -> None:
    """Check that effects are sums, so that a missed target shifts them by a constant.

    Raises
    ------
    Unsupported
        A feature whose causes can move has another equation or link.
    """
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
            return all(_is_sum(part) for part in equation.children)
        case Product():
            moving = [part for part in equation.children if as_fraction(part) is None]
            return len(moving) <= 1 and all(_is_sum(part) for part in moving)
    return False
