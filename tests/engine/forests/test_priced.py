"""Bounds by prices, good first actions, and the search that rests on both, against brute force."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from milp_recourse.engine.compiling import counting_entry
from milp_recourse.engine.forests import priced
from milp_recourse.engine.forests.axes import Axis, action_of, axes_of, factual_cells
from milp_recourse.engine.forests.factors import cell_masks, factors
from milp_recourse.engine.forests.goal import score_goal
from milp_recourse.engine.forests.living import lists, shrink
from milp_recourse.engine.forests.priced import PricedSearch
from milp_recourse.engine.forests.prices import assess, improve, take_out
from milp_recourse.engine.forests.starts import good_point
from milp_recourse.engine.forests.table import Budget, LeafTable
from milp_recourse.engine.forests.tree_arrays import TreeArrays, score_at, sums_along, tree_arrays
from milp_recourse.judge import already_good, judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.options import Clock
from milp_recourse.problem.scm import independent
from milp_recourse.solvers import Options, backend
from tests.helpers.tree_samples import brute_force, random_tree_instance, several_sums, size_of, with_missing

LARGEST = 20000


@cache
def problems(count: int, trees: int) -> list[tuple[int, Instance]]:
    """Random ensembles, averaged and summed, in both precisions."""
    chosen = []
    for seed in range(count):
        instance = random_tree_instance(seed, trees, depth=4)
        if not instance.levers or already_good(instance) or size_of(instance) > LARGEST:
            continue
        if seed % 3 == 1:
            forest = replace(instance.classifier, aggregate="sum", base=0.25, sum_dtype="float32")
            start = forest.score(instance.model_rows(instance.factual_row))
            above = start + 0.08 * trees * np.random.default_rng(seed).random()
            instance = replace(instance, classifier=forest, accept=Acceptance(float(above), 0.0, strict=True))
        chosen.append((seed, instance))
    return chosen


@pytest.mark.parametrize("trees", [3, 15])
def test_search_agrees_with_brute_force(trees: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same optimum, or nothing feasible in both, whether or not cells alone settle it."""
    seen: Counter[str] = Counter()
    for seed, instance in problems(200 if trees == 3 else 100, trees):  # few trees seldom need a split
        if seed % 2:  # with little effort for prices more nodes are split
            monkeypatch.setattr(priced, "PLAIN", (1, 0))
            monkeypatch.setattr(priced, "ROUNDS", 1)
            monkeypatch.setattr(priced, "ROOT_ROUNDS", 1)
        best, found = brute_force(instance), PricedSearch(instance).run()
        monkeypatch.undo()
        assert found.message is None, seed
        seen["branched"] += found.nodes > 1
        if best is None:
            seen["infeasible"] += 1
            assert found.action is None and found.lower_bound == math.inf, seed
            continue
        seen["optimal"] += 1
        verdict = judge(instance, found.action)
        allowed = instance.gap_tolerance(float(best))
        assert verdict.feasible and abs(float(verdict.cost - best)) <= allowed, seed
        assert found.lower_bound <= best <= found.lower_bound + allowed, seed
    assert seen["optimal"] >= 20 and seen["infeasible"] >= 2 and seen["branched"] >= 4, seen


def test_where_leaves_take_too_much_memory_both_sides_are_honest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first action is returned, with the least that leaving the cheapest point costs as the bound."""
    monkeypatch.setattr(priced, "LARGEST_TABLE", 0)
    above = stopped = 0
    for seed, instance in problems(100, 15):
        best, found = brute_force(instance), PricedSearch(instance).run()
        if axes_of(instance) is None:
            continue
        if found.message is None:  # that bound suffices
            known = math.inf if best is None else float(best) - instance.gap_tolerance(float(best))
            assert found.lower_bound >= known, seed
        else:
            assert "too much memory" in found.message, seed
            stopped += 1
        if best is not None:
            assert found.lower_bound <= best and found.action is not None, seed
            assert judge(instance, found.action).feasible, seed
            above += found.lower_bound > 0
    assert above > 10 and stopped > 10


@pytest.mark.parametrize("kind", ["l0", "l1"])
def test_one_feature_that_suffices_is_proven_cheapest_at_once(kind: str) -> None:
    """Under l0 every other cell of a lever costs its weight, so that no cell is left to search."""
    once = 0
    for seed, instance in problems(200, 15):
        own = replace(instance, cost=Cost.pure(kind, dict.fromkeys(instance.levers, 1.0)))
        best, found = brute_force(own), PricedSearch(own).run()
        assert found.message is None, seed
        if best is not None:
            assert found.lower_bound <= best <= found.lower_bound + own.gap_tolerance(float(best)), seed
            once += kind == "l0" and best == 1 and found.nodes <= 1
    assert once > 10 or kind == "l1"


def test_the_optimum_is_found_without_a_first_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in hand at first, best bound or deepest first: the search itself finds the optimum."""
    compared = 0
    for seed, instance in problems(120, 15):
        best = brute_force(instance)
        if best is None:
            continue
        for memory in (2**30, 1):
            monkeypatch.setattr(priced, "MOST_BYTES", memory)
            monkeypatch.setattr(priced, "good_point", lambda p, rows, kicks, clock: (p.start, math.inf))
            found = PricedSearch(instance).run()
            verdict = judge(instance, found.action)
            allowed = instance.gap_tolerance(float(best))
            assert verdict.feasible and abs(float(verdict.cost - best)) <= allowed, seed
            assert found.lower_bound <= best <= found.lower_bound + allowed, seed
            compared += 1
    assert compared >= 30


