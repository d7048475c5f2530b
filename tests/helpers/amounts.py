"""Networks over counts and amounts in whole numbers, as tables of lenders have them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent

HIGHEST = (17000.0, 103.0, 58.0, 54.0, 18.0, 18.0, 20.0, 1.0, 1.0)
"""Of an income, an age, five counts, and two shares; the least is 0."""


def amounts(seed: int, cost: str = "l2-squared") -> Instance:
    """Two layers of 16 units; of 4000 scores a tenth is accepted, and the applicant's is the 200th lowest."""
    rng = np.random.default_rng(seed)
    names = tuple(f"n{k}" for k in range(7)) + ("share", "rate")
    whole = [high > 1.0 for high in HIGHEST]
    features = tuple(
        Feature(name, "integer" if one else "continuous", True, (0.0, high))
        for name, one, high in zip(names, whole, HIGHEST, strict=True)
    )
    layers = [
        (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.3, after))
        for before, after in pairwise((9, 16, 16, 1))
    ]
    layers[0] = (layers[0][0] * 8.0 / np.array(HIGHEST), layers[0][1] - 3.0)
    network = ReluNetwork.from_layers(layers)
    counts = [np.floor(rng.beta(1.0, 6.0, 4000) * high) for high in HIGHEST[:7]]
    rows = np.column_stack([*counts, rng.uniform(size=4000), rng.uniform(size=4000)])
    logits = network.evaluate(rows)[:, 0]
    factual = dict(zip(names, rows[np.argsort(logits)[200]].tolist(), strict=True))
    priced = Cost.pure(cost, dict(zip(names, HIGHEST, strict=True)))
    accept = Acceptance(float(np.quantile(logits, 0.9)), 1e-9)
    return Instance(features, independent(names), network, factual, Preferences(names), priced, accept)
