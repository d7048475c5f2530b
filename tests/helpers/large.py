"""Networks with hundreds of units in each layer, where a node of the engine takes 10 ms or more."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent


def large(seed: int, units: int = 256, layers: int = 3, levers: int = 5) -> Instance:
    """A random network; a thousandth of the actions are accepted."""
    rng = np.random.default_rng(seed)
    drawn = [
        (rng.normal(0.0, np.sqrt(2.0 / a), (b, a)), rng.normal(0.0, 0.3, b))
        for a, b in pairwise([levers, *[units] * layers, 1])
    ]
    network, names = ReluNetwork.from_layers(drawn), [f"x{k}" for k in range(levers)]
    logits = network.evaluate(rng.uniform(-1.0, 1.0, (4000, levers)))[:, 0]
    return Instance(
        tuple(Feature(n, "continuous", True, (-1.0, 1.0)) for n in names),
        independent(names),
        network,
        dict.fromkeys(names, 0.0),
        Preferences(tuple(names)),
        Cost.pure("l1", dict.fromkeys(names, 1.0)),
        Acceptance(float(np.quantile(logits, 0.999))),
    )
