r"""The cheapest certain action of a network, by lower and upper bounds.

The problem is

.. math:: \min_u c(u) \quad\text{such that}\quad h(x'(u, e)) \ge t \text{ for every } e \in E(u)

with u the action, E(u) the scenarios that are possible under it, h the logit and t the threshold. It has
infinitely many constraints. The lower bound is that of the same problem with finitely many scenarios, in
which the network has a copy for each. The upper bound is the cost of an action for which
:mod:`~milp_recourse.questions.robust.outcomes` proves that no outcome is refused. Such actions are found by
solving the finite problem with a slightly higher threshold (t + ``raised``), without which an action would
only just be accepted and the proof would fail. If an outcome of an action is refused, its scenario is added.
``raised`` is reduced until the two bounds meet; four values are tried. Where an action has few outcomes,
because whole numbers are missed, all are looked at in exact arithmetic, and nothing need be raised.

References
----------
Blankenship and Falk (1976), https://doi.org/10.1007/BF00934096; Mitsos (2011),
https://doi.org/10.1080/02331934.2010.527970 (bounds from both sides for semi-infinite programs).
"""

from __future__ import annotations

import math
from dataclasses import replace

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result, Status, is_closed
from milp_recourse.problem.scenario import Scenario
from milp_recourse.questions.robust.certain_search import CertainSearch
from milp_recourse.questions.robust.outcomes import Outcomes, outcomes_of
from milp_recourse.questions.robust.uncertainty import Uncertainty
from milp_recourse.solvers.protocol import Proposal

MOST_SCENARIOS = 24
"""The largest number of scenarios; if more are needed, the search stops with a limit."""

_RAISE = 2e-7  # the first ``raised``, relative to the distance from the factual's logit to the threshold
_FINER, _RAISES = 0.02, 4  # the factor by which it is reduced, and how many values are tried
_EACH_TIME = 2  # the most scenarios added at once
_ROUNDING = 2.0**-40  # relative; more than the rounding of a logit in float64


class NetworkSearch(CertainSearch):
    """The search for the cheapest certain action of a network."""

    def __init__(
        self, instance: Instance, uncertainty: Uncertainty, backend: str | None, clock: Clock
    ) -> None:
        super().__init__(instance, uncertainty, backend, clock)
        self.scenarios: list[Scenario] = []
        self.bound = 0.0

    @property
    def cuts(self) -> int:
        """The number of scenarios."""
        return len(self.scenarios)

    @property
    def evidence(self) -> list[Scenario]:
        """The scenarios."""
        return self.scenarios

    def run(self) -> Proposal:
        """Search until the lower and the upper bound meet, or the search has to stop."""
        needed = self.instance.accept.needed
        logit = judge(self.instance, {}).logit
        assert logit is not None
        distance = max(float(needed - logit.lower), 1e-3 * (1.0 + abs(float(needed))))
        raised, tries = _RAISE * distance, _RAISES
        if self._whole:
            raised, tries = 0.0, 1
        for _ in range(tries):
            above = self._above(raised)
            below = self._master(0.0)
            if below is None:
                break
            if below.status is Status.INFEASIBLE:
                self.bound = math.inf if self.best.action is None else self.bound
                break
            self.bound = max(self.bound, below.lower_bound or 0.0)
            if self._closed or not above:
                break
            raised *= _FINER
        else:
            self.message = self.message or "the two sides did not meet"
        return self.proposal(self.bound, self._closed or self.bound == math.inf)

    @property
    def _whole(self) -> bool:
        """Whether only whole numbers are uncertain."""
        noisy = any(low < high for low, high in self.uncertainty.noise.values())
        return not noisy and all(
            self.instance.by_name[name].integral for name, by in self.uncertainty.missed.items() if by
        )

    @property
    def _closed(self) -> bool:
        cost = self.best.cost
        allowance = self.instance.gap_allowance
        return self.best.action is not None and is_closed(cost, min(self.bound, cost), allowance)

    def _above(self, raised: float) -> bool:
        """Look for a certain action with the threshold raised by ``raised``; adds scenarios on the way.

        Returns whether the search should go on: False if it had to stop.
        """
        while True:
            result = self._master(raised)
            if result is None:
                return False
            if result.action is None:
                if result.status is not Status.INFEASIBLE:
                    self.message = result.message or "a problem on the way stayed open"
                return result.status is Status.INFEASIBLE
            action = self.instance.numbers(result.action)
            outcomes = outcomes_of(self.instance, action, self.uncertainty)
            refuted = self._refuted(outcomes)
            if refuted is None:
                return False
            if not refuted:
                self.take(action, self._worst_of(outcomes))
                return True
            if len(self.scenarios) + len(refuted) > MOST_SCENARIOS:
                self.message = f"more than {MOST_SCENARIOS} scenarios are needed"
                return False
            self.scenarios += refuted

    def _refuted(self, outcomes: Outcomes) -> list[Scenario] | None:
        """New scenarios in which the action is refused; [] if there are none, None if that stayed open."""
        if outcomes.refusal is None:
            return []
        needed = self.instance.accept.threshold + self.instance.accept.margin
        room = _ROUNDING * (1.0 + abs(needed))
        found = [point for logit, point in outcomes.worst(_EACH_TIME, self.rng) if logit < needed - room]
        listed = None if found else outcomes.every()
        if listed is not None:
            exact = self.instance.accept.needed
            found = [point for point in listed if outcomes.least_logit(point) < exact][:_EACH_TIME]
            if not found:
                return []
        if not found:
            point = self.refused_outcome(outcomes.refusal)
            if not point:
                return None if point is None else []
            found = [dict(point)]
        scenarios = [outcomes.scenario(point, self.uncertainty) for point in found]
        new = [s for k, s in enumerate(scenarios) if s not in self.scenarios and s not in scenarios[:k]]
        if not new:
            self.message = "an action failed in a scenario it was made for, by less than rounding shows"
            return None
        return new

    def _worst_of(self, outcomes: Outcomes) -> tuple[float, Scenario] | None:
        found = outcomes.worst(1, self.rng)
        return (found[0][0], outcomes.scenario(found[0][1], self.uncertainty)) if found else None

    def _master(self, raised: float) -> Result | None:
        """The result of the finite problem with the threshold raised; None if no time is left."""
        accept = self.instance.accept
        problem = replace(
            self.instance,
            accept=replace(accept, margin=accept.margin + raised),
            scenarios=tuple(self.scenarios),
            reference=None,
        )
        result = self.solve(problem, 0.5)  # the rest of the time is for the other problems
        if not raised and result is not None and result.status is Status.LIMIT:
            self.message = result.message
        return result
