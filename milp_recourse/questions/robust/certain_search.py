"""The base class of the two searches for a certain action, of networks and of tree ensembles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, Clock
from milp_recourse.problem.result import Result
from milp_recourse.problem.scenario import Scenario
from milp_recourse.questions.robust.refused import Case
from milp_recourse.questions.robust.uncertainty import Uncertainty
from milp_recourse.questions.solve import solve
from milp_recourse.questions.why.answer import is_possible
from milp_recourse.solvers.protocol import Proposal

Evidence = Case | Sequence[Scenario]
"""What a lower bound rests on: the root of the cases of trees, or the scenarios of a network."""


class CertainSearch(BestFirst[Any], ABC):
    """The search for one applicant's cheapest certain action.

    Parameters
    ----------
    instance
        The problem, with the highest threshold already set.
    backend
        The back end that solves all problems of the search.

    Attributes
    ----------
    best
        The cheapest action that is proven to be accepted in every outcome.
    worst
        The lowest logit or score found among that action's outcomes, and the scenario that leads to it.
    rounds, nodes
        The number of problems solved, and of their nodes.
    message
        Why the search stopped without closing the gap.
    """

    def __init__(
        self, instance: Instance, uncertainty: Uncertainty, backend: str | None, clock: Clock
    ) -> None:
        super().__init__(instance, clock)
        self.instance, self.uncertainty, self.backend = instance, uncertainty, backend
        self.worst: tuple[float, Scenario] | None = None
        self.rounds = 0
        self.rng = np.random.default_rng(0)

    @property
    @abstractmethod
    def evidence(self) -> Evidence:
        """What the bound rests on; :mod:`~milp_recourse.questions.robust.certify` certifies it."""

    @abstractmethod
    def run(self) -> Proposal:
        """Search until the gap is closed or the search has to stop.

        A lower bound of infinity means that no action is certain.
        """

    @property
    @abstractmethod
    def cuts(self) -> int:
        """The number of scenarios or refused boxes on which the bound rests."""

    def take(self, action: dict[str, float], worst: tuple[float, Scenario] | None) -> None:
        """Keep an action that is accepted in every outcome, if it is the cheapest so far."""
        before = self.best.cost
        self.best.take(action)
        if self.best.cost < before:
            self.worst = worst

    def solve(self, problem: Instance, share: float = 1.0) -> Result | None:
        """Solve a problem within a share of the time that is left; None if no time is left."""
        if self.clock.over:
            self.message = LATE
            return None
        left = self.clock.left()
        result = solve(problem, self.backend, None if left is None else share * left)
        self.rounds += 1
        self.nodes += result.nodes or 0
        if result.proof == "solver":
            self.proof = "solver"
        return result

    def refused_outcome(self, problem: Instance) -> Mapping[str, float] | None:
        """The levers' values in a refused outcome; {} if there is none, proven; None if that stayed open.

        Parameters
        ----------
        problem
            :attr:`milp_recourse.questions.robust.outcomes.Outcomes.refusal` of an action.
        """
        result = self.solve(problem)
        if result is None:
            return None
        if result.action is None:
            if is_possible(result) is False:
                return {}
            self.message = "whether the action in hand always holds stayed open: " + (result.message or "")
            return None
        return {name: problem.factual[name] for name in problem.levers} | problem.numbers(result.action)

    def proposal(self, bound: float, closed: bool) -> Proposal:
        """The best action with a lower bound, and a message unless the gap is closed."""
        message = None if closed else self.message or "the gap is open"
        made = self.proof, self.nodes, message, None, self.best.judgement
        return Proposal(self.best.action, bound, *made)
