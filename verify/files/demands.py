"""From canonical conditions to the demands of one applicant that the kernel checks (section 11).

Negations are moved down to the rows and counts; what concerns factual values alone is true or false.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf, prod
from typing import Any

from verify.files.features import Variable
from verify.kernel.checks import Rejected
from verify.kernel.problem import FALSE, Demand, Factor, Parts, Row, features


@dataclass(frozen=True)
class Count:
    """least <= how many of these features are acted on <= most."""

    features: frozenset[str]
    least: float
    most: float


TRUE = Parts(True, ())
Open = Any
"""A :data:`~verify.kernel.problem.Demand` that may also contain a :class:`Count` (see :func:`settled`)."""


def join(every: bool, parts: Sequence[Open]) -> Open:
    """The demand that all of some demands hold, or any of them, in its simplest form.

    Constants are worked in, parts of the same kind are spliced in, repeats are dropped, and a single part
    stands for itself.
    """
    decisive = FALSE if every else TRUE
    if decisive in parts:
        return decisive
    found: dict[Open, None] = {}
    for part in parts:
        found |= dict.fromkeys(part.parts if isinstance(part, Parts) and part.every == every else (part,))
    return next(iter(found)) if len(found) == 1 else Parts(every, tuple(found))


def settled(demand: Open, acted: Collection[str]) -> Demand:
    """The demand where exactly these features are acted on, so that counts are true or false."""
    if isinstance(demand, Count):
        return TRUE if demand.least <= len(demand.features.intersection(acted)) <= demand.most else FALSE
    if isinstance(demand, Parts):
        demand = join(demand.every, [settled(part, acted) for part in demand.parts])
    made: Demand = demand
    return made


def limited(demand: Open, levers: Collection[str]) -> tuple[float, Open]:
    """How many levers may be acted on at most, whatever else is demanded, and the rest of the demand."""
    parts = demand.parts if isinstance(demand, Parts) and demand.every else (demand,)
    apart = [p for p in parts if isinstance(p, Count) and p.least <= 0 and p.features.issuperset(levers)]
    return min((p.most for p in apart), default=inf), join(True, [p for p in parts if p not in apart])


def counted(demand: Open) -> set[str]:
    """The features of which a demand asks whether they are acted on."""
    if isinstance(demand, Parts):
        return set().union(*map(counted, demand.parts))
    return set(demand.features) if isinstance(demand, Count) else set()


class Reader:
    """Makes demands of an applicant's canonical conditions.

    Parameters
    ----------
    variables
        The features, by name.
    factual, missing
        Values by feature, and the features without one.
    fixed
        The features that no action can move.
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        factual: Mapping[str, Fraction],
        missing: Iterable[str],
        fixed: Collection[str],
    ) -> None:
        self.variables, self.factual, self.missing = variables, factual, set(missing)
        self.fixed = fixed

    def all(self, conditions: Sequence[Any]) -> Open:
        """The demand that all these conditions hold."""
        return join(True, [self.read(one, True) for one in conditions])

    def read(self, one: Any, sign: bool) -> Open:
        """The demand of one condition, or of its negation if ``sign`` is false."""
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

    def _labels(self, one: Any, sign: bool) -> Open:
        name, x = one["feature"], self._value(one["feature"])
        named, count = set(one["in"]), len(self.variables[name].labels or ())
        chosen = {k for k in range(count) if (k in named) == sign}
        if one["of"] == "factual":
            return TRUE if x in chosen else FALSE
        if len(chosen) == count:
            return TRUE
        runs: list[Open] = []
        for first in sorted(k for k in chosen if k - 1 not in chosen):
            last = next(k for k in range(first, first + len(chosen)) if k + 1 not in chosen)
            ends = ((Fraction(1), Fraction(first)), (Fraction(-1), Fraction(-last)))
            runs.append(join(True, [Row(((name, c),), end) for c, end in ends]))
        return join(False, runs)

    def _moving(self, c: Mapping[Factor, Fraction]) -> tuple[tuple[tuple[Factor, Fraction], ...], Fraction]:
        """The terms of a row, where in products the values of fixed features are coefficients, and what
        products of two of these add up to."""
        found, known = dict[Factor, Fraction](), Fraction(0)
        for f, factor in c.items():
            moving = tuple(name for name in features(f) if name not in self.fixed)
            if isinstance(f, str) or len(moving) == 2:
                found[f] = found.get(f, Fraction(0)) + factor
                continue
            size = factor * prod(self.factual[name] for name in f if name in self.fixed)
            if moving:
                found[moving[0]] = found.get(moving[0], Fraction(0)) + size
            else:
                known += size
        ordered = sorted(found.items(), key=lambda term: (len(features(term[0])), features(term[0])))
        return tuple(term for term in ordered if term[1]), known

    def _sum(self, one: Any, sign: bool) -> Open:
        of, ends = one["of"], [one["at_least"], one["at_most"]]
        c: dict[Factor, Fraction] = {name: Fraction(factor) for name, factor in one["sum"].items()}
        for factor, *pair in one.get("products", []):
            c[tuple(pair)] = c.get(tuple(pair), Fraction(0)) + Fraction(factor)
        x = {f: Fraction(prod(map(self._value, features(f)))) for f in c}
        low, high = (None if end is None else Fraction(end) for end in ends)
        start = sum((c[f] * x[f] for f in c), Fraction(0))
        if of == "factual":
            inside = (low is None or start >= low) and (high is None or start <= high)
            return TRUE if inside == sign else FALSE
        names = {name for f in c for name in features(f)}
        whole = all(factor.denominator == 1 for factor in c.values()) and all(
            self.variables[name].feature.whole and self.factual[name].denominator == 1 for name in names
        )
        if of == "relative-change":
            if zeros := [f for f, value in x.items() if not value]:
                raise Rejected(f"conditions: the relative change of {zeros[0]}, whose factual value is 0")
            c, whole = {f: factor / abs(x[f]) for f, factor in c.items()}, False
            start = sum((c[f] * x[f] for f in c), Fraction(0))
        if of == "counterfactual":
            start = Fraction(0)
        terms, known = self._moving(c)
        start -= known
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
