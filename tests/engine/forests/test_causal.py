"""Trees inside causal models, against region-by-region solves of the network engine."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse import read_instance
from milp_recourse.engine.forests.axes import separable
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import already_good, judge
from milp_recourse.problem.cost import Cost, Quantiles
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.loan import loan
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.questions.solve import solve
from milp_recourse.solvers import backend
from tests.helpers.cost_kinds import with_falls
from tests.helpers.generators import sample_actions
from tests.helpers.tree_checks import same
from tests.helpers.tree_regions import judged, regions
from tests.helpers.tree_samples import random_causal_instance, random_tree

SEEDS = range(90)


def test_random_models_agree_with_the_network_engine() -> None:
    """The same optimum, or none in both; ReLUs, holds, domains and plausibility included."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        instance = random_causal_instance(seed)
        if instance is None or already_good(instance) or len(regions(instance)) > 60:
            continue
        if backend("bab").why_not(instance) is not None:
            continue
        known = judged(instance)
        if known is not None and math.isnan(known):
            continue
        result = solve(instance, "bab", 30)
        seen[result.status.value] += 1
        if known is None:
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert result.status is Status.OPTIMAL, seed
            assert abs(result.cost - known) <= 2 * gap_tolerance(known), seed
            assert result.proof == "rigorous"
    assert seen["optimal"] >= 10 and seen["infeasible"] >= 10, seen


def test_costs_that_are_not_the_engine_s_are_bounded_all_the_same() -> None:
    """Two scales, with plausibility: what the ball rules out is not split for ever."""
    seen: Counter[str] = Counter()
    for seed in range(75):
        instance = random_causal_instance(seed)
        if instance is None or not instance.plausible or not instance.cost.uses_scale:
            continue
        numeric = [n for n in instance.levers if instance.by_name[n].kind != "categorical"]
        scale = {n: (0.2 if seed % 2 else 4.0) * instance.cost.measures[n].rise for n in numeric}
        instance = replace(instance, cost=with_falls(instance.cost, scale))
        if already_good(instance) or backend("bab").why_not(instance) is not None:
            continue
        result = solve(instance, "bab", 10)
        seen[result.status.value] += 1
        for row in sample_actions(np.random.default_rng(seed), instance, 60):
            pairs = zip(instance.features, row.tolist(), strict=True)
            verdict = judge(instance, {f.name: v for f, v in pairs if not math.isnan(v)})
            bound = math.inf if result.status is Status.INFEASIBLE else result.lower_bound
            assert not verdict.feasible or bound <= verdict.cost, seed
    assert seen["limit"] == 0 and seen["optimal"] + seen["infeasible"] >= 7, seen


