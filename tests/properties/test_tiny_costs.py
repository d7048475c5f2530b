"""The tolerance knows no units: a cost in large scales is the same problem with the same optimum."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.formats import write_instance
from milp_recourse.judge import conclude, judge
from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status, gap_tolerance, is_closed
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from milp_recourse.solvers.bab import BabBackend
from milp_recourse.solvers.protocol import Options, Proposal
from tests.properties.test_other_units import drawn
from verify.__main__ import examine
from verify.files.instance import Source
from verify.kernel.certificate import allowance

POWERS = {"l2-squared": 2, "l1": 1, "linf": 1}
SEEDS = [seed for seed in range(1000, 1040) if seed != 1017 and drawn(seed).cost.kind in POWERS]


def with_scale(instance: Instance, exponent: int) -> Instance:
    """The same problem, its cost in scales 2^exponent as large."""
    scale = {name: own.times(2.0**exponent) for name, own in instance.cost.measures.items()}
    return replace(instance, cost=replace(instance.cost, measures=scale))


@pytest.mark.parametrize("exponent", [20, 60, -20])
def test_bab_finds_the_optimum_in_any_scale(exponent: int) -> None:
    """The absolute tolerance of 1e-9 that was called costs below it optimal at once."""
    for seed in SEEDS:
        instance = drawn(seed)
        one, two = solve(instance), solve(with_scale(instance, exponent))
        assert one.status is two.status is not Status.LIMIT, seed
        if one.cost is not None:
            factor = 2.0 ** (exponent * POWERS[instance.cost.kind])
            assert abs(two.cost * factor - one.cost) <= 1.01e-6 * one.cost, seed


@pytest.mark.parametrize("of_trees", [False, True])
@pytest.mark.parametrize("exponent", [0, 20, -20])
def test_watched_costs_are_the_applicants_own(exponent: int, of_trees: bool) -> None:
    """The search works with costs of usual size; networks' were reported in these."""
    instance = with_scale(two_trees() if of_trees else drawn(SEEDS[0]), exponent)
    watched: list[tuple[float, float]] = []
    proposal = BabBackend().solve(instance, Options(watch=lambda *costs: watched.append(costs)))
    assert proposal.action is not None
    cost = float(judge(instance, proposal.action).cost)
    last, bound = watched[-1]
    assert last == pytest.approx(cost, rel=1e-6)
    assert bound <= cost


def two_trees() -> Instance:
    """A number that must exceed two thresholds."""
    stumps = tuple(
        Tree(
            np.array([0, -2, -2]),
            np.array([threshold, -2.0, -2.0]),
            np.array([1, -1, -1]),
            np.array([2, -1, -1]),
            np.array([0.0, 0.0, 1.0]),
        )
        for threshold in (0.5, 0.75)
    )
    return Instance(
        (Feature("x", "continuous", True, (0.0, 1.0)),),
        independent(["x"]),
        TreeEnsemble(stumps, 1),
        {"x": 0.0},
        Preferences(("x",)),
        Cost.pure("l1", {"x": 1.0}),
        Acceptance(0.75, strict=True),
    )


@pytest.mark.parametrize("seed", [SEEDS[0], pytest.param(SEEDS[1], marks=pytest.mark.long)])
@pytest.mark.parametrize("exponent", [20, 330, -330])
def test_highs_finds_the_optimum_of_costs_of_any_size(seed: int, exponent: int) -> None:
    """Its searches compare with absolute tolerances; costs reach them in units of their own size. With scales
    of 1e100 HiGHS refused rows, and the multipliers that it returned fitted no rows any more."""
    instance = drawn(seed)
    one, two = solve(instance, "bab"), solve(with_scale(instance, exponent), "highs", 60)
    assert one.status is two.status
    if one.cost is not None:
        factor = 2.0 ** (exponent * POWERS[instance.cost.kind])
        assert abs(two.cost * factor - one.cost) <= 2.02e-6 * one.cost


def test_a_tiny_cost_is_certified(tmp_path) -> None:
    """And the checker, which computes its own tolerance, agrees that it is the optimum."""
    instance = with_scale(drawn(SEEDS[0]), 20)
    result = solve(instance, certificates=True)
    write_instance(instance, tmp_path / "instance.json")
    (tmp_path / "certificate.json.gz").write_bytes(result.evidence)
    said = examine(tmp_path / "certificate.json.gz", tmp_path / "instance.json", 60).line
    assert said.startswith("VERIFIED optimal"), said
    assert 0 < result.cost < 1e-9
    assert result.lower_bound > 0.999 * result.cost


