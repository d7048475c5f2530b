"""Tables of prices never take out what a cheap accepted action needs; the fast path does as the kernel."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product
from math import floor

import pytest

from milp_recourse.certificates.prices import shortened
from milp_recourse.formats.write import write_instance
from tests.certificates.attacks import HERE, load
from tests.forests.tree_samples import random_tree_instance, with_missing
from verify.fast.prices import Prices as Fast
from verify.files.instance import Source
from verify.files.reading import parse_json
from verify.kernel.certificate import Certificate, check
from verify.kernel.configuration import Configuration
from verify.kernel.prices import Exact, Gone, Prices, read_prices, spread
from verify.kernel.problem import total
from verify.kernel.shapes import Rejected
from verify.kernel.trees import float32, reached

UNIT = 2.0**-8


def configurations(folder, seeds, trees=3):
    """Every random ensemble's configuration in which all levers act, where there is one."""
    for seed in seeds:
        instance = random_tree_instance(seed, trees=trees)
        if seed % 3 == 0:
            instance = with_missing(seed, instance)
        if not instance.levers:
            continue
        file = folder / f"{seed}.json"
        write_instance(instance, file)
        problem = Source(file).applicant(None).problem
        yield seed, Configuration(problem, list(problem.levers))


def tables(view, actions, rng):
    """Random tables of prices for the trees of a configuration."""
    found = []
    for _ in range(3):
        trees = []
        for tree in range(len(view.forest.trees)):
            own = [
                [float(rng.randint(-60, 60)) for _ in range(max(classes) + 1)]
                for classes in view.classes(view.forest.trees[tree]).values()
            ]
            trees.append([prices if rng.random() < 0.8 else [] for prices in own])
        shares = [rng.random() for _ in range(actions)]
        shares = [share / (sum(shares) * 1.001) for share in shares]
        mu = rng.choice([0.0, 1.0, 4.0])
        table = {"unit": UNIT, "mu": mu, "trees": trees}
        found.append(table | ({"shares": shares} if rng.random() < 0.5 else {}))
    return found


def points(configuration, view):
    """Every choice of a cell per action: the cells, the cost, and each tree's leaf; only accepted ones."""
    for cells in product(*(range(len(cells)) for cells in view.cells)):
        nearest = [
            min(max(term.factual, view.cells[i][c].low), view.cells[i][c].high)
            for i, (term, c) in enumerate(zip(configuration.terms, cells, strict=True))
        ]
        leaves = []
        for tree in range(len(view.forest.trees)):
            inside = tuple((c,) for c in cells)
            [(number, value)] = [(n, v) for n, v, _ in reached(view.forest.trees[tree], inside, view.side)]
            leaves.append((number, value))
        score = view.forest.base
        for _, value in leaves:
            score = float32(score + value) if view.forest.single_sum else score + value
        score = score / len(leaves) if view.forest.mean else score
        if score > view.forest.threshold or (score == view.forest.threshold and not view.forest.strict):
            cost = configuration.fixed + total(
                term.parts(a) for term, a in zip(configuration.terms, nearest, strict=True)
            )
            yield cells, cost, [(t, number) for t, (number, _) in enumerate(leaves)]


def left_by(gone, cells, leaves):
    """Whether a point is left."""
    return not (gone.cells & set(enumerate(cells)) or gone.leaves & set(leaves))


def walks(prices, fast, configuration, rng, target):
    """A random way down: what both have left after each table, merging or split."""
    ends = list(configuration.box)
    gone, left = prices.start(), fast.start()
    for _ in range(6):
        kind = rng.choice(["t", "t", "m", "s"])
        if kind == "t":
            k = rng.randrange(len(prices.listed))
            gone, left = prices.taken_out(k, ends, gone, target), fast.taken_out(k, ends, left, target)
        elif kind == "m":
            gone, left = prices.merged(ends, gone), fast.merged(ends, left)
        else:
            i = rng.randrange(len(ends))
            cells = prices.view.cells[i]
            at = cells[rng.randrange(len(cells))]
            t = at.low + (at.high - at.low) * Fraction(rng.randint(0, 4), 4)  # an end, or inside the cell
            below = Fraction(floor(t)) if configuration.whole[i] else t
            ends[i] = rng.choice([(ends[i][0], min(ends[i][1], below)), (max(ends[i][0], t), ends[i][1])])
            if ends[i][0] > ends[i][1]:
                return
        yield kind, list(ends), gone, left


def living(fast, left, ends):
    """What the fast path has left, in the kernel's terms."""
    inside = fast.within_box(ends, left)
    return list(inside.cells), [{leaf.node for leaf in tree.leaves} for tree in inside.trees]


