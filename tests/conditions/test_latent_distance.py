"""A distance between outputs of a ReLU encoder: features that follow from the levers, and conditions.

The encoder's outputs are features of the causal model that nobody acts on; the classifier does not read them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.formats import write_instance
from milp_recourse.problem.conditions.text import condition_from_text
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import NetworkOutput, Variable
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from milp_recourse.questions.solve import solve
from verify.__main__ import examine

NAMES, LATENT = ("a", "b"), ("z", "y")


def applicant(seed: int, within: float) -> tuple[Instance, ReluNetwork, list[ReluNetwork]]:
    """Two levers, a random classifier of both, and two outputs of an encoder of both within an l1 ball."""
    rng = np.random.default_rng(seed)

    def network(inputs: int) -> ReluNetwork:
        first = np.zeros((5, inputs))
        first[:, :2] = rng.normal(0, 1, (5, 2))
        last = rng.normal(0, 1, (1, 5)), np.zeros(1)
        return ReluNetwork.from_layers([(first, rng.normal(0, 1, 5)), last])

    classifier, encoder = network(4), [network(2) for _ in LATENT]
    causes = tuple(map(Variable, NAMES))
    mechanisms = {f: Mechanism(NetworkOutput(e, causes)) for f, e in zip(LATENT, encoder, strict=True)}
    factual = dict.fromkeys(NAMES, 0.0) | {
        f: float(e.evaluate(np.zeros((1, 2)))[0, 0]) for f, e in zip(LATENT, encoder, strict=True)
    }
    levers = tuple(Feature(f, actionable=True, bounds=(-2.0, 2.0)) for f in NAMES)
    known = {f.name: f for f in (*levers, *map(Feature, LATENT))}
    ball = [
        condition_from_text(f"z change {sign} y change {limit}", known)
        for sign, limit in product("+-", (f"at most {within}", f"at least -{within}"))
    ]
    instance = Instance(
        features=levers + tuple(map(Feature, LATENT)),
        scm=StructuralCausalModel((*NAMES, *LATENT), mechanisms),
        classifier=classifier,
        factual=factual,
        preferences=Preferences(NAMES, conditions=tuple(ball)),
        cost=Cost.pure("l1", dict.fromkeys(NAMES, 1.0)),
        accept=Acceptance(float(classifier.evaluate(np.zeros((1, 4)))[0, 0]) + 0.5),
    )
    return instance, classifier, encoder


@pytest.mark.parametrize(("seed", "within"), [(0, 0.3), (2, 1.0), (3, 0.3)])
def test_a_latent_ball_is_kept_to_exactly(seed: int, within: float, tmp_path: Path) -> None:
    """No point of a fine grid inside the ball is cheaper, the optimum is inside, and its proof verifies."""
    instance, classifier, encoder = applicant(seed, within)
    result = solve(instance, "bab", certificates=True)
    free = solve(replace(instance, preferences=Preferences(NAMES)), "bab")
    axis = np.linspace(-2.0, 2.0, 401)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def distance(rows: np.ndarray) -> np.ndarray:
        return sum(np.abs(e.evaluate(rows) - e.evaluate(np.zeros((1, 2))))[:, 0] for e in encoder)

    wide = np.column_stack([points, np.zeros_like(points)])
    accepted = classifier.evaluate(wide)[:, 0] >= instance.accept.threshold
    costs = np.abs(points).sum(axis=1)[accepted & (distance(points) <= within)]
    assert (result.cost is None) <= (costs.size == 0)
    if result.cost is not None:
        assert result.lower_bound <= costs.min(initial=np.inf)
        after = np.array([[result.action.get(f, 0.0) for f in NAMES]])
        assert distance(after)[0] <= within * (1 + 1e-12)
        assert result.cost >= free.lower_bound
    write_instance(instance, tmp_path / "i.json")
    (tmp_path / "c.json.gz").write_bytes(result.evidence)
    outcome = examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60.0)
    assert outcome.claim is not None, outcome.line
