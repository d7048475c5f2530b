"""The extreme rays of a cone of weights, in whole numbers (section 13)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor, gcd

from verify.kernel.checks import Clock, Rejected

BITS, MOST_RAYS = 30, 20_000

Ray = tuple[tuple[int, ...], int]
"""Weights, and as bits the half-spaces on whose boundary they lie."""


def half_space(coefficients: Sequence[Fraction]) -> list[int]:
    """Coefficients in whole numbers, rounded down: the half-space of weights w >= 0 with sum of coefficient *
    w at most 0 loses none."""
    largest = max(map(abs, coefficients)) or Fraction(1)
    return [floor(c * 2**BITS / largest) for c in coefficients]


def rays(levers: int, least: Fraction, cuts: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """The extreme rays of the weights that are at least ``least`` times their mean and in all half-spaces."""
    share, every = least / levers, range(levers)
    low, high = share.numerator, share.denominator - (levers - 1) * share.numerator
    found: list[Ray] = [
        (tuple(high if g == f else low for g in every), sum(1 << g for g in every if g != f)) for f in every
    ]
    for number, cut in enumerate(cuts, levers):
        sides = [sum(map(int.__mul__, cut, weights)) for weights, _ in found]
        kept = [
            (weights, tight | (not side) << number)
            for (weights, tight), side in zip(found, sides, strict=True)
            if side <= 0
        ]
        for i in (i for i, side in enumerate(sides) if side > 0):
            Clock.look()
            for j in (j for j, side in enumerate(sides) if side < 0):
                common = found[i][1] & found[j][1]
                if common.bit_count() >= levers - 2 and not any(
                    tight & common == common and k not in (i, j) for k, (_, tight) in enumerate(found)
                ):
                    pairs = zip(found[i][0], found[j][0], strict=True)
                    new = [sides[i] * b - sides[j] * a for a, b in pairs]
                    kept.append((tuple(n // gcd(*new) for n in new), common | 1 << number))
        found = kept
        if len(found) > MOST_RAYS:
            raise Rejected(f"cuts: more than {MOST_RAYS} rays (section 13)")
    return [weights for weights, _ in found]
