"""The grid back end: the literal full product, in bounded memory, without claims."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instance_files_in, instances_path
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent
from milp_recourse.solvers import grid
from milp_recourse.solvers.grid import GridBackend, grid_values
from milp_recourse.solvers.protocol import Options

SMOKE = instance_files_in(instances_path() / "smoke")
LOAN = sorted((instances_path() / "loan").glob("loan_*.json"))


def linear_instance(*, bounds=((0.0, 12.0),), threshold=3.0, cost="l2-squared", **changes) -> Instance:
    """logit = sum of features, from the origin."""
    names = tuple(f"f{k}" for k in range(len(bounds)))
    made = Instance(
        features=tuple(Feature(n, actionable=True, bounds=b) for n, b in zip(names, bounds, strict=True)),
        scm=independent(names),
        classifier=ReluNetwork.from_layers([([[1.0] * len(names)], [0.0])]),
        factual=dict.fromkeys(names, 0.0),
        preferences=Preferences(names),
        cost=Cost.pure(cost, dict.fromkeys(names, 1.0)),
        accept=Acceptance(threshold),
    )
    return replace(made, **changes)


def literal_cost(instance: Instance, bins: int) -> float | None:
    """Cheapest feasible point of the full product, every point judged exactly."""
    names = list(instance.levers)
    choices = [[None, *grid_values(instance, n, bins)] for n in names]
    costs = []
    for values in product(*choices):
        action = {n: float(v) for n, v in zip(names, values, strict=True) if v is not None}
        judgement = judge(instance, action)
        if judgement.feasible:
            costs.append(float(judgement.cost))
    return min(costs, default=None)


def found_cost(instance: Instance, bins: int = grid.BINS) -> float | None:
    """Exact cost of what the back end finds; None when it finds nothing."""
    proposal = GridBackend(bins).solve(instance, Options())
    assert proposal.lower_bound is None
    assert proposal.proof is None
    if proposal.action is None:
        assert proposal.message
        return None
    judgement = judge(instance, proposal.action)
    assert judgement.feasible
    return float(judgement.cost)


def same(a: float | None, b: float | None) -> bool:
    """Both nothing, or equal up to the order of summation."""
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-12)


@pytest.mark.parametrize("path", SMOKE, ids=lambda p: p.stem)
def test_it_gives_the_cost_of_the_literal_full_product(path: Path) -> None:
    """Searching in order of cost and stopping early changes no answer."""
    instance = read_instance(path)
    bins = 25 if len(instance.levers) < 3 else 7
    assert same(found_cost(instance, bins), literal_cost(instance, bins))


@pytest.mark.parametrize("index", [122, 130, 131, 137, 140, 156, 171])
def test_it_gives_the_full_products_cost_on_loan(index: int) -> None:
    """On the Loan model with and without plausibility, for one to four actionable features."""
    instance = read_instance(LOAN[index])
    bins = {1: 25, 2: 25, 3: 9, 4: 5}[len(instance.levers)]
    assert same(found_cost(instance, bins), literal_cost(instance, bins))


@pytest.mark.parametrize("cost", ["l2-squared", "l1", "linf", "l0"])
@pytest.mark.parametrize("block", [1, 8, 200])
def test_memory_can_be_bounded_without_changing_the_answer(
    cost: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products larger than a block are walked prefix by prefix, for sums and maxima alike."""
    bounds = ((0.0, 4.0), (-1.0, 3.0), (0.0, 5.0))
    instance = linear_instance(bounds=bounds, threshold=7.3, cost=cost)
    instance = replace(instance, preferences=Preferences(tuple(instance.levers), {"f0": 3.0, "f1": 2.0}))
    whole = found_cost(instance, 9)
    monkeypatch.setattr(grid, "BLOCK", block)
    assert found_cost(instance, 9) == whole == pytest.approx(literal_cost(instance, 9))


def test_bins_reach_twice_as_far_as_the_bounds_and_are_clipped() -> None:
    """linspace(x - 2 (x - min), x + 2 (max - x)) clipped to [min, max], duplicates dropped."""
    instance = linear_instance(bounds=((-4.0, 8.0),), factual={"f0": 2.0})
    expected = np.unique(np.clip(np.linspace(-10.0, 14.0, 25), -4.0, 8.0))
    assert np.array_equal(grid_values(instance, "f0"), expected)


def test_the_applicants_own_range_and_monotonicity_drop_bins_instead_of_moving_them() -> None:
    """Bins come from the bounds; a range only filters them."""
    feature = Feature("f0", actionable=True, bounds=(0.0, 12.0), monotone="increase")
    instance = linear_instance(
        features=(feature,), factual={"f0": 2.0}, preferences=Preferences(("f0",), {}, {"f0": (0.0, 4.5)})
    )
    values = grid_values(instance, "f0")
    assert values.min() >= 2.0
    assert values.max() <= 4.5
    assert 4.5 not in values


