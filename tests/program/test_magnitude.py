"""What would overflow a double is refused in one line, by the solver and by the judge."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from milp_recourse.cli import main
from milp_recourse.errors import Unsupported
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.cost import Cost, Quantiles
from milp_recourse.problem.derived_networks import with_bends
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.scm import StructuralCausalModel, independent
from milp_recourse.questions.solve import solve
from tests.helpers.free_zone import FreeZone


def problem(bound=1.0, scale=1.0, weight=1.0, second=1.0, factual=0.0) -> Instance:
    """Accepted where weight * second * (max(0, x + y) + max(0, x - y)) is 1 or more."""
    network = ReluNetwork.from_layers(
        [([[weight, weight], [weight, -weight]], [0.0, 0.0]), ([[second, second]], [-1.0])]
    )
    return Instance(
        tuple(Feature(n, actionable=True, bounds=(-bound, bound)) for n in "xy"),
        independent(("x", "y")),
        network,
        {"x": factual, "y": 0.0},
        Preferences(("x", "y")),
        Cost.pure("l2-squared", {"x": scale, "y": scale}),
    )


def plausible(spread: float) -> Instance:
    """The same with normal noise, of the given spread for x, and actions as dense as the factual."""
    scm = independent(("x", "y"))
    given = {"x": Normal(spread), "y": Normal(1.0)}
    mechanisms = {name: replace(scm.mechanisms[name], noise=noise) for name, noise in given.items()}
    return replace(problem(), scm=StructuralCausalModel(scm.features, mechanisms), plausible=True)


def squared(bound: float) -> Instance:
    """The same of squares in place of ReLUs."""
    made = problem(bound=bound, scale=bound)
    return replace(made, classifier=with_bends(made.classifier, [("square", "square")]))


def ranked(values: list[float]) -> Instance:
    """The same with a percentile of x that rises from the second value to the third."""
    levels = Quantiles(tuple(values), (0.0, 0.0, 1.0, 1.0))
    return replace(problem(), cost=Cost.percentile("percentile", dict.fromkeys("xy", levels)))


REFUSED = {
    "Bounds": (problem(bound=1e308, scale=1e300), "'x' could pass 1e+150 in size"),
    "Cost": (problem(bound=1e140, scale=1e-140), "an action could cost more than 1e+300"),
    "ScaleTooLarge": (problem(scale=1e160), "cost.scale of 'x' is 1e+160"),
    "Steep": (ranked([-1.0, 0.0, 1e-200, 1.0]), "a change of 'x' by 1 could have a size above 1e+150"),
    "CostsTooSmall": (problem(bound=0.5, scale=1e140), "no action could cost as much as 1e-270"),
    "Weights": (problem(weight=1e200), "the classifier's numbers could pass 1e+150"),
    "WeightsTogether": (problem(weight=1e100, second=1e100), "the classifier's numbers could pass"),
    "LargestWeights": (problem(weight=1e308, second=1e308), "the classifier's numbers could pass"),
    "Squares": (squared(1e80), "the classifier's numbers could pass 1e+150"),
    "Gain": (problem(weight=5e-324, second=1e140), "multiplies what its first layer sums by more than"),
    "LittleNoise": (plausible(1e-155), "the noise of 'x' has spread 1e-155"),
    "MuchNoise": (plausible(1e155), "the noise of 'x' has spread 1e+155"),
    "NoiseLost": (plausible(1e120), "the noise of 'x' has spread 1e+120"),
    "AcceptedLogit": (problem(factual=1.5e308), "the logit is larger than any double"),
}


@pytest.mark.parametrize(("instance", "message"), REFUSED.values(), ids=REFUSED)
def test_numbers_too_large_are_refused(tmp_path, capsys, instance: Instance, message: str) -> None:
    """Exit code 2 and one line; no traceback, and no claim."""
    with pytest.raises(Unsupported, match=re.escape(message)):
        solve(instance)
    file = tmp_path / "instance.json"
    write_instance(instance, file)
    assert main(["solve", str(file)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize("backend", ["bab", "highs"])
def test_sizes_that_bend_where_no_lever_goes_are_solved(backend: str) -> None:
    """At 1e308, which times the steepest rate is no double."""
    zone = FreeZone(scale=1e-3, free=0.25)
    result = solve(replace(problem(), cost=Cost.pure("l1", dict.fromkeys("xy", zone))), backend)
    assert result.status == "optimal"
    assert result.cost == pytest.approx(250, rel=1e-5)


def test_large_numbers_that_fit_are_solved() -> None:
    """Below the limits there is an answer, and it is right."""
    result = solve(problem(bound=1e100, scale=1e100, weight=1e-100))
    assert result.status == "optimal"
    assert result.cost == pytest.approx(0.25, rel=1e-5)
