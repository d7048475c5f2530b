"""Conditions judged from their JSON alone, straight from the format: the second opinion in tests.

Nothing here uses :mod:`milp_recourse.problem.conditions`: a negation is judged where it stands, on the
numbers of a result, in Fractions; ``slack`` says by how much at most a sum may miss its bound (0: exactly).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from milp_recourse.problem.features import Feature

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Numbers:
    """One answer: values before and after by feature (labels by index), and the features acted on."""

    features: Mapping[str, Feature]
    before: Mapping[str, float]
    after: Mapping[str, float]
    acted: Collection[str]
    slack: Fraction = Fraction(0)

    def value(self, name: str, of: str) -> Fraction:
        before, after = Fraction(self.before[name]), Fraction(self.after[name])
        if of == "factual":
            return before
        if of == "counterfactual":
            return after
        return after - before if of == "change" else (after - before) / abs(before)

    def product(self, names: Collection[str], of: str) -> Fraction:
        """What two features' values multiplied are, or how much that changes."""
        before, after = (
            math.prod(Fraction(values[name]) for name in names) for values in (self.before, self.after)
        )
        if of in ("factual", "counterfactual"):
            return before if of == "factual" else after
        return after - before if of == "change" else (after - before) / abs(before)

    def index(self, name: str, label: Any) -> Fraction:
        return Fraction(self.features[name].categories.index(label) if isinstance(label, str) else label)


def holds(condition: Json, numbers: Numbers) -> bool:
    """Whether a condition holds."""
    if "at_most_actions" in condition:
        return len(numbers.acted) <= condition["at_most_actions"]
    if "acted" in condition:
        return condition["acted"] in numbers.acted
    if "if" in condition:
        return fails(condition["if"], numbers) or holds(condition["then"], numbers)
    if "any" in condition:
        return any(holds(part, numbers) for part in condition["any"])
    if "all" in condition:
        return all(holds(part, numbers) for part in condition["all"])
    if "not" in condition:
        return fails(condition["not"], numbers)
    total, low, high, inside = _parts(condition, numbers)
    fits = inside is None or inside
    return (
        fits
        and (low is None or total >= low - numbers.slack)
        and (high is None or total <= high + numbers.slack)
    )


def fails(condition: Json, numbers: Numbers) -> bool:
    """Whether the negation of a condition holds: closed but for what is whole, or before the action."""
    if "at_most_actions" in condition:
        return len(numbers.acted) >= condition["at_most_actions"] + 1
    if "acted" in condition:
        return condition["acted"] not in numbers.acted
    if "if" in condition:
        return holds(condition["if"], numbers) and fails(condition["then"], numbers)
    if "any" in condition:
        return all(fails(part, numbers) for part in condition["any"])
    if "all" in condition:
        return any(fails(part, numbers) for part in condition["all"])
    if "not" in condition:
        return holds(condition["not"], numbers)
    total, low, high, inside = _parts(condition, numbers)
    if inside is False:
        return True
    if condition["of"] == "factual":
        return (low is not None and total < low) or (high is not None and total > high)
    terms = [(name, c) for c, *pair in condition.get("products", ()) for name in pair]
    terms += list(condition["sum"].items()) if "sum" in condition else [(condition["feature"], 1)]
    whole = condition["of"] in ("counterfactual", "change") and all(
        numbers.features[name].kind != "continuous"
        and float(numbers.before[name]).is_integer()
        and float(c).is_integer()
        for name, c in terms
    )
    if whole:
        return (low is not None and total <= math.ceil(low) - 1) or (
            high is not None and total >= math.floor(high) + 1
        )
    return (low is not None and total <= low + numbers.slack) or (
        high is not None and total >= high - numbers.slack
    )


def _parts(
    condition: Json, numbers: Numbers
) -> tuple[Fraction, Fraction | None, Fraction | None, bool | None]:
    """The sum, its ends, and whether the label is among those named (None: none are)."""
    of = condition["of"]
    if "sum" in condition:
        total = sum(
            (Fraction(c) * numbers.value(name, of) for name, c in condition["sum"].items()), Fraction(0)
        )
        total += sum(
            (Fraction(c) * numbers.product(pair, of) for c, *pair in condition.get("products", ())),
            Fraction(0),
        )
        ends = (condition.get("at_least"), condition.get("at_most"))
        low, high = (None if end is None else Fraction(end) for end in ends)
        return total, low, high, None
    name = condition["feature"]
    ends = (condition.get("at_least"), condition.get("at_most"))
    low, high = (None if end is None else numbers.index(name, end) for end in ends)
    inside = None
    if "in" in condition:
        inside = numbers.value(name, of) in {numbers.index(name, label) for label in condition["in"]}
    return numbers.value(name, of), low, high, inside
