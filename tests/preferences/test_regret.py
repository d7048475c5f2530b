"""The proven regret against linear programs over every alternative, and against random weights."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from milp_recourse.elicitation.weight_cone import Row, half_space
from milp_recourse.formats import read_instance
from milp_recourse.preferences.cost_parts import cost_parts
from milp_recourse.preferences.known_optima import Optima, doubles_below
from milp_recourse.preferences.regret import largest_regret
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.alternatives import alternatives
from tests.helpers.processes import ROOT

LEAST = 0.05


def tree(number: int) -> Instance:
    return read_instance(ROOT / f"instances/credit_trees/credit_{number:03d}.json")


def rows_for(rng: np.random.Generator, optima: Optima, true: np.ndarray, count: int) -> list[Row]:
    """Answers of a person with weights ``true`` to random pairs of optima."""
    drawn = rng.dirichlet(np.ones(len(true)), 2 * count) * len(true) * (1 - LEAST) + LEAST
    found = optima.at([tuple(w) for w in drawn.tolist()])
    exact = [Fraction(w) for w in true.tolist()]
    rows = []
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one.parts is not None and other.parts is not None
        gap = [a - b for a, b in zip(one.parts, other.parts, strict=True)]
        sign = 1 if sum(w * g for w, g in zip(exact, gap, strict=True)) <= 0 else -1
        rows.append(half_space([sign * g for g in gap]))
    return [row for row in rows if any(row)]


def by_linear_programs(parts: np.ndarray, others: np.ndarray, rows: list[Row]) -> float:
    """The largest ratio of costs over all weights: for each alternative b, maximise w phi(a) where
    w phi(b) = 1 (Charnes and Cooper 1962)."""
    k = len(parts)
    floor = np.full((k, k), LEAST / k) - np.eye(k)  # least / k * sum w - w_f <= 0
    below = np.vstack([np.array(rows, dtype=float).reshape(len(rows), k) / 2.0**30, floor])
    best = 1.0
    for other in others:
        found = linprog(-parts, A_ub=below, b_ub=np.zeros(len(below)), A_eq=[other], b_eq=[1.0])
        assert found.status == 0
        best = max(best, -found.fun)
    return best - 1


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("answers", [0, 2, 5])
def test_the_largest_regret_is_that_of_linear_programs(number: int, answers: int) -> None:
    """A tree has finitely many recourses that can be the cheapest, one per leaf: the largest regret is then
    the largest over these of a linear program over all weights."""
    instance, rng = tree(number), np.random.default_rng(number)
    optima = Optima(instance)
    k = len(optima.levers)
    true = rng.dirichlet(np.ones(k)) * k * (1 - LEAST) + LEAST
    rows = rows_for(rng, optima, true, answers)
    [recommended] = optima.at([tuple(true.tolist())])
    assert recommended.parts is not None
    regret = largest_regret(recommended.parts, rows, optima, LEAST)
    others = np.array([
        [float(p) for p in cost_parts(instance, instance.numbers(one.action), optima.levers)]
        for one in alternatives(instance, 10_000)
    ])  # fmt: skip
    wanted = by_linear_programs(np.array([float(p) for p in recommended.parts]), others, rows)
    assert regret.most == pytest.approx(wanted, rel=1e-5, abs=2e-6)
    assert regret.attained <= regret.most
    assert regret.attained == pytest.approx(wanted, rel=1e-5, abs=2e-6)


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "l2"])
def test_no_weights_that_the_answers_allow_have_more_regret(kind: str) -> None:
    """Networks: under random weights that satisfy the answers, the certified optimum is no cheaper than the
    bound says, and the weights of the largest regret come close to it."""
    instance = read_instance(ROOT / "instances/loan/loan_009.json")
    instance = replace(instance, cost=Cost.pure(kind, instance.cost.measures))
    rng, optima = np.random.default_rng(3), Optima(instance)
    true = rng.dirichlet(np.ones(4)) * 4 * (1 - LEAST) + LEAST
    rows = rows_for(rng, optima, true, 3)
    [recommended] = optima.at([tuple(true.tolist())])
    assert recommended.parts is not None
    regret = largest_regret(recommended.parts, rows, optima, LEAST)
    assert 0 < regret.attained <= regret.most <= regret.attained * (1 + 1e-4) + 1e-5
    power = 0.5 if kind == "l2" else 1.0
    at = np.array([[w * 4 / sum(ray.weights) for w in ray.weights] for ray in regret.cone.rays])
    mixed = rng.dirichlet(np.ones(len(at)), 20) @ at  # allowed by the cuts, maybe not by other answers
    for weights in np.vstack([mixed, true]).tolist():
        exact = [Fraction(w) for w in weights]
        [best] = Optima(instance).at([tuple(weights)])
        assert best.parts is not None
        costs = [
            sum(w * p for w, p in zip(exact, parts, strict=True)) for parts in (recommended.parts, best.parts)
        ]
        assert float(costs[0] / costs[1]) ** power - 1 <= regret.most + 1e-9


def test_each_bound_rests_on_an_optimum_for_weights_no_larger() -> None:
    """The weights solved for are, times a factor, at most those of the ray."""
    optima = Optima(tree(3))
    [recommended] = optima.at([(1.0,) * 4])
    assert recommended.parts is not None
    regret = largest_regret(recommended.parts, [], optima, LEAST)
    for ray, one in zip(regret.cone.rays, regret.rests_on, strict=True):
        assert one is not None
        exact = doubles_below(ray.weights)
        assert all(Fraction(a) * sum(ray.weights) <= 4 * b for a, b in zip(exact, ray.weights, strict=True))


def test_an_early_stop_only_proves_less() -> None:
    """With no searches at all, what is known by then still bounds the regret."""
    optima = Optima(tree(3))
    [recommended] = optima.at([(1.0,) * 4])
    assert recommended.parts is not None
    early = largest_regret(recommended.parts, [], optima, LEAST, most_solved=0)
    full = largest_regret(recommended.parts, [], optima, LEAST)
    assert early.most >= full.most > 0
    assert len(early.rests_on) == len(early.cone.rays)


def test_nothing_is_cheaper_than_nothing() -> None:
    """An action that costs nothing has no regret."""
    optima = Optima(tree(3))
    assert largest_regret((Fraction(0),) * 4, [], optima, LEAST).most == 0
    assert optima.known == []
