"""Thousands of fixed columns, and levers by the thousand under one linear unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.judge import judge
from milp_recourse.problem.conditions import Sum
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent
from milp_recourse.program import presolve
from milp_recourse.program.presolve import _in_doubles, without_fixed
from milp_recourse.questions import solve as questions
from milp_recourse.questions.solve import choose_backend, solve


def problem(seed: int, features: int, levers: int, units: int = 0) -> Instance:
    """A network, or a linear model, of many columns, of which the last ones are levers."""
    rng = np.random.default_rng(seed)
    names = [f"x{k}" for k in range(features)]
    layers = [(rng.normal(size=(units or 1, features)), rng.normal(size=units or 1))]
    if units:
        layers.append((np.abs(rng.normal(size=(1, units))), rng.normal(size=1)))
    x = rng.normal(size=features) * 10.0 ** rng.integers(-6, 6, features)
    x[-levers:] = rng.uniform(0.2, 0.8, levers)
    network = ReluNetwork.from_layers(layers, "float64")
    rises = [np.where(np.arange(features) < features - levers, x, x + step) for step in (0.3, -0.3)]
    need = float(max(network.scores(np.array(rises))) + network.scores(x)) / 2
    return Instance(
        features=tuple(Feature(n, actionable=True, bounds=(-1.0, 2.0)) for n in names),
        scm=independent(names),
        classifier=network,
        factual=dict(zip(names, x.tolist(), strict=True)),
        preferences=Preferences(tuple(names[-levers:])),
        cost=Cost.pure("l1", dict.fromkeys(names, 1.0)),
        accept=Acceptance(need, 1e-7),
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_logits_are_the_same_rational_numbers(seed: int) -> None:
    """At the factual, and wherever the levers are put."""
    given = problem(seed, 1200, 3, units=4)
    made, kept = without_fixed(given) or pytest.fail("nothing was left out")
    assert kept == [1197, 1198, 1199] and len(made.features) < 12
    for value in (-1.0, 0.1, 2.0):
        at = {name: value for name in given.levers}
        rows = [
            [Enclosure.of(at.get(f.name, one.factual[f.name])) for f in one.features] for one in (given, made)
        ]
        many, few = (one.classifier.enclose(row)[0] for one, row in zip((given, made), rows, strict=True))
        assert many.lower == few.lower
        assert judge(given, at).cost == judge(made, at).cost


@pytest.mark.long
def test_the_answer_is_that_of_the_problem_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bound is one of the other problem's optimum, too, and its action is feasible."""
    for seed in range(1):
        given = problem(seed, 1100, 3, units=4)
        few = solve(given)
        with monkeypatch.context() as whole:
            whole.setattr(presolve, "MANY", 10**9)
            many = solve(given)
        assert few.status is many.status
        if few.cost is not None and many.cost is not None:
            assert many.lower_bound <= few.cost and few.lower_bound <= many.cost
            assert judge(given, given.numbers(few.action)).feasible


@pytest.mark.long
def test_a_condition_that_holds_whatever_is_done_asks_for_no_column() -> None:
    """Its column is not there any more."""
    given = problem(0, 1200, 3, units=4)
    true = Sum((("x5", 1.0),), "factual", given.factual["x5"] - 1.0, None)
    for own in ({"conditions": (true,)}, {"preferences": replace(given.preferences, conditions=(true,))}):
        assert solve(replace(given, **own)).status is solve(given).status


def test_what_the_columns_may_be_asked_for_keeps_them() -> None:
    """Few columns, and a domain."""
    given = problem(0, 1200, 3)
    assert without_fixed(problem(0, 900, 3)) is None
    domains = tuple(replace(f, domain=(-1e9, 1e9)) if f.name == "x7" else f for f in given.features)
    assert (without_fixed(replace(given, features=domains)) or ((), []))[1] == [7, 1197, 1198, 1199]


def test_sums_of_products_are_exact_or_given_up() -> None:
    """Against fractions, also where everything cancels."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-12, 12, (2, 50))
        a, b = np.append(a, -a[0]), np.append(b, b[0])
        exact = sum(Fraction(p) * Fraction(q) for p, q in zip(a.tolist(), b.tolist(), strict=True))
        assert sum(map(Fraction, _in_doubles(a, b) or [])) == exact
    assert _in_doubles(np.array([1e-200]), np.array([1.0])) is None
    assert _in_doubles(np.zeros(3), np.ones(3)) == []


def test_levers_by_the_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    """One linear unit goes to the rows of highs, with the same optimum; a hidden layer does not."""
    assert choose_backend(problem(0, 1501, 1501)).name == "highs"
    assert choose_backend(problem(0, 1501, 1501, units=2)).name == "bab"
    given = problem(1, 12, 12)
    assert choose_backend(given).name == "bab"
    ours = solve(given)
    monkeypatch.setattr(questions, "MANY_LEVERS", 10)
    rows = solve(given)
    assert (ours.backend, rows.backend) == ("bab", "highs")
    assert rows.lower_bound <= ours.cost and ours.lower_bound <= rows.cost
