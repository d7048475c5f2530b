"""Certificates of random trees and forests are accepted by the solver-free checker."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.certificates.produce import certificates_for, why_not
from milp_recourse.engine.forests.axes import separable
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import write_instance
from milp_recourse.judge import already_good
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.questions.solve import solve
from milp_recourse.solvers import backend
from tests.engine.forests.test_priced import deep_forest
from tests.helpers.cost_kinds import in_ranks, with_falls
from tests.helpers.generators import Style, random_instance
from tests.helpers.tree_checks import checked, examined
from tests.helpers.tree_samples import (
    brute_force,
    random_causal_instance,
    random_tree,
    random_tree_instance,
    size_of,
)
from verify.__main__ import examine


def test_every_certificate_verifies() -> None:
    """Whole numbers and labels between thresholds included, where the checker's rule is the weaker one."""
    verify_all([random_tree_instance(seed) for seed in range(45)])


def test_deeper_forests_are_certified_too() -> None:
    """Tables that take out cells, ties of the score, and a lever whose factual lies outside its domain."""
    some = [random_tree_instance(seed, trees=7, features=5, depth=4) for seed in (151, 237, 262, 292, 643)]
    for instance in some:
        assert checked(instance, solve(instance)).startswith("VERIFIED optimal")


def test_many_labels_take_no_room_for_pairs_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask for every pair of 20000 labels would fill 89 GiB; a proof by prices asks for single ones."""

    def none(*_: object) -> None:
        raise AssertionError

    solved = [(instance, solve(instance)) for instance in map(random_tree_instance, range(40))]
    monkeypatch.setattr("milp_recourse.engine.forests.table._pairs", none)
    labels = 0
    for instance, result in solved:
        if not why_not(instance) and instance.levers:
            [certificate] = certificates_for([instance], [result])
            assert certificate is not None
            priced = any(one.get("prices") for one in certificate["configurations"])
            labels += priced and any(instance.by_name[name].kind == "categorical" for name in instance.levers)
    assert labels > 2


def test_a_single_tree_of_too_many_leaves_is_proven_by_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tree's own leaves would be more nodes than allowed: the other proof, of the same bound."""
    monkeypatch.setattr("milp_recourse.certificates.single_tree.MOST_NODES", 3)
    priced = 0
    for seed in range(36):
        instance = random_tree_instance(seed, trees=1, depth=4)
        if not instance.levers or already_good(instance):
            continue
        result = solve(instance, "bab")
        [certificate] = certificates_for([instance], [result])
        assert certificate is not None, seed
        priced += any(one.get("prices") for one in certificate["configurations"])
        line = examined(instance, certificate).line
        assert line.startswith(f"VERIFIED {result.status.value}"), (seed, line)
    assert priced >= 5


def test_cells_stand_for_others_where_falls_cost_otherwise_than_rises() -> None:
    """Two scales: the cheaper of two cells with the same leaves may lie on the other side of the factual."""
    merged = 0
    for seed in (238, 269, 378, 438, 484, 511, 554):
        instance = random_tree_instance(seed, trees=7, features=5, depth=4)
        cost = instance.cost
        falls = [f for f in cost.measures if instance.by_name[f].kind != "categorical"]
        if in_ranks(cost) or not falls:
            continue
        rng = np.random.default_rng(seed)
        other = {f: float(cost.measures[f].rise * rng.choice([0.02, 0.3, 3.0, 50.0])) for f in falls}
        instance = replace(instance, cost=with_falls(cost, other), reference=None)
        if not instance.levers or already_good(instance):
            continue
        result = solve(instance, "bab")
        [certificate] = certificates_for([instance], [result])
        assert certificate is not None, seed
        kinds = [n[0] for one in certificate["configurations"] for n in one.get("tree", [])]
        if "m" not in kinds:
            continue
        merged += 1
        assert examined(instance, certificate).line.startswith("VERIFIED"), seed
        known = brute_force(instance) if size_of(instance) <= 20000 else None
        if known is not None:
            assert abs(result.cost - float(known)) <= result.tolerance, seed
    assert merged >= 5


