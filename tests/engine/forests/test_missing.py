"""Missing values: nodes' own rules, levers that may be set, and everything that looks at a factual."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier

from milp_recourse.certificates import instance_digest
from milp_recourse.certificates.produce import why_not
from milp_recourse.engine.forests.axes import axes_of
from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, instance_to_dict, result_to_dict
from milp_recourse.formats.schema_answers import ResultModel
from milp_recourse.formats.stated import validate
from milp_recourse.judge import already_good, judge
from milp_recourse.problem.expression import Variable
from milp_recourse.problem.forest import MISSING, Tree, TreeEnsemble
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from milp_recourse.questions.solve import solve
from tests.helpers.certificate_kinds import missing
from tests.helpers.cost_kinds import in_ranks
from tests.helpers.tree_checks import checked
from tests.helpers.tree_samples import brute_force, candidates, size_of

LARGEST = 20000


@pytest.mark.parametrize("name", ["bab", "cpsat", "highs"])
def test_exact_back_ends_agree_with_brute_force(name: str) -> None:
    """Levers that are missing stay so or take any value; the others' nodes follow their rule."""
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in range(30):
        instance = missing(seed)
        if not instance.levers or already_good(instance) or size_of(instance) > LARGEST:
            continue
        known, result = brute_force(instance), solve(instance, name)
        seen[result.status.value, bool(instance.missing & instance.levers.keys())] += 1
        if known is None:
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert result.status is Status.OPTIMAL, seed
            assert abs(result.cost - float(known)) <= 2 * gap_tolerance(float(known)), seed
    assert all(seen[status, lever] >= 2 for status in ("optimal", "infeasible") for lever in (True, False))


def test_the_grid_finds_nothing_cheaper() -> None:
    """Its points are feasible ones; where it finds one, the optimum costs no more."""
    found = 0
    for seed in range(30):
        instance = missing(seed)
        if not instance.levers or in_ranks(instance.cost):
            continue
        result = solve(instance, "grid")
        if result.status is Status.FOUND and result.cost:
            found += 1
            assert solve(instance).cost <= result.cost + gap_tolerance(result.cost), seed
    assert found >= 5


def test_every_certificate_verifies() -> None:
    """From the files alone, by the checker's own rules."""
    seen: Counter[str] = Counter()
    for seed in range(45):
        instance = missing(seed)
        if instance.levers and why_not(instance) is None:
            line = checked(instance, solve(instance))
            assert line.startswith("VERIFIED"), (seed, line)
            seen[line.split()[1]] += 1
    assert seen["optimal"] >= 4 and seen["infeasible"] >= 4, seen


@pytest.mark.parametrize("size", [2.0**-40, 2.0**40])
def test_scales_of_another_size(size: float) -> None:
    """Distances cost nearly nothing, or far more than a missing value that is set: same optima, verified."""
    seen = 0
    for seed in range(36):
        instance = missing(seed)
        if not instance.missing & instance.levers.keys() or in_ranks(instance.cost) or already_good(instance):
            continue
        scale = {name: own.times(size) for name, own in instance.cost.measures.items()}
        instance = replace(instance, cost=replace(instance.cost, measures=scale))
        if size_of(instance) > LARGEST:
            continue
        known, result = brute_force(instance), solve(instance, "bab")
        assert (known is None) == (result.status is Status.INFEASIBLE), seed
        if known is not None:
            seen += 1
            assert result.status is Status.OPTIMAL, seed
            assert abs(result.cost - float(known)) <= 2 * instance.gap_tolerance(float(known)), seed
            assert checked(instance, result).startswith("VERIFIED optimal"), seed
    assert seen >= 4


@pytest.mark.parametrize("trees", [1, 20])
def test_scores_are_those_of_scikit_learn(trees: int) -> None:
    """Trees fitted on gaps, asked about rows with gaps."""
    rng = np.random.default_rng(trees)
    x = np.round(rng.normal(size=(500, 4)), 1)
    y = (np.nansum(x, axis=1) + np.isnan(x[:, 0]) > 0.3).astype(int)
    x[rng.random(x.shape) < 0.2] = np.nan
    y = np.where(np.isnan(x[:, 1]), 1 - y, y)
    model = DecisionTreeClassifier(max_depth=6) if trees == 1 else ExtraTreesClassifier(trees, max_depth=6)
    model.fit(x, y)
    made = [one.tree_ for one in (getattr(model, "estimators_", None) or [model])]
    forest = TreeEnsemble(
        tuple(
            Tree(
                t.feature.astype(np.int64),
                t.threshold,
                t.children_left.astype(np.int64),
                t.children_right.astype(np.int64),
                t.value[:, 0, 1] / t.value[:, 0].sum(axis=1),
                t.missing_go_to_left.astype(bool),
            )
            for t in made
        ),
        4,
    )
    asked = np.where(rng.random((2000, 4)) < 0.3, np.nan, rng.normal(size=(2000, 4)))
    assert np.allclose(forest.scores(asked), model.predict_proba(asked)[:, 1], atol=1e-12)
    for row in asked[:200]:  # the leaves as boxes of cells say the same
        cells = [
            MISSING if math.isnan(v) else int(np.searchsorted(cuts, v))
            for v, cuts in zip(row, forest.cuts, strict=True)
        ]
        met = [leaves.value[leaves.met(np.array(cells), np.arange(len(cells)))] for leaves in forest.leaves]
        assert all(len(values) == 1 for values in met)
        assert forest.total(np.array([[values[0] for values in met]]))[0] == forest.score(row)


