"""Random small problems, built as :class:`Instance` objects: one seed, one problem.

Everything the program can say occurs: causal graphs in any column order with affine, ReLU, square,
product, sigmoid and network mechanisms and sigmoid links; networks of no to three hidden layers;
all kinds of features; masks, weights, ranges, domains, bounds that miss the factual, monotone
actions; every cost and mixtures; plausibility. Used by every test that wants adversarial input.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from milp_recourse.errors import Unsupported
from milp_recourse.problem.cost import Cost, Quantiles, measured
from milp_recourse.problem.expression import (
    Expression,
    NetworkOutput,
    Relu,
    Sigmoid,
    Square,
    Variable,
    as_expression,
)
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Bernoulli, Gamma, Noise, Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.program import lower

COSTS = ("l2-squared", "l1", "linf", "l0", "mixture")


@dataclass(frozen=True)
class Style:
    """What a draw may contain.

    Parameters
    ----------
    levers
        Most features the applicant may act on.
    curves
        Whether sigmoids, squares, products and sigmoid links occur; without them a program is
        piecewise linear.
    discrete
        Whether integers, binaries, ordinals and categories occur.
    plausible
        How often plausibility is asked for.
    depth, width
        Most hidden layers of the classifier, and most units in one.
    causes
        Whether features influence each other at all.
    gamma
        Whether Gamma noise occurs (its density makes the ball curved).
    """

    levers: int = 3
    curves: bool = True
    discrete: bool = True
    plausible: float = 0.35
    depth: int = 3
    width: int = 6
    causes: bool = True
    gamma: bool = True


SEVERAL_LEVERS = (
    Style(levers=4, curves=False, gamma=False),
    Style(levers=4),
    Style(levers=3, plausible=1.0, discrete=False),
    Style(levers=3, plausible=1.0, gamma=False, curves=False),
    Style(levers=5, causes=False),
)
"""With and without curves, plausibility and causes; up to five levers."""


PIECEWISE_LINEAR = Style(curves=False, plausible=0.0, gamma=False)
"""Nothing but affine forms and ReLUs: rational arithmetic is exact."""


def random_network(
    rng: np.random.Generator, inputs: int, depth: int, width: int, dtype: str = "float64", outputs: int = 1
) -> ReluNetwork:
    """A ReLU network with ``depth`` hidden layers of 1 to ``width`` units."""
    sizes = [inputs, *(int(rng.integers(1, width + 1)) for _ in range(depth)), outputs]
    layers = []
    for before, after in pairwise(sizes):
        weight = rng.normal(0.0, 1.0 / np.sqrt(before), (after, before))
        weight[rng.random(weight.shape) < 0.1] = 0.0
        layers.append(_typed(weight, rng.normal(0.0, 0.5, after), dtype))
    return ReluNetwork.from_layers(layers, dtype)


def random_equation(rng: np.random.Generator, parents: list[str], curves: bool) -> Expression:
    """A structural equation that reads all of ``parents``."""
    terms: list[Expression] = [as_expression(_number(rng))]
    for name in parents:
        x = Variable(name)
        c = float(rng.choice([-1, 1])) * (0.2 + abs(_number(rng)))
        kind = rng.random()
        if kind < 0.45:
            terms.append(c * x)
        elif kind < 0.75 or not curves:
            terms.append(c * Relu(_number(rng) + c * x))
        elif kind < 0.85:
            terms.append(0.1 * c * Square(x + _number(rng)))
        elif kind < 0.95:
            terms.append(c * Sigmoid(c * x + _number(rng)))
        else:
            other = Variable(parents[int(rng.integers(len(parents)))])
            terms.append(0.1 * c * (x * other))
    if parents and rng.random() < 0.2:
        network = random_network(rng, len(parents), 1, 3)
        terms.append(NetworkOutput(network, tuple(Variable(p) for p in parents)))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def random_scm(
    rng: np.random.Generator,
    names: list[str],
    roots: set[str],
    style: Style,
    unordered: Set[str] = frozenset(),
) -> StructuralCausalModel:
    """A random acyclic model: ``roots`` have no causes, ``unordered`` no effects."""
    order = list(rng.permutation(names))
    mechanisms = {}
    for k, name in enumerate(order):
        earlier = [str(p) for p in order[:k]]
        count = 0 if name in roots or not style.causes else int(rng.integers(0, min(2, len(earlier)) + 1))
        drawn = rng.choice(earlier, count, replace=False).tolist() if count else []
        parents = sorted(set(drawn) - unordered)
        link = Link()
        if style.curves and name not in roots and rng.random() < 0.15:
            link = Link("sigmoid", offset=_number(rng), scale=1.0 + 3.0 * rng.random())
        mechanisms[str(name)] = Mechanism(
            random_equation(rng, parents, style.curves) if parents else as_expression(0.0),
            link,
            _noise(rng, link, style, name in roots),
        )
    return StructuralCausalModel(names, mechanisms)


def random_instance(seed: int, style: Style | None = None) -> Instance:
    """The problem of a seed; nearly always one whose factual is rejected."""
    style = style or Style()
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    names = [f"f{k}" for k in range(count)]
    kinds = {n: _kind(rng, style) for n in names}
    labelled = {n for n, kind in kinds.items() if kind in ("ordinal", "categorical", "binary")}
    whole = {n for n, kind in kinds.items() if kind != "continuous"}
    unordered = {n for n, kind in kinds.items() if kind == "categorical"}
    scm = random_scm(rng, names, whole, style, unordered)
    factual = _factual(rng, scm, kinds)
    chosen = sorted(rng.choice(names, min(count, int(rng.integers(1, style.levers + 1))), replace=False))
    features = tuple(
        _feature(rng, n, kinds[n], factual[n], n in chosen or rng.random() < 0.5, n in labelled)
        for n in names
    )
    levers = tuple(f.name for f in features if f.name in chosen)
    dtype = "float32" if rng.random() < 0.4 else "float64"
    inputs = sum(len(f.columns) for f in features)
    network = random_network(rng, inputs, int(rng.integers(0, style.depth + 1)), style.width, dtype)
    instance = Instance(
        features=features,
        scm=scm,
        classifier=network,
        factual=factual,
        preferences=Preferences(levers, _weights(rng, levers), _ranges(rng, features, factual, levers)),
        cost=_cost(rng, levers),
        plausible=scm.has_density and rng.random() < style.plausible,
        name=f"random-{seed}",
    )
    return _with_threshold(rng, instance, dtype)


def supported_instance(seed: int, style: Style | None = None) -> Instance:
    """The first of seed, seed + 10000, ... with something to act on and a program with proven bounds."""
    while True:
        instance = random_instance(seed, style)
        if instance.levers:
            try:
                lower(instance)
            except Unsupported:
                pass
            else:
                return instance
        seed += 10000


def with_percentile_cost(seed: int, instance: Instance) -> Instance:
    """The same problem, its cost in percentiles: some stretches steep, some flat, some beyond the levers."""
    rng = np.random.default_rng(seed)
    quantiles = {}
    for name in instance.preferences.actionable:
        if instance.by_name[name].kind == "categorical":
            continue
        low, high = instance.levers.get(name, (0.0, 1.0))
        width = high - low + 0.5
        size = int(rng.integers(2, 8))
        values = np.unique(np.round(low + width * rng.uniform(-0.3, 1.3, size + 2), 3))
        rises = rng.random(len(values)) * (rng.random(len(values)) < 0.75) + 1e-3 * (rng.random() < 0.5)
        total = max(float(rises.sum()), 1.0)
        probabilities = np.minimum(np.cumsum(rises) / total, 1.0)
        quantiles[name] = Quantiles(tuple(values.tolist()), tuple(probabilities.tolist()))
    categorical = [f.name for f in instance.features if f.kind == "categorical"]
    kind = str(rng.choice(["percentile", "percentile-max"], p=[0.7, 0.3]))
    return replace(instance, cost=Cost.percentile(kind, quantiles, categorical))


def sample_actions(rng: np.random.Generator, instance: Instance, size: int) -> np.ndarray:
    """Random allowed actions, shape (size, d), nan where not acted on; not all judged good."""
    rows = np.full((size, len(instance.features)), np.nan)
    for k, f in enumerate(instance.features):
        if f.name not in instance.levers:
            continue
        low, high = instance.levers[f.name]
        values = low + (high - low) * rng.random(size)
        if f.integral:
            values = np.clip(np.round(values), low, high)
        rows[:, k] = np.where(rng.random(size) < 0.75, values, np.nan)
    return rows


# -- parts ---------------------------------------------------------------------------------


def _number(rng: np.random.Generator) -> float:
    """A coefficient: a small binary fraction, a decimal that is none, or any double."""
    value = float(rng.normal())
    return [round(value * 4) / 4, round(value, 1), value][int(rng.integers(3))]


def _typed(weight: np.ndarray, bias: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    return tuple(v.astype(dtype).astype(np.float64) for v in (weight, bias))  # type: ignore[return-value]


def _kind(rng: np.random.Generator, style: Style) -> str:
    if not style.discrete or rng.random() < 0.65:
        return "continuous"
    return str(rng.choice(["integer", "binary", "ordinal", "categorical"]))


def _noise(rng: np.random.Generator, link: Link, style: Style, root: bool) -> Noise:
    if root:
        return Normal(float(rng.choice([1.0, 2.0])))
    if style.gamma and link.kind == "identity" and rng.random() < 0.12:
        return Gamma(float(rng.choice([2.0, 3.5])), float(rng.choice([0.5, 1.0])))
    return Normal(float(rng.choice([0.5, 1.0, 2.0, 0.3 + rng.random()])))


def _factual(rng: np.random.Generator, scm: StructuralCausalModel, kinds: dict[str, str]) -> dict[str, float]:
    noise = np.zeros(len(scm.features))
    for k, name in enumerate(scm.features):
        draw = scm.mechanisms[name].noise
        assert draw is not None
        noise[k] = draw.sample(1, rng)[0]
        match kinds[name]:
            case "integer":
                noise[k] = float(rng.integers(-3, 4))
            case "binary":
                noise[k] = float(rng.integers(0, 2))
            case "ordinal" | "categorical":
                noise[k] = float(rng.integers(0, 3))
    row = scm.generate(noise)
    if rng.random() < 0.5:
        rounded = np.round(row, 2)
        density = scm.log_density(rounded)
        row = rounded if np.isfinite(density) else row
    for k, name in enumerate(scm.features):
        link = scm.mechanisms[name].link
        if link.kind == "sigmoid":  # a file with a factual at its end is refused
            ends = sorted((link.offset, link.offset + link.scale))
            row[k] = np.clip(row[k], np.nextafter(ends[0], np.inf), np.nextafter(ends[1], -np.inf))
    return {name: float(v) for name, v in zip(scm.features, row, strict=True)}


def _feature(
    rng: np.random.Generator, name: str, kind: str, x: float, actionable: bool, labelled: bool
) -> Feature:
    if kind in ("ordinal", "categorical"):
        encoding = "code" if kind == "ordinal" or rng.random() < 0.3 else "one-hot"
        return Feature(name, kind, actionable, None, ("low", "mid", "high"), encoding=encoding)  # type: ignore[arg-type]
    if kind == "binary":
        return Feature(name, "binary", actionable, (0.0, 1.0) if actionable else None)
    size = 0.5 + 3.0 * rng.random(2)
    low, high = x - size[0], x + size[1]
    where = rng.random()
    if where < 0.1:  # bounds that miss the factual
        low, high = x + 0.2 * size[0], x + size[1] + 0.7
    elif where < 0.15:
        low, high = x - size[0] - 0.7, x - 0.2 * size[1]
    elif where < 0.18:
        high = low
    elif where < 0.25:
        low = x  # the factual sits on its bound
    if rng.random() < 0.5:
        low, high = np.floor(low * 4) / 4, np.ceil(high * 4) / 4
    if kind == "integer":
        low, high = np.floor(low), np.ceil(high)
    domain = None
    if rng.random() < 0.15:
        domain = (x - 3 * rng.random(), x + 3 * rng.random())
        if rng.random() < 0.3:  # the factual leaves its domain
            domain = (x + 0.1, x + 2.0)
    monotone = [None, "increase", "decrease"][int(rng.choice(3, p=[0.85, 0.08, 0.07]))]
    bounds = (float(low), float(high)) if actionable else None
    return Feature(name, kind, actionable, bounds, None, domain, monotone)  # type: ignore[arg-type]


def _weights(rng: np.random.Generator, levers: tuple[str, ...]) -> dict[str, float]:
    return {n: float(rng.choice([0.5, 2.0, 7.0, 0.1 + rng.random()])) for n in levers if rng.random() < 0.6}


def _ranges(
    rng: np.random.Generator,
    features: tuple[Feature, ...],
    factual: dict[str, float],
    levers: tuple[str, ...],
) -> dict[str, tuple[float, float]]:
    numeric = [f.name for f in features if f.name in levers and not f.labelled and f.kind != "binary"]
    ranges = {}
    for name in numeric:
        if rng.random() < 0.2:
            low = factual[name] - 2 * rng.random()
            ranges[name] = (float(low), float(low + 3 * rng.random()))
    return ranges


def _cost(rng: np.random.Generator, levers: tuple[str, ...]) -> Cost:
    scale = {n: float(rng.choice([1.0, 0.5, 3.0, 0.2 + 2 * rng.random()])) for n in levers}
    kind = str(rng.choice(COSTS, p=[0.4, 0.15, 0.15, 0.1, 0.2]))
    if kind != "mixture":
        return Cost.pure(kind, scale)
    parts = rng.random(4) * (rng.random(4) < 0.6)
    if not parts.any():
        parts[0] = 1.0
    return Cost(*(float(p) for p in parts), measured(scale))


def _with_threshold(rng: np.random.Generator, instance: Instance, dtype: str) -> Instance:
    """The threshold set where the factual is rejected and a random share of actions accepted."""
    with np.errstate(all="ignore"):
        rows = instance.scm.counterfactual(instance.factual_row, sample_actions(rng, instance, 200))
        rows = np.vstack([instance.factual_row, rows[np.isfinite(rows).all(axis=1)]])
        logits = instance.classifier.evaluate(instance.model_rows(rows))[:, 0]  # type: ignore[union-attr]
    share = float(rng.choice([0.3, 0.6, 0.85, 0.97, 1.0], p=[0.3, 0.3, 0.2, 0.1, 0.1]))
    needed = float(np.quantile(logits, share))
    if share == 1.0:
        needed += float(rng.choice([0.0, 0.02, 0.5])) * float(np.ptp(logits) + 0.1)
    needed = max(needed, float(logits[0]) + 1e-3 * (1 + abs(float(logits[0]))))
    margin = (
        1e-4 * (1.0 + float(np.abs(logits).max())) if dtype == "float32" else float(rng.choice([0.0, 1e-3]))
    )
    if rng.random() < 0.5:
        threshold = float(np.float32(needed - margin)) if dtype == "float32" else needed - margin
        return replace(instance, accept=Acceptance(threshold, margin))
    # the shipped files' shape: threshold 0, everything in the last bias
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    bias = network.biases[-1] - (needed - margin)
    layers = [*zip(network.weights, (*network.biases[:-1], bias), strict=True)]
    moved = ReluNetwork.from_layers([_typed(w, b, dtype) for w, b in layers], network.dtype)
    return replace(instance, classifier=moved, accept=Acceptance(0.0, margin))


def bernoulli_instance(seed: int) -> Instance:
    """A problem whose one binary lever has Bernoulli noise and whose plausibility is asked for."""
    rng = np.random.default_rng(seed)
    instance = random_instance(seed, Style(discrete=False, plausible=1.0, gamma=False))
    names = ("b", *instance.scm.features)
    mechanisms = dict(instance.scm.mechanisms) | {
        "b": Mechanism(noise=Bernoulli(float(rng.choice([0.5, 0.25]))))
    }
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    column = rng.normal(0.0, 1.0, (len(network.weights[0]), 1)).astype(network.dtype).astype(np.float64)
    first = np.hstack([column, network.weights[0]])
    layers = [(first, network.biases[0]), *zip(network.weights[1:], network.biases[1:], strict=True)]
    lever = Feature("b", "binary", True, (0.0, 1.0))
    return replace(
        instance,
        features=(lever, *instance.features),
        scm=StructuralCausalModel(names, mechanisms),
        classifier=ReluNetwork.from_layers(layers, network.dtype),
        factual={"b": 0.0, **instance.factual},
        preferences=replace(instance.preferences, actionable=("b", *instance.preferences.actionable)),
        cost=replace(instance.cost, measures={**measured({"b": 1.0}), **instance.cost.measures}),
    )