def test_every_certificate_inside_a_causal_model_verifies() -> None:
    """Actions that flow downstream, ReLUs, holds, domains and plausibility."""
    drawn = (random_causal_instance(seed) for seed in range(45))
    causal = [i for i in drawn if i is not None and not (separable(i) or already_good(i))]
    verify_all([i for i in causal if backend("bab").why_not(i) is None], optimal=4, infeasible=4)


def test_labels_that_move_in_a_causal_model_are_certified() -> None:
    """Labels with numbers of their own, one by one, above the tree over cells."""
    drawn = (random_causal_instance(seed, one_hot=True) for seed in range(300))
    moved = [
        i
        for i in drawn
        if i is not None and not separable(i) and any(i.by_name[name].by_label for name in i.levers)
    ]
    assert len(moved) > 5
    verify_all(moved[:20], optimal=3)


@pytest.mark.long
def test_more_labels_than_could_be_proven_one_by_one() -> None:
    """300 labels with numbers of their own, whose feature moves others."""
    drawn = (random_causal_instance(seed, one_hot=True) for seed in range(0, 600, 3))  # tables of numbers
    made = []
    for k, instance in enumerate(one for one in drawn if one is not None and not separable(one)):
        [name] = [name for name in instance.levers if instance.by_name[name].by_label][:1] or [None]
        if name is None:
            continue
        feature, rng = instance.by_name[name], np.random.default_rng(k)
        table = rng.uniform(-2, 3, (300, len(feature.columns)))
        table[: len(feature.categories)] = feature.lookup
        labels = tuple(f"label {label}" for label in range(300))
        larger = replace(
            feature, categories=labels, encoding="table", table=tuple(map(tuple, table.tolist()))
        )
        features = tuple(larger if f is feature else f for f in instance.features)
        made.append(replace(instance, features=features, reference=None))
    assert len(made) >= 5
    verify_all(made[:8], optimal=1, infeasible=1)


@pytest.mark.long
def test_larger_forests_inside_a_causal_model_are_certified() -> None:
    """Many trees and cells; the last of the draws once had a certificate that was rejected."""
    drawn = [causal_forest(seed, 3, 8, 4) for seed in (3, 5, 9, 12, 13)]
    drawn += [causal_forest(seed, 4, 30, 5) for seed in (20, 24, 31)]
    verify_all([i for i in drawn if i is not None], optimal=4, infeasible=4)


def causal_forest(seed: int, levers: int, trees: int, depth: int) -> Instance | None:
    """A forest inside a random piecewise affine causal model; None where it is of no use."""
    rng = np.random.default_rng(seed)
    style = Style(levers=levers, curves=False, gamma=False, plausible=0.3, discrete=seed % 2 == 0)
    instance = random_instance(seed, style)
    values = instance.factual_row + rng.normal(0, 2, (200, len(instance.features)))
    rows = instance.model_rows(values)
    cuts = [np.round(rng.choice(column, 12), 2).tolist() for column in rows.T]
    grown = (random_tree(rng, cuts, depth, np.round(rng.random(20), 2)) for _ in range(trees))
    forest = TreeEnsemble(tuple(grown), rows.shape[1])
    scores, here = forest.scores(rows), forest.score(instance.model_rows(instance.factual_row))
    higher = np.unique(scores[scores > here])
    if not len(higher) or not instance.levers:
        return None
    accept = Acceptance(float(higher[int(0.8 * (len(higher) - 1))]), 0.0, strict=True)
    instance = replace(instance, classifier=forest, accept=accept)
    return None if separable(instance) or already_good(instance) else instance


