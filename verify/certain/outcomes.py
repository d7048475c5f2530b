"""The outcomes of actions: scenarios of a network, and the problem to reach a refused one (section 12)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration, Form, constant, plus
from verify.kernel.problem import Feature, Interval, Mechanism, Model, Parts, Piece, Problem, Term
from verify.kernel.trees import Ensemble, above32, float32, float64

MOST_TOGETHER = 2_000_000
"""The most weights, zeros included, of the network that stands for several scenarios."""

ZERO = Fraction(0)
FREE = Term(ZERO, ZERO, ZERO, [Piece(-inf, inf, ZERO, ZERO)])
"""The cost of an outcome: nothing, whatever its value."""


class Scenario(NamedTuple):
    """By feature, what is added to its target if it is acted on, and to its noise if others move it."""

    missed: Mapping[str, Fraction]
    noise: Mapping[str, Fraction]


class Withstood(NamedTuple):
    """What a certificate says of outcomes.

    Attributes
    ----------
    threshold
        The highest threshold; None if it does not move.
    missed, noise
        By feature, by how much its target may be missed, and the ends of what may be added to its noise.
    scenarios, chosen
        The scenarios, and for each configuration the numbers of those in which the network must accept; none:
        what is planned.
    outcomes
        The trees that prove that no outcome of the action is refused, as those of a configuration; None where
        the action has only one outcome.
    """

    threshold: float | None
    missed: Mapping[str, Fraction]
    noise: Mapping[str, Interval]
    scenarios: Sequence[Scenario]
    chosen: Sequence[Sequence[float]]
    outcomes: Sequence[tuple[int | None, Any, Any]] | None


def raised(problem: Problem, threshold: float | None) -> Problem:
    """The problem with the highest threshold; for a network in float32 it is rounded up to a float32."""
    model = problem.model
    if threshold is None:
        return problem
    if model.layers and model.single:
        threshold = float32(threshold) if float32(threshold) >= threshold else above32(threshold)
    forests = [replace(one, threshold=max(one.threshold, threshold)) for one in model.forests]
    return replace(problem, model=replace(model, at_least=max(model.at_least, threshold), forests=forests))


def reads(expression: Any) -> list[str]:
    """The features that an equation reads."""
    if isinstance(expression, str):
        return [expression]
    if not isinstance(expression, dict):
        return []
    inner = expression["inputs"] if "network" in expression else next(iter(expression.values()))
    return [name for part in (inner if isinstance(inner, list) else [inner]) for name in reads(part)]


@lru_cache(4)
def causes(model: Model) -> dict[str, set[str]]:
    """By feature, its causes: the features that its equation reads, and their causes."""
    found: dict[str, set[str]] = {}
    for f, mechanism in model.mechanisms.items():  # causes before effects
        parents = set(reads(mechanism.equation))
        found[f] = parents.union(*(found[parent] for parent in parents))
    return found


def moved(model: Model, acted: Collection[str]) -> list[str]:
    """The features that are not acted on, but caused by one that is, in the order of ``features``."""
    behind = causes(model)
    names = (f.name for f in model.features)
    return [f for f in names if f not in acted and not behind[f].isdisjoint(acted)]


# -- scenarios of a network -----------------------------------------------------------------------------


def check_scenarios(problem: Problem, withstood: Withstood) -> None:
    """Reject scenarios that are not among what is withstood (section 12.3)."""
    whole = {f.name for f in problem.model.features if f.whole}
    for k, one in enumerate(withstood.scenarios):
        for f, by in one.missed.items():
            if abs(by) > withstood.missed.get(f, ZERO) or (f in whole and by.denominator != 1):
                raise Rejected(f"scenarios.{k}: {f[:40]} is not missed by {float(by)} (section 12.1)")
        for f, by in one.noise.items():
            low, high = withstood.noise.get(f, (ZERO, ZERO))
            if not low <= by <= high:
                raise Rejected(f"scenarios.{k}: the noise of {f[:40]} is not {float(by)} more (section 12.1)")


def told_apart(model: Model, scenarios: Sequence[Scenario]) -> set[str]:
    """The features of which a scenario tells whether they are acted on, even at their factual values."""
    behind, found = causes(model), set[str]()
    for one in scenarios:
        missed, noisy = ({f for f, e in part.items() if e} for part in one)
        found |= missed.union(noisy, *(behind[g] for g in noisy))
        found |= {f for f in behind if not behind[f].isdisjoint(missed | noisy)}
    return found


class InScenarios(Configuration):
    """A configuration whose network must accept in each of some scenarios (section 12.3).

    Attributes
    ----------
    seen
        What the network sees in place of ``values``, one mapping per scenario.
    """

    def __init__(self, planned: Configuration, scenarios: Sequence[Scenario]) -> None:
        model, acted = planned.model, planned.acted
        if not model.layers:
            raise Rejected("scenarios: allowed: for networks (section 12.3)")
        weights = sum(len(layer["bias"]) * len(layer["weight"][0]) for layer in model.layers)
        if len(scenarios) ** 2 * weights > MOST_TOGETHER:
            raise Rejected(
                f"scenarios: as one network they have more than {MOST_TOGETHER} weights (section 9)"
            )
        several = replace(model, layers=smallest(model.layers, len(scenarios)))
        super().__init__(replace(planned.problem, model=several), acted)
        by_others = moved(model, acted)
        self.seen = [
            self._outcome(
                {f: e for f, e in one.missed.items() if f in acted}
                | {f: e for f, e in one.noise.items() if f in by_others}
            )
            for one in scenarios
        ]

    def _outcome(self, more: Mapping[str, Fraction]) -> dict[str, Form]:
        """The values if so much is added to what is acted on, and to the noise of the others."""
        values = dict[str, Form]()
        for f, mechanism in self.model.mechanisms.items():  # causes before effects
            added, link = constant(more.get(f, ZERO)), mechanism.link
            if f in self.acted:
                values[f] = plus({self.acted.index(f): Fraction(1)}, added)
                continue
            change = plus(plus(self._lower(mechanism.equation, values), self.equations[f][0], -1), added)
            value = plus(constant(self.problem.factual[f]), change)
            values[f] = self._linked(f, link, change) if link and change else value
        return values

    def columns(self) -> list[Form]:
        """The network's inputs: the columns in each scenario, side by side."""
        planned, found = self.values, list[Form]()
        for values in self.seen:
            self.values = values
            found += super().columns()
        self.values = planned
        return found


