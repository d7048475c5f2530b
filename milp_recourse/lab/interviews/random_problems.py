"""Problems of random networks, for studies that need many levers."""

from __future__ import annotations

import numpy as np

from milp_recourse.formats import instance_from_dict
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance


def random_problem(levers: int, seed: int, hidden: int = 8, kind: str = "l2-squared") -> Instance:
    """A refused person in the unit cube, a network with one hidden layer, and a lever per feature.

    The network's threshold is the 85% quantile of its logits at random rows; the person is the first row
    below the median that some row accepts.
    """
    rng = np.random.default_rng([seed, levers])
    names = [f"lever{k}" for k in range(levers)]
    first, second = rng.normal(size=(hidden, levers)), rng.normal(size=hidden)
    offset = -first @ rng.random(levers)
    rows = rng.random((400, levers))
    logits = np.maximum(rows @ first.T + offset, 0) @ second
    x = rows[np.flatnonzero(logits < np.median(logits))[0]]
    instance = instance_from_dict(
        {
            "format": "milp-recourse/instance-1",
            "features": [
                {"name": n, "kind": "continuous", "actionable": True, "bounds": [0, 1]} for n in names
            ],
            "scm": {"name": "independent"},
            "classifier": {
                "kind": "relu-network",
                "dtype": "float64",
                "layers": [
                    {"weight": first.tolist(), "bias": offset.tolist()},
                    {"weight": [second.tolist()], "bias": [-float(np.quantile(logits, 0.85))]},
                ],
            },
            "accept": {"at_least": 0.0, "margin": 1e-6},
            "factual": dict(zip(names, x.tolist(), strict=True)),
            "preferences": {"actionable": names},
            "cost": {"kind": kind, "scale": dict.fromkeys(names, 1)},
        }
    )
    assert not judge(instance, {}).feasible
    return instance