def test_any_prices_give_a_lower_bound() -> None:
    """At random prices and at improved ones: no accepted point costs less, and not all are taken out."""
    positive = with_maximum = 0
    for seed, instance in problems(200, 6):
        best, axes = brute_force(instance), axes_of(instance)
        if best is None or axes is None:
            continue
        table = LeafTable(instance.classifier, factual_cells(instance, instance.classifier), axes)
        p = walked(instance, axes)
        f = factors(table, axes, cell_masks(table, axes))
        goal, _ = score_goal(table, instance.accept.above)
        rng = np.random.default_rng(seed)
        alive, leaves = np.ones(len(p.added), dtype=bool), np.ones(len(f.value), dtype=bool)
        live, x = lists(f), np.zeros(len(axes), dtype=np.int32)
        energy, loss = np.zeros(len(f.value)), np.zeros((3, len(p.added)))
        wide, top = p.widest, bool(p.widest.any())
        of_cell = np.repeat(np.arange(len(axes)), np.diff(p.axis_from))
        budget = p.added * (1 - 1e-12), (float(best) * (1 + 1e-9) + 1e-12 if seed % 3 else np.inf)
        assert shrink(f, p.added + wide, alive, leaves, live, seed % 2 == 0, True, *budget)
        for round_ in range(5):
            scale = float(best) * rng.choice([0.0, 0.1, 0.5])
            price = scale * rng.normal(size=int(f.class_from[-1]))
            mu = float(best) * rng.exponential(5.0) / len(f.leaf_from)
            target = float(best) * (1 + 1e-9) + 1e-12
            shares = rng.dirichlet(np.ones(len(axes))) if top else np.empty(0)
            if round_ % 2:  # towards more than there is to be had
                costs = p.added, wide, shares, np.empty(0), 0.0
                pace = (8, 40 if round_ == 1 else 0), (0.5, 0.1)
                torn = np.zeros(len(p.added))
                _, mu, *_ = improve(
                    *(f, *costs, live, mu, 0.0, goal, price, 2.0 * target, *pace, 10.0, torn),
                )
            paid = p.added + (shares[of_cell] * wide if top else 0.0)
            assert not top or ((shares >= 0).all() and shares.sum() <= 1 + 1e-12)
            bound, slack = assess(f, paid * (1 - 1e-12), live, mu, goal, price, x, energy, loss)
            with_maximum += top and bound > 0
            take_out(live, bound, slack, energy, loss, target, alive, leaves)
            assert bound <= float(best), seed
            positive += bound > 0
        assert shrink(f, p.added + wide, alive, leaves, live, True, True, *budget), seed
    assert positive >= 20 and with_maximum >= 10


@pytest.mark.parametrize("factor", [1e-200, 1e200, 1e300])
def test_costs_of_any_size_are_settled(factor: float) -> None:
    """Prices too large for 32 bits, or no numbers, leave no node to be split into itself."""
    settled = 0
    for seed in range(12):
        plain = several_sums(seed, "smallest")
        weights = dict.fromkeys(plain.levers, 1.0)
        dear = weights | {next(iter(weights)): factor}
        for own in (dict.fromkeys(weights, factor), dear):
            found = PricedSearch(replace(plain, cost=Cost.pure("l1", own)), Clock.start(60)).run()
            once = PricedSearch(replace(plain, cost=Cost.pure("l1", weights))).run()
            assert found.message is None, seed
            assert (found.action is None) == (once.action is None), seed
            settled += 1
    assert settled == 24