def smallest(layers: Sequence[Any], copies: int) -> list[Any]:
    """The network that takes several rows of inputs side by side, and the smallest of their logits."""
    found = []
    for layer in layers:
        width = len(layer["weight"][0])
        before = [[0.0] * (k * width) for k in range(copies)]
        rows = [[*pad, *row, *before[-1 - k]] for k, pad in enumerate(before) for row in layer["weight"]]
        found.append({"weight": rows, "bias": list(layer["bias"]) * copies})
    while (count := len(found[-1]["bias"])) > 1:  # min(a, b) = relu(a) - relu(-a) - relu(a - b)
        top, hidden, after = found.pop(), list[tuple[list[float], float]](), list[list[int]]()
        last = [*zip(top["weight"], top["bias"], strict=True)]
        for k in range(0, count, 2):
            (row, bias), pair = last[k], last[k + 1 : k + 2]
            after.append([len(hidden) + i for i in range(2 + len(pair))])
            hidden += [(row, bias), ([-w for w in row], -bias)]
            hidden += [([a - b for a, b in zip(row, other, strict=True)], bias - b) for other, b in pair]
        signs = [[0.0] * len(hidden) for _ in after]
        for row, places in zip(signs, after, strict=True):
            for place, sign in zip(places, (1.0, -1.0, -1.0), strict=False):
                row[place] = sign
        found.append({"weight": [row for row, _ in hidden], "bias": [bias for _, bias in hidden]})
        found.append({"weight": signs, "bias": [0.0] * len(after)})
    return found