def test_setting_a_missing_value_costs_its_weight() -> None:
    """Whatever the value, in every part of a cost; an axis starts with the cell of staying missing."""
    seen = 0
    for seed in range(40):
        instance = missing(seed)
        for axis in axes_of(instance) or ():
            if axis.feature not in instance.missing:
                continue
            seen += 1
            cost, w = instance.cost, instance.weight(axis.feature)
            due = w * (cost.l0 + cost.l1 + cost.l2_squared + cost.linf)
            assert (axis.start, axis.added[0], axis.settable[0]) == (0, 0.0, False)
            for value in candidates(instance, axis.feature):
                assert float(judge(instance, {axis.feature: value}).cost) == pytest.approx(due, rel=1e-12)
            assert np.allclose(axis.added[1:] + axis.widest[1:], due, rtol=1e-12)
    assert seen >= 15


def test_files_say_null(tmp_path: Path) -> None:
    """Written and read back: the same problem, the same digest; results show null."""
    for seed in range(40):
        instance = missing(seed)
        if not instance.missing:
            continue
        features = tuple(replace(f, domain=None) for f in instance.features)
        preferences = replace(instance.preferences, ranges={})
        instance = replace(instance, features=features, preferences=preferences)
        data = json.loads(json.dumps(instance_to_dict(instance), allow_nan=False))
        assert {name for name, value in data["factual"].items() if value is None} == instance.missing
        again = instance_from_dict(data)
        assert again.missing == instance.missing and instance_digest(again) == instance_digest(instance)
        result = solve(again)
        shown = json.loads(json.dumps(result_to_dict(result), allow_nan=False))
        validate(ResultModel, shown)
        if result.action is not None:
            gone = {name for name, value in shown["counterfactual"].items() if value is None}
            assert gone == instance.missing - result.action.keys()


def test_domains_and_directions_do_not_bind_what_is_missing() -> None:
    """What stays missing is in every domain; a value that is set obeys it, in either direction."""
    instance = next(
        i
        for i in map(missing, range(200))
        if any(i.by_name[n].kind == "continuous" for n in i.missing & {*i.levers})
    )
    name = next(
        n for n in instance.levers if n in instance.missing and instance.by_name[n].kind == "continuous"
    )
    low, high = instance.by_name[name].bounds
    for monotone in ("increase", "decrease"):
        features = tuple(
            replace(f, domain=(low, 0.5 * (low + high)), monotone=monotone) if f.name == name else f
            for f in instance.features
        )
        bounded = replace(instance, features=features, preferences=replace(instance.preferences, ranges={}))
        assert bounded.levers[name] == (low, 0.5 * (low + high))
        assert not any("domain" in fault for fault in judge(bounded, {}).faults)
        assert any(name in fault for fault in judge(bounded, {name: high}).faults) or low == high


def test_where_nothing_may_be_missing() -> None:
    """One line each: no rule at a node, a causal model, plausibility, a network."""
    instance, name, other = next(
        (i, gone, f.name)
        for i in map(missing, range(200))
        for gone in i.missing
        for f in i.features
        if len(i.missing) == 1 and f.kind == "continuous" and f.name != gone
    )
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    first = instance.columns.index(instance.by_name[name].columns[0])
    leaf = {"left": np.array([1, -1, -1]), "right": np.array([2, -1, -1]), "value": np.array([0.5, 0.0, 1.0])}
    silent = Tree(np.array([first, -2, -2]), np.zeros(3), **leaf)
    layer = [(np.ones((1, forest.inputs)), np.zeros(1))]
    for mistake, reason in (
        ({"classifier": replace(forest, trees=(*forest.trees, silent))}, "without missing_left"),
        ({"classifier": ReluNetwork.from_layers(layer, "float64")}, "a network"),
        (
            {"scm": StructuralCausalModel([*instance.factual], {other: Mechanism(Variable(name))})},
            "independent",
        ),
        ({"plausible": True}, "plausibility"),
    ):
        with pytest.raises(BadInput, match=f"factual.{name}: got null; allowed: a value: .*{reason}"):
            replace(instance, **mistake)
