"""Networks under costs in percentiles: proofs, which the checker accepts, of optima and impossibilities."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from milp_recourse import solve
from milp_recourse.engine.forests.axes import separable
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_population, write_instance
from milp_recourse.problem.cost import Cost, Quantiles
from tests.costs.compare_costs import problem
from tests.helpers.certificate_kinds import KINDS
from tests.helpers.free_zone import FreeZone
from verify.files.check import examine

LOAN = read_population(Path(__file__).parents[2] / "instances" / "loan" / "population.json")


def test_most_have_certificates(tmp_path: Path) -> None:
    """Random problems, optima and impossibilities: what has a certificate is verified."""
    counts = Counter[str]()
    for seed in range(5000, 5020):
        instance = KINDS["percentiles"](seed)
        assert instance is not None
        try:
            result = solve(instance, "bab", 10.0, True)
        except Unsupported:
            continue
        if result.evidence is None:
            continue
        assert result.proof == "rigorous"
        write_instance(instance, tmp_path / "i.json")
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        outcome = examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60.0)
        assert outcome.claim == result.status.value, outcome.line
        counts[outcome.claim] += 1
    assert counts["optimal"] >= 4
    assert counts["infeasible"] >= 7


@pytest.mark.parametrize("kind", ["percentile", "log-percentile", "two scales, mixture"])
def test_trees_in_causal_models_have_certificates(kind: str, tmp_path: Path) -> None:
    """Where levers move each other: every answer that is proven has one, and it is verified."""
    proven = 0
    for seed in range(0, 18, 3):
        instance = problem(seed, kind, True)
        if instance is None:
            continue
        assert not separable(instance)
        result = solve(instance, "bab", 20.0, True)
        assert result.evidence is not None, result.message
        write_instance(instance, tmp_path / "i.json")
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60.0).line.startswith("VERIFIED")
        proven += 1
    assert proven >= 2


@pytest.mark.parametrize(
    ("kind", "person"),
    [("percentile", 21), ("percentile", 39), ("log-percentile", 2), ("log-percentile", 51)],
)
def test_who_pays_nothing_near_the_factual_has_a_certificate(kind: str, person: int, tmp_path: Path) -> None:
    """Loan people whose ranks are flat around their values: at the end of what is free, rounding is all that
    the bound loses of a cost near 0, and cuts there would be one double apart."""
    instance = LOAN[person]
    shares = (0.0, 0.5, 0.5, 1.0) if kind == "percentile" else (0.0, 0.7, 0.7, 5.0)
    levels = {}
    for name in instance.levers:
        x, reach = instance.factual[name], instance.cost.measures[name].rise
        levels[name] = Quantiles((x - reach, x - reach / 50, x + reach / 50, x + reach), shares)
    labels = [f.name for f in instance.features if f.kind == "categorical"]
    instance = replace(instance, cost=Cost.percentile(kind, levels, labels))
    result = solve(instance, "bab", certificates=True)
    assert result.evidence is not None, result.message
    write_instance(instance, tmp_path / "i.json")
    (tmp_path / "c.json.gz").write_bytes(result.evidence)
    assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60.0).line.startswith("VERIFIED optimal")


def test_squares_of_sizes_near_0_are_bounded_by_chords() -> None:
    """Where a size begins at 0 at an end of a box, rounding made its chord negative there, and the line
    through the factual value, which is 0, took its place."""
    zones = {
        "amount": FreeZone(0.729119252460991, 1.458238504921982, 11.665908039375855, 100.0),
        "duration": FreeZone(1.2199154519788709, 0.24398309039577418, 0.9759323615830967, 3.0),
        "income": FreeZone(11.864923398872156, 0.5932461699436078, 4.745969359548862, 0.1),
        "savings": FreeZone(1.2608782015503284, 0.5043512806201312, 0.5547864086821445, 3.0),
    }
    result = solve(replace(LOAN[42], cost=Cost.pure("l2-squared", zones)), "bab", 10.0, True)
    assert result.evidence is not None, result.message


def test_cuts_of_a_proof_are_not_where_a_cost_loses_by_rounding_alone() -> None:
    """Where the gap to the target is as small, another lever's knot was to be split."""
    zones = {
        "amount": FreeZone(2.916477009843964, 1.458238504921982, 11.665908039375855, 100.0),
        "duration": FreeZone(24.398309039577416, 0.48796618079154835, 0.5367627988707032, 0.5),
        "income": FreeZone(11.864923398872156, 2.372984679774431, 9.491938719097725, 10.0),
        "savings": FreeZone(25.217564031006564, 2.5217564031006567, 2.773932043410723, 0.1),
    }
    result = solve(replace(LOAN[13], cost=Cost.pure("l1", zones)), "bab", certificates=True)
    assert result.evidence is not None, result.message