def test_whole_numbers_are_rounded_and_deduplicated() -> None:
    """An integer feature with bounds 0.5..3.2 has the bins 1, 2, 3."""
    feature = Feature("f0", kind="integer", actionable=True, bounds=(0.5, 3.2))
    assert grid_values(linear_instance(features=(feature,)), "f0").tolist() == [1.0, 2.0, 3.0]


def test_every_category_is_tried() -> None:
    """Labels have no bins: all of them are candidates."""
    feature = Feature("f0", kind="categorical", actionable=True, categories=("a", "b", "c"))
    assert grid_values(linear_instance(features=(feature,)), "f0").tolist() == [0.0, 1.0, 2.0]


def test_a_point_that_exact_arithmetic_just_refuses_is_passed_over() -> None:
    """The float check is lenient; exact judgement sends the search on to the next candidate."""
    values = grid_values(linear_instance(), "f0")
    instance = linear_instance(threshold=math.nextafter(float(values[5]), math.inf))
    proposal = GridBackend().solve(instance, Options())
    assert proposal.action == {"f0": values[6]}


def test_a_time_limit_is_a_message_not_an_error() -> None:
    """Out of time it proposes nothing and says why."""
    proposal = GridBackend().solve(linear_instance(threshold=100.0), Options(time_limit=1e-12))
    assert proposal.action is None
    assert proposal.lower_bound is None
    assert "time limit" in str(proposal.message)


def test_nothing_found_is_no_claim() -> None:
    """Between two bins there may be recourse: the grid finds none and says no more."""
    instance = linear_instance(bounds=((0.0, 12.0),), threshold=3.5)
    network = ReluNetwork.from_layers(
        [([[1.0], [1.0], [1.0]], [-3.4, -3.5, -3.6]), ([[10.0, -20.0, 10.0]], [2.6])]
    )
    instance = replace(instance, classifier=network)  # a roof of width 0.2 around 3.5, between bins 3 and 4
    assert judge(instance, {"f0": 3.5}).feasible
    assert GridBackend().solve(instance, Options()).action is None


def test_it_solves_a_loan_applicant_in_well_under_a_second() -> None:
    """Four actions, plausible: duplicates after clipping are dropped, the rest is batched."""
    instance = read_instance(LOAN[0])
    assert GridBackend().solve(instance, Options(time_limit=0.5)).message is None


def test_scores_of_a_batch_are_the_deployed_scores() -> None:
    """Batched tree evaluation follows the float32 rule and sums in the same order."""
    rng = np.random.default_rng(0)
    trees = tuple(
        Tree(
            feature=np.array([0, 1, -2, -2, -2]),
            threshold=np.array([rng.normal(), rng.normal(), -2, -2, -2]),
            left=np.array([1, 2, -1, -1, -1]),
            right=np.array([4, 3, -1, -1, -1]),
            value=rng.random(5),
        )
        for _ in range(7)
    )
    forest = TreeEnsemble(trees, 2)
    rows = np.concatenate([rng.normal(size=(200, 2)), [[t.threshold[0], t.threshold[1]] for t in trees]])

    def walked(row: np.ndarray) -> float:
        total, x32 = 0.0, row.astype(np.float32).astype(np.float64)
        for tree in trees:
            node = 0
            while tree.left[node] != -1:
                goes_left = x32[tree.feature[node]] <= tree.threshold[node]
                node = tree.left[node] if goes_left else tree.right[node]
            total += tree.value[node]
        return total / len(trees)

    assert np.array_equal(forest.scores(rows), [walked(row) for row in rows])
    assert all(forest.score(row) == walked(row) for row in rows)


def test_the_float_plausibility_check_agrees_with_the_exact_one() -> None:
    """On random Loan actions, away from equality, both give the same verdict."""
    rng = np.random.default_rng(1)
    instance = read_instance(LOAN[0])
    x, positions = instance.factual_row, [3, 4, 5, 6]
    actions = np.full((200, 7), np.nan)
    low, high = np.array([instance.levers[instance.features[k].name] for k in positions]).T
    actions[:, positions] = rng.uniform(low, high, (200, 4))
    actions[rng.random((200, 7)) < 0.5] = np.nan
    rows = instance.scm.counterfactual(x, actions)
    gain = grid.log_density_gain(instance.scm, x, rows, ~np.isnan(actions))
    assert (gain > 0).any()
    assert (gain < 0).any()
    for row, verdict in zip(actions, gain >= 0, strict=True):
        action = grid.as_action(instance, row)
        exact = instance.scm.counterfactual_exact(instance.factual, action)
        assert instance.scm.plausible_exact(instance.factual, exact, frozenset(action)) == verdict