# -- the problem to reach a refused outcome ---------------------------------------------------------------


def refusal(problem: Problem, withstood: Withstood, action: Mapping[str, Fraction]) -> Problem | None:
    """The problem to reach a refused outcome of an action; None where it has one outcome (section 12.5).

    Its levers are the values of what is acted on, and what is added to the noise of what is moved by others.
    """
    model, behind = problem.model, causes(problem.model)
    levers = dict[str, Interval]()
    for f in (f.name for f in model.features if f.name in action):
        low, high = action[f] - withstood.missed.get(f, ZERO), action[f] + withstood.missed.get(f, ZERO)
        first, last = float64(low), float64(high)
        if model.layers or any(f in behind[g] for g in behind):  # outward; trees see the nearest double
            first = nextafter(first, -inf) if first > low else first
            last = nextafter(last, inf) if last < high else last
        levers[f] = Fraction(first), Fraction(last)
    noisy = {f: withstood.noise[f] for f in moved(model, action) if f in withstood.noise}
    noisy = {f: ends for f, ends in noisy.items() if ends[0] < ends[1]}
    if not noisy and all(low == high for low, high in levers.values()):
        return None
    return to_refuse(problem, levers, noisy)


def to_refuse(problem: Problem, box: Mapping[str, Interval], noisy: Mapping[str, Interval]) -> Problem:
    """The problem to reach what the instance's classifier refuses, with a box for levers (section 12.5).

    ``noisy``: by feature, what may be added to its noise.
    """
    model, longest = problem.model, max(problem.model.mechanisms, key=len)
    names = {f: longest + f for f in noisy}  # longer than every feature's name
    mechanisms = {name: Mechanism() for name in names.values()} | {
        f: one._replace(equation={"sum": [one.equation, names[f]]}) if f in noisy else one
        for f, one in model.mechanisms.items()
    }
    features = [f._replace(domain=None) for f in model.features]
    features += [Feature(name, whole=False, lattice=None, domain=None, table=None) for name in names.values()]
    levers = {**box, **{names[f]: ends for f, ends in noisy.items()}}
    layers = negated([*model.front, *model.layers], len(noisy)) if model.layers else []
    refusing = replace(
        model,
        features=features,
        mechanisms=mechanisms,
        plausible=False,
        front=layers[: len(model.front)],
        layers=layers[len(model.front) :] or None,
        at_least=-model.at_least,
        margin=-model.margin,
        forests=[turned(one) for one in model.forests],
        one_suffices=len(model.forests) > 1 and not model.one_suffices,
    )
    return Problem(
        refusing,
        {**problem.factual, **dict.fromkeys(names.values(), ZERO)},
        problem.missing - box.keys(),
        levers,
        terms=dict.fromkeys(levers, FREE),
        fixed=dict.fromkeys(levers, ZERO),
        power=1,
        offset=ZERO,
        demand=lambda _: Parts(True, ()),
        asked_about=set(),
    )


def negated(layers: Sequence[Any], more: int) -> list[Any]:
    """The network with the negated logit, and further inputs that it ignores."""
    *hidden, last = layers
    minus = {"weight": [[-w for w in row] for row in last["weight"]], "bias": [-b for b in last["bias"]]}
    first, *rest = [*hidden, minus]
    return [{**first, "weight": [[*row, *[0.0] * more] for row in first["weight"]]}, *rest]


def turned(forest: Ensemble) -> Ensemble:
    """The ensemble that accepts what this one refuses; rounding is symmetric."""
    trees = [[-node if isinstance(node, float) else node for node in tree] for tree in forest.trees]
    turned_round = replace(forest, base=-forest.base, threshold=-forest.threshold, strict=not forest.strict)
    return replace(turned_round, trees=trees)
