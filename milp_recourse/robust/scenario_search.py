r"""The cheapest certain action of a network, from both sides.

.. math:: \min_u c(u) \quad\text{such that}\quad h(x'(u, e)) \ge t \text{ for every } e \in E(u)

has infinitely many rows; u is the action, E(u) what may go wrong under it, h the logit, t the threshold. The
lower bound is that of the same problem with finitely many scenarios e, in which the network has a copy for
each. The upper bound is the cost of an action for which :mod:`~milp_recourse.robust.outcomes` proves that no
outcome is refused. It comes from the same finite problem with t raised by a small amount (``raised``), so
that the proof has room; an outcome that refutes an action becomes the next scenario. The amount is made
smaller until the two bounds meet.

References
----------
Blankenship and Falk (1976), https://doi.org/10.1007/BF00934096; Mitsos (2011),
https://doi.org/10.1080/02331934.2010.527970 (bounds from both sides for semi-infinite programs).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from milp_recourse.backends.protocol import Proposal
from milp_recourse.domain.scenario import Scenario
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.options import Clock
from milp_recourse.result import Result, Status, is_closed
from milp_recourse.robust.certain_search import CertainSearch
from milp_recourse.robust.outcomes import Outcomes, outcomes_of
from milp_recourse.robust.uncertainty import Uncertainty

MOST_SCENARIOS = 24
"""Copies of the network; with more, the answer is a limit."""

_RAISE, _FINER, _RAISES = 2e-7, 0.02, 4  # share of the way from the factual's logit to the threshold
_EACH_TIME = 2  # scenarios added at once
_ROUNDING = 2.0**-40


class NetworkSearch(CertainSearch):
    """The search over a network."""

    def __init__(
        self, instance: Instance, uncertainty: Uncertainty, backend: str | None, clock: Clock
    ) -> None:
        super().__init__(instance, uncertainty, backend, clock)
        self.scenarios: list[Scenario] = []
        self.bound = 0.0

    @property
    def cuts(self) -> int:
        """Scenarios."""
        return len(self.scenarios)

    def run(self) -> Proposal:
        """Search until both sides meet, or something stops it."""
        needed = Fraction(self.instance.accept.threshold) + Fraction(self.instance.accept.margin)
        logit = judge(self.instance, {}).logit
        assert logit is not None
        way = max(float(needed - logit.lower), 1e-3 * (1.0 + abs(float(needed))))
        raised = _RAISE * way
        for _ in range(_RAISES):
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
    def _closed(self) -> bool:
        cost = self.best.cost
        allowance = self.instance.gap_allowance
        return self.best.action is not None and is_closed(cost, min(self.bound, cost), allowance)

    def _above(self, raised: float) -> bool:
        """Look for a certain action with the threshold raised by so much; whether to go on afterwards."""
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
        """Scenarios in which the action fails; none: proven that it never does; None: that stayed open."""
        if outcomes.refusal is None:
            return []
        needed = self.instance.accept.threshold + self.instance.accept.margin
        room = _ROUNDING * (1.0 + abs(needed))
        found = [point for logit, point in outcomes.worst(_EACH_TIME, self.rng) if logit < needed - room]
        if not found:
            point = self.refused_outcome(outcomes.refusal)
            if not point:
                return None if point is None else []
            found = [dict(point)]
        made = [outcomes.scenario(point, self.uncertainty) for point in found]
        new = [one for k, one in enumerate(made) if one not in self.scenarios and one not in made[:k]]
        if not new:
            self.message = "an action failed in a scenario it was made for, by less than rounding shows"
            return None
        return new

    def _worst_of(self, outcomes: Outcomes) -> tuple[float, Scenario] | None:
        found = outcomes.worst(1, self.rng)
        return (found[0][0], outcomes.scenario(found[0][1], self.uncertainty)) if found else None

    def _master(self, raised: float) -> Result | None:
        """The problem with the scenarios at hand, the threshold raised by so much; None: no time is left."""
        accept = self.instance.accept
        problem = replace(
            self.instance,
            accept=replace(accept, margin=accept.margin + raised),
            scenarios=tuple(self.scenarios),
            reference=None,
        )
        result = self.ask(problem, 0.5)  # the other side, and the proof, need some too
        if not raised and result is not None and result.status is Status.LIMIT:
            self.message = result.message
        return result
