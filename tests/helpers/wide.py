"""Networks with many open units over levers of a few values each."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent


def wide(seed: int, labels: bool) -> Instance:
    """Two layers of 48 units over a share and seven levers with four values each, whole numbers or labels."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(7)]
    if labels:
        features = [
            Feature(n, "categorical", True, categories=tuple("abcd"), encoding="one-hot") for n in names
        ]
    else:
        features = [Feature(n, "integer", True, (0.0, 3.0)) for n in names]
    features.append(Feature("share", "continuous", True, (0.0, 1.0)))
    columns = 4 * 7 + 1 if labels else 8
    sizes = [columns, 48, 48, 1]
    layers = [
        (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.3, after))
        for before, after in pairwise(sizes)
    ]
    network = ReluNetwork.from_layers(layers)
    factual = dict.fromkeys(names, 0.0 if labels else 1.0) | {"share": 0.5}
    points = rng.integers(0, 4, (2000, 7))
    inputs = np.eye(4)[points].reshape(2000, -1) if labels else points.astype(float)
    reached = network.evaluate(np.column_stack([inputs, rng.uniform(size=2000)]))[:, 0]
    scale = dict.fromkeys(names, 1.0 if labels else 3.0) | {"share": 1.0}
    return Instance(
        tuple(features),
        independent([f.name for f in features]),
        network,
        factual,
        Preferences(tuple(f.name for f in features)),
        Cost.pure("l1", scale),
        Acceptance(float(np.quantile(reached, 0.98)), 1e-9),
    )


def many_labels(seed: int) -> Instance:
    """Two layers of 16 units over ten levers of five labels and four numbers; few points are accepted, all of
    them far from the factual."""
    rng = np.random.default_rng(seed)
    labels = tuple(
        Feature(f"l{k}", "categorical", True, categories=tuple("abcde"), encoding="one-hot")
        for k in range(10)
    )
    features = labels + tuple(Feature(f"n{k}", "continuous", True, (-1.0, 1.0)) for k in range(4))
    sizes = [54, 16, 16, 1]
    network = ReluNetwork.from_layers(
        [
            (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.3, after))
            for before, after in pairwise(sizes)
        ]
    )
    rows = np.concatenate([rng.integers(0, 5, (20000, 10)), rng.uniform(-1.0, 1.0, (20000, 4))], axis=1)
    one_hot = np.eye(5)[rows[:, :10].astype(int)].reshape(len(rows), -1)
    logits = network.evaluate(np.concatenate([one_hot, rows[:, 10:]], axis=1))[:, 0]
    names = tuple(f.name for f in features)
    factual = dict(zip(names, rows[np.argsort(logits)[10]].tolist(), strict=True))
    cost = Cost.pure("l1", {f.name: 1.0 if f.kind == "categorical" else 2.0 for f in features})
    accept = Acceptance(float(np.quantile(logits, 0.998)), 1e-6)
    return Instance(features, independent(names), network, factual, Preferences(names), cost, accept)