def loan_trees(seed: int, count: int) -> Instance:
    """A Loan applicant, plausible actions on four features, and random trees over all seven columns."""
    rng = np.random.default_rng(seed)
    base = read_instance(instances_path() / "loan" / f"loan_{seed:03d}.json")
    rows = loan().sample(200, rng)
    thresholds = [np.round(rng.choice(rows[:, c], 2), 2).tolist() for c in range(7)]
    forest = TreeEnsemble(
        tuple(random_tree(rng, thresholds, 3, np.round(rng.random(6), 2)) for _ in range(count)), 7
    )
    scores = np.unique(np.append(forest.scores(rows), forest.score(base.factual_row)))
    above = scores[scores >= forest.score(base.factual_row)]
    threshold = float(above[len(above) // 3])
    return replace(base, classifier=forest, accept=Acceptance(threshold, 0.0, strict=True), reference=None)


@pytest.mark.parametrize("seed", range(8))
def test_loan_agrees_with_the_network_engine(seed: int) -> None:
    """Downstream duration and savings, the ReLU of income and the plausibility ball."""
    instance = loan_trees(seed, 1 + seed % 2)
    if already_good(instance):
        pytest.skip("nothing to do")
    known, result = judged(instance), solve(instance, "bab", 60)
    if known is None:
        assert result.status is Status.INFEASIBLE
    else:
        assert result.status is Status.OPTIMAL
        assert abs(result.cost - known) <= 2 * gap_tolerance(known)


@pytest.mark.parametrize("one_hot", [False, True])
def test_cpsat_agrees_with_bab(one_hot: bool) -> None:
    """Two searches over the same pieces, costs and leaves: fixed point and regions; boxes of cells."""
    seen: Counter[str] = Counter()
    for seed in range(200 if one_hot else 45):
        instance = random_causal_instance(seed, one_hot)
        if instance is None or already_good(instance) or separable(instance):
            continue
        if backend("cpsat").why_not(instance) is not None:
            continue
        result, other = solve(instance, "cpsat", 30), solve(instance, "bab", 30)
        seen[result.status.value] += 1
        seen["ball"] += instance.plausible
        if result.status is Status.LIMIT:  # CP-SAT's time, not ours
            assert result.lower_bound <= other.cost <= result.cost, (seed, result, other)
            continue
        assert same(result, other), (seed, result, other)
    assert seen["optimal"] >= 2 and seen["infeasible"] >= 10 and seen["ball"] >= 10, seen
    assert seen["limit"] <= 1, seen


@pytest.mark.parametrize("count", [1, 4, 20])
def test_cpsat_solves_loan(count: int) -> None:
    """One to twenty trees over downstream columns and the plausibility ball."""
    compared = 0
    for seed in range(4):
        instance = loan_trees(seed, count)
        if not already_good(instance):
            result = solve(instance, "cpsat", 60)
            assert same(result, solve(instance, "bab", 60)), (seed, result)
            assert result.proof == "solver"
            compared += 1
    assert compared >= 2


COARSE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from tests.helpers.tree_samples import random_causal_instance
from milp_recourse.solvers.cpsat import piece_model as pieces
from milp_recourse.solvers.cpsat.causal_trees import RegionSearch
from milp_recourse.solvers.protocol import Options
from tests.helpers.cost_kinds import with_falls
pieces.GRID_BITS = pieces.FORM_BITS = 3
found = {}
for seed in json.loads(sys.argv[2]):
    proposal = RegionSearch(random_causal_instance(seed), Options(30)).run()
    found[seed] = proposal.action, proposal.lower_bound
print(json.dumps(found))
"""


def test_the_grid_does_not_decide() -> None:
    """With eight whole numbers per action the relaxation is loose, and results are the same all the same."""
    seeds, known = [], {}
    for seed in range(45):
        instance = random_causal_instance(seed)
        if instance is None or already_good(instance) or backend("cpsat").why_not(instance) is not None:
            continue
        result = solve(instance, "bab", 30)
        if result.status is Status.OPTIMAL:
            seeds.append(seed)
            known[seed] = instance, result.cost
    assert len(seeds) >= 8
    command = [sys.executable, "-c", COARSE, json.dumps(sys.path), json.dumps(seeds)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for seed, (action, bound) in json.loads(printed).items():
        instance, cost = known[int(seed)]
        verdict = judge(instance, action)
        assert verdict.feasible
        assert abs(float(verdict.cost) - cost) <= 2 * gap_tolerance(cost), seed
        assert cost - 2 * gap_tolerance(cost) <= bound <= cost * (1 + 1e-9), seed


def test_costs_in_percentiles_are_left_to_bab() -> None:
    """One line, where an action moves other features."""
    instance = loan_trees(0, 1)
    quantiles = {name: Quantiles((-9.0, 9.0), (0.0, 1.0)) for name in instance.levers}
    refusal = backend("cpsat").why_not(replace(instance, cost=Cost.percentile("percentile", quantiles)))
    assert refusal is not None and "percentiles" in refusal


def test_curves_are_refused() -> None:
    """Trees downstream of a sigmoid get one line, not a wrong bound."""
    instance = read_instance(instances_path() / "smoke" / "sigmoid_equation.json")
    forest = TreeEnsemble(
        (random_tree(np.random.default_rng(0), [[0.5]] * len(instance.features), 2, np.array([0.2, 0.8])),),
        len(instance.features),
    )
    refusal = backend("bab").why_not(replace(instance, classifier=forest))
    assert refusal is not None and "sigmoid" in refusal


def test_a_limit_comes_with_an_action() -> None:
    """However short: reading the trees took all of 50 ms, and nothing had been tried then."""
    found = 0
    for seed in range(60):
        instance = random_causal_instance(seed)
        if instance is None or already_good(instance):
            continue
        result = solve(instance, "bab", 10.0)
        if result.action is not None:
            found += 1
            assert solve(instance, "bab", 1e-3).action is not None, seed
    assert found > 8
