"""What canonical conditions demand of one applicant, as the kernel knows demands (section 11).

Negations are pushed to the leaves; what concerns factual values alone is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, inf
from typing import Any

from verify.files.features import Variable
from verify.kernel.conditions import FALSE, TRUE, Count, Demand, Row, join
from verify.kernel.shapes import Rejected


class Reader:
    """Reads canonical conditions of an applicant.

    Parameters
    ----------
    variables
        The features, by name.
    factual, missing
        Values by feature, and the features without one.
    """

    def __init__(
        self, variables: Mapping[str, Variable], factual: Mapping[str, Fraction], missing: Iterable[str]
    ) -> None:
        self.variables, self.factual, self.missing = variables, factual, set(missing)

    def all(self, conditions: Sequence[Any]) -> Demand:
        """What a list of conditions demands."""
        return join(True, [self.read(one, True) for one in conditions])

    def read(self, one: Any, sign: bool) -> Demand:
        """What a condition demands; its negation where ``sign`` is false."""
        if "not" in one:
            return self.read(one["not"], not sign)
        if "if" in one:
            return join(not sign, [self.read(one["if"], not sign), self.read(one["then"], sign)])
        for key in ("any", "all"):
            if key in one:
                return join((key == "all") == sign, [self.read(part, sign) for part in one[key]])
        if "at_most_actions" in one:
            k, everything = int(one["at_most_actions"]), frozenset(self.variables)
            return Count(everything, 0, k) if sign else Count(everything, k + 1, inf)
        if "acted" in one:
            return Count(frozenset({one["acted"]}), int(sign), int(sign))
        return self._labels(one, sign) if "in" in one else self._sum(one, sign)

    def _value(self, name: str) -> Fraction:
        if name in self.missing:
            raise Rejected(f"conditions: {name} is missing, and a condition looks at it")
        return self.factual[name]

    def _labels(self, one: Any, sign: bool) -> Demand:
        name, x = one["feature"], self._value(one["feature"])
        named, count = set(one["in"]), len(self.variables[name].labels or ())
        chosen = {k for k in range(count) if (k in named) == sign}
        if one["of"] == "factual":
            return TRUE if x in chosen else FALSE
        if len(chosen) == count:
            return TRUE
        runs: list[Demand] = []
        for first in sorted(k for k in chosen if k - 1 not in chosen):
            last = next(k for k in range(first, first + len(chosen)) if k + 1 not in chosen)
            ends = ((Fraction(1), Fraction(first)), (Fraction(-1), Fraction(-last)))
            runs.append(join(True, [Row(((name, c),), end) for c, end in ends]))
        return join(False, runs)

    def _sum(self, one: Any, sign: bool) -> Demand:
        of, ends = one["of"], [one["at_least"], one["at_most"]]
        x = {name: self._value(name) for name in one["sum"]}
        c = {name: Fraction(factor) for name, factor in one["sum"].items()}
        low, high = (None if end is None else Fraction(end) for end in ends)
        start = sum((c[name] * x[name] for name in c), Fraction(0))
        if of == "factual":
            inside = (low is None or start >= low) and (high is None or start <= high)
            return TRUE if inside == sign else FALSE
        whole = all(
            self.variables[name].feature.whole and factor.denominator == 1 for name, factor in c.items()
        )
        if of == "relative-change":
            if 0 in x.values():
                raise Rejected("conditions: the relative change of a value that is 0")
            c, whole = {name: factor / abs(x[name]) for name, factor in c.items()}, False
            start = sum((c[name] * x[name] for name in c), Fraction(0))
        if of == "counterfactual":
            start = Fraction(0)
        terms = tuple(sorted((name, factor) for name, factor in c.items() if factor))
        sides = []
        for end, above in ((low, True), (high, False)):
            if end is None:
                continue
            upward, limit = above == sign, end
            if not sign and whole:
                limit = Fraction(ceil(end) - 1 if above else floor(end) + 1)
            factor = 1 if upward else -1
            row = Row(
                tuple((name, factor * coefficient) for name, coefficient in terms), factor * (start + limit)
            )
            sides.append(row if terms else TRUE if row.least <= 0 else FALSE)
        return join(sign, sides)
