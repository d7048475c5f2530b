"""Random problems of every kind that the product solves, each from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent
from tests.conditions.compare_conditions import problem
from tests.helpers.at_a_logit import at_a_logit
from tests.helpers.cost_kinds import DENSITIES, with_kind
from tests.helpers.cost_kinds import KINDS as COSTS
from tests.helpers.generators import Style, random_instance, supported_instance, with_percentile_cost
from tests.helpers.random_conditions import KINDS as CONDITIONS
from tests.helpers.random_conditions import random_conditions, with_conditions
from tests.helpers.tree_samples import random_causal_instance, random_tree_instance, with_missing
from tests.properties.run import case
from tests.properties.test_other_units import drawn, in_units
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
        Cost(*parts, measures=measured(scale)) if kind == "mixture" else Cost.pure(kind, scale),
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
    known = measured(dict.fromkeys(instance.preferences.actionable, 1.0))
    scale = {name: instance.cost.measures.get(name, one) for name, one in known.items()}
    cost = Cost.pure("linf", scale) if seed % 2 else Cost(0.2, 0.3, 0.7, 0.1 * (seed % 4), measured(scale))
    return replace(instance, cost=cost)


def conditions(seed: int, instance: Drawn) -> Drawn:
    """The same under random conditions, of each kind in turn."""
    if instance is None or not instance.levers:
        return None
    return with_conditions(instance, random_conditions(seed, instance, CONDITIONS[seed % len(CONDITIONS)]))


def other_cost(seed: int, instance: Instance) -> Drawn:
    """The same with another cost or density, of each kind in turn."""
    kind = list(COSTS)[seed % len(COSTS)]
    return None if kind in DENSITIES and not instance.scm.has_density else with_kind(seed, kind, instance)


def other_units(seed: int) -> Instance:
    """Features in units from 2^-60 to 2^60, layers too."""
    rng, instance = np.random.default_rng(seed), drawn(seed)
    most = int(rng.choice([10, 30, 60]))
    return in_units(
        instance, rng.integers(-most, most + 1, len(instance.features)), int(rng.integers(-60, 61))
    )


def other_scales(seed: int) -> Drawn:
    """Costs from 2^-400 to 2^400 of the usual, and levers that cost a billion times what others do."""
    rng, instance = np.random.default_rng(seed), case(seed)
    all_, each = int(rng.choice([-200, -60, -20, 0, 20, 60, 200])), int(rng.choice([0, 10, 30]))
    factor = {n: 2.0 ** (all_ + int(rng.integers(-each, each + 1))) for n in instance.cost.measures}
    scale = {n: own.times(factor[n]) for n, own in instance.cost.measures.items()}
    return replace(instance, cost=replace(instance.cost, measures=scale))


CURVED = Style(levers=3, plausible=1.0)

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
    "conditions": lambda seed: conditions(seed, problem(seed, trees=False)),
    "conditions and plausible": lambda seed: conditions(seed, supported_instance(seed, CURVED)),
    "conditions on trees": lambda seed: conditions(seed, problem(seed, trees=True)),
    "costs": lambda seed: other_cost(seed, supported_instance(seed)),
    "costs of trees": lambda seed: other_cost(seed, random_tree_instance(seed)),
    "other units": other_units,
    "other scales": other_scales,
    "thresholds at logits": at_a_logit,
}
