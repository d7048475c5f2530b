"""All actions of a small problem and all of their outcomes, from the words of the formats alone.

Nothing of the package is used here: no model of a problem, no search, no judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tests.questions.robust.problems import Drawn

Values = dict[str, Any]
"""By feature a number, a label's index, or None where the value is missing."""

MOST = 40_000
"""Problems with more actions are not enumerated."""


class Plain:
    """One problem. ``accept`` must be set before anything is asked that needs it."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.instance = drawn, drawn.instance
        self.features = {f["name"]: f for f in self.instance["features"]}
        self.mechanisms = self.instance["scm"].get("mechanisms", {})
        self.causes = {name: set(_names(m["equation"])) for name, m in self.mechanisms.items()}
        for name in self.mechanisms:  # in causal order
            self.causes[name] |= {far for near in self.causes[name] for far in self.causes.get(near, ())}
        self.factual = {name: self.number(name, v) for name, v in self.instance["factual"].items()}
        self.known: dict[tuple[Any, ...], Any] = {}

    def number(self, name: str, value: Any) -> Any:
        """A label's index, the number itself, or None."""
        labels = self.features[name].get("categories")
        return value if labels is None or value is None else labels.index(value)

    # -- what an action may be, and what follows -----------------------------------------------------------

    @cached_property
    def levers(self) -> dict[str, list[int]]:
        """The values that an action may set, for every feature of which there are any."""
        own = self.instance["preferences"]
        found = {}
        for name in own["actionable"]:
            f, x = self.features[name], self.factual[name]
            low, high = f.get("bounds", [0, len(f.get("categories", ())) - 1])
            limits = [own["ranges"].get(name), f.get("domain")]
            low = max([low, *(one[0] for one in limits if one)])
            high = min([high, *(one[1] for one in limits if one)])
            values = [v for v in range(int(np.ceil(low)), int(np.floor(high)) + 1)]
            if x is not None and f.get("monotone") == "increase":
                values = [v for v in values if v >= x]
            if x is not None and f.get("monotone") == "decrease":
                values = [v for v in values if v <= x]
            if values:
                found[name] = values
        return found

    def actions(self) -> Iterator[dict[str, int]]:
        """Every action, doing nothing included."""
        for chosen in product(*([None, *values] for values in self.levers.values())):
            yield {name: v for name, v in zip(self.levers, chosen, strict=True) if v is not None}

    @property
    def count(self) -> int:
        """How many actions there are."""
        return int(np.prod([1 + len(values) for values in self.levers.values()]))

    def after(self, action: Mapping[str, Any], missed: Mapping[str, int], noise: Mapping[str, Any]) -> Values:
        """The values after an action that is missed by so much, with so much more noise."""
        values = dict(self.factual) | {name: v + missed.get(name, 0) for name, v in action.items()}
        for name, mechanism in self.mechanisms.items():
            if self.moved(name, action):
                before, now = (_evaluated(mechanism["equation"], v) for v in (self.factual, values))
                values[name] = Fraction(self.factual[name]) + now - before + Fraction(noise.get(name, 0))
        return values

    def moved(self, name: str, action: Mapping[str, Any]) -> bool:
        """Whether a feature that is not acted on has a cause that is."""
        return name not in action and bool(self.causes.get(name, set()) & action.keys())

    def cost(self, action: Mapping[str, int]) -> Fraction:
        """What an action costs; for l2 its square."""
        cost, weights = self.instance["cost"], self.instance["preferences"]["weights"]
        kind = cost["kind"]
        parts = {k: Fraction(cost[k]) for k in ("l0", "l1", "l2-squared", "linf") if k in cost} or {
            "l2-squared" if kind == "l2" else kind: Fraction(1)
        }
        total, most = Fraction(0), Fraction(0)
        for name, value in action.items():
            w, step = Fraction(weights.get(name, 1.0)), self._step(name, value)
            total += w * (
                parts.get("l0", 0) + parts.get("l1", 0) * step + parts.get("l2-squared", 0) * step**2
            )
            most = max(most, w * step)
        return total + parts.get("linf", 0) * most

    def _step(self, name: str, value: int) -> Fraction:
        """The size of a change in scales."""
        if "scale" not in self.instance["cost"]:
            return Fraction(0)
        scale, x = self.instance["cost"]["scale"][name], self.factual[name]
        if x is None:
            return Fraction(1)
        if isinstance(scale, dict):
            scale = scale["decrease" if value < x else "increase"]
        change = int(value != x) if self.features[name]["kind"] == "categorical" else abs(value - x)
        return Fraction(change) / Fraction(scale)

    def allowed(self, action: Mapping[str, int]) -> bool:
        """Whether domains and conditions hold for an action as planned."""
        values = self.after(action, {}, {})
        for name, f in self.features.items():
            domain, value = f.get("domain"), values[name]
            if domain and value is not None and not domain[0] <= value <= domain[1]:
                return False
        return all(self._holds(one, values, action) for one in self.instance["conditions"])

    def _holds(self, condition: dict[str, Any], values: Values, action: Mapping[str, int]) -> bool:
        match condition:
            case {"at_most_actions": count}:
                return len(action) <= count
            case {"acted": name}:
                return name in action
            case {"not": part}:
                return not self._holds(part, values, action)
            case {"any": parts}:
                return any(self._holds(part, values, action) for part in parts)
            case {"if": first, "then": second}:
                return not self._holds(first, values, action) or self._holds(second, values, action)
            case {"feature": name, "of": "change", "at_most": most}:
                return bool(values[name] - self.factual[name] <= most)
            case {"feature": name, "in": labels}:
                return self.features[name]["categories"][values[name]] in labels
            case {"sum": terms, "at_most": most}:
                return bool(sum(c * values[name] for name, c in terms.items()) <= most)
        raise AssertionError(condition)

    # -- what the classifier says ---------------------------------------------------------------------------

    def columns(self, values: Values) -> tuple[Any, ...]:
        """The classifier's inputs."""
        row: list[Any] = []
        for name, f in self.features.items():
            v, encoding = values[name], f.get("encoding", "code")
            if encoding == "one-hot":
                row += [None if v is None else int(k == v) for k in range(len(f["categories"]))]
            elif encoding == "table":
                row += [None] * len(f["table"][0]) if v is None else f["table"][v]
            else:
                row.append(v)
        return tuple(row)

    def output(self, values: Values) -> Any:
        """The logit as a fraction, or the score of the trees."""
        row = self.columns(values)
        if row not in self.known:
            trees = "trees" in self.instance["classifier"]
            self.known[row] = self._score(row) if trees else self._logit(row)
        return self.known[row]

    def _score(self, row: tuple[Any, ...]) -> float:
        forest = self.instance["classifier"]
        leaves = [_leaf(tree, row) for tree in forest["trees"]]
        if "aggregate" not in forest:
            return sum(leaves) / len(leaves)
        sums, start = [], 0
        for count in forest.get("parts", [len(leaves)]):
            sums.append(sum(leaves[start : start + count], forest["base"]))
            start += count
        return min(sums) if forest.get("combine", "smallest") == "smallest" else max(sums)

    def _logit(self, row: tuple[Any, ...]) -> Fraction:
        values = [Fraction(v) for v in row]
        for k, layer in enumerate(self.instance["classifier"]["layers"]):
            values = [max(v, Fraction(0)) for v in values] if k else values
            values = [
                sum((Fraction(w) * v for w, v in zip(weights, values, strict=True)), Fraction(bias))
                for weights, bias in zip(layer["weight"], layer["bias"], strict=True)
            ]
        return values[0]

    def accepts(self, values: Values) -> bool:
        """Whether the classifier accepts at the highest threshold."""
        accept, rise, output = self.instance["accept"], self.drawn.threshold, self.output(values)
        if "above" in accept:
            return bool(output > max(accept["above"], accept["above"] if rise is None else rise))
        least = max(accept["at_least"], accept["at_least"] if rise is None else rise)
        if "layers" in self.instance["classifier"]:
            return bool(output >= Fraction(self._single(least)) + Fraction(accept["margin"]))
        return bool(output >= least)

    def _single(self, value: float) -> float:
        """The value rounded up to a float32 for a network in float32."""
        if self.instance["classifier"]["dtype"] == "float64":
            return value
        single = np.float32(value)
        return float(single if float(single) >= value else np.nextafter(single, np.float32(np.inf)))

    # -- what is certain -----------------------------------------------------------------------------------

    def outcomes(self, action: Mapping[str, int]) -> Iterator[Values]:
        """One outcome, at least, in each region that the classifier tells apart."""
        missed = {n: int(self.drawn.missed[n]) for n in action if self.drawn.missed.get(n)}
        ranges = [range(-by, by + 1) for by in missed.values()]
        noise = {
            n: ends for n, ends in self.drawn.noise.items() if self.moved(n, action) and ends[0] < ends[1]
        }
        quarters = [[Fraction(k, 4) for k in range(int(4 * a), int(4 * b) + 1)] for a, b in noise.values()]
        for away in product(*ranges):
            by = dict(zip(missed, away, strict=True))
            steps = [*quarters]
            if noise and len(self.instance["classifier"].get("layers", ())) > 1:
                steps = [self._bends(action, by, *one) for one in noise.items()]
            for more in product(*steps):
                yield self.after(action, by, dict(zip(noise, more, strict=True)))

    def _bends(
        self, action: Mapping[str, int], by: Mapping[str, int], name: str, ends: tuple[float, float]
    ) -> list[Fraction]:
        """The ends of a noise's interval, and where a hidden neuron changes its sign."""
        low, high = map(Fraction, ends)
        layer, found = self.instance["classifier"]["layers"][0], [low, high]
        rows = [self.columns(self.after(action, by, {name: e})) for e in (low, high)]
        for weights, bias in zip(layer["weight"], layer["bias"], strict=True):
            first, last = (
                Fraction(bias) + sum(Fraction(w) * Fraction(v) for w, v in zip(weights, row, strict=True))
                for row in rows
            )
            if first * last < 0:
                found.append(low + (high - low) * first / (first - last))
        return found

    def certain(self, action: Mapping[str, int]) -> bool:
        """Whether an action is allowed and every outcome of it is accepted."""
        return self.allowed(action) and all(map(self.accepts, self.outcomes(action)))

    def cheapest(self) -> Fraction | None:
        """The cost of the cheapest certain action (for l2 its square); None where there is none."""
        for cost, _, action in sorted((self.cost(a), k, a) for k, a in enumerate(self.actions())):
            if self.certain(action):
                return cost
        return None


