"""A bound that holds without some conditions is proven without them, and only such a bound is."""

import json
import random
from dataclasses import replace

import pytest

from milp_recourse.certificates import certificates_for
from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.instance import Instance, under
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from tests.helpers.lattices import enumerated, random_problem
from verify.files.check import examine

SUM = {"sum": {"a": 1.0, "b": 2.0}, "of": "counterfactual", "at_most": 1e6}


def _verdict(tmp_path, data, certificate):
    file, path = tmp_path / "certificate.json", tmp_path / "instance.json"
    file.write_text(json.dumps(certificate))
    path.write_text(json.dumps(data))
    return examine(file, path, 60.0).line


def _certified(instance: Instance):
    result = solve(instance, "bab")
    return result, certificates_for([instance], [result])[0]


def _with_recourse(seeds, trees: bool, causes: bool):
    """A problem without conditions whose optimum acts on something."""
    for seed in seeds:
        data = random_problem(random.Random(seed), trees, causes, False)
        if data["cost"]["kind"] != "l0" and solve(instance_from_dict(data)).action:
            return data
    raise AssertionError("no seed has recourse")


@pytest.mark.parametrize(("trees", "causes"), [(True, False), (True, True), (False, False), (False, True)])
def test_conditions_that_the_optimum_meets_cost_the_certificate_nothing(tmp_path, trees, causes):
    """As many configurations and nodes prove the bound as without the conditions."""
    data = _with_recourse(range(40), trees, causes)
    _, plain = _certified(instance_from_dict(data))
    data["conditions"] = [{"at_most_actions": 4}, {"any": [{"acted": "a"}, {"not": {"acted": "a"}}]}]
    result, certificate = _certified(instance_from_dict(data))
    assert result.rests_on == frozenset()
    assert certificate["conditions"] == []
    assert [one["acted"] for one in certificate["configurations"]] == [
        one["acted"] for one in plain["configurations"]
    ]
    assert len(json.dumps(certificate)) < len(json.dumps(plain)) + 200
    assert _verdict(tmp_path, data, certificate).startswith("VERIFIED optimal")


def test_sums_of_several_levers_of_trees_are_certified(tmp_path):
    """Both where the optimum breaks the sum and where it does not, with causes and without."""
    certified = 0
    for seed in range(14):
        data = random_problem(random.Random(seed), True, seed % 2 == 0, False)
        data["conditions"] = [{**SUM, "at_most": random.Random(seed).uniform(-1, 2)}]
        result, certificate = _certified(instance_from_dict(data))
        assert result.proof == "rigorous", seed
        if certificate is not None:
            certified += result.rests_on == {0}
            assert _verdict(tmp_path, data, certificate).startswith("VERIFIED"), seed
    assert certified >= 2


@pytest.mark.long
def test_a_bound_that_rests_on_a_condition_is_not_accepted_without_it(tmp_path):
    """Leaving out conditions is accepted only where the least cost without them reaches the bound."""
    seen = {True: 0, False: 0}
    for seed in range(60):
        data = random_problem(random.Random(seed), seed % 2 == 0, seed % 4 >= 2, True)
        instance = instance_from_dict(data)
        result = solve(instance, "bab")
        if not result.action or data["cost"]["kind"] == "l2":
            continue
        least = enumerated(under(instance, []))
        assert least is not None
        holds = least * (1 + 10**-5) >= enumerated(instance)
        [forged] = certificates_for([instance], [replace(result, rests_on=frozenset())], 5.0)
        seen[holds] += 1
        if holds:
            assert _verdict(tmp_path, data, forged).startswith("VERIFIED"), seed
            continue
        assert forged is None, seed
        [honest] = certificates_for([instance], [result])
        verdict = _verdict(tmp_path, data, {**honest, "conditions": []})
        assert verdict.startswith("REJECTED"), (seed, verdict)
    assert min(seen.values()) >= 3, seen


@pytest.mark.parametrize("wrong", [[7.0], [0.5], ["0"], [-1.0]])
def test_positions_of_conditions_are_checked(tmp_path, wrong):
    """A position that no condition has is refused."""
    data = _with_recourse(range(40), True, False) | {"conditions": [{"at_most_actions": 4}]}
    _, certificate = _certified(instance_from_dict(data))
    assert _verdict(tmp_path, data, {**certificate, "conditions": wrong}).startswith("REJECTED")


def test_conditions_that_nothing_can_meet_are_proven_so() -> None:
    """The proof rests on them: without them there would be an action."""
    instance = instance_from_dict(
        {
            "format": "milp-recourse/instance-1",
            "features": [
                {"name": "x", "kind": "continuous", "actionable": True, "bounds": [0, 10]},
                {"name": "z", "kind": "continuous", "actionable": False},
            ],
            "scm": {"name": "independent"},
            "classifier": {
                "kind": "relu-network",
                "dtype": "float64",
                "layers": [{"weight": [[1.0, 0.0]], "bias": [-3.0]}],
            },
            "factual": {"x": 0.0, "z": 1.0},
            "preferences": {"actionable": ["x"]},
            "cost": {"kind": "l1", "scale": {"x": 1}},
            "plausibility": None,
            "conditions": [{"feature": "z", "of": "factual", "at_least": 2.0}],
        }
    )
    result = solve(instance, certificates=True)
    assert (result.status, result.proof) == (Status.INFEASIBLE, "rigorous") and result.evidence is not None
