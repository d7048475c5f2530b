"""Causal tree problems where a back end once said something false: the answer is known beforehand."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.expression import Constant, Expression, Product, Sigmoid, Variable
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.options import GRACE, LATE
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from milp_recourse.questions.solve import solve
from tests.helpers.tree_checks import checked

BACKENDS = ("bab", "cpsat")

LEAF = (-2, -2.0, -1, -1)


def ensemble(columns: int, *nodes: tuple[int, float, int, int, float]) -> TreeEnsemble:
    """One tree of (feature, threshold, left, right, value)."""
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    whole, real = (feature, left, right), (threshold, value)
    [feature, left, right] = (np.array(v, dtype=np.int64) for v in whole)
    [threshold, value] = (np.array(v, dtype=np.float64) for v in real)
    return TreeEnsemble((Tree(feature, threshold, left, right, value),), columns, dtype="float64")


def problem(
    features: tuple[Feature, ...], equations: dict[str, Expression], trees: TreeEnsemble, cost: Cost
) -> Instance:
    """Everything 0 at first; accepted above 0.5."""
    names = [f.name for f in features]
    mechanisms = {n: Mechanism(equations.get(n, Constant(0.0))) for n in names}
    return Instance(
        features,
        StructuralCausalModel(names, mechanisms),
        trees,
        dict.fromkeys(names, 0.0),
        Preferences(tuple(f.name for f in features if f.actionable)),
        cost,
        Acceptance(0.5, 0.0, strict=True),
    )


def holds(instance: Instance, best: dict[str, float], name: str) -> Result:
    """The result is optimal and costs what the known best action does."""
    verdict = judge(instance, best)
    assert verdict.feasible
    result = solve(instance, name, 30)
    assert result.status is Status.OPTIMAL, result
    slack = 2e-6 * float(verdict.cost) + instance.gap_allowance  # intervals of 1e12 allow more
    assert abs(result.cost - float(verdict.cost)) <= slack
    return result


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("encoding", ["one-hot", "code"])
@pytest.mark.parametrize("l0", [0.0, 0.125])
def test_a_label_in_the_maximum_costs_the_same_however_far(name: str, encoding: str, l0: float) -> None:
    """Changing c from p to r is one change; z, downstream of a, would have to pass 1.5."""
    features = (
        Feature("c", "categorical", True, None, ("p", "q", "r"), encoding=encoding),
        Feature("a", "continuous", True, (-5.0, 5.0)),
        Feature("z"),
    )
    one_hot = encoding == "one-hot"
    columns, (column, threshold) = (5, (2, 0.5)) if one_hot else (3, (0, 1.5))
    trees = ensemble(
        columns,
        (column, threshold, 1, 2, 0.0),
        (columns - 1, 1.5, 3, 4, 0.0),
        (*LEAF, 1.0),
        (*LEAF, 0.0),
        (*LEAF, 1.0),
    )
    cost = Cost(linf=1.0, l0=l0, measures=measured({"c": 1.0, "a": 1.0}))
    holds(problem(features, {"z": Variable("a")}, trees, cost), {"c": 2.0}, name)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_driven_value_is_a_real_number(name: str) -> None:
    """0.1 * 5 is 0.5 and a little more, and rounds to 0.5, the last double that goes left."""
    features = (Feature("a", "integer", True, (-5.0, 50.0)), Feature("z"))
    trees = ensemble(
        2,
        (0, 4.5, 1, 2, 0.0),
        (*LEAF, 0.0),
        (1, 0.5, 3, 4, 0.0),
        (*LEAF, 1.0),
        (*LEAF, 0.0),
    )
    instance = problem(features, {"z": 0.1 * Variable("a")}, trees, Cost.pure("l1", {"a": 1.0}))
    result = holds(instance, {"a": 5.0}, name)
    assert checked(instance, result).startswith("VERIFIED optimal")


@pytest.mark.parametrize("name", BACKENDS)
def test_values_of_any_admitted_size(name: str) -> None:
    """Thresholds beyond 2^400."""
    features = (Feature("a", "continuous", True, (-1e140, 1e140)), Feature("z"))
    trees = ensemble(2, (1, 1e130, 1, 2, 0.0), (*LEAF, 0.0), (*LEAF, 1.0))
    instance = problem(features, {"z": Variable("a")}, trees, Cost.pure("l1", {"a": 1e120}))
    result = holds(instance, {"a": 1e130 * (1 + 1e-15)}, name)
    assert checked(instance, result).startswith("VERIFIED optimal")


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("weight", [1.0, 1e6])
@pytest.mark.parametrize("far", [0.0, 1e12])
def test_whole_numbers_pinned_or_far_apart(name: str, weight: float, far: float) -> None:
    """A lever that can only stay, or has 10^12 values: neither leaves CP-SAT's 64 bits."""
    features = (
        Feature("k", "integer", True, (-far, far)),
        Feature("a", "continuous", True, (-5.0, 5.0)),
        Feature("z"),
    )
    trees = ensemble(3, (2, 0.75, 1, 2, 0.0), (*LEAF, 0.0), (*LEAF, 1.0))
    cost = Cost.pure("l2-squared", {"k": 1.0, "a": 1.0})
    instance = problem(features, {"z": Variable("a")}, trees, cost)
    weighted = Preferences(instance.preferences.actionable, {"k": weight})
    holds(replace(instance, preferences=weighted), {"a": 0.75 + 1e-9}, name)


def _chain(levers: int, **equations: Expression) -> Instance:
    """A chain of levers, each half of the one before, and a tree for each: six of ten must pass 1/2."""
    names = [f"v{k}" for k in range(levers)]
    features = tuple(Feature(name, "continuous", True, (0.0, 1.0)) for name in names)
    halves = {b: Product((Constant(0.5), Variable(a))) for a, b in pairwise(names)}
    trees = [
        ensemble(levers, (k, 0.5, 1, 2, 0.0), (*LEAF, 0.0), (*LEAF, 1.0)).trees[0] for k in range(levers)
    ]
    forest = TreeEnsemble(tuple(trees), levers, dtype="float64")
    costs = Cost.pure("l1", dict.fromkeys(names, 1.0))
    return replace(
        problem(features, halves | equations, forest, costs), accept=Acceptance(0.6, 0.0, strict=True)
    )


@pytest.mark.parametrize("name", BACKENDS)
def test_more_sets_of_levers_than_can_be_listed_end_at_the_limit(name: str) -> None:
    """2^29 of them: what is acted on decides which levers follow the ones before."""
    begun = time.perf_counter()
    result = solve(_chain(30), name, 0.5)
    assert time.perf_counter() - begun < 0.5 + 2 * GRACE
    assert (result.status, result.message, result.lower_bound) == (Status.LIMIT, LATE, 0.0)
    assert name != "bab" or result.action


def test_an_interruption_ends_the_listing() -> None:
    """Ctrl-C, without a time limit. A shell has programs in the background ignore it, this one too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            solve(_chain(30), "bab")
    finally:
        signal.signal(signal.SIGINT, before)


def test_curves_behind_very_many_sets_are_refused_at_once() -> None:
    """The first sets all act on the feature of the curve."""
    begun = time.perf_counter()
    with pytest.raises(Unsupported, match="through a sigmoid are not solved"):
        solve(_chain(30, v1=Sigmoid(Variable("v0"))), "bab")
    assert time.perf_counter() - begun < 10
