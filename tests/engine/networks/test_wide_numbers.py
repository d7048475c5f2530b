"""Whole numbers beyond 2^63, which compiled code once rounded through 64-bit integers."""

from __future__ import annotations

import pytest

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from tests.certificates.random_cases import complaints
from tests.helpers.certificate_kinds import KINDS


def wide(most: float, kind: str) -> Instance:
    """A whole and a continuous lever of any size; the optimum grows with what they span."""
    features = (
        Feature("x", "integer", True, (-most, most)),
        Feature("y", "continuous", True, (-most, most)),
    )
    layers = [([[1.0, 1.0], [1.0, -0.5]], [0.0, 0.0]), ([[1.0, 0.5]], [-0.4 * most])]
    network, cost = ReluNetwork.from_layers(layers, "float64"), Cost.pure(kind, {"x": 1.0, "y": 3.0})
    names = ("x", "y")
    return Instance(features, independent(names), network, {"x": 0.0, "y": 0.0}, Preferences(names), cost)


@pytest.mark.parametrize("most", [2.0**62, 2.0**64, 2.0**70, 2.0**100])
@pytest.mark.parametrize(("kind", "power"), [("l1", 1), ("l2-squared", 2)])
def test_a_whole_lever_may_be_of_any_size(most: float, kind: str, power: int, tmp_path) -> None:
    """The same problem in other units, but that values are whole, which says nothing above 2^53.

    What is true: the optimum of the problem of 2^54, times a power of 2. It was infeasible at 2^64.
    """
    small = solve(wide(2.0**54, kind))
    instance = wide(most, kind)
    result = solve(instance, certificates=most <= 2.0**64)  # beyond, most proofs fail after some seconds
    assert result.status is small.status is Status.OPTIMAL
    assert result.cost == pytest.approx(small.cost * (most / 2.0**54) ** power, rel=1.01e-6)
    assert result.evidence is not None or most > 2.0**64
    assert result.evidence is None or complaints(instance, result, tmp_path) == []


@pytest.mark.parametrize("seed", [3274, 3288, 3352])
def test_large_multipliers_are_written_as_they_are(seed: int, tmp_path) -> None:
    """Features in units of 2^40 and layers in units of 2^-60: multipliers above 2^63 became negative."""
    instance = KINDS["other units"](seed)
    result = solve(instance, None, 60, certificates=True)
    assert result.evidence is not None
    assert complaints(instance, result, tmp_path) == []
