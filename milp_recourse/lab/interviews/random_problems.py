"""Problems of random networks, for studies that need many levers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from milp_recourse.formats import instance_from_dict
from milp_recourse.judge import judge
from milp_recourse.lab.arrays import FloatArray
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
    layers = [(first, offset), (second[None], -np.quantile(logits, [0.85]))]
    instance = network_problem(names, x, layers, (0, 1), names, kind)
    assert not judge(instance, {}).feasible
    return instance


def network_problem(
    names: Sequence[str],
    x: FloatArray,
    layers: Iterable[tuple[FloatArray, FloatArray]],
    bounds: tuple[float, float],
    levers: Sequence[str],
    kind: str = "l2-squared",
) -> Instance:
    """A person's problem with a network, without causes; a change by 1 costs the same on every feature.

    Parameters
    ----------
    x
        The person's values, of the features in order.
    layers
        Weights (out, in) and biases.
    bounds
        Of every feature.
    """
    return instance_from_dict(
        {
            "format": "milp-recourse/instance-1",
            "features": [
                {"name": n, "kind": "continuous", "actionable": n in levers, "bounds": list(bounds)}
                for n in names
            ],
            "scm": {"name": "independent"},
            "classifier": {
                "kind": "relu-network",
                "dtype": "float64",
                "layers": [{"weight": w.tolist(), "bias": b.tolist()} for w, b in layers],
            },
            "accept": {"at_least": 0.0, "margin": 1e-6},
            "factual": dict(zip(names, x.tolist(), strict=True)),
            "preferences": {"actionable": list(levers)},
            "cost": {"kind": kind, "scale": dict.fromkeys(names, 1)},
        }
    )
