"""Random boxes of random problems with points in them, cheap feasible ones among them: where bounds break.

A point set has several points per box; ``node`` says which box a point is in. Nothing here uses a bound.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from milp_recourse.backends.bab import People
from milp_recourse.engine import evaluate, local
from milp_recourse.engine.dual import Costs
from milp_recourse.engine.kernel import costs_of
from milp_recourse.engine.nodes import SIGNS
from milp_recourse.engine.relaxation import rounding
from milp_recourse.engine.stack import Stack
from milp_recourse.instance import Instance
from tests.properties.generators import Style, supported_instance

Array = np.ndarray

STYLES = (
    Style(levers=4),
    Style(levers=2, discrete=False, plausible=1.0),
    Style(levers=3, curves=False, gamma=False),
    Style(causes=False, levers=3, plausible=1.0),
    Style(levers=5, depth=2, width=12),
)
BOXES, POINTS = 12, 60


@dataclass
class Sample:
    """B boxes (d, B) of one stack's only applicant and P points (d, P) in them."""

    people: People
    k: int
    stack: Stack
    low: Array
    high: Array
    points: Array
    node: Array

    @functools.cached_property
    def who(self) -> Array:
        return np.zeros(self.low.shape[1], dtype=np.int64)

    @functools.cached_property
    def errors(self) -> list[Array]:
        return rounding(self.stack, self.stack.lower, self.stack.upper, np.zeros(1, dtype=np.int64))

    @property
    def node_errors(self) -> list[Array]:
        return [e[self.who] for e in self.errors]

    @functools.cached_property
    def costs(self) -> Costs:
        return costs_of(self.stack, self.who)

    @functools.cached_property
    def owner(self) -> Array:
        return np.zeros(len(self.node), dtype=np.int64)

    @functools.cached_property
    def units(self) -> Array:
        """Values of the structural units at the points."""
        return evaluate.unit_values(self.stack, self.points, self.owner)

    @functools.cached_property
    def arguments(self) -> list[Array]:
        """What every hidden ReLU is applied to at the points; the logit last."""
        s = self.stack
        layers = [s.first @ np.concatenate([self.points, self.units]) + s.first_offset[:, self.owner]]
        for weight, bias in zip(s.weights, s.biases, strict=True):
            layers.append(weight @ np.maximum(layers[-1], 0.0) + bias)
        return layers

    @functools.cached_property
    def unit_arguments(self) -> Array:
        """What every unit is applied to at the points."""
        s = self.stack
        return s.unit_rows @ np.concatenate([self.points, self.units]) + s.unit_offset[:, self.owner]

    @functools.cached_property
    def price(self) -> Array:
        """What the points cost."""
        s = self.stack
        return evaluate.costs_at(
            costs_of(s, self.owner), s.jump[:, self.owner], s.jump_largest[:, self.owner], self.points
        )

    @functools.cached_property
    def feasible(self) -> Array:
        """Which points are feasible beyond doubt."""
        return evaluate.feasibility(self.stack, self.points, self.owner, self.errors[-1][self.owner])[0]

    def signs(self, rng: np.random.Generator, most: int = 3) -> tuple[Array, Array]:
        """Signed ReLUs per box, true at one of its points; and which points have all of their box's signs."""
        relus = [k for k, (function, _) in enumerate(self.stack.units) if function == "relu"]
        y = np.concatenate([self.unit_arguments, *self.arguments[:-1][:2]])
        numbers = relus + list(range(len(self.stack.units), len(y)))
        signs = np.zeros((SIGNS, self.low.shape[1]), dtype=np.int32)
        same = np.ones(len(self.node), dtype=bool)
        for b in range(self.low.shape[1]):
            at = rng.choice(np.flatnonzero(self.node == b))
            for p, number in enumerate(rng.permutation(numbers)[: rng.integers(0, most + 1)]):
                signs[p, b] = (number + 1) * (1 if y[number, at] > 0 else -1)
                same[self.node == b] &= (np.sign(signs[p, b]) * y[number] >= 0)[self.node == b]
        return signs, same


@functools.cache
def samples(count: int = 40, first: int = 0) -> tuple[Sample, ...]:
    """The samples of so many problems, in turn of every style."""
    found = []
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        instance = supported_instance(seed, STYLES[seed % len(STYLES)])
        found += samples_of(instance, rng)
    return tuple(found)


def samples_of(instance: Instance, rng: np.random.Generator, most: int = 2) -> list[Sample]:
    """One sample for each of (at most so many) sets of features acted on, the largest first."""
    people = People([instance])
    order = sorted(range(len(people.stacks)), key=lambda k: -people.stacks[k][0].actions)
    with np.errstate(all="ignore"):
        drawn = [_sample(people, k, people.stacks[k][0], rng) for k in order[:most]]
    return [sample for sample in drawn if len(sample.node)]


