"""Random problems of every kind that the product solves, each from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import independent
from milp_recourse.instance import Acceptance, Instance, Preferences
from tests.forests.tree_samples import random_causal_instance, random_tree_instance, with_missing
from tests.properties.generators import Style, random_instance, with_percentile_cost
from tests.properties.run import case
from tests.properties.test_tables import one_hot_and_table

Drawn = Instance | None
"""None: the seed has no such problem."""


def linear(seed: int) -> Instance:
    """A linear logit over up to sixteen levers, under any cost."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 17))
    names = tuple(f"f{k:02}" for k in range(count))
    lows, highs = -rng.random(count) - 0.1, rng.random(count) + 0.1
    features = tuple(
        Feature(n, "continuous", True, (float(low), float(high)))
        for n, low, high in zip(names, lows, highs, strict=True)
    )
    weights = rng.normal(size=count)
    most = np.maximum(weights * lows, weights * highs).sum()
    bias = -float(rng.choice([0.3, 0.7, 0.95, 1.01])) * most
    scale = dict(zip(names, rng.uniform(0.5, 2, count).tolist(), strict=True))
    kind = str(rng.choice(["l1", "l1", "l2-squared", "linf", "mixture"]))
    parts = (rng.random(3) * (rng.random(3) < 0.7) + 0.01).tolist()  # l2-squared, l1, linf
    return Instance(
        features,
        independent(names),
        ReluNetwork.from_layers([(weights[None], [bias])], "float64"),
        dict.fromkeys(names, 0.0),
        Preferences(names),
        Cost(*parts, scale=scale) if kind == "mixture" else Cost.pure(kind, scale),
        Acceptance(),
        name=f"linear-{seed}",
    )


def causal(seed: int, one_hot: bool = False) -> Drawn:
    """Trees inside a causal model."""
    return random_causal_instance(seed, one_hot)


def tables(seed: int) -> Drawn:
    """Labels with numbers of their own."""
    pair = one_hot_and_table(seed)
    return None if pair is None else pair[seed % 2]


def missing(seed: int) -> Drawn:
    """Trees with a rule for missing values, and applicants who have some."""
    return with_missing(seed, random_tree_instance(seed, 1 if seed % 3 == 0 else None))


def whole_and_plausible(seed: int) -> Drawn:
    """Whole numbers and labels acted on under plausibility, with any cost."""
    return random_instance(seed, Style(levers=3, curves=False, gamma=False, plausible=1.0))


def largest_and_plausible(seed: int) -> Drawn:
    """A maximum in the cost, under plausibility."""
    instance = random_instance(seed, Style(levers=3, plausible=1.0))
    scale = {name: instance.cost.scale.get(name, 1.0) for name in instance.preferences.actionable}
    cost = Cost.pure("linf", scale) if seed % 2 else Cost(0.2, 0.3, 0.7, 0.1 * (seed % 4), scale=scale)
    return replace(instance, cost=cost)


KINDS: dict[str, Callable[[int], Drawn]] = {
    "networks": case,
    "deep networks": lambda seed: case(10_000 + seed),
    "linear": linear,
    "percentiles": lambda seed: with_percentile_cost(seed, case(seed)),
    "whole and plausible": whole_and_plausible,
    "linf and plausible": largest_and_plausible,
    "tables": tables,
    "single trees": lambda seed: random_tree_instance(seed, 1),
    "ensembles": random_tree_instance,
    "missing values": missing,
    "causal trees": causal,
    "causal trees, one-hot": lambda seed: causal(seed, one_hot=True),
}
