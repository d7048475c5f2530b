"""Random problems with another cost or another plausibility: one seed and one kind, one problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from milp_recourse.problem.cost import Cost, Distance, Quantiles, Ranks, Relative, measured
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.tables.from_data import at_level, known_rows, quantile_level
from tests.helpers.generators import with_percentile_cost

Parts = dict[str, float]


def _scale(rng: np.random.Generator, instance: Instance) -> Parts:
    return {n: float(rng.choice([0.5, 1.0, 3.0, 0.2 + 2 * rng.random()])) for n in _levers(instance)}


def _levers(instance: Instance) -> tuple[str, ...]:
    return instance.preferences.actionable


def _two(rng: np.random.Generator, instance: Instance, made: Cost) -> Instance:
    """Two scales for most levers with an order, up to six times apart."""
    ordered = [n for n in _levers(instance) if instance.by_name[n].kind != "categorical"]
    falls = {
        n: made.measures[n].rise * float(2.0 ** rng.uniform(-2.5, 2.5)) for n in ordered if rng.random() < 0.8
    }
    return replace(instance, cost=with_falls(made, falls))


def with_falls(cost: Cost, falls: Mapping[str, float]) -> Cost:
    """The cost with these scales for decreases."""
    two = {name: Distance(cost.measures[name].rise, fall) for name, fall in falls.items()}
    return replace(cost, measures={**cost.measures, **two})


def in_ranks(cost: Cost) -> bool:
    """Whether a cost measures some change in percentiles."""
    return any(isinstance(own, Ranks) for own in cost.measures.values())


def two_l1(rng: np.random.Generator, instance: Instance) -> Instance:
    """A price for rises, another for falls."""
    return _two(rng, instance, Cost.pure("l1", _scale(rng, instance)))


def two_squared(rng: np.random.Generator, instance: Instance) -> Instance:
    """The same where changes are squared."""
    return _two(rng, instance, Cost.pure("l2-squared", _scale(rng, instance)))


def two_mixture(rng: np.random.Generator, instance: Instance) -> Instance:
    """The same in a mixture with a maximum and a count, or in the maximum alone."""
    parts = [0.0, 0.0, 1.0, 0.0] if rng.random() < 0.4 else [*(rng.random(4) * (rng.random(4) < 0.7))]
    if not any(parts[:3]):
        parts[1] = 1.0
    return _two(rng, instance, Cost(*map(float, parts), measured(_scale(rng, instance))))


def root(rng: np.random.Generator, instance: Instance) -> Instance:
    """l2, sometimes with two scales."""
    made = Cost.pure("l2", _scale(rng, instance))
    return _two(rng, instance, made) if rng.random() < 0.3 else replace(instance, cost=made)


def relative(rng: np.random.Generator, instance: Instance) -> Instance:
    """Changes relative to the factual wherever it is not 0."""
    sized = [n for n in _levers(instance) if not instance.by_name[n].labelled and instance.factual[n]]
    chosen = {n: Relative() for n in sized if rng.random() < 0.8}
    kind = str(rng.choice(["l1", "l2-squared", "linf"]))
    return replace(instance, cost=Cost.pure(kind, _scale(rng, instance) | chosen))


def log_percentile(rng: np.random.Generator, instance: Instance) -> Instance:
    """Shifts of -log(1 - Q): some stretches steep, some flat, some beyond the levers."""
    quantiles = {}
    for name in _levers(instance):
        if instance.by_name[name].kind == "categorical":
            continue
        low, high = instance.levers.get(name, (0.0, 1.0))
        width = high - low + 0.5
        values = np.unique(np.round(low + width * rng.uniform(-0.3, 1.3, int(rng.integers(3, 8))), 3))
        rises = rng.random(len(values)) * (rng.random(len(values)) < 0.8)
        shares = np.minimum(np.cumsum(rises) / max(rises.sum(), 1e-9), 1.0) * rng.uniform(0.5, 0.999)
        logs = -np.log1p(-shares)
        if len(values) > 1:
            quantiles[name] = Quantiles(tuple(values.tolist()), tuple(logs.tolist()))
    named = [n for n in _levers(instance) if instance.by_name[n].kind == "categorical"]
    if any(n not in quantiles and n not in named for n in _levers(instance)):
        return relative(rng, instance)
    kind = str(rng.choice(["log-percentile", "log-percentile-max"]))
    return replace(instance, cost=Cost.percentile(kind, quantiles, named))


def offset(rng: np.random.Generator, instance: Instance) -> Instance:
    """A density that may fall, or must rise, by so much; everybody's or this applicant's."""
    asked = float(rng.choice([-5.0, -1.0, -0.1, 0.05, 0.5, rng.normal()]))
    if rng.random() < 0.5:
        return replace(instance, plausible=True, density_offset=asked)
    own = replace(instance.preferences, density_offset=asked)
    return replace(instance, plausible=True, density_offset=9.0, preferences=own)


def factual_density(rng: np.random.Generator, instance: Instance) -> Instance:
    """A density at least the factual's."""
    return replace(instance, plausible=True)