def _sample(people: People, k: int, stack: Stack, rng: np.random.Generator) -> Sample:
    good = _cheap_points(stack, rng)
    whole = np.asarray(stack.integral)
    width = (stack.upper - stack.lower)[:, 0]
    lows, highs = [stack.lower[:, 0]], [stack.upper[:, 0]]
    for _ in range(BOXES - 1):
        centre = good[:, rng.integers(good.shape[1])] if rng.random() < 0.7 else _inside(stack, rng, 1)[:, 0]
        size, share = width * 10 ** rng.uniform(-4, 0.2), rng.random(len(width))
        share = np.where(rng.random(len(width)) < 0.2, 0.0, share)
        l, h = centre - share * size, centre + (1 - share) * size
        l, h = np.where(whole, np.ceil(l - 1e-9), l), np.where(whole, np.floor(h + 1e-9), h)
        lows.append(np.maximum(l, stack.lower[:, 0]))
        highs.append(np.maximum(np.minimum(h, stack.upper[:, 0]), lows[-1]))
    points, node = [], []
    for b, (l, h) in enumerate(zip(lows, highs, strict=True)):
        near = good[:, rng.integers(good.shape[1], size=POINTS)]
        near = near + width[:, None] * 10 ** rng.uniform(-12, -1, POINTS) * rng.normal(size=near.shape)
        free = l[:, None] + (h - l)[:, None] * rng.random((len(l), POINTS))
        corner = np.where(rng.random(free.shape) < 0.5, l[:, None], h[:, None])
        kind = rng.integers(4, size=POINTS)
        p = np.where(kind == 0, free, np.where(kind == 1, corner, near))
        p = np.concatenate([np.where(whole[:, None], np.round(p), p), good], axis=1)
        outside = ((good < l[:, None]) | (good > h[:, None])).any(axis=0)
        p = p[:, np.concatenate([np.ones(POINTS, dtype=bool), ~outside])]
        points.append(np.clip(p, l[:, None], h[:, None]))
        node += [b] * p.shape[1]
    at, which = np.concatenate(points, axis=1), np.array(node)
    sample = Sample(people, k, stack, np.array(lows).T, np.array(highs).T, at, which)
    keep = np.isfinite(sample.units).all(axis=0) & np.isfinite(sample.arguments[-1][0])
    keep &= evaluate.row_excess(stack, at, sample.units, sample.owner)[0] <= 0
    boxes, which = np.unique(which[keep], return_inverse=True)  # some have no point in every domain
    return Sample(people, k, stack, sample.low[:, boxes], sample.high[:, boxes], at[:, keep], which)


def _inside(stack: Stack, rng: np.random.Generator, count: int) -> Array:
    a = stack.lower + (stack.upper - stack.lower) * rng.random((stack.actions, count))
    return np.where(stack.whole, np.round(a), a)


def _cheap_points(stack: Stack, rng: np.random.Generator, starts: int = 6) -> Array:
    """Locally optimal actions (feasible or nearly), and the factual."""
    who = np.zeros(starts, dtype=np.int64)
    costs = costs_of(stack, who)
    low, high = np.repeat(stack.lower, starts, axis=1), np.repeat(stack.upper, starts, axis=1)
    error = rounding(stack, low, high, who)[-1]
    far = np.full(starts, float(costs_far(stack)))
    inside = _inside(stack, rng, starts)
    best = local.polish(stack, costs, inside, low, high, who, error, far, hops=6).point
    x = np.clip(stack.factual, stack.lower, stack.upper)
    x = np.where(stack.whole, np.round(x), x)
    return np.clip(np.concatenate([best, x], axis=1), stack.lower, stack.upper)


def costs_far(stack: Stack) -> float:
    """More than anything in the stack can cost."""
    far = np.maximum(abs(stack.lower - stack.factual), abs(stack.upper - stack.factual))
    total = (stack.kappa * far**2 + stack.beta * far + stack.jump).sum() + stack.fixed.max()
    return float(1.01 * (total + (stack.omega * far + stack.jump_largest).max()) + 1e-9)


def targets(sample: Sample, rng: np.random.Generator) -> Array:
    """Target costs for the boxes: some above everything, some just above a feasible point's cost."""
    result = np.full(sample.low.shape[1], costs_far(sample.stack))
    known = sample.price[sample.feasible]
    for b in range(len(result)):
        if len(known) and rng.random() < 0.8:
            chosen = known.min() if rng.random() < 0.5 else rng.choice(known)
            result[b] = chosen * (1 + rng.choice([1e-9, 1e-4, 0.1]))
    return result


__all__ = ["STYLES", "Sample", "costs_far", "samples", "samples_of", "targets"]
