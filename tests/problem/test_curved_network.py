"""Networks with curves: what files say of them, exact values, optima beside a grid and another back end."""

from __future__ import annotations

import copy
import gzip
import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.certificates import canonical_content
from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.derived_networks import CurvedNetwork
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.questions.robust import certify, robust
from verify.__main__ import examine


def problem(seed: int, functions: tuple[str, ...] = ("sigmoid", "square", "identity", "relu")) -> Any:
    """Two levers, a hidden layer with these functions, one of ReLUs, and a logit that few rows reach."""
    rng = np.random.default_rng(seed)
    widths = [2, len(functions), 3, 1]
    layers = [
        {"weight": rng.normal(size=(after, before)).tolist(), "bias": rng.normal(size=after).tolist()}
        for before, after in pairwise(widths)
    ]
    layers[0]["functions"] = list(functions)
    features = [
        {"name": name, "kind": "continuous", "actionable": True, "bounds": [-2, 2]} for name in ("a", "b")
    ]
    data = {
        "format": "milp-recourse/instance-1",
        "name": "curves",
        "features": features,
        "scm": {"name": "independent"},
        "classifier": {"kind": "relu-network", "dtype": "float64", "layers": layers},
        "accept": {"at_least": 0.0, "margin": 1e-9},
        "factual": {"a": 0.0, "b": 0.0},
        "preferences": {"actionable": ["a", "b"]},
        "cost": {"kind": "l1", "scale": {"a": 1, "b": 1}},
        "plausibility": None,
    }
    logits = instance_from_dict(data).classifier.scores(rng.uniform(-2, 2, (500, 2)))
    data["accept"]["at_least"] = float(np.quantile(logits, 0.95))
    return data


def test_enclosures_hold_what_floats_compute() -> None:
    for seed in range(2):
        network = instance_from_dict(problem(seed)).classifier
        assert isinstance(network, CurvedNetwork)
        for row in np.random.default_rng(seed).uniform(-2, 2, (8, 2)):
            (exact,) = network.enclose([Enclosure.of(float(v)) for v in row])
            assert exact.upper - exact.lower < Fraction(1, 10**40)
            assert float(exact.midpoint) == pytest.approx(network.deployed_logit(row), abs=1e-13)
        wide = [Enclosure(Fraction(-1), Fraction(1))] * 2
        (ends,) = network.enclose(wide)
        inside = network.scores(np.random.default_rng(seed).uniform(-1, 1, (200, 2)))
        assert float(ends.lower) <= inside.min() and inside.max() <= float(ends.upper)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_a_grid_and_the_checker_confirms_it(seed: int, tmp_path: Path) -> None:
    data = problem(seed)
    instance = instance_from_dict(data)
    found = solve(instance, backend="bab", certificates=True)
    ticks = np.linspace(-2, 2, 401)
    grid = np.stack([one.ravel() for one in np.meshgrid(ticks, ticks)], axis=1)
    costs = np.abs(grid).sum(axis=1)[instance.classifier.scores(grid) >= float(instance.accept.needed)]
    assert found.status == "optimal" and found.proof == "rigorous"
    assert found.lower_bound <= costs.min() <= found.cost + 0.03
    file, certificate = tmp_path / "instance.json", tmp_path / "one.json.gz"
    file.write_text(json.dumps(data), encoding="utf-8")
    certificate.write_bytes(found.evidence)
    assert examine(certificate, file).claim == "optimal"
    other = copy.deepcopy(data)
    other["classifier"]["layers"][0]["functions"][0] = "relu"
    file.write_text(json.dumps(other), encoding="utf-8")
    assert examine(certificate, file).claim is None
    assert json.loads(gzip.decompress(found.evidence))["lower_bound"] == found.lower_bound
    if seed == 0:
        assert solve(instance, backend="highs").cost == pytest.approx(found.cost, rel=1e-5)
        sure = robust(instance, missed={"a": 0.01, "b": 0.01}).result
        assert sure.status == "optimal" and sure.cost > found.cost


def test_outcomes_that_are_listed_are_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Slopes of lines belong to the ReLUs behind the curves alone."""
    monkeypatch.setattr(certify, "no_action", lambda *given: None)
    data = problem(0)
    data["features"] = [one | {"kind": "integer", "bounds": [-4, 4]} for one in data["features"]]
    data["accept"]["at_least"] /= 4
    sure = robust(instance_from_dict(data), missed={"a": 1.0, "b": 1.0}, certificates=True).result
    assert sure.action
    file, certificate = tmp_path / "instance.json", tmp_path / "one.json.gz"
    file.write_text(json.dumps(data), encoding="utf-8")
    certificate.write_bytes(sure.evidence)
    assert examine(certificate, file).claim == "optimal"


def test_functions_that_are_all_relus_are_no_curves() -> None:
    data = problem(0, ("relu",) * 3)
    plain = copy.deepcopy(data)
    del plain["classifier"]["layers"][0]["functions"]
    one, other = instance_from_dict(data), instance_from_dict(plain)
    assert canonical_content(one) == canonical_content(other)
    assert canonical_content(instance_from_dict(problem(0))) != canonical_content(one)


@pytest.mark.parametrize(("layer", "functions"), [(0, ["sigmoid"]), (2, ["sigmoid"]), (0, ["cosine"] * 4)])
def test_what_is_no_function_of_each_output_is_refused(layer: int, functions: list[str]) -> None:
    data = problem(0)
    data["classifier"]["layers"][layer]["functions"] = functions
    with pytest.raises(BadInput, match=rf"classifier\.layers\.{layer}\.functions"):
        instance_from_dict(data)
