""" "At most k actions" in the bounds by prices: optima against enumeration, proofs, and forged nu."""

import json
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from milp_recourse.certificates import certificates_for
from milp_recourse.formats import instance_to_dict
from milp_recourse.judge import already_good
from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.result import Result
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from tests.helpers.tree_samples import brute_force, random_cost, random_tree
from verify.files.check import examine

NAMES = ("a", "b", "c", "d")


@cache
def problems() -> list[Instance]:
    """Random ensembles whose high scores take several of four levers, of which two may be acted on."""
    return [made for seed in range(36) if not already_good(made := problem(seed))]


@cache
def certified(k: int) -> tuple[Result, Any]:
    """The result of a problem and its certificate, which must not be changed; None without one."""
    found = solve(problems()[k], "bab")
    return found, certificates_for([problems()[k]], [found])[0]


def problem(seed: int) -> Instance:
    """The problem of a seed: means and sums, alone and the smallest of two, under several costs."""
    rng = np.random.default_rng([44, seed])
    factual = {name: float(np.round(rng.uniform(-2, 2), 1)) for name in NAMES}
    cuts = [list(np.round(rng.uniform(-2.5, 2.5, 4), 1)) for _ in NAMES]
    trees = tuple(random_tree(rng, cuts, 2, np.round(rng.uniform(0, 1, 6), 1)) for _ in range(8))
    forest = TreeEnsemble(trees, 4, "mean") if seed % 2 else TreeEnsemble(trees, 4, "sum", parts=(4, 4))
    scores = np.unique(forest.scores(rng.uniform(-3, 3, (300, 4))))
    features = tuple(Feature(name, "continuous", True, (-3.0, 3.0)) for name in NAMES)
    limit = (AtMostActions(2),)
    above = Acceptance(float(scores[int(len(scores) * 0.99)]), strict=True)
    cost = random_cost(rng, features, list(NAMES))
    preferences = Preferences(NAMES)
    return Instance(features, independent(NAMES), forest, factual, preferences, cost, above, conditions=limit)


def verdict(tmp_path, instance: Instance, certificate) -> str:
    """What the checker says, and what its kernel says alone."""
    file, path = tmp_path / "certificate.json", tmp_path / "instance.json"
    file.write_text(json.dumps(certificate))
    path.write_text(json.dumps(instance_to_dict(instance)))
    said = {examine(file, path, 60.0, slow=slow).line.split()[0].strip(":") for slow in (False, True)}
    assert len(said) == 1
    return said.pop()


@pytest.mark.long
def test_counts_agree_with_enumeration_and_are_certified(tmp_path) -> None:
    """The same optimum, or nothing in both; the kernel accepts the proof."""
    seen: Counter[str] = Counter()
    for seed, instance in enumerate(problems()):
        best, (found, certificate) = brute_force(instance), certified(seed)
        seen["binds"] += best != brute_force(replace(instance, conditions=()))
        if best is None:
            assert found.lower_bound == float("inf") or found.action is None, seed
        else:
            allowed = instance.gap_tolerance(float(best))
            assert len(found.action) <= 2 and abs(found.cost - float(best)) <= allowed, seed
        if certificate is not None:
            seen["counted"] += '"nu"' in json.dumps(certificate)
            seen[verdict(tmp_path, instance, certificate)] += 1
    assert seen["binds"] >= 2 and seen["counted"] >= 4 and seen["VERIFIED"] >= 24, seen
    assert not seen["REJECTED"], seen


@pytest.mark.parametrize("forged", [0, 0.5, -1, 2.0**54, "1", True, None])
def test_forged_nu_proves_nothing(tmp_path, forged) -> None:
    """Without its nu a table does not close what it closed; what is no whole number is refused."""
    for k, instance in enumerate(problems()):
        certificate = deepcopy(certified(k)[1])
        text = json.dumps(certificate)
        if '"nu"' in text:
            for one in certificate["configurations"]:
                for table in (table for table in one.get("prices", []) if "nu" in table):
                    table["nu"] = forged
            if verdict(tmp_path, instance, certificate) == "REJECTED":
                return
            assert forged == 0  # other rules may close what the table closed
    raise AssertionError("no certificate needs its nu")


def test_a_count_proves_nothing_where_more_actions_are_allowed(tmp_path) -> None:
    """The proof of "at most 2" is refused where "at most 3" allows an action that is cheaper, or any."""
    refused = 0
    for k, instance in enumerate(problems()):
        (found, certificate), wider = certified(k), replace(instance, conditions=(AtMostActions(3),))
        free = solve(wider, "bab")
        if certificate and '"nu"' in json.dumps(certificate) and free.action:
            [own] = certificates_for([wider], [free])
            if found.action is None or own["cost"] < certificate["lower_bound"]:
                forged = {**certificate, "instance_sha256": own["instance_sha256"]}
                assert verdict(tmp_path, wider, forged) == "REJECTED"
                refused += 1
    assert refused


def test_a_count_that_costs_more_than_can_be_written(tmp_path) -> None:
    """Where nothing is accepted, what a counted action costs more has no end; what is written has one."""
    for seed in (1395, 2267):
        instance = problem(seed)
        (certificate,) = certificates_for([instance], [solve(instance, "bab")])
        assert verdict(tmp_path, instance, certificate) == "VERIFIED", seed
