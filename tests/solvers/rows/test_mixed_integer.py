"""The whole program as columns and rows: fix the action, and the rows say what the judge says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from milp_recourse import read_instance
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program import lower
from milp_recourse.solvers.highs.highs_model import HighsModel
from milp_recourse.solvers.rows import MixedInteger, encode, equal_parts
from milp_recourse.solvers.rows.bounds import hull
from milp_recourse.solvers.rows.mixed_integer import combine

INSTANCES = Path(__file__).resolve().parents[3] / "instances"
PIECEWISE_LINEAR = (
    "smoke/hold",
    "smoke/plausible_ball",
    "smoke/plausible_relu",
    "smoke/domain_downstream_hold",
    "smoke/mixture",
    "smoke/categorical",
    "smoke/ordinal_one_hot",
    "smoke/l0",
    "loan/loan_000",
)

FEASIBLE = {
    "smoke/plausible_ball": [{"income": 3.5, "savings": 1.0}],
    "smoke/plausible_relu": [{"income": 4.4, "savings": 11.1}],
}
"""Small targets that random actions miss."""


def open_program(instance: Instance, pieces: int = 16) -> MixedInteger:
    program = lower(instance)
    bounds = hull(instance, program)
    assert bounds is not None
    return encode(program, bounds, equal_parts(pieces))


def complete(mip: MixedInteger, action: dict[str, float]) -> np.ndarray | None:
    """Cheapest values of all columns with the action fixed; None where the rows forbid it."""
    for feature, k in mip.actions.items():
        mip.lower[k], mip.upper[k] = (
            (action[feature],) * 2 if feature in action else (mip.lower[k], mip.upper[k])
        )
        mip.lower[mip.flags[feature]] = mip.upper[mip.flags[feature]] = float(feature in action)
    highs = HighsModel(mip, None, relaxed=False)
    highs.cost_tangent(np.zeros(len(mip.names) + 1))
    outcome = highs.solve(None)
    assert outcome.kind in ("point", "infeasible")
    return outcome.values


def actions(instance: Instance, count: int) -> list[dict[str, float]]:
    """Random subsets at random values, whole numbers where they must be."""
    rng = np.random.default_rng(7)
    chosen = []
    for _ in range(count):
        action = {}
        for name, (low, high) in instance.levers.items():
            if rng.random() < 0.7:
                value = float(rng.uniform(low, high) if rng.random() < 0.8 else instance.factual[name])
                value = min(max(value, low), high)
                action[name] = float(round(value)) if instance.by_name[name].integral else value
        chosen.append(action)
    return chosen


@pytest.mark.parametrize("case", PIECEWISE_LINEAR)
def test_with_the_action_fixed_rows_and_judge_agree(case: str) -> None:
    """Feasible exactly where the judge says so, and the objective is the exact cost."""
    instance = read_instance(INSTANCES / f"{case}.json")
    seen = set()
    for action in actions(instance, 30) + FEASIBLE.get(case, []):
        mip = open_program(instance)
        values = complete(mip, action)
        verdict = judge(instance, action)
        inside = values is not None and HighsModel(mip, None, relaxed=True).ball_excess(values) <= 0
        demands = [f for f in verdict.faults if "deployed" not in f]
        assert inside == (not demands), (action, verdict.faults)
        seen.add(inside)
        if inside:
            assert mip.objective(values) == pytest.approx(float(verdict.cost), rel=1e-6, abs=1e-6)
            assert mip.decode(values) == pytest.approx(action)
    assert case.startswith("loan") or seen == {True, False}, "the cases show both verdicts"


@pytest.mark.parametrize("case", ["smoke/sigmoid_equation", "smoke/sigmoid_link", "smoke/square_equation"])
def test_a_coarse_curve_never_forbids_a_feasible_action(case: str) -> None:
    """Curves are relaxed: what the judge accepts satisfies the rows, however few the pieces."""
    instance = read_instance(INSTANCES / f"{case}.json")
    accepted = [a for a in actions(instance, 40) if judge(instance, a).feasible]
    assert accepted
    for action in accepted[:5]:
        for pieces in (1, 3):
            assert complete(open_program(instance, pieces), action) is not None


def test_a_column_without_derived_bounds_is_refused() -> None:
    """No bound is ever assumed: an infinite one raises."""
    model = MixedInteger()
    with pytest.raises(ValueError, match="no derived bounds"):
        model.column("free", -np.inf, 1.0)


def test_forms_add_up() -> None:
    """combine is linear, and a row's constant moves to its sides."""
    model = MixedInteger()
    x, y = model.column("x", 0.0, 1.0), model.column("y", 0.0, 1.0)
    form = combine((({x: 1.0, y: 2.0}, 3.0), 2.0), (({y: 4.0}, 1.0), -1.0))
    assert form == ({x: 2.0, y: 0.0}, 5.0)
    model.row("r", form, lower=1.0, upper=9.0)
    row = model.rows[-1]
    assert (dict(row.coefficients), row.lower, row.upper) == ({x: 2.0}, -4.0, 4.0)


def test_decode_keeps_what_is_acted_on() -> None:
    """A flag below one half means the feature is not acted on; without a flag it always is."""
    model = MixedInteger()
    model.actions = {"a": model.column("set_a", 0.0, 9.0), "b": model.column("set_b", 0.0, 9.0)}
    model.flags = {"a": model.column("act_a", 0.0, 1.0, integer=True)}
    assert model.decode([3.0, 4.0, 0.0]) == {"b": 4.0}
    assert model.decode([3.0, 4.0, 1.0]) == {"a": 3.0, "b": 4.0}


def test_neurons_that_cancel_leave_their_exact_difference() -> None:
    """Two ReLUs that are always on, 0.3 x and 0.9 x, weighted so that nearly nothing of x is left."""
    instance = read_instance(INSTANCES / "smoke/hold.json")
    inputs = instance.classifier.weights[0].shape[1]
    first, last = np.zeros((2, inputs)), np.array([[0.9, -0.3000001]])
    first[:, 0] = 0.3, 0.9
    network = ReluNetwork((first, last), (np.array([1e6, 1e6]), np.array([0.0])))
    mip = open_program(replace(instance, classifier=network))
    [row] = [row for row in mip.rows if row.name == "accepted"]
    [found] = row.coefficients.values()
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(first[:, 0], last[0], strict=True))
    assert found == float(exact)
