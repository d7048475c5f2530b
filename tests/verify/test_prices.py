"""Tables of prices take out no cell or leaf of a cheap accepted action; fast path and kernel agree."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import groupby, product
from math import floor

import numpy as np
import pytest

from milp_recourse.certificates.price_tables import runs
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.forest import Tree
from tests.certificates.attacks import HERE, load
from tests.helpers.cost_kinds import in_ranks, with_falls
from tests.helpers.tree_samples import random_tree_instance, with_missing
from verify.fast import arrays
from verify.fast.arrays import Arrays
from verify.fast.arrays import _in_text as with_numpy
from verify.fast.box import MOST_CELLS, PricesNearby
from verify.fast.box import prices as fast_prices
from verify.fast.cells import Unsuited
from verify.fast.prices import KEPT
from verify.fast.prices import Prices as Fast
from verify.files.cells import LARGEST_PRICE, Priced, filled, in_text, spread
from verify.files.certificate import Certificate
from verify.files.instance import Source
from verify.files.reading import parse_json
from verify.kernel.certificate import check
from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration
from verify.kernel.prices import Prices, Removed
from verify.kernel.problem import total
from verify.kernel.trees import float32

UNIT = 2.0**-8
FAR = Fraction(10**9)
"""A target that nothing reaches, so that every leaf counts."""


def all_at_once(*given):
    """The way for large ensembles, where there are leaves and something that they test."""
    try:
        return Arrays(Fast(*given))
    except Unsuited:
        return Fast(*given)


WAYS = {"one by one": Fast, "all at once": all_at_once}
"""The ways of the fast path: one for large ensembles, which takes numpy, and one for others."""

fast_ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def configurations(folder, seeds, trees=3, **size):
    """Every random ensemble's configuration in which all levers act, where there is one."""
    for seed in seeds:
        instance = random_tree_instance(seed, trees=trees, **size)
        if seed % 3 == 0:
            instance = with_missing(seed, instance)
        if seed % 2 and not in_ranks(instance.cost):  # falls cost otherwise than rises
            names = (f.name for f in instance.features if f.kind != "categorical")
            known = instance.cost.measures
            other = {f: 3.0 * known[f].rise for f in names if f in known}
            instance = replace(instance, cost=with_falls(instance.cost, other))
        if not instance.levers:
            continue
        file = folder / f"{seed}.json"
        write_instance(instance, file)
        problem = Source(file).applicant(None).problem
        yield seed, Configuration(problem, list(problem.levers))


def tables(configuration, rng):
    """Random tables of prices for the trees of a configuration, as the kernel is given them."""
    classes, actions = Priced([], "here", configuration).classes, len(configuration.acted)
    found = []
    for _ in range(3):
        trees = []
        for looked in classes:
            own = [[float(rng.randint(-60, 60)) for _ in range(max(one) + 1)] for one in looked.values()]
            chance = rng.choice([0.0, 0.8, 0.8, 1.0])  # of prices, lever by lever
            trees.append([prices if rng.random() < chance else [] for prices in own])
        shares = [rng.random() for _ in range(actions)]
        shares = [share / (sum(shares) * 1.001) for share in shares]
        mu = rng.choice([0.0, 1.0, 4.0])
        table = {"unit": UNIT, "mu": mu, "trees": trees}
        found.append(table | ({"shares": shares} if rng.random() < 0.5 else {}))
    return Priced(found, "here", configuration)


