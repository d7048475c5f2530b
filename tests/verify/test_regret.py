"""The checker accepts a proven regret, and nothing that claims more."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_recourse.elicitation.weight_cone import WeightCone, half_space
from milp_recourse.formats import read_instance, write_instance
from milp_recourse.formats.strict_json import write_json
from milp_recourse.lab.interviews.simulated_people import Person, random_weights
from milp_recourse.preferences import Interview
from tests.helpers.processes import ROOT
from verify.files.check import examine
from verify.regret import cone


def asked(file: str, method: str = "choices", budget: int = 3, noise: float = 0.0) -> tuple[dict, Any]:
    """The proof after an interview, and the instance that belongs to it."""
    instance = read_instance(ROOT / file)
    person = Person(instance, random_weights(instance, np.random.default_rng(1)))
    interview = Interview(instance, method=method, budget=budget, noise=noise)  # type: ignore[arg-type]
    return person.interviewed(interview).proof()


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    document, problem = asked("instances/credit_trees/credit_003.json", budget=1)
    file = tmp_path_factory.mktemp("regret") / "instance.json"
    write_instance(problem, file)
    return document, file


def verdict(document: dict, instance: Path, folder: Path, slow: bool = False) -> str:
    write_json(document, folder / "regret.json")
    return examine(folder / "regret.json", instance, slow=slow).line


@pytest.mark.parametrize("slow", [False, True])
def test_a_proven_regret_is_verified(proof: tuple[dict, Path], tmp_path: Path, slow: bool) -> None:
    """With and without the faster bounds."""
    assert verdict(*proof, tmp_path, slow).startswith(f"VERIFIED regret most={proof[0]['most']!r} ")


@pytest.mark.parametrize(
    "file, method, noise",
    [
        ("instances/loan/loan_009.json", "choices", 0.0),
        pytest.param("instances/loan/loan_009.json", "rank", 0.0, marks=pytest.mark.long),
        ("instances/credit_trees/credit_010.json", "choices", 0.05),
    ],
)
def test_other_costs_and_answers(file: str, method: str, noise: float, tmp_path: Path) -> None:
    """Squared costs of a network in a causal model; a stated order; errors."""
    document, problem = asked(file, method, 1, noise)
    write_instance(problem, tmp_path / "instance.json")
    assert verdict(document, tmp_path / "instance.json", tmp_path).startswith("VERIFIED regret")
    document["most"] = document["most"] * 0.999 - 1e-9
    assert "REJECTED" in verdict(document, tmp_path / "instance.json", tmp_path)


def _without_cut(d: dict) -> None:
    d["cuts"] = d["cuts"][:-1]


def _swapped(d: dict) -> None:
    answer = d["answers"][d["cuts"][0]]
    answer["left"], answer["right"] = answer["right"], answer["left"]


def _fewer(d: dict) -> None:
    d["bounds"] = d["bounds"][:1]


def _larger(d: dict) -> None:
    first = d["bounds"][0]["weights"]
    d["bounds"][0]["weights"] = {name: w / 2 for name, w in first.items()}


def _borrowed(d: dict) -> None:
    d["bounds"][0]["certificate"] = d["bounds"][1]["certificate"]


def _raised(d: dict) -> None:
    certificate = d["bounds"][0]["certificate"]
    certificate["lower_bound"] *= 1.01
    certificate["cost"] *= 1.01


def _certain(d: dict) -> None:
    limits = {"missed": {}, "threshold": None, "noise": {}, "scenarios": [], "outcomes": None}
    d["bounds"][0]["certificate"]["withstands"] = limits


def _impossible(d: dict) -> None:
    d["answers"] += [
        {"left": a["right"], "right": a["left"], "more": 0.0, "plus": -0.0} for a in d["answers"]
    ]
    d["answers"] += [{"easier": f, "harder": g} for f in d["levers"] for g in d["levers"][:1]]
    d["answers"] += [{"left": d["answers"][0]["left"], "right": {}, "more": 0.0, "plus": 0.0}]
    d["cuts"] = [*d["cuts"], len(d["answers"]) - 1]


ATTACKS: dict[str, tuple[Callable[[dict], Any], str]] = {
    "less": (lambda d: d.update(most=d["most"] * 0.99), "most: some weights"),
    "least weight": (lambda d: d.update(least_weight=1e-6), "most: some weights"),
    "an answer less": (_without_cut, "most: some weights"),
    "an answer turned round": (_swapped, "most: some weights"),
    "fewer bounds": (_fewer, "most: some weights"),
    "other weights": (_larger, "not of this instance with these weights"),
    "another certificate": (_borrowed, "not of this instance with these weights"),
    "a bound of certain actions": (_certain, "withstands: allowed"),
    "a higher bound": (_raised, "cost|lower_bound|proves less"),
    "answers that exclude everything": (_impossible, "they allow no weights"),
    "cost": (lambda d: d.update(cost=d["cost"] / 2), "cost: not the action's cost"),
    "an infeasible action": (lambda d: d.update(action={}, cost=0.0), "action: "),
    "no lever": (lambda d: d["levers"].pop(), "levers: allowed"),
    "a lever twice": (lambda d: d["levers"].append(d["levers"][0]), "levers: allowed"),
    "an unknown lever": (lambda d: d["levers"].append("age"), "levers|'age'"),
    "a position": (lambda d: d.update(cuts=[99]), "cuts"),
    "a key": (lambda d: d.update(why="because"), "unknown key 'why'"),
    "a weight of 0": (lambda d: d.update(least_weight=0.0), "least_weight"),
    "an order of strangers": (
        lambda d: d["answers"].append({"easier": "age", "harder": "income"}),
        "allowed: levers",
    ),
}


@pytest.mark.parametrize("attack, reason", ATTACKS.values(), ids=ATTACKS)
def test_attacks_are_rejected(
    proof: tuple[dict, Path], attack: Callable[[dict], Any], reason: str, tmp_path: Path
) -> None:
    """Each with its reason, in one line."""
    document = json.loads(json.dumps(proof[0]))
    attack(document)
    line = verdict(document, proof[1], tmp_path)
    assert line.startswith("REJECTED: ") and "the check failed" not in line
    assert any(part in line for part in reason.split("|")), line


def test_the_instance_is_part_of_the_claim(proof: tuple[dict, Path], tmp_path: Path) -> None:
    """The same file with an instance in which more is allowed."""
    content = json.loads(proof[1].read_text())
    content["preferences"]["ranges"] = {"income": [0.0, 1e9]}
    write_json(content, tmp_path / "other.json")
    assert "REJECTED" in verdict(proof[0], tmp_path / "other.json", tmp_path)


def test_both_sides_have_the_same_rays() -> None:
    """The package's cone and the checker's, each written from the document."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        levers = int(rng.integers(2, 6))
        rows = [[Fraction(x) for x in rng.normal(size=levers).tolist()] for _ in range(5)]
        halves = [half_space(row) for row in rows]
        assert halves == [tuple(cone.half_space(row)) for row in rows]
        ours = WeightCone.of(levers, 0.05)
        for half in halves:
            ours = ours.cut(half) if ours.rays else ours
        theirs = cone.rays(levers, Fraction(0.05), halves)
        assert {ray.weights for ray in ours.rays} == set(theirs)
