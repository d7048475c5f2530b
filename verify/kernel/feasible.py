"""Whether an action is feasible, in exact arithmetic (section 2)."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from math import lcm
from typing import Any

from verify.kernel.box import Box
from verify.kernel.checks import Clock
from verify.kernel.forms import Configuration, Form, combined, constant
from verify.kernel.problem import Demand, Interval, Model, Problem, Row
from verify.kernel.trees import float32, float64


class Point:
    """An action as a box that holds nothing else.

    Where the enclosure of a curve leaves open whether a demand is met, it counts as not met.
    """

    def __init__(self, problem: Problem, action: Mapping[str, Fraction]) -> None:
        self.configuration = Configuration(problem, [f for f in problem.levers if f in action], at=action)
        self.ends = [(action[f], action[f]) for f in self.configuration.acted]
        self.box = Box(self.configuration, self.ends, "", {})

    def why_not(self) -> str | None:
        """Why a permitted action is not feasible; None where it is."""
        configuration, box, model = self.configuration, self.box, self.configuration.model
        if out := [f for (f, _), row in configuration.domains({}).items() if box.least(row) < 0]:
            return f"{out[0]} leaves its domain"
        if len(self.ends) > configuration.problem.most or not self.meets(configuration.demand):
            return "a condition does not hold"
        ends = {f: box.interval(v) for f, v in configuration.values.items()} if model.forests else {}
        if not (configuration.accepts(ends, min) if ends else accepts(model, self.inputs())):
            return "the classifier does not accept the counterfactual"
        if self.impossible():
            return "the counterfactual has density zero"
        squares = sum(w * max(map(abs, box.interval(r))) ** 2 for w, r in configuration.energy.squares)
        implausible = box.most(configuration.energy.rest) + squares > 0
        return "the counterfactual is less plausible than the factual" if implausible else None

    def impossible(self) -> bool:
        """Whether the density of some feature is zero, or cannot be shown to be positive."""
        energy, box = self.configuration.energy, self.box
        coins = any(not low == high in (0, 1) for low, high in map(box.interval, energy.chances))
        return coins or any(box.least(form) <= 0 for form in energy.positive)

    def meets(self, demand: Demand) -> bool:
        """Whether the counterfactual surely meets a settled demand (section 11)."""
        if isinstance(demand, Row):
            return self.box.least(row_form(demand, self.configuration)) >= 0
        return (all if demand.every else any)(map(self.meets, demand.parts))

    def inputs(self) -> list[Interval]:
        """An interval for each of the classifier's columns."""
        return list(map(self.box.interval, self.configuration.columns()))

    def deployed(self) -> bool:
        """Whether the network's logit, computed in its dtype, is at least ``at_least`` (without margin)."""
        model, inputs = self.configuration.model, [float64(sum(pair) / 2) for pair in self.inputs()]
        return computed(model.layers, inputs, model.single) >= model.at_least


@lru_cache(1)
def impossible(problem: Problem) -> set[str]:
    """The levers whose factual values have density zero: under plausibility they may not even be held."""
    levers = problem.levers if problem.model.plausible else ()
    return {f for f in levers if Point(problem, {f: problem.factual[f]}).impossible()}


def row_form(row: Row, configuration: Configuration) -> Form:
    """How far a condition's sum is above what is demanded, as a form (section 11)."""
    values, products = configuration.values, configuration.products
    forms = [values[f] if isinstance(f, str) else products[f] for f, _ in row.terms]
    return combined((1, *(c for _, c in row.terms)), (constant(-row.least), *forms))


def whole(rows: Iterable[Sequence[Any]]) -> tuple[list[list[int]], int]:
    """Multiply rows of numbers by their least common denominator; return them, and the denominator."""
    pairs = [[Fraction(c).as_integer_ratio() for c in row] for row in rows]
    unit = lcm(*(d for row in pairs for _, d in row))
    return [[n * (unit // d) for n, d in row] for row in pairs], unit


def accepts(model: Model, inputs: Sequence[Interval]) -> bool:
    """Whether a network accepts every input in these intervals, by interval arithmetic, layer by layer.

    It computes with whole numbers, because fractions take too long.
    """
    (low, high), unit = whole(zip(*inputs, strict=True))
    for k, layer in enumerate(model.layers or ()):
        Clock.look()
        rows, scale = whole((b, *w) for b, w in zip(layer["bias"], layer["weight"], strict=True))
        ends = [[unit, *(max(v, 0) if k else v for v in side)] for side in (low, high)]
        low, high = ([sum(w * ends[w * s > 0][i] for i, w in enumerate(r)) for r in rows] for s in (-1, 1))
        unit *= scale
    return Fraction(low[0], unit) >= Fraction(model.at_least) + Fraction(model.margin)


def computed(layers: Any, inputs: Sequence[float], single: bool) -> float:
    """A network's output in floats: every product and sum rounded, left to right, the bias added last."""
    rounded = float32 if single else float64
    step = lambda total, pair: rounded(total + rounded(pair[0] * pair[1]))  # noqa: E731
    values = list(map(rounded, inputs))
    for k, layer in enumerate(layers):
        if k:
            values = [0.0 if v <= 0 else v for v in values]  # what is not a number stays so
        pairs = zip(layer["weight"], layer["bias"], strict=True)
        values = [rounded(reduce(step, zip(row, values, strict=True), 0.0) + bias) for row, bias in pairs]
    return values[0]