def points(configuration, prices):
    """Every choice of a cell per action: the cells, the cost, and each tree's leaf; only accepted ones."""
    [forest] = prices.forests
    factual = configuration.problem.factual
    for chosen in product(*(range(len(cells)) for cells in prices.tables.cells)):
        nearest = [
            min(max(factual[f], cells[c][0]), cells[c][1])
            for f, cells, c in zip(configuration.acted, prices.tables.cells, chosen, strict=True)
        ]
        inside = list(prices.compared)
        for j, c in zip(prices.actions, chosen, strict=True):
            inside[j] = (prices.compared[j][c],)
        leaves = []
        for tree in forest.trees:
            [(number, value)] = [(n, v) for n, v, _ in forest.reached(tree, tuple(inside))]
            leaves.append((number, value))
        score = forest.base
        for _, value in leaves:
            score = float32(score + value) if forest.single_sum else score + value
        score = score / len(leaves) if forest.mean else score
        if score > forest.threshold or (score == forest.threshold and not forest.strict):
            terms = zip(configuration.terms, nearest, strict=True)
            cost = configuration.fixed + total(term.ends(a, a)[0] for term, a in terms)
            cells = {("cell", j, c) for j, c in zip(prices.actions, chosen, strict=True)}
            yield cells, cost, {("leaf", t, number) for t, (number, _) in enumerate(leaves)}


def left_by(removed, cells, leaves):
    """Whether a point is left."""
    return not removed & (cells | leaves)