@pytest.mark.parametrize("slow", [False, True])
def test_a_subnormal_cost_is_stated_as_the_least_double_above(slow: bool, tmp_path) -> None:
    """Product, document and checker: the least double at or above the exact cost, however few bits it has."""
    instance = replace(
        one_lever(Cost.pure("l1", {"x": 1e140})), preferences=Preferences(("x",), {"x": 1.3e-183})
    )
    file, certificate = tmp_path / "i.json", tmp_path / "c.json"
    write_instance(instance, file)
    proposal = Proposal({"x": 4.0}, 0.0, "rigorous", message="stopped")
    cost = conclude(instance, proposal, "test", 0.0, as_given=True).cost
    assert cost == 4e-323  # of 3.9e-323, which is 7.9 times the least double
    claim = {
        "format": "milp-recourse/certificate-1",
        "claim": "bounds",
        "instance_sha256": Source(file).applicant(None).digest,
        "action": {"x": 4.0},
        "lower_bound": 0.0,
        "configurations": [{"acted": ["x"], "tree": [["e"]]}],
    }
    for stated, begins in (
        (cost, "VERIFIED bounds"),
        (4.4e-323, "REJECTED: cost"),
        (3.5e-323, "REJECTED: cost"),
    ):
        certificate.write_text(json.dumps(claim | {"cost": stated}), encoding="utf-8")
        assert examine(certificate, file, 60, slow=slow).line.startswith(begins)


def one_lever(cost: Cost, kind: str = "continuous") -> Instance:
    """x at 1, to be raised to 3 of 11; the cost as given."""
    feature = Feature("x", kind, True, (1.0, 11.0))  # type: ignore[arg-type]
    network = ReluNetwork.from_layers([([[1.0]], [-3.0])], "float64")
    return Instance(
        (feature,), independent(("x",)), network, {"x": 1.0}, Preferences(("x",), {"x": 3.0}), cost
    )


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (Cost.pure("l1", {"x": 2.0}), 1.5e-11),
        (Cost.pure("linf", {"x": 2.0}), 1.5e-11),
        (Cost.pure("l2-squared", {"x": 2.0}), 7.5e-23),
        (Cost.pure("l0", {}), 0.0),
        (Cost(l1=1.0, l0=5.0, linf=2.0, measures=measured({"x": 1.0})), 9e-11),
    ],
)
@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_the_allowance_is_the_cost_of_a_trillionth_of_every_interval(
    cost: Cost, expected: float, kind: str, tmp_path
) -> None:
    """Here and in the checker, to the last bits; ours is never the larger."""
    instance = one_lever(cost, kind)
    write_instance(instance, tmp_path / "i.json")
    theirs = allowance(Source(tmp_path / "i.json").applicant(None).problem)
    assert instance.gap_allowance == pytest.approx(expected, rel=1e-12, abs=0)
    assert Fraction(instance.gap_allowance) <= theirs <= Fraction(expected) * Fraction(1 + 1e-12)


def test_labels_and_what_is_beyond_doubles_allow_nothing() -> None:
    """Categories lie no distance apart; an allowance below 1e-300 is none."""
    feature = Feature("c", "categorical", True, categories=("a", "b"))
    network = ReluNetwork.from_layers([([[0.0, 1.0]], [-1.0])], "float64")
    labels = Instance(
        (feature,),
        independent(("c",)),
        network,
        {"c": 0.0},
        Preferences(("c",)),
        Cost.pure("l1", {"c": 1.0}),
    )
    assert labels.gap_allowance == 0.0
    assert one_lever(Cost.pure("l2-squared", {"x": 1e145})).gap_allowance == 0.0


def test_the_gap_is_compared_exactly() -> None:
    """A difference that rounds to the tolerance is not within it."""
    assert is_closed(1.0, 1.0 - 0.99e-6)
    assert not is_closed(1.0, 1.0 - 1.01e-6)
    assert is_closed(1e-30, 0.0, 1e-30)
    assert not is_closed(1e-9, 0.0)
    rng = np.random.default_rng(0)
    for cost, allowed in rng.random((100, 2)).tolist():
        assert Fraction(gap_tolerance(cost, allowed)) <= Fraction(1e-6) * Fraction(cost) + Fraction(allowed)