def _leaf(tree: Mapping[str, Any], row: tuple[Any, ...]) -> float:
    node = 0
    while tree["left"][node] != -1:
        value = row[tree["feature"][node]]
        left = tree["missing_left"][node] if value is None else value <= tree["threshold"][node]
        node = tree["left" if left else "right"][node]
    return float(tree["value"][node])


def _names(expression: Any) -> Iterator[str]:
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, dict):
        for part in next(iter(expression.values())):
            yield from _names(part)


def _evaluated(expression: Any, values: Mapping[str, Any]) -> Fraction:
    if isinstance(expression, str):
        return Fraction(values[expression])
    if not isinstance(expression, dict):
        return Fraction(expression)
    [(kind, parts)] = expression.items()
    numbers = [_evaluated(part, values) for part in parts]
    return sum(numbers, Fraction(0)) if kind == "sum" else Fraction(np.prod(np.array(numbers, dtype=object)))


def settled(drawn: Drawn, seed: int) -> Plain | None:
    """The problem with a threshold that refuses the factual and that some action reaches, often exactly.

    None where no threshold does, or where there are too many actions.
    """
    plain, rng = Plain(drawn), np.random.default_rng([seed, 6])
    if not plain.levers or plain.count > MOST:
        return None
    here = plain.output(plain.factual)
    outputs = sorted({plain.output(plain.after(a, {}, {})) for a in plain.actions()})
    better = [v for v in outputs if v > here]
    if not better:
        return None
    chosen = better[int(rng.integers(len(better)))]
    below = max(v for v in outputs if v < chosen)
    if "trees" in drawn.instance["classifier"]:
        drawn.instance["accept"] = {"above": below} if rng.random() < 0.5 else {"at_least": chosen}
    else:
        value = float(chosen if rng.random() < 0.3 else (chosen + below) / 2)
        single = drawn.instance["classifier"]["dtype"] == "float32"
        value = float(np.float32(value)) if single else value
        drawn.instance["accept"] = {"at_least": value, "margin": 2.0**-12 if single else 0.0}
    if drawn.threshold is not None:
        drawn.threshold += next(iter(drawn.instance["accept"].values()))
    return plain
