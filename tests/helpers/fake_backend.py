"""A back end that knows the sample's logit, amount and duration off, income and savings on."""

from __future__ import annotations

import math
from typing import ClassVar

from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers import Options, Proposal


class FakeBackend:
    """Raises savings just as far as needed; ``script`` says what to do instead, call by call."""

    name = "fake"
    proves = True
    script: ClassVar[list[str]] = []
    calls = 0

    def unavailable(self) -> str | None:
        return None

    def why_not(self, instance: Instance) -> str | None:
        if isinstance(instance.classifier, TreeEnsemble):
            return "it climbs no trees"
        return "it is having a day off" if FakeBackend.script == ["refuse"] else None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        deed = self.script[self.calls] if self.calls < len(self.script) else "solve"
        FakeBackend.calls += 1
        if deed == "interrupt":
            raise KeyboardInterrupt
        if deed == "infeasible":
            return Proposal(None, math.inf, "rigorous")
        if deed == "not found":
            return Proposal(None, None)
        x = instance.factual
        savings = 0.002 - 0.5 + x["amount"] + x["duration"] - x["income"]
        cost = instance.weight("savings") * ((savings - x["savings"]) / instance.cost.lengths["savings"]) ** 2
        bound = 0.5 * cost if deed == "limit" else cost
        return Proposal(
            {"savings": savings}, bound, "solver", message="time is up" if deed == "limit" else None
        )