def boosted(instance: Instance, rng: np.random.Generator) -> Instance:
    """The same problem with a sum of signed contributions, in the precisions of the boosting libraries."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    trees = tuple(replace(t, value=np.float32(t.value - 0.5).astype(np.float64)) for t in forest.trees)
    base, precision = float(np.float32(rng.normal(0, 0.2))), str(rng.choice(["float32", "float64"]))
    dtype = str(rng.choice(["float32", "float64"]))
    summed = replace(forest, trees=trees, aggregate="sum", base=base, dtype=dtype, sum_dtype=precision)
    return replace(instance, classifier=summed, accept=Acceptance(0.0, 0.0, strict=True), reference=None)


def test_every_certificate_of_boosted_trees_verifies() -> None:
    """Sums in float32 and float64, comparisons in float32 and float64."""
    rng = np.random.default_rng(5)
    verify_all([boosted(random_tree_instance(seed), rng) for seed in range(100, 145)])


def test_a_boosted_certificate_is_of_its_sum_alone(tmp_path: Path) -> None:
    """Another base, precision or way of adding up is another classifier."""
    instance = boosted(random_tree_instance(115), np.random.default_rng(5))
    [certificate] = certificates_for([instance], [solve(instance)])
    write_json(certificate, tmp_path / "certificate.json")
    file = tmp_path / "instance.json"
    write_instance(instance, file)
    assert examine(tmp_path / "certificate.json", file, 60).claim is not None
    given = json.loads(file.read_text())
    other = {"float32": "float64", "float64": "float32"}
    for key, value in (
        ("base", float(np.float32(given["classifier"]["base"] + 0.5))),
        ("sum_dtype", other[given["classifier"]["sum_dtype"]]),
        ("dtype", other[given["classifier"]["dtype"]]),
    ):
        write_json(given | {"classifier": given["classifier"] | {key: value}}, tmp_path / f"{key}.json")
        outcome = examine(tmp_path / "certificate.json", tmp_path / f"{key}.json", 60)
        assert "belongs to another instance" in outcome.line
    refused = (
        (given["classifier"] | {"aggregate": "mean"}, "allowed only if aggregate is sum"),
        (given["classifier"] | {"base": 2.0**101}, "could add up to more than 1e+30"),
        (given["classifier"] | {"base": 0.1, "sum_dtype": "float32"}, "allowed: float32, as sum_dtype says"),
    )
    for k, (classifier, reason) in enumerate(refused):
        write_json(given | {"classifier": classifier}, tmp_path / f"{k}.json")
        assert reason in examine(tmp_path / "certificate.json", tmp_path / f"{k}.json", 60).line


def test_leaves_of_one_tree_do_not_add_up() -> None:
    """Large values: all leaves together are beyond the limit on scores, the largest of each tree are not."""
    instance = boosted(random_tree_instance(115), np.random.default_rng(5))
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    large = sum(float(np.abs(tree.value).max()) for tree in forest.trees) + abs(forest.base)
    factor = 2.0 ** math.floor(math.log2(1e30 / large))
    trees = tuple(replace(tree, value=tree.value * factor) for tree in forest.trees)
    assert sum(float(np.abs(tree.value).sum()) for tree in trees) > 1e30
    instance = replace(instance, classifier=replace(forest, trees=trees, base=forest.base * factor))
    [certificate] = certificates_for([instance], [solve(instance)])
    assert examined(instance, certificate).line.startswith("VERIFIED")


def test_a_forest_with_more_levers_than_subsets_can_be_counted_is_proven_by_prices() -> None:
    """Twenty levers, all of them idle when they stay: one configuration, closed by tables of prices."""
    instance = deep_forest(12, 20)
    result = solve(instance)
    [certificate] = certificates_for([instance], [result])
    (configuration,) = certificate["configurations"]
    assert len(configuration["acted"]) == 20 and any(table["runs"] for table in configuration["prices"])
    line = examined(instance, certificate).line
    assert line.startswith("VERIFIED optimal")
    raised = certificate | {"lower_bound": certificate["cost"] * 1.01, "cost": certificate["cost"] * 1.01}
    assert examined(instance, raised).line.startswith("REJECTED")
    for table in configuration["prices"]:
        table["mu"] *= 0.5
    assert "proves less than is claimed" in examined(instance, certificate).line


def verify_all(instances: list[Instance], optimal: int = 10, infeasible: int = 10) -> None:
    """Solve, certify and check from the files alone."""
    seen: Counter[str] = Counter()
    for seed, instance in enumerate(instances):
        if not instance.levers or why_not(instance) is not None:
            continue
        line = checked(instance, solve(instance))
        assert line.startswith("VERIFIED"), (seed, line)
        seen[line.split()[1]] += 1
    assert seen["optimal"] >= optimal and seen["infeasible"] >= infeasible, seen
