"""Under plausibility nothing of density zero is feasible, and no rule of the checker forgets it.

Each problem below has a certificate that was accepted although what it says is false, or that one of the
checker's two ways accepted alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.questions.solve import solve
from verify.__main__ import examine
from verify.files.instance import Source

EXPONENTIAL = {"kind": "gamma", "shape": 1.0, "scale": 1.0}
GAMMA = {"kind": "gamma", "shape": 2.0, "scale": 1.0}
COIN = {"kind": "bernoulli", "p": 0.3}
NORMAL = {"kind": "normal", "sd": 1.0}


def problem(features: dict[str, tuple[float, list[float], dict]], weight: list[float], bias: float) -> dict:
    """Features that nothing causes, by name: factual value, bounds, noise."""
    return {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": name, "kind": "continuous", "actionable": True, "bounds": bounds}
            for name, (_, bounds, _) in features.items()
        ],
        "scm": {
            "name": "explicit",
            "mechanisms": {
                name: {"equation": 0.0, "noise": noise} for name, (_, _, noise) in features.items()
            },
        },
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": [weight], "bias": [bias]}],
        },
        "factual": {name: x for name, (x, _, _) in features.items()},
        "preferences": {"actionable": list(features)},
        "cost": {"kind": "l1", "scale": dict.fromkeys(features, 1.0)},
        "plausibility": {"kind": "scm-density", "at_least": "factual"},
    }


def lines(folder: Path, instance: dict, claim: dict) -> list[str]:
    """What the checker says of a claim, fast and by the kernel alone."""
    (folder / "i.json").write_text(json.dumps(instance))
    empty = dict.fromkeys(("action", "cost", "lower_bound"))
    head = {
        "format": "milp-recourse/certificate-1",
        "instance_sha256": Source(folder / "i.json").applicant(None).digest,
    }
    (folder / "c.json").write_text(json.dumps(head | empty | claim))
    return [examine(folder / "c.json", folder / "i.json", 60.0, slow=slow).line for slow in (False, True)]


def test_exponential_noise_is_positive(tmp_path):
    """Gamma noise of shape 1 has a logarithm with factor 0: its end at 0 is one all the same."""
    instance = problem({"a": (1.0, [-5.0, 5.0], EXPONENTIAL)}, [-1.0], -2.0)  # accepted: a <= -2
    claim = {"claim": "optimal", "action": {"a": -2.0}, "cost": 3.0, "lower_bound": 3.0}
    tree = {"configurations": [{"acted": ["a"], "tree": [["d", "", [{"g": 1.0}]]]}]}
    for line in lines(tmp_path, instance, claim | tree):
        assert line == "REJECTED: action: the counterfactual has density zero"


@pytest.mark.parametrize(("noise", "x", "bounds"), [(GAMMA, -1.0, [-2.0, -0.5]), (COIN, 5.0, [4.0, 6.0])])
def test_who_cannot_be_held_is_not_idle(tmp_path, noise, x, bounds):
    """Where f has density zero before the action, acting on f and g says nothing about acting on g alone."""
    instance = problem({"f": (x, bounds, noise), "g": (3.0, [-5.0, 5.0], NORMAL)}, [0.0, -1.0], 1.0)
    both = {"acted": ["f", "g"], "tree": [["e"]]}
    for line in lines(tmp_path, instance, {"claim": "infeasible", "configurations": [both]}):
        assert line == "REJECTED: configurations: none covers acting on exactly g (section 5)"
    alone = {"acted": ["g"], "tree": [["e"]]}
    bounds_ = {"claim": "bounds", "action": {"g": 1.0}, "cost": 2.0, "lower_bound": 0.0}
    for line in lines(tmp_path, instance, bounds_ | {"configurations": [both, alone]}):
        assert line.startswith("VERIFIED bounds")
    held = bounds_ | {"action": {"f": x, "g": 1.0}, "configurations": [both, alone]}
    for line in lines(tmp_path, instance, held):
        assert line.startswith("REJECTED: action: ")
    with pytest.raises(Unsupported, match="plausibility"):
        solve(instance)


@pytest.mark.parametrize("noise", [GAMMA, EXPONENTIAL])
def test_nothing_plausible_closes_any_leaf(tmp_path, noise):
    """The kernel and the fast path look at logarithms before any leaf's own rule (section 7)."""
    instance = problem({"a": (1.0, [-5.0, -0.5], noise)}, [-1.0], -2.0)
    for leaf in (["d", "", []], ["d", "", [{"g": 1.0}]], ["e"]):
        claim = {"claim": "infeasible", "configurations": [{"acted": ["a"], "tree": [leaf]}]}
        assert lines(tmp_path, instance, claim) == ["VERIFIED infeasible"] * 2
