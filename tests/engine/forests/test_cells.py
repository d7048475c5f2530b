"""Cells: the set of doubles that take one branch, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.engine.forests.axes import Axis, without_twins
from milp_recourse.problem.forest import Tree, TreeEnsemble, last_left
from tests.helpers.tree_samples import random_tree_instance

EXTREMES = [0.0, -0.0, 5e-324, 1e-45, -1e-45, 1e300, -1e300, 3.4028234663852886e38, -3.4028234663852886e38]


def thresholds() -> np.ndarray:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=3000) * 10.0 ** rng.integers(-46, 40, 3000)
    single = rng.normal(size=3000).astype(np.float32).astype(np.float64)
    return np.concatenate([wide, single, EXTREMES])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_double_that_goes_left_is_the_last(dtype: str) -> None:
    """It goes left as the deployed model compares, and the next double goes right."""
    t = thresholds()
    last = last_left(t, dtype)
    with np.errstate(over="ignore"):
        assert (last.astype(dtype) <= t).all()
        assert (np.nextafter(last, np.inf).astype(dtype) > t).all()


def test_a_tie_goes_to_the_even_neighbour() -> None:
    """Half way between two float32 the even one wins: left at 0.5, right at the next float32."""
    odd = float(np.nextafter(np.float32(0.5), np.float32(1)))
    assert last_left(np.array([0.5]))[0] == 0.5 + 2**-25
    assert last_left(np.array([odd]))[0] < odd + 2**-25


def test_leaves_are_the_boxes_the_deployed_model_has() -> None:
    """A row is in exactly one leaf of every tree, the one whose value the model returns there."""
    rng = np.random.default_rng(1)
    for seed in range(60):
        instance = random_tree_instance(seed)
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        rows = rng.uniform(-4, 4, (50, forest.inputs))
        for column, cuts in enumerate(forest.cuts):
            if len(cuts):  # half of the values on either side of a cut
                picked = rng.choice(cuts, 50)
                rows[:, column] = np.where(rng.random(50) < 0.5, picked, np.nextafter(picked, np.inf))
        cells = np.stack([np.searchsorted(cuts, rows[:, c]) for c, cuts in enumerate(forest.cuts)], axis=1)
        deployed = forest.values_at(rows.astype(np.float32).astype(np.float64))
        for t, leaves in enumerate(forest.leaves):
            inside = ((leaves.low <= cells[:, None]) & (cells[:, None] <= leaves.high)).all(axis=2)
            assert (inside.sum(axis=1) == 1).all()
            assert (leaves.value[inside.argmax(axis=1)] == deployed[:, t]).all()


def test_labels_that_no_tree_tells_apart_are_one_cell() -> None:
    """Every label is stood for by one of the same cells, at no higher cost; the factual label stays."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        labels = int(rng.integers(1, 12))
        inputs = int(rng.integers(1, 4))
        cuts = [rng.normal(size=int(rng.integers(0, 2))) for _ in range(inputs)]
        tree = Tree(*(np.zeros(0, dtype=kind) for kind in (int, float, int, int, float)))
        forest = TreeEnsemble((tree,), inputs)
        forest.__dict__["cuts"] = tuple(cuts)
        cells = [np.searchsorted(own, rng.normal(size=labels)) for own in cuts]
        added = rng.integers(0, 3, labels).astype(float)
        numbers = np.arange(labels, dtype=float)
        start, settable = int(added.argmin()), np.ones(labels, dtype=bool)
        columns = tuple(enumerate(cells))
        axis = Axis("x", numbers, numbers, numbers, added, 0 * added, start, settable, columns)
        slim, place = without_twins(axis, forest)
        kept = slim.values[place].astype(int)
        assert all((own == own[kept]).all() for own in cells)
        assert (added[kept] <= added).all() and slim.values[slim.start] == start
        assert len(slim) == len(set(zip(*cells, strict=True)))


def test_scores_are_added_one_by_one() -> None:
    """float64 addition in the trees' order, not numpy's pairs, then the division."""
    rng = np.random.default_rng(2)
    leaf = np.array([-1])
    trees = tuple(Tree(leaf, np.zeros(1), leaf, leaf, rng.random(1)) for _ in range(1000))
    total = 0.0
    for tree in trees:
        total += float(tree.value[0])
    assert TreeEnsemble(trees, 1).score([0.0]) == total / 1000
    assert TreeEnsemble(trees, 1, aggregate="sum").score([0.0]) == total
    single = np.float32(0.5)
    for tree in trees:
        single += np.float32(tree.value[0])
    summed = TreeEnsemble(trees, 1, aggregate="sum", base=0.5, sum_dtype="float32")
    assert summed.score([0.0]) == float(single)