def density_level(rng: np.random.Generator, instance: Instance) -> Instance:
    """An absolute log density, near the factual's."""
    row = instance.factual_row
    level = float(instance.scm.log_density(row)) + float(rng.choice([-3.0, -0.3, rng.normal(), 0.2]))
    return at_level(_alone(instance), level)[0]


def density_quantile(rng: np.random.Generator, instance: Instance) -> Instance:
    """A quantile of the densities of people drawn from the causal model, the applicant among them."""
    drawn = instance.scm.sample(30, rng)
    people = [
        instance.factual,
        *({n: float(v) for n, v in zip(instance.scm.features, row, strict=True)} for row in drawn),
    ]
    population = Population(instance, people, (instance.preferences,) * len(people))
    share = float(rng.choice([0.0, 0.1, 0.3, 0.7]))
    return at_level(population, quantile_level(instance, known_rows(population), share))[0]


def domain(rng: np.random.Generator, instance: Instance) -> Instance:
    """Values that occur: every number within what random people have, who may all be above the applicant."""
    features = []
    for f in instance.features:
        if f.labelled or rng.random() < 0.2:
            features.append(f)
            continue
        x = instance.factual[f.name]
        ends = x - 2 * rng.random() ** 2, x + 2 * rng.random() ** 2
        low, high = (np.floor(ends[0]), np.ceil(ends[1])) if f.integral else ends
        features.append(replace(f, domain=(float(low), float(high))))
    return replace(instance, features=tuple(features), plausible=False)


def _alone(instance: Instance) -> Population:
    return Population(instance, [instance.factual], (instance.preferences,))


def pure(kind: str) -> Callable[[np.random.Generator, Instance], Instance]:
    """One of the plain kinds."""
    return lambda rng, instance: replace(instance, cost=Cost.pure(kind, _scale(rng, instance)))


def mixture(rng: np.random.Generator, instance: Instance) -> Instance:
    """Several parts at once."""
    parts = 0.1 + rng.random(4) * (rng.random(4) < 0.7)
    return replace(instance, cost=Cost(*map(float, parts), measured(_scale(rng, instance))))


def percentile(rng: np.random.Generator, instance: Instance) -> Instance:
    """Shifts of ranks, summed or the largest."""
    return with_percentile_cost(int(rng.integers(10**6)), instance)


DENSITIES = ("density factual", "density offset", "density level", "density quantile")

KINDS: dict[str, Callable[[np.random.Generator, Instance], Instance]] = {
    "l1": pure("l1"),
    "l2-squared": pure("l2-squared"),
    "linf": pure("linf"),
    "l0": pure("l0"),
    "mixture": mixture,
    "percentile": percentile,
    "two scales, l1": two_l1,
    "two scales, l2-squared": two_squared,
    "two scales, mixture": two_mixture,
    "l2": root,
    "relative": relative,
    "log-percentile": log_percentile,
    "density factual": factual_density,
    "density offset": offset,
    "density level": density_level,
    "density quantile": density_quantile,
    "domain": domain,
}


def with_kind(seed: int, kind: str, instance: Instance) -> Instance:
    """The problem with a random cost, or offset, of a kind."""
    rng = np.random.default_rng(40_000 + seed)
    return KINDS[kind](rng, replace(instance, reference=None))
