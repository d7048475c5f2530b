"""What a certain action withstands: missed targets, other noise and a higher threshold (section 12)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import floor, inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration
from verify.kernel.leaf import Region
from verify.kernel.prices import Exact
from verify.kernel.problem import Feature, Interval, Mechanism, Model, Parts, Piece, Problem, Term
from verify.kernel.trees import Ensemble, Range, above32, float32, float64

ZERO = Fraction(0)
MOST = 2_000_000
"""The most weights, zeros included, of the network that stands for several scenarios."""

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
    scenarios
        Those that configurations name by number.
    outcomes
        The trees that prove that no outcome of the action is refused, as those of a configuration; None where
        the action has only one outcome.
    """

    threshold: float | None
    missed: Mapping[str, Fraction]
    noise: Mapping[str, Interval]
    scenarios: Sequence[Scenario]
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


# -- the lower bound of networks: scenarios ---------------------------------------------------------


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


def in_scenarios(problem: Problem, chosen: Sequence[Scenario], acted: Collection[str]) -> Problem:
    """The problem whose network must accept in each of some scenarios, where exactly these are acted on."""
    model, behind = problem.model, causes(problem.model)
    if not chosen:
        return problem
    if not model.layers:
        raise Rejected("scenarios: allowed: for networks (section 12.3)")
    if len(chosen) ** 2 * sum(len(layer["bias"]) * len(layer["weight"][0]) for layer in model.layers) > MOST:
        raise Rejected(f"scenarios: as one network they have more than {MOST} weights (section 9)")
    moved = {f for f in behind if f not in acted and not behind[f].isdisjoint(acted)}
    scenarios = [
        {f: e for f, e in one.missed.items() if f in acted}
        | {f: e for f, e in one.noise.items() if f in moved}
        for one in chosen
    ]
    several = replace(model, layers=smallest(model.layers, len(chosen)))
    return replace(problem, model=several, scenarios=scenarios)


def told_apart(problem: Problem, chosen: Sequence[Scenario]) -> set[str]:
    """The features of which a scenario tells whether they are acted on, even at their factual values."""
    behind, found = causes(problem.model), set[str]()
    for one in chosen:
        missed, noisy = ({f for f, e in part.items() if e} for part in one)
        found |= missed.union(noisy, *(behind[g] for g in noisy))
        found |= {f for f in behind if not behind[f].isdisjoint(missed | noisy)}
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


# -- the lower bound of trees: refused boxes ----------------------------------------------------------


class Boxes(NamedTuple):
    """What the rule of refused boxes needs to know of a configuration.

    Attributes
    ----------
    configuration
        With all parts of the ensemble, also where a tree is about one of them.
    missed
        By feature, by how much its target may be missed.
    idle
        The features that an action for which the configuration stands need not act on.
    """

    configuration: Configuration
    missed: Mapping[str, Fraction]
    idle: Collection[str]

    def refused(self, arithmetic: Exact, region: Region, within: Mapping[str, Range]) -> bool:
        """Whether every action of a region has an outcome in a box that the trees refuse (section 12.4).

        ``within``: for features whose targets are missed, the ends of their values in the box.
        """
        one = self.configuration
        if not one.forests:
            raise Rejected("got ['x']; allowed: with trees (section 12.4)")
        box, behind = arithmetic.box(region.ends, "", {}), causes(one.model)
        ends = {f: box.interval(value) for f, value in one.values.items()}
        values: dict[str, Range] = {f: (float64(low), float64(high)) for f, (low, high) in ends.items()}
        for f, (first, last) in within.items():
            if not (f in one.acted and self.missed.get(f)):
                raise Rejected(f"{f[:40]} is not acted on, or its target is not missed (section 12.4)")
            k, by = one.acted.index(f), self.missed[f]
            low, high = region.ends[k]
            x = one.problem.factual[f]
            if f in self.idle and low <= x <= high and not first <= x <= last:
                raise Rejected(f"{f[:40]} need not be acted on here (section 12.4)")
            if any(f in behind[g] for g in behind if g not in one.acted):
                raise Rejected(f"{f[:40]} moves others (section 12.4)")
            if not first <= last or (one.whole[k] and not (first == floor(first) and last == floor(last))):
                raise Rejected(f"{f[:40]} has no values from {first} to {last} (section 12.4)")
            if float64(low + by) < first or float64(high - by) > last:
                raise Rejected(f"{f[:40]}: some target is too far from {first} to {last} (section 12.4)")
            values[f] = min(max(low, first), last), min(max(high, first), last)
        return not one.accepts(values, max)


# -- the action: no outcome of it is refused ------------------------------------------------------------


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
    noisy = {
        f.name: withstood.noise[f.name]
        for f in model.features
        if f.name not in action and not behind[f.name].isdisjoint(action) and f.name in withstood.noise
    }
    noisy = {f: ends for f, ends in noisy.items() if ends[0] < ends[1]}
    if not noisy and all(low == high for low, high in levers.values()):
        return None
    longest = max(model.mechanisms, key=len)
    names = {f: longest + f for f in noisy}  # longer than every feature's name
    mechanisms = {name: Mechanism() for name in names.values()} | {
        f: one._replace(equation={"sum": [one.equation, names[f]]}) if f in noisy else one
        for f, one in model.mechanisms.items()
    }
    features = [f._replace(domain=None) for f in model.features]
    features += [Feature(name, whole=False, domain=None, table=None) for name in names.values()]
    levers |= {names[f]: ends for f, ends in noisy.items()}
    refusing = replace(
        model,
        features=features,
        mechanisms=mechanisms,
        plausible=False,
        layers=model.layers and negated(model.layers, len(noisy)),
        at_least=-model.at_least,
        margin=-model.margin,
        forests=[turned(one) for one in model.forests],
        one_suffices=len(model.forests) > 1 and not model.one_suffices,
    )
    return Problem(
        refusing,
        {**problem.factual, **dict.fromkeys(names.values(), ZERO)},
        problem.missing - action.keys(),
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
    turned_ = {"weight": [[-w for w in row] for row in last["weight"]], "bias": [-b for b in last["bias"]]}
    first, *rest = [*hidden, turned_]
    return [{**first, "weight": [[*row, *[0.0] * more] for row in first["weight"]]}, *rest]


def turned(forest: Ensemble) -> Ensemble:
    """The ensemble that accepts what this one refuses; rounding is symmetric."""
    trees = [[-node if isinstance(node, float) else node for node in tree] for tree in forest.trees]
    return replace(
        forest, trees=trees, base=-forest.base, strict=not forest.strict, threshold=-forest.threshold
    )