@pytest.mark.parametrize("trees", [2, 4])
def test_the_fast_path_takes_out_what_the_kernel_does(trees, tmp_path):
    """Cells, leaves and bounds after every step; a bound may be smaller by what rounding may take."""
    seen = 0
    for seed, configuration in configurations(tmp_path, range(60), trees):
        rng = random.Random(seed)
        prices = Prices(configuration, [], "here")
        listed = tables(prices.view, len(configuration.acted), rng)
        prices, fast = (kind(configuration, listed, "here") for kind in (Prices, Fast))
        target = configuration.largest_cost() * Fraction(rng.randint(1, 90), 100) + Fraction(1, 10**6)
        room = (trees + len(configuration.acted) + 4) * Fraction(UNIT) / 2**24
        for kind, ends, gone, left in walks(prices, fast, configuration, rng, target):
            for k in range(len(listed)):
                slow, quick = prices.bound(k, ends, gone), fast.bound(k, ends, left)
                assert (slow is None) == (quick is None), (seed, kind)
                assert slow is None or slow - room <= quick <= slow, (seed, kind)
            if not all(prices._inside(ends, gone)):
                continue
            inside, leaves = living(fast, left, ends)
            cells = prices._inside(ends, gone)
            assert [sum(1 << c for c in some) for some in cells] == inside, (seed, kind)
            for t in range(trees):
                assert leaves[t] == {n for n, _, _ in prices._leaves(t, cells, gone)}, (seed, kind)
            seen += 1
    assert seen > 60


def test_no_table_takes_out_a_cheap_accepted_action(tmp_path):
    """Whatever the prices: accepted points below the target stay, and of merged ones a cheapest does."""
    taken = merged = 0
    for seed, configuration in configurations(tmp_path, range(100)):
        rng = random.Random(seed)
        prices = Prices(configuration, [], "here")
        prices = Prices(configuration, tables(prices.view, len(configuration.acted), rng), "here")
        accepted = list(points(configuration, prices.view))
        if not accepted or len(accepted) > 4000:
            continue
        target = sorted(cost for _, cost, _ in accepted)[len(accepted) // 3] + Fraction(1, 10**9)
        gone = Gone()
        for _ in range(5):
            before = [one for one in accepted if one[1] < target and left_by(gone, one[0], one[2])]
            if rng.random() < 0.7:
                more = prices.taken_out(rng.randrange(3), configuration.box, gone, target)
                assert all(left_by(more, cells, leaves) for cells, _, leaves in before), seed
                taken += more != gone
            else:
                more = prices.merged(configuration.box, gone)
                after = [one for one in before if left_by(more, one[0], one[2])]
                least = [min((cost for _, cost, _ in some), default=None) for some in (before, after)]
                assert least[0] == least[1], seed
                merged += more != gone
            gone = more
    assert taken > 20 and merged > 5


def test_cells_stand_for_others_only_where_nothing_else_is_asked(tmp_path):
    """A condition may allow the dearer cell alone."""
    given = json.loads((HERE / "instances/taken_out_trees.json").read_text())
    given["conditions"] = [{"feature": "f3", "of": "counterfactual", "in": ["c"]}]
    file = tmp_path / "instance.json"
    file.write_text(json.dumps(given))
    applicant = Source(file).applicant(None)
    certificate = Certificate(parse_json((HERE / "accepted/taken_out_trees.json").read_bytes(), "here"))
    with pytest.raises(Rejected, match="where nothing else is asked"):
        check(certificate, applicant.numbers(certificate.action), applicant.problem, Exact)


def test_a_number_stands_for_empty_lists(tmp_path):
    """What the producer writes shortly is read as the lists it stands for."""
    shorter = 0
    for seed, configuration in configurations(tmp_path, range(30), 6):
        rng = random.Random(seed)
        view = Prices(configuration, [], "here")
        for table in tables(view.view, len(configuration.acted), rng):
            trees = [tree if any(tree) and rng.random() < 0.5 else [] for tree in table["trees"]]
            short = shortened([shortened(tree) for tree in trees])
            short = json.loads(json.dumps(short), parse_int=float)
            read = read_prices(short, view.classes, "here")
            assert read == read_prices(trees, view.classes, "here")
            shorter += len(short) < len(trees)
    assert shorter > 20
    assert spread([], 3, "here") == spread([3.0], 3, "here") == spread([1.0, [], 1.0], 3, "here") == [[]] * 3
    for wrong in ([4.0], [2.0], [[], [], [], []], [-1.0], [1.5], [True], ["1"], [float("inf")]):
        with pytest.raises(Rejected):
            spread(wrong, 3, "here")


def test_the_examples_use_every_rule():
    """The accepted certificates hold tables that take out, mergings and shares."""
    kinds = {node[0] for node in load("taken_out_trees.json")["configurations"][0]["tree"]}
    assert {"s", "t", "m", "p"} <= kinds
    assert any("shares" in table for table in load("shared_trees.json")["configurations"][0]["prices"])
