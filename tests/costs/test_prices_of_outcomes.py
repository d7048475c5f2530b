"""Costs of where a person ends, stated by a lever that no model reads: latent distances, paths in data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from milp_recourse.formats import instance_from_dict, write_instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from verify.__main__ import examine

Array = NDArray[np.float64]

SMALL = 1e-6
"""What a unit of x or y costs: weights of 0 are refused."""

FINE = np.array(np.meshgrid(*[np.linspace(-3, 3, 601)] * 2)).reshape(2, -1)


def problem(factual: dict[str, float], network: list[tuple[Array, Array]], **said: Any) -> dict[str, Any]:
    """Levers x, y and ``price``, which all that is paid for; other features follow."""
    bounds = {"x": [-3, 3], "y": [-3, 3], "price": [0, 100]}
    features = [
        {"name": name, "kind": "continuous", "actionable": name in bounds}
        | ({"bounds": bounds[name]} if name in bounds else {})
        for name in factual
    ]
    (first, bias), *rest = network
    first = np.hstack([first, np.zeros((len(first), len(factual) - 2))])
    return {
        "format": "milp-recourse/instance-1",
        "features": features,
        "scm": {"name": "explicit", "mechanisms": said.get("mechanisms", {})},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": w.tolist(), "bias": b.tolist()} for w, b in [(first, bias), *rest]],
        },
        "factual": factual,
        "preferences": {"actionable": [*bounds], "conditions": said["conditions"]},
        "cost": {"kind": "l1", "scale": {"x": 1 / SMALL, "y": 1 / SMALL, "price": 1.0}},
        "plausibility": None,
    }


def drawn(rng: np.random.Generator, *sizes: int) -> list[tuple[Array, Array]]:
    """Layers with normal weights."""
    return [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]


def through(network: Sequence[tuple[Array, Array]], points: Array) -> Array:
    """A network's outputs at points, shape (2, n)."""
    for k, (weight, bias) in enumerate(network):
        points = weight @ (np.maximum(points, 0) if k else points) + bias[:, None]
    return points


def agreed(document: dict[str, Any], folder: Path) -> float | None:
    """The cost that two back ends prove and a certificate shows."""
    instance = instance_from_dict(document)
    result, other = solve(instance, "bab", certificates=True), solve(instance, "highs")
    assert result.status is other.status is Status.OPTIMAL and result.evidence is not None
    assert result.cost == pytest.approx(other.cost, rel=2e-6, abs=1e-9)
    write_instance(instance, folder / "instance.json")
    (folder / "certificate.json.gz").write_bytes(result.evidence)
    assert examine(folder / "certificate.json.gz", folder / "instance.json", 60.0).claim is not None
    return result.cost


@pytest.mark.parametrize("seed", range(2))
def test_a_latent_distance_is_a_cost(seed: int, tmp_path: Path) -> None:
    """The sum of abs(E_k(x') - E_k(x)) of a ReLU encoder E is least among accepted points of a fine grid."""
    rng = np.random.default_rng(seed)
    start, encoder, network = rng.normal(size=2) / 2 - 1, drawn(rng, 2, 4, 2), drawn(rng, 2, 6, 1)
    network[-1] = network[-1][0], network[-1][1] - np.quantile(through(network, FINE), 0.9)
    before = through(encoder, start[:, None])
    (w1, b1), (w2, b2) = encoder
    outputs = [
        {"layers": [{"weight": w1.tolist(), "bias": b1.tolist()}, {"weight": [w.tolist()], "bias": [b]}]}
        for w, b in zip(w2, b2.tolist(), strict=True)
    ]
    mechanisms = {
        f"z{k}": {"equation": {"network": one, "inputs": ["x", "y"]}} for k, one in enumerate(outputs)
    }
    moves = [
        {"relu": {"sum": [{"product": [sign, f"z{k}"]}, -sign * float(before[k, 0])]}}
        for k in range(2)
        for sign in (1.0, -1.0)
    ]
    mechanisms["distance"] = {"equation": {"sum": moves}}
    factual = dict(zip(("x", "y", "z0", "z1"), [*start, *before[:, 0]], strict=True))
    paid = {"sum": {"price": 1.0, "distance": -1.0}, "of": "change", "at_least": 0.0}
    document = problem(
        factual | {"distance": 0.0, "price": 0.0}, network, mechanisms=mechanisms, conditions=[paid]
    )
    distance = np.abs(through(encoder, FINE) - before).sum(axis=0)
    best = distance[through(network, FINE)[0] >= 0].min()
    assert agreed(document, tmp_path) == pytest.approx(best, abs=0.03)


@pytest.mark.parametrize("seed", range(2))
def test_a_path_through_data_is_a_cost(seed: int, tmp_path: Path) -> None:
    """FACE: the shortest path through rows at most 1.6 apart, to a row near which the model accepts."""
    rng = np.random.default_rng(seed)
    rows, weight, within = rng.uniform(-2.5, 2.5, (25, 2)), np.array([[1.0, 0.6]]), 0.1
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    start = int((rows @ weight[0]).argmin())
    paths = dijkstra(np.where(apart <= 1.6, apart, 0), indices=start)
    rest = [k for k in range(len(rows)) if np.isfinite(paths[k])]
    near = [
        {
            "all": [
                {"sum": {name: 1.0}, "of": "counterfactual", "at_least": at - within, "at_most": at + within}
                for name, at in zip("xy", rows[k].tolist(), strict=True)
            ]
            + [{"sum": {"price": 1.0}, "of": "counterfactual", "at_least": float(paths[k])}]
        }
        for k in rest
    ]
    least = float(np.quantile(rows[rest] @ weight[0], 0.7))
    accepted = [k for k in rest if rows[k] @ weight[0] + within * weight.sum() >= least]
    factual = dict(zip("xy", rows[start].tolist(), strict=True)) | {"price": 0.0}
    document = problem(factual, [(weight, np.array([-least]))], conditions=[{"any": near}])
    assert agreed(document, tmp_path) == pytest.approx(paths[accepted].min(), abs=20 * SMALL)
