"""A problem of one lever: what compiled code is first run on."""

from __future__ import annotations

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent


def smallest() -> Instance:
    """A problem of one lever and two neurons."""
    feature, scm = Feature("x", "continuous", True, (0.0, 1.0)), independent(["x"])
    network = ReluNetwork.from_layers([([[1.0]], [-0.5]), ([[1.0]], [-0.25])])
    return Instance((feature,), scm, network, {"x": 0.0}, Preferences(("x",)), Cost.pure("l1", {"x": 1.0}))
