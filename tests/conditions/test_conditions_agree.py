"""A slice of ``compare_conditions.py``: back ends, brute force and a plain judge agree."""

from __future__ import annotations

import pytest

from milp_recourse import Status, solve
from milp_recourse.solvers import cases
from tests.conditions import compare_conditions as run
from tests.helpers.random_conditions import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_networks_under_conditions(kind):
    """bab goes case by case, HiGHS has rows and 0/1 columns: the same answers."""
    lines = [
        line for seed in range(500, 504) for line in run.check(seed, kind, False, ("bab", "highs"), 60.0)[1]
    ]
    assert lines == []


@pytest.mark.parametrize("kind", KINDS)
def test_trees_under_conditions(kind):
    """Trees with and without causes."""
    lines = [
        line for seed in range(500, 504) for line in run.check(seed, kind, True, ("bab", "highs"), 60.0)[1]
    ]
    assert lines == []


def test_another_integer_solver_agrees_on_trees():
    """cpsat solves sums over features by pieces of its own."""
    lines = [
        line for seed in (3, 6, 12, 15) for line in run.check(seed, "sum", True, ("bab", "cpsat"), 60.0)[1]
    ]
    assert lines == []


def test_rows_that_were_not_solved_with_have_no_prices():
    """Lines of a curve, drawn again, may cut nothing off: then the bound's prices do not know their rows."""
    assert run.check(86, "mixed", False, ("bab", "highs"), 60.0)[1] == []


@pytest.mark.parametrize(("seed", "kind"), [(238, "acted"), (149, "sum")])
def test_leaves_in_which_nothing_can_be_acted_on(seed, kind):
    """What is left of a problem in some leaves may have no lever; the engine is asked all the same."""
    assert run.check(seed, kind, True, ("bab", "cpsat"), 60.0)[1] == []


def test_a_case_that_is_forgotten_is_seen(monkeypatch):
    """A search that leaves out the last alternative of every "any of" is caught by the other back end."""
    split = cases.CaseSearch._split

    def careless(self, case, folded, broken, action, bound):
        if isinstance(broken, cases.AnyOf):
            broken_less = cases.AnyOf(broken.parts[:-1])
            rest = tuple(broken_less if one is broken else one for one in case.open)
            case = cases._Case(case.literals, rest)
            broken = broken_less
        split(self, case, folded, broken, action, bound)

    monkeypatch.setattr(cases.CaseSearch, "_split", careless)
    seeds = range(60, 70)  # in most draws the alternative left out costs more
    lines = [line for seed in seeds for line in run.check(seed, "any", False, ("bab", "highs"), 60.0)[1]]
    assert lines != []


def test_the_grid_keeps_conditions_too():
    """The judge filters its points: what it finds meets every condition."""
    found = 0
    for seed in range(40):
        plain = run.problem(seed, False)
        said = run.random_conditions(seed, plain, "mixed")
        instance = run.with_conditions(plain, said)
        result = solve(instance, "grid", 20.0)
        if result.status is Status.FOUND:
            found += 1
            assert all(run.holds(one, run.numbers_of(instance, result)) for one in said)
    assert found >= 5


def test_certificates_under_conditions_verify():
    """The checker reads conditions by its own code; networks of every style and kind of condition."""
    lines, seen = [], 0
    for k, kind in enumerate(KINDS):
        for seed in (700 + 3 * k, 701 + 3 * k):
            counts, wrong = run.check(seed, kind, False, ("bab",), 60.0, certify=True)
            lines += wrong
            seen += counts["VERIFIED"]
    assert lines == [] and seen >= 15


def test_certificates_of_trees_under_conditions_verify():
    """Trees without causes: everything but sums of several levers, split where the conditions fall apart."""
    lines, seen = [], 0
    for k, kind in enumerate(KINDS):
        for seed in range(700 + 9 * k, 704 + 9 * k):
            counts, wrong = run.check(seed, kind, True, ("bab",), 60.0, certify=True)
            lines += wrong
            seen += counts["VERIFIED"]
    assert lines == [] and seen >= 11