def test_sweeps_do_not_lower_the_bound() -> None:
    """At one multiplier the bound of random prices never falls, and it is what the assessment finds."""
    rose = 0
    for seed, instance in problems(60, 15):
        axes = axes_of(instance)
        if not axes or walked(instance, axes).widest.any():
            continue
        table = LeafTable(instance.classifier, factual_cells(instance, instance.classifier), axes)
        p, f = walked(instance, axes), factors(table, axes, cell_masks(table, axes))
        goal, _ = score_goal(table, instance.accept.above)
        alive, leaves = np.ones(len(p.added), dtype=bool), np.ones(len(f.value), dtype=bool)
        live, nothing, torn = lists(f), np.empty(0), np.zeros(len(p.added))
        if not shrink(f, p.added, alive, leaves, live, True, True, p.added, np.inf):
            continue
        rng, size = np.random.default_rng(seed), float(p.added.max())
        price, mu = 0.1 * size * rng.normal(size=int(f.class_from[-1])), size * rng.exponential()
        room = np.zeros(len(axes), dtype=np.int32), np.zeros(len(f.value)), np.zeros((3, len(p.added)))
        before = -math.inf
        for _ in range(4):
            bound, slack = assess(f, p.added, live, mu, goal, price, *room)
            assert bound >= before - 1e-9 * size, seed
            rose += bound > before + 1e-6 * size
            costs = p.added, p.widest, nothing, nothing, 0.0
            effort = (2, 0), (0.5, 0.0), 0.0
            now, *_ = improve(f, *costs, live, mu, 0.0, goal, price, np.inf, *effort, torn)
            before, slack = assess(f, p.added, live, mu, goal, price, *room)
            assert abs(now - before) <= 1e-9 * size + slack, seed
        assert torn.min() >= 0.0, seed
    assert rose >= 20


def test_a_budget_leaves_out_what_costs_as_much() -> None:
    """A leaf goes if the cheapest of its cells cost the budget or more, and only then."""
    gone = kept = 0
    for seed, instance in problems(60, 4):
        axes, forest = axes_of(instance), instance.classifier
        if not axes:
            continue
        cells = factual_cells(instance, forest)
        added, widest = [a.added for a in axes], [a.widest for a in axes]
        below = float(np.random.default_rng(seed).uniform(0.1, 1.0)) * sum(map(np.max, added))
        whole = LeafTable(forest, cells, axes)
        within = LeafTable(forest, cells, axes, budget=Budget(added, widest, below))
        left = {(t, n) for t, row in enumerate(within.node.reshape(whole.trees, -1)) for n in row if n >= 0}
        nodes = whole.node.reshape(whole.trees, -1)
        for t, leaves in enumerate(whole.cells_of_leaves(axes)):
            for bit, met in leaves.items():
                total = sum(own[good].min() for own, good in zip(added, met, strict=True))
                total += max(own[good].min() for own, good in zip(widest, met, strict=True))
                if abs(total - below) < 1e-9:
                    continue
                assert ((t, nodes[t, bit]) in left) == (total < below), (seed, t, bit)
                gone, kept = gone + (total >= below), kept + (total < below)
    assert gone >= 50 and kept >= 50


def walked(instance: Instance, axes: list[Axis]) -> TreeArrays:
    """The compiled trees of an instance."""
    cells = factual_cells(instance, instance.classifier)
    return tree_arrays(instance.classifier, cells, axes, instance.accept.above)


along = counting_entry(sums_along.py_func)
"""The function for Python, which the package calls from compiled code alone."""