def targets(prices, rng, room):
    """Random targets: what some cell or leaf reaches by a table, less what rounding may take, or a share of
    what all leaves cost."""
    most = max((0, *(more for more in prices._terms(0, prices.tables.box, Removed())[1].values())))
    while True:
        total, rises = prices._terms(rng.randrange(3), prices.tables.box, Removed())
        reached = sorted({more for more in rises.values() if more < math.inf})
        one = total + rng.choice(reached[len(reached) // 2 :]) - room if reached else FAR
        yield rng.choice([one, one, Fraction(rng.random()) * (most if most < math.inf else 1)])


def walks(prices, fast, configuration, rng, whole):
    """A random way down: what both have left after each table, merging or split (``whole``: at cells)."""
    ends = list(configuration.box)
    removed, left = Removed(), fast.everything
    for _ in range(6):
        kind = rng.choice(["t", "t", "m", "s"])
        if kind == "t":
            k = rng.randrange(len(prices.tables.listed))
            removed, left = prices.taken_out(k, ends, removed), fast.taken_out(k, ends, left)
        elif kind == "m":
            removed, left = prices.merged(ends, removed), fast.merged(ends, left)
        else:
            i = rng.randrange(len(ends))
            cells = prices.tables.cells[i]
            low, high = cells[rng.randrange(len(cells))]
            t = low + (high - low) * Fraction(rng.randint(0, 4), 4)  # an end, or inside the cell
            below = Fraction(floor(t)) if configuration.lattices[i] else t
            t, below = (low, high) if whole else (t, below)
            ends[i] = rng.choice([(ends[i][0], min(ends[i][1], below)), (max(ends[i][0], t), ends[i][1])])
            if ends[i][0] > ends[i][1]:
                return
        yield kind, list(ends), removed, left


def living(fast, left, ends):
    """What the fast path has left, in the kernel's terms."""
    inside = fast.within_box(ends, left)
    if isinstance(fast, Arrays):
        own, trees = inside.leaves.number, range(len(fast.trees))
        return list(inside.cells), [set(fast.nodes[own[fast.of_tree[own] == t]].tolist()) for t in trees]
    return list(inside.cells), [{leaf.node for leaf in leaves} for leaves in inside.trees]


@pytest.mark.long
@pytest.mark.parametrize(
    ("trees", "ways", "size"), [(2, 2, {}), (4, 2, {}), (3, 8, {"depth": 6, "features": 6})]
)
@fast_ways
def test_the_fast_path_takes_out_what_the_kernel_does(way, trees, ways, size, tmp_path):
    """Cells, leaves and bounds after every step; a bound may be smaller by what rounding may take.

    To the fast path a cell that a box cuts costs what the whole cell does: boxes cut none where leaves count.
    """
    seen = dear = 0
    for seed, configuration in configurations(tmp_path, range(9), trees, **size):
        rng = random.Random(seed)
        listed = tables(configuration, rng)
        room = (trees + len(configuration.acted) + 4) * Fraction(UNIT) / 2**24
        aims = targets(Prices(configuration, listed, FAR), rng, 2 * room)
        both = [
            [kind(configuration, listed, aim) for kind in (Prices, way)]
            for aim in ((next(aims) if n % 3 else FAR) for n in range(ways))
        ]
        steps = ((pair, walks(*pair, configuration, rng, pair[0].target < FAR)) for pair in both)
        each = ((pair, one) for pair, way in steps for one in way)
        for (prices, fast), (kind, ends, removed, left) in each:
            dear += len(fast.ordered.leaves[0]) < sum(isinstance(n, float) for n in prices.trees[0][1])
            for k in range(len(listed.listed)):
                slow, quick = prices.bound(k, ends, removed), fast.bound(k, ends, left)
                assert (slow == math.inf) == (quick == math.inf), (seed, kind)
                assert slow == math.inf or slow - room <= quick <= slow, (seed, kind)
            cells = prices._inside(ends, removed)
            known = [{n for (_, _, n), *_ in prices._leaves(t, cells, ends, removed)} for t in range(trees)]
            if not any(known):  # no cell, or all of them cost too much
                continue
            inside, leaves = living(fast, left, ends)
            assert [sum(1 << c for c, _ in cells[j]) for j in prices.actions] == inside, (seed, kind)
            assert leaves == known, (seed, kind)
            seen += 1
    assert seen > 3 * ways and dear > 3


def test_what_rises_by_much_is_taken_out_all_at_once_too(tmp_path):
    """Sums may pass 64 bits where a bound is far below the target: each rises by almost what they hold."""
    large = 0
    for seed, configuration in configurations(tmp_path, range(32), 16):
        rng = random.Random(seed)
        listed = tables(configuration, rng)
        for table in listed.listed:
            table["mu"] = UNIT * 2.0 ** rng.choice([30, 31, 32])
        ways = [way(configuration, listed, Fraction(1, 10)) for way in WAYS.values()]
        if not isinstance(ways[1], Arrays):
            continue
        for k in range(len(listed.listed)):
            left = [way.taken_out(k, configuration.box, way.everything) for way in ways]
            if ways[0].bound(k, configuration.box, left[0]) < math.inf:
                one, other = (living(*way, configuration.box) for way in zip(ways, left, strict=True))
                assert one == other, seed
                large += ways[1]._table(k).whole is np.int64
    assert large > 10


def test_what_is_left_is_the_same_once_it_is_worked_out_again(tmp_path):
    """Of nodes that wait little is kept: no array, but for those that were used last."""
    again = 0
    for seed, configuration in configurations(tmp_path, range(30), 6):
        rng = random.Random(seed)
        listed = tables(configuration, rng)
        fast = all_at_once(configuration, listed, Fraction(rng.randint(1, 40), 10))
        if not isinstance(fast, Arrays):
            continue
        slow = Prices(configuration, listed, fast.target)
        for _, ends, _, left in walks(slow, fast, configuration, rng, False):
            if isinstance(left, arrays.Packed) and all(left.cells):
                assert not any(isinstance(one, np.ndarray) for one in left)
                bounds = [fast.bound(k, ends, left) for k in range(len(listed.listed))]
                fast.opened.clear()
                assert bounds == [fast.bound(k, ends, left) for k in range(len(listed.listed))], seed
                again += bounds[0] < math.inf
    assert again > 20


@fast_ways
def test_costs_are_kept_for_few_units(way, tmp_path):
    """Tables may have a unit each; what cells cost in units of the tables used last is kept, no more."""
    _, configuration = next(configurations(tmp_path, range(9)))
    listed = [{"unit": 1.0 + k, "mu": 0.0, "trees": []} for k in range(KEPT + 4)]
    prices = way(configuration, Priced(listed, "here", configuration), FAR)
    for k in range(len(listed)):
        prices.bound(k, configuration.box, prices.everything)
    assert len(prices.costs if isinstance(prices, Arrays) else prices.in_units) == KEPT


def test_cells_that_lead_to_different_leaves_are_seldom_compared(tmp_path, monkeypatch):
    """Only cells with equal sums are, and sums of the leaves' own numbers are often equal."""
    instance = next(
        one
        for one in map(partial(random_tree_instance, trees=2, features=1), range(100))
        if one.levers and one.features[0].kind == "continuous"
    )
    low, high = instance.levers["f0"]
    rng = np.random.default_rng(0)
    feature, left, right = map(np.array, ([0, -2, -2], [1, -1, -1], [2, -1, -1]))
    thresholds = (np.array([low + (high - low) * (k + 0.5) / 300, -2.0, -2.0]) for k in range(300))
    values = (np.array([0.0, *rng.permutation([0.25, 0.75])]) for _ in range(300))
    stumps = tuple(Tree(feature, cut, left, right, own) for cut, own in zip(thresholds, values, strict=True))
    instance = replace(instance, classifier=replace(instance.classifier, trees=stumps))
    write_instance(instance, tmp_path / "instance.json")
    problem = Source(tmp_path / "instance.json").applicant(None).problem
    configuration, compared = Configuration(problem, list(problem.levers)), []
    monkeypatch.setattr(arrays, "_alike", lambda *given: compared.append(given))
    prices = Arrays(Fast(configuration, Priced([], "here", configuration), FAR))
    left = prices.merged(list(configuration.box), prices.everything)
    assert left.cells[0].bit_count() > 290 and not compared


def part_of(configuration, listed, rng):
    """A random part of a configuration's box, its ends at or inside cells."""
    ends = []
    places = zip(configuration.box, listed.cells, configuration.lattices, strict=True)
    for (low, high), cells, whole in places:
        two = sorted(rng.choice(cells)[rng.randrange(2)] for _ in range(2))
        if rng.random() < 0.3:
            two[1] = two[0] + (two[1] - two[0]) / 2
        a, b = (Fraction(floor(place)) if whole else place for place in two)
        ends.append((max(a, low), min(max(a, b), high)))
    return ends


def test_bounds_do_not_depend_on_the_box_that_prices_are_made_for(tmp_path):
    """Cells and classes outside a box are left out; every bound, and what is taken out, stays the same."""
    compared = 0
    for seed, configuration in configurations(tmp_path, range(20), 4, depth=6):
        rng = random.Random(seed)
        listed = tables(configuration, rng)
        whole, target = Prices(configuration, listed, FAR), Fraction(rng.randint(1, 40), 10)
        cheap = Prices(configuration, listed, target)
        room = (4 + len(configuration.acted) + 4) * Fraction(UNIT) / 2**24
        for _ in range(4):
            ends = part_of(configuration, listed, rng)
            part = listed.within(ends)
            near, fast = Prices(configuration, part, FAR), fast_prices(configuration, part, FAR)
            assert isinstance(fast, Fast)
            for k in range(len(listed.listed)):
                total, quick = whole.bound(k, ends, Removed()), fast.bound(k, ends, fast.everything)
                assert near.bound(k, ends, Removed()) == total, seed
                assert total == quick == math.inf or total - room <= quick <= total, seed
                both = cheap, Prices(configuration, part, target)
                sizes = [len(one.taken_out(k, ends, Removed())) for one in both]
                taken = [
                    {key for key in one.taken_out(k, ends, Removed()) if key[0] == "leaf"} for one in both
                ]
                assert sizes[0] == sizes[1] and taken[0] == taken[1], seed
                compared += total < math.inf
    assert compared > 75


def test_prices_are_made_again_for_a_box_elsewhere(tmp_path):
    """A node outside the box that prices were made for has them made for the whole configuration."""
    moved = 0
    for seed, configuration in configurations(tmp_path, range(20), 4, depth=6):
        rng = random.Random(seed)
        listed = tables(configuration, rng)
        nearby, whole = PricesNearby(configuration, listed, FAR), Prices(configuration, listed, FAR)
        room = (4 + len(configuration.acted) + 4) * Fraction(UNIT) / 2**24
        for _ in range(4):
            ends = part_of(configuration, listed, rng)
            total, quick = whole.bound(0, ends, Removed()), nearby.bound(0, ends, Removed())
            assert total == quick == math.inf or total - room <= quick <= total, seed
        moved += list(nearby.made.tables.box) == list(configuration.box)
        nearby, (low, high) = PricesNearby(configuration, listed, FAR), configuration.box[0]
        corner = [(start, start) for start, _ in configuration.box]
        left = nearby.taken_out(0, corner, Removed())
        if low < high and left and list(nearby.made.tables.box) == corner:
            with pytest.raises(Rejected, match="in another box"):
                nearby.bound(0, [(high, high), *configuration.box[1:]], left)
            moved += 1
        nearby = PricesNearby(configuration, listed, FAR)
        nearby.bound(0, [configuration.box[0], *corner[1:]], Removed())  # one action's cells may be most
        first, *others = map(len, listed.cells)
        assert (list(nearby.made.tables.box) == list(configuration.box)) == (
            first + len(others) > MOST_CELLS * (first + sum(others))
        )
    assert moved > 20


@fast_ways
def test_no_table_takes_out_a_cheap_accepted_action(way, tmp_path):
    """Whatever the prices: accepted points below the target stay, no bound is above what one costs, and of
    merged ones a cheapest stays."""
    taken = merged = dear = 0
    for seed, configuration in configurations(tmp_path, range(50)):
        rng = random.Random(seed)
        listed = tables(configuration, rng)
        accepted = list(points(configuration, Prices(configuration, listed, FAR)))
        if not accepted or len(accepted) > 4000:
            continue
        target = sorted(cost for _, cost, _ in accepted)[len(accepted) // 3] + Fraction(1, 10**9)
        prices, fast = (kind(configuration, listed, target) for kind in (Prices, way))
        dear += any(len(prices.trees[t][1]) // 2 + 1 > len(own) for t, own in enumerate(fast.ordered.leaves))
        removed = Removed()
        for _ in range(5):
            before = [one for one in accepted if one[1] < target and left_by(removed, one[0], one[2])]
            least = min((cost for _, cost, _ in before), default=math.inf)
            assert all(prices.bound(k, configuration.box, removed) <= least for k in range(3)), seed
            if removed == Removed():
                assert all(fast.bound(k, configuration.box, fast.everything) <= least for k in range(3)), seed
            if rng.random() < 0.7:
                more = prices.taken_out(rng.randrange(3), configuration.box, removed)
                assert all(left_by(more, cells, leaves) for cells, _, leaves in before), seed
                taken += more != removed
            else:
                more = prices.merged(configuration.box, removed)
                after = [one for one in before if left_by(more, one[0], one[2])]
                least = [min((cost for _, cost, _ in some), default=None) for some in (before, after)]
                assert least[0] == least[1], seed
                merged += more != removed
            removed = more
    assert taken > 10 and merged > 2 and dear > 10


def test_cells_stand_for_others_only_where_nothing_else_is_asked(tmp_path):
    """With a condition the cheapest of several cells may be forbidden, so the rule is refused there."""
    given = json.loads((HERE / "instances/taken_out_trees.json").read_text())
    given["conditions"] = [{"feature": "f3", "of": "counterfactual", "in": ["c"]}]
    file = tmp_path / "instance.json"
    file.write_text(json.dumps(given))
    applicant = Source(file).applicant(None)
    certificate = Certificate(parse_json((HERE / "accepted/taken_out_trees.json").read_bytes(), "here"))
    with pytest.raises(Rejected, match="allowed: without plausibility, and where conditions hold"):
        check(certificate, applicant.numbers(certificate.action), applicant.problem)


def shortened(lists):
    """Lists with a number n in place of every n empty ones in a row; no list if all are empty."""
    runs = ((empty, list(run)) for empty, run in groupby(lists, key=lambda own: not own))
    found = [one for empty, run in runs for one in ([len(run)] if empty else run)]
    return found if any(lists) else []


def test_a_number_stands_for_empty_lists(tmp_path):
    """A number in a table stands for that many empty lists; the file is read as if they were there."""
    shorter = 0
    for seed, configuration in configurations(tmp_path, range(30), 6):
        rng = random.Random(seed)
        for table in tables(configuration, rng).listed:
            trees = [tree if any(tree) and rng.random() < 0.5 else [] for tree in table["trees"]]
            short = shortened([shortened(tree) for tree in trees])
            short = json.loads(json.dumps(short), parse_int=float)
            read = Priced([table | {"trees": short}, table | {"trees": trees}], "here", configuration)
            assert read.table(0.0) == read.table(1.0)
            shorter += len(short) < len(trees)
    assert shorter > 20
    assert filled([], 3, "here") == filled([3.0], 3, "here") == filled([1.0, [], 1.0], 3, "here") == {}
    assert filled([1.0, [2.0], []], 3, "here") == {1: [2.0]}
    for wrong in ([4.0], [2.0], [[], [], [], []], [-1.0], [1.5], [True], ["1"], [float("inf")]):
        with pytest.raises(Rejected):
            filled(wrong, 3, "here")


def test_prices_are_read_as_they_are_written(tmp_path):
    """Runs are spread over all classes, where -1 may be any price; of more classes they are refused."""
    rng = np.random.default_rng(0)
    for _, configuration in configurations(tmp_path, range(12)):
        for _ in range(5):
            tables = Priced([{"unit": 1.0, "mu": 0.0, "trees": []}], "here", configuration)
            count = sum(count for own in tables.numbered for _, count in own.values())
            prices = np.where(rng.random(count) < 0.7, rng.integers(-1, 3, count), 0)
            listed = list(map(float, runs(prices)))
            text = " ".join(f"{one:.0f}" for one in listed)
            tables.listed[0]["runs"] = text if rng.random() < 0.5 else listed
            found, at = tables.counted(0.0).prices, 0
            for t, own in enumerate(tables.numbered):
                for j, (first, n) in own.items():
                    width = tables.classes[t][j][-1] + 1
                    given = prices[at + first : at + first + width]
                    some = given[given >= 0]
                    same = [some[0] if len(some) else 0.0] * width  # one price for all cancels
                    read = np.array(found[t].get(j, same))
                    assert np.array_equal(read[given >= 0], some)
                    at += n
            texts = ["1 " * count + "1", "1  2", " 1", "1.0", "1e1", "1_0", "nan", "-", "\u0661", "9" * 17]
            for wrong in ([*listed, -1.0 - count], [0.5], [2.0**54], [1.0] * (count + 1), 5.0, *texts):
                tables.listed[0]["runs"] = wrong
                with pytest.raises(Rejected, match=r"here.0.runs: .*allowed"):
                    tables.counted(0.0)
            tables.listed[0].update(runs=[], trees=[1.0])
            with pytest.raises(Rejected, match=r"here.0.trees: allowed beside runs"):
                tables.counted(0.0)
            tables.listed[0].update(trees=[], steps=True)
            with pytest.raises(Rejected, match=r"here.0.steps: allowed beside runs"):
                tables.counted(0.0)


def test_prices_are_read_from_where_they_change():
    """Steps are spread over all classes; pairs out of order, or of other classes, are refused."""
    assert spread([1.0, 5.0, 3.0, 0.0], 4, "here") == [0.0, 5.0, 5.0, 0.0]
    assert spread([], 2, "here") == [0.0, 0.0]
    for wrong in ([0.0], [3.0, 1.0], [-1.0, 1.0], [0.5, 1.0], [1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 0.0, 2.0]):
        with pytest.raises(Rejected, match=r"here: .*allowed"):
            spread(wrong, 3, "here")


def test_the_examples_use_every_rule():
    """The accepted certificates hold tables that take out, mergings and shares."""
    kinds = {node[0] for node in load("taken_out_trees.json")["configurations"][0]["tree"]}
    assert {"s", "t", "m", "p"} <= kinds
    assert any("shares" in table for table in load("shared_trees.json")["configurations"][0]["prices"])


def test_cells_with_a_hole_are_refused(tmp_path):
    """The kernel checks that cells leave no double of the box out, whoever made them."""
    refused = 0
    for _, configuration in configurations(tmp_path, range(12)):
        whole = Priced([], "here", configuration)
        Prices(configuration, whole, FAR)
        for i, cells in enumerate(whole.cells):
            low, high = cells[-1]
            shorter = [[], [*cells[:-1], (low, high - Fraction(1, 2**60))]] if low < high else [cells[:-1]]
            for other in [*shorter, cells[1:]]:
                part = Priced([], "here", configuration)
                part.cells = [*whole.cells[:i], other, *whole.cells[i + 1 :]]
                with pytest.raises(Rejected, match="own cells leave values out"):
                    Prices(configuration, part, FAR)
                refused += 1
    assert refused > 20


def test_the_fast_path_does_not_rely_on_cells_and_classes(tmp_path):
    """Where a cell or a class holds values that a tree tells apart, the kernel is asked instead."""
    joined = {"cells": 0, "classes": 0}
    for _, configuration in configurations(tmp_path, range(60)):
        right = Priced([], "here", configuration)
        fast = fast_prices(configuration, right, FAR)
        assert isinstance(fast, Fast)
        for i, (j, cells) in enumerate(zip(fast.actions, right.cells, strict=True)):
            labelled = configuration.model.features[j].table is not None
            for k in range(0 if labelled else len(cells) - 1):
                wrong = Priced([], "here", configuration)
                wrong.cells[i] = [*cells[:k], (cells[k][0], cells[k + 1][1]), *cells[k + 2 :]]
                for tree in wrong.classes:
                    others = tree[j][: k + 1] + tree[j][k + 2 :] if j in tree else []
                    number = {c: n for n, c in enumerate(dict.fromkeys(others))}
                    tree.update({j: [number[c] for c in others]} if others else {})
                assert not isinstance(fast_prices(configuration, wrong, FAR), Fast)
                joined["cells"] += 1
        for t, tree in enumerate(right.classes):
            for j, own in tree.items():
                for c in range(own[-1]):
                    wrong = Priced([], "here", configuration)
                    wrong.classes[t][j] = [one - (one > c) for one in own]
                    assert not isinstance(fast_prices(configuration, wrong, FAR), Fast)
                    joined["classes"] += 1
    assert min(joined.values()) > 20, joined


def test_the_fast_path_refuses_prices_that_are_not_one_per_class(tmp_path):
    """A list of another length, or a unit that is not positive, would make the bound wrong."""
    refused = 0
    for seed, configuration in configurations(tmp_path, range(6)):
        read = tables(configuration, random.Random(seed))
        fast = fast_prices(configuration, read, FAR)
        fast.bound(0, configuration.box, fast.everything)
        right = read.counted(0)
        t, j = next(((t, j) for t, tree in enumerate(right.prices) for j in tree), (0, None))
        wrong = [right._replace(unit=Fraction(-1)), right._replace(unit=Fraction(0))]
        if j is not None:
            for own in ([*right.prices[t][j], 0.0], right.prices[t][j][:-1]):
                wrong.append(
                    right._replace(prices=[p | {j: own} if k == t else p for k, p in enumerate(right.prices)])
                )
        for table in wrong:
            read.counted = lambda k, table=table: table
            fast = fast_prices(configuration, read, FAR)
            with pytest.raises(Rejected, match="one per class"):
                fast.bound(0, configuration.box, fast.everything)
            refused += 1
    assert refused > 10


def test_numbers_in_text_are_read_alike_with_numpy():
    """Text is read as the same numbers, of the same size and count, or refused, in both ways."""
    rng, read = random.Random(5), 0
    words = ["0", "-0", "7", "-3", "007", "12 4", "9" * 17, "-" + "9" * 20, "0" * 40 + "8", f"-{2**53}"]
    odd = ["", " ", "-", "--1", "1-2", "- 1", "1_0", "+1", "\u0661", "1.0", "nan", "\t1", "1\n", "9" * 5000]
    for _ in range(20_000):
        some = (rng.choice(words if rng.random() < 0.9 else odd) for _ in range(rng.randint(1, 5)))
        text = rng.choice(["", " ", "", ""]) + " ".join(some)
        found = []
        for way in (in_text, with_numpy):
            try:
                numbers, largest, stated = way(text)
                fits = largest <= LARGEST_PRICE
                found.append(([*map(int, numbers)], largest, stated) if fits else None)
            except ValueError:
                found.append(None)
        assert found[0] == found[1], text
        read += found[0] is not None
    assert 3000 < read < 15_000
