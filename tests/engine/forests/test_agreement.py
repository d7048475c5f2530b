"""The exact back ends against brute force over every combination of candidate values."""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import already_good
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from tests.helpers.cell_milp import TOLERANCE, between_scores, solve_cells
from tests.helpers.tree_samples import brute_force, random_tree_instance, size_of

LARGEST = 20000


@pytest.mark.parametrize("name", ["bab", "cpsat", "highs"])
@pytest.mark.parametrize("trees", [1, None], ids=["single tree", "forest"])
def test_exact_back_ends_agree_with_brute_force(trees: int | None, name: str) -> None:
    """The same optimum, or nothing feasible in both, on every kind of feature and cost."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        instance = random_tree_instance(seed, trees)
        if not instance.levers or already_good(instance) or size_of(instance) > LARGEST:
            continue
        best, result = brute_force(instance), solve(instance, name)
        seen[result.status.value] += 1
        assert result.proof == ("rigorous" if name == "bab" else "solver")
        if best is None:
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert result.status is Status.OPTIMAL, seed
            assert abs(result.cost - float(best)) <= gap_tolerance(float(best)), seed
    assert seen["optimal"] >= 9 and seen["infeasible"] >= 7, seen


def test_cpsat_forbids_what_only_its_margin_lets_in() -> None:
    """Scores within rounding of the threshold: the integers let them in, the deployed score decides."""
    leaf, inner = np.array([-2, -2, -2]), np.array([0.5, -2.0, -2.0])
    low, high = 0.1, float(np.nextafter(0.3, 1.0))

    def stump(column: int, left: float, right: float) -> Tree:
        feature = np.where(leaf == -2, np.array([column, -2, -2]), 0)
        value = np.array([0.0, left, right])
        return Tree(feature, inner, np.array([1, -1, -1]), np.array([2, -1, -1]), value)

    trees = (stump(0, low, 0.3), stump(1, low, 0.3), stump(2, low, high))
    names = ("f0", "f1", "f2")
    features = tuple(Feature(n, "binary", True, (0.0, 1.0)) for n in names)
    forest = TreeEnsemble(trees, 3)
    full, without = forest.score([1.0, 1.0, 1.0]), forest.score([1.0, 1.0, 0.0])
    instance = Instance(
        features,
        independent(names),
        forest,
        dict.fromkeys(names, 0.0),
        Preferences(names, {"f2": 5.0}),
        Cost.pure("l1", dict.fromkeys(names, 1.0)),
        Acceptance(without, 0.0, strict=True),
    )
    assert full > without
    results = [solve(instance, name) for name in ("bab", "cpsat")]
    assert results[0].cost == results[1].cost
    exactly = replace(instance, accept=Acceptance(full, 0.0, strict=True))
    assert [solve(exactly, name).status for name in ("bab", "cpsat")] == [Status.INFEASIBLE] * 2


@pytest.mark.parametrize("file", ["tree_float32", "two_trees"])
def test_cpsat_solves_the_shipped_tree_instances(file: str) -> None:
    """The known answer, to the gap."""
    instance = read_instance(instances_path() / "smoke" / f"{file}.json")
    result = solve(instance, "cpsat")
    assert result.status is Status.OPTIMAL and instance.reference is not None
    assert abs(result.cost - instance.reference.cost) <= gap_tolerance(result.cost)


def test_bab_agrees_with_a_plain_cell_milp() -> None:
    """HiGHS on one binary per cell and one variable per leaf, where no tie with the threshold decides."""
    clear = 0
    for seed in range(30):
        instance = between_scores(random_tree_instance(seed))
        if not instance.levers or already_good(instance):
            continue
        known = solve_cells(instance)
        if known is None:
            continue
        clear += 1
        result = solve(instance, "bab")
        if math.isinf(known):
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert abs(result.cost - known) <= TOLERANCE * (1 + known), seed
    assert clear >= 15


def test_cpsat_and_highs_live_in_one_process() -> None:
    """Their libraries clash when imported together: CP-SAT stays in a child."""
    smoke = instances_path() / "smoke"
    for _ in range(2):
        assert solve(smoke / "two_trees.json", "cpsat").status is Status.OPTIMAL
        assert solve(smoke / "hold.json", "highs").status is Status.OPTIMAL
    assert "ortools" not in sys.modules