@pytest.mark.parametrize("missing", [False, True])
def test_scores_along_an_axis_are_those_of_its_points(missing: bool) -> None:
    """At random points, every cell of every axis: the table's score, the ensemble's own, and the sum."""
    scored, unordered = 0, 0
    for seed in range(30):
        instance = random_tree_instance(seed, 5, depth=4)
        if not instance.levers:
            continue
        if missing:
            instance = with_missing(seed, instance)
        axes = axes_of(instance)
        if axes is None:
            continue
        if seed % 2:
            forest = replace(instance.classifier, aggregate="sum", base=0.25, sum_dtype="float32")
            instance = replace(instance, classifier=forest)
        forest = instance.classifier
        w, table = walked(instance, axes), LeafTable(forest, factual_cells(instance, forest), axes)
        rng = np.random.default_rng(seed)
        x = rng.integers(w.axis_from[:-1], w.axis_from[1:]).astype(np.int32)
        count = len(forest.trees) if forest.aggregate == "mean" else 1
        unordered += int((~w.ordered).sum())
        for i in range(len(axes)):
            values, sums = np.empty(len(forest.trees)), np.full(len(w.added), np.nan)
            masks = table.met(*(2 * [(x - w.axis_from[:-1])[None]]))
            values[:] = table.best(masks)[0]
            before = x.copy()
            along(w, x, i, values, sums)
            assert (x == before).all()
            for c in range(w.axis_from[i], w.axis_from[i + 1]):
                there = x.copy()
                there[i] = c
                cells = (there - w.axis_from[:-1])[None]
                known = table.bound(table.met(cells, cells))[0]
                assert score_at(w, there) == known, (seed, i, c)
                assert abs(sums[c] - known * count) <= w.error, (seed, i, c)
                assert judge(instance, action_of(axes, cells[0])).score == known, (seed, i, c)
                scored += 1
    assert scored >= 90 and unordered >= 2


def test_first_actions_are_accepted() -> None:
    """A start that is accepted is never lost, and what comes back is accepted and no dearer."""
    tried = 0
    for seed, instance in problems(150, 8):
        axes = axes_of(instance)
        if axes is None:
            continue
        table = LeafTable(instance.classifier, factual_cells(instance, instance.classifier), axes)
        p = walked(instance, axes)
        rng = np.random.default_rng(seed)
        drawn = rng.integers(p.axis_from[:-1], p.axis_from[1:], (60, len(axes))).astype(np.int32)
        cells = drawn - p.axis_from[:-1]
        good = drawn[table.bound(table.met(cells, cells)) > instance.accept.above]
        if not len(good):
            continue
        tried += 1
        point, cost = good_point(p, good, 3)
        here = (point - p.axis_from[:-1])[None]
        assert table.bound(table.met(here, here))[0] > instance.accept.above, seed
        dear = p.added[good].sum(axis=1) + p.widest[good].max(axis=1)
        assert cost <= dear.min() * (1 + 1e-12), seed
    assert tried >= 25


def deep_forest(trees: int = 100, columns: int = 20, seed: int = 0) -> Instance:
    """A trained forest over whole numbers, every column a lever, and a row that it refuses."""
    from sklearn.ensemble import RandomForestClassifier

    from milp_recourse.readers import read_sklearn_trees

    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 10, (2000, columns)).astype(float)
    labels = rows @ rng.normal(size=columns) + rng.normal(0, 5, 2000) > 0
    model = RandomForestClassifier(trees, max_depth=6, random_state=seed).fit(rows, labels)
    names = tuple(f"f{k}" for k in range(columns))
    row = rows[np.argmin(model.predict_proba(rows)[:, 1])]
    return Instance(
        tuple(Feature(n, "integer", True, (0.0, 9.0)) for n in names),
        independent(names),
        read_sklearn_trees(model),
        dict(zip(names, row.tolist(), strict=True)),
        Preferences(names),
        Cost.pure("l1", dict.fromkeys(names, 9.0)),
        Acceptance(0.5, 0.0, strict=True),
    )


@pytest.mark.long
def test_a_time_limit_leaves_an_action_and_an_honest_bound() -> None:
    """A hard problem: an action and a positive bound within a second or so, and a better bound later."""
    instance = deep_forest()
    PricedSearch(instance, Clock.start(0.1)).run()  # compiled
    start = time.perf_counter()
    soon = PricedSearch(instance, Clock.start(0.2)).run()
    assert time.perf_counter() - start < 5
    later = PricedSearch(instance, Clock.start(3)).run()
    costs = []
    for found in (soon, later):
        verdict = judge(instance, found.action)
        assert verdict.feasible and 0 <= found.lower_bound <= verdict.cost
        costs.append(verdict.cost)
    assert later.lower_bound >= soon.lower_bound and costs[1] <= costs[0]
    assert later.lower_bound >= 0.5 * float(costs[1])


def test_starts_are_used_and_junk_among_them_does_no_harm() -> None:
    """Rows out of bounds, refused rows and gaps are only hints."""
    instance = deep_forest(20, 8)
    rng = np.random.default_rng(1)
    rows = rng.integers(-5, 15, (50, 8)).astype(float)
    rows[0, 0] = np.nan
    plain = backend("bab").solve(instance, Options())
    hinted = backend("bab").solve(instance, Options(starts=rows))
    assert hinted.proof == "rigorous" and hinted.message is None
    assert judge(instance, hinted.action).cost == judge(instance, plain.action).cost
