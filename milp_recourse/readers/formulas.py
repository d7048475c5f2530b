r"""When a model predicts the wanted class: a formula over comparisons of its scores with thresholds.

==========================  ==================================================
prediction                  formula
==========================  ==================================================
two classes by one score    :math:`s > t`, or for the first class :math:`-s \ge -t`
class c of several          all of :math:`s_c - s_d > 0`
any class but c             one of :math:`s_d - s_c > 0`
a number in [l, h]          :math:`s \ge l` and :math:`-s \ge -h`
a vote                      one of the sets of members that win it
==========================  ==================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from milp_recourse.problem.forest import Combine, Precision, TreeEnsemble
from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers.classes import Interval, Target
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.links import Inverse, float32_below, last_of_all
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import NetworkScore, Score, TreeScore, side_by_side, splits_of
from milp_recourse.readers.tree_parts import (
    ReadTree,
    TreeDecision,
    above,
    checked,
    constant_tree,
    rounding_apart,
)

_TIE = 2.0**-22
"""Less than the least difference between two scores that are added without rounding."""


@dataclass(frozen=True)
class Literal:
    """The comparison :math:`\\sum_k \\pm s_k > t`.

    Attributes
    ----------
    signs
        Positions of scores, each with 1 or -1: one score, or two that are compared.
    threshold
        t
    strict
        Whether t itself is refused.
    slack
        By how much the score must be larger, because the function that the model compares rounds.
    """

    signs: tuple[tuple[int, float], ...]
    threshold: float = 0.0
    strict: bool = True
    slack: float = 0.0

    def on(self, start: int) -> Literal:
        """The same comparison where the scores begin at another position."""
        return replace(self, signs=tuple((k + start, sign) for k, sign in self.signs))


Formula = tuple[tuple[Literal, ...], ...]
"""True where one of its terms is, and a term where all of its literals are."""

Wish = Target | Interval

Rule = Callable[[Wish], Formula]
"""When the model predicts what is wished for."""


def by_margin(
    threshold: float = 0.0,
    strict: bool = True,
    slack: tuple[float, float] = (0.0, 0.0),
    bounded: bool = False,
) -> Rule:
    """The second of two classes is predicted where the only score is above a threshold, else the first.

    Parameters
    ----------
    slack
        Of a network's score, above and below the threshold.
    bounded
        Whether the first score is a bound from below and the second one of the negative.
    """

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Target)
        if target.index == 1:
            return ((Literal(((0, 1.0),), threshold, strict, slack[0]),),)
        negative = (1, 1.0) if bounded else (0, -1.0)
        return ((Literal((negative,), 0.0 - threshold, not strict, slack[1]),),)

    return rule


def by_share(positive: int, least: float) -> Rule:
    """One of two classes is predicted where its own score is at least a number, else the other."""

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Target)
        if target.index == positive:
            return ((Literal(((positive, 1.0),), least, strict=False),),)
        return ((Literal(((positive, -1.0),), 0.0 - least),),)

    return rule


def by_half(exact: bool) -> Rule:
    """A class is predicted where its own score is above 1/2; the first of two also at 1/2, if ``exact``."""

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Target)
        sign = 1.0 if target.wanted else -1.0
        return ((Literal(((target.index, sign),), 0.5 * sign, strict=target.index == 1 or not exact),),)

    return rule


def by_largest(count: int, exact: bool = False, slack: float = 0.0) -> Rule:
    """The class with the largest of ``count`` scores is predicted.

    Parameters
    ----------
    exact
        Whether the first of several largest scores is known to win. Otherwise a tie counts as refused.
    slack
        Of differences of a network's scores.
    """

    def larger(first: int, second: int) -> Literal:
        tie = -_TIE if exact and first < second else 0.0
        return Literal(((first, 1.0), (second, -1.0)), tie, slack=slack)

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Target)
        c, others = target.index, [d for d in range(count) if d != target.index]
        if target.wanted:
            return (tuple(larger(c, d) for d in others),)
        return tuple((larger(d, c),) for d in others)

    return rule


def by_interval(inverse: Inverse | None, network: bool) -> Rule:
    """A regression predicts a number of the wanted interval.

    Parameters
    ----------
    inverse
        The function from the only score to the number; None where it is the number.
    network
        Whether the score is a network's, so that the rounding of the function matters.
    """

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Interval)
        found = []
        if target.low > -math.inf:
            found.append(_at_least(target.low, inverse, network))
            if inverse is not None and inverse.beyond[1]:
                found.append(Literal(((0, -1.0),), 0.0 - inverse.high, strict=False))
        if target.high < math.inf:
            found.append(_at_most(target.high, inverse, network))
            if inverse is not None and inverse.beyond[0]:
                found.append(Literal(((0, 1.0),), inverse.low, strict=False))
        return (tuple(found),)

    return rule


def _at_least(low: float, inverse: Inverse | None, network: bool) -> Literal:
    if inverse is None:
        return Literal(((0, 1.0),), low, strict=False)
    slack = inverse.slack(lambda value: value >= low)[0] if network or inverse.rounds else 0.0
    return Literal(((0, 1.0),), inverse.last(lambda value: value >= low), slack=slack)


def _at_most(high: float, inverse: Inverse | None, network: bool) -> Literal:
    if inverse is None:
        return Literal(((0, -1.0),), 0.0 - high, strict=False)
    slack = inverse.slack(lambda value: value > high)[1] if network or inverse.rounds else 0.0
    return Literal(((0, -1.0),), 0.0 - inverse.last(lambda value: value > high), strict=False, slack=slack)


def tree_decision(formula: Formula, scores: Sequence[Score], inputs: int, where: str) -> TreeDecision:
    """The ensemble and acceptance of a formula over sums of trees.

    Raises
    ------
    Unsupported
        The formula has several terms of several literals: an ensemble has one smallest or one largest.
    """
    literals = [literal for term in formula for literal in term]
    if len(formula) > 1 and any(len(term) > 1 for term in formula):
        raise refuse(
            where,
            "votes of ensembles of trees that neither all nor any one of them decides",
            f"voting='soft', single trees as members, {OR_ASK}",
        )
    sums = [_sum(literal, scores) for literal in literals]
    wide = [2.0 * (s.unsure + literal.slack) for literal, s in zip(literals, sums, strict=True)]
    counts = [len(s.trees) if s.aggregate == "mean" else 1 for s in sums]
    near = max(w * n for w, n in zip(wide, counts, strict=True))  # in units of the sum
    if len(sums) == 1:
        (score,), (least,) = sums, literals
        threshold, strict = least.threshold + score.unsure + least.slack, least.strict
        if score.aggregate == "mean" and not (_is_probability(score) and 0.0 <= threshold <= 1.0):
            threshold, strict = _of_sum(Acceptance(threshold, strict=strict).above, score), True
            score = replace(score, aggregate="sum", unit=score.unit * len(score.trees))
        elif score.aggregate == "mean":
            near = wide[0]
        ensemble, splits = score.ensemble(inputs)
        return TreeDecision(ensemble, Acceptance(threshold, strict=strict), splits, near, unit=score.unit)
    unsure = max(one.unsure for one in sums)
    single = any(one.sum_dtype == "float32" for one in sums)
    ends = [_end(literal, s, unsure, single) for literal, s in zip(literals, sums, strict=True)]
    common = len({end for _, end in ends}) == 1
    trees: list[ReadTree] = []
    parts = []
    for score, (base, end) in zip(sums, ends, strict=True):
        own = [ReadTree(constant_tree(base)), *score.trees]
        if not common:
            own.append(ReadTree(constant_tree(0.0 - end)))
        trees += own
        parts.append(len(own))
    combine: Combine = "smallest" if len(formula) == 1 else "largest"
    kind: Precision = "float32" if single else "float64"
    nodes = tuple(one.tree for one in trees)
    ensemble = TreeEnsemble(nodes, inputs, "sum", 0.0, sums[0].dtype, kind, tuple(parts), combine)
    accept = above(ends[0][1] if common else 0.0)
    unit = max(one.unit * n for one, n in zip(sums, counts, strict=True))
    return TreeDecision(checked(ensemble), accept, splits_of(trees), near, unit=unit)


def _sum(literal: Literal, scores: Sequence[Score]) -> TreeScore:
    """The side of a comparison on which the scores are, as one sum of trees."""
    own = [scores[k] for k, _ in literal.signs]
    several = len({one.dtype for one in scores if isinstance(one, TreeScore)}) > 1
    found = [one.in_doubles() if several else one for one in own if isinstance(one, TreeScore)]
    signs = [sign for _, sign in literal.signs]
    if len(found) == 1:
        (one,), (sign,) = found, signs
        return replace(one, trees=one.times(sign), base=0.0 + sign * one.base)
    means = {len(one.trees) if one.aggregate == "mean" else 0 for one in found}
    count = means.pop() if len(means) == 1 else 0  # means of as many trees are compared by their sums
    factors = [
        sign / len(s.trees) if s.aggregate == "mean" and not count else sign
        for s, sign in zip(found, signs, strict=True)
    ]
    trees = tuple(tree for one, factor in zip(found, factors, strict=True) for tree in one.times(factor))
    base = sum(sign * one.base for one, sign in zip(found, signs, strict=True))
    scale = max(one.unit for one in found) * max(count, 1)
    if all(one.exact for one in found) and (count or not any(one.aggregate == "mean" for one in found)):
        return TreeScore(trees, base, found[0].dtype, exact=True, unit=scale)
    terms, reach = max(len(one.trees) for one in found), max(one.reach for one in found)
    unit = max(UNIT[one.sum_dtype] for one in found)
    unsure = rounding_apart(terms, reach, unit) + sum(one.unsure for one in found)
    return TreeScore(trees, base, found[0].dtype, unsure=unsure * max(count, 1), unit=scale)


def _end(literal: Literal, score: TreeScore, unsure: float, single: bool) -> tuple[float, float]:
    """The number that the sum of trees starts from, and the one above which the comparison holds."""
    if score.exact and score.aggregate == "sum":
        return score.base - literal.threshold + (0.0 if literal.strict else _TIE), 0.0
    end = Acceptance(literal.threshold + unsure + literal.slack, strict=literal.strict).above
    if score.aggregate == "mean":
        end = _of_sum(end, score)
    return score.base, end if not single else float32_below(end)


def _is_probability(score: TreeScore) -> bool:
    """Whether all values are from 0 to 1, as files have it of a mean."""
    return all(v.min() >= 0.0 and v.max() <= 1.0 for v in (one.tree.value for one in score.trees))


def _of_sum(end: float, mean: TreeScore) -> float:
    """The sum of the trees' values above which their mean is above a number."""
    count = len(mean.trees)
    return last_of_all(lambda total: total / count > end, single=False)


def both(formula: Formula, literal: Literal, scores: Sequence[Score]) -> Formula:
    """The formula, and another comparison of one score: of two of the same score, the harder is kept."""

    def term(own: tuple[Literal, ...]) -> tuple[Literal, ...]:
        for k, one in enumerate(own):
            if _same_score(one, literal, scores):
                harder = max(one, literal, key=lambda it: _reached(it, scores))
                return (*own[:k], harder, *own[k + 1 :])
        return (*own, literal)

    return tuple(map(term, formula))


def _same_score(one: Literal, other: Literal, scores: Sequence[Score]) -> bool:
    if len(one.signs) > 1 or one.signs[0][1] != other.signs[0][1]:
        return False
    first, second = scores[one.signs[0][0]], scores[other.signs[0][0]]
    if isinstance(first, TreeScore) and isinstance(second, TreeScore):
        return first.trees is second.trees and first.aggregate == second.aggregate
    return first is second


def _reached(literal: Literal, scores: Sequence[Score]) -> tuple[float, bool]:
    """The number that the literal's score has to be above, or at least if not strict."""
    score = scores[literal.signs[0][0]]
    unsure = score.unsure if isinstance(score, TreeScore) else 0.0
    return literal.threshold + literal.slack + unsure, literal.strict


def network_decision(formula: Formula, scores: Sequence[Score], layers: Layers) -> tuple[Acceptance, float]:
    """Append the scores' networks and the formula to the layers before them.

    Parameters
    ----------
    layers
        Their outputs are the columns that the scores count.

    Returns
    -------
    (acceptance, softmax_unit)
        The logits that are accepted, without margin, and the unit roundoff of a softmax that compares them.
    """
    used = sorted({k for term in formula for literal in term for k, _ in literal.signs})
    nets = [one for k in used if isinstance(one := scores[k], NetworkScore)]
    joined = dict(zip(used, side_by_side(nets), strict=True))
    columns = joined[used[0]].columns
    if columns != tuple(range(layers.outputs or 0)):
        picked = np.zeros((len(columns), layers.outputs or 0))
        picked[np.arange(len(columns)), columns] = 1.0
        layers.affine(picked, np.zeros(len(columns)), "model")
    layers.extend(joined[used[0]].layers)
    layers.slack += max(literal.slack for term in formula for literal in term)
    single = len(formula) == 1 and len(formula[0]) == 1
    terms = []
    for term in formula:
        rows, thresholds = np.zeros((len(term), layers.outputs or 0)), np.zeros(len(term))
        for k, literal in enumerate(term):
            thresholds[k] = 0.0 if single else literal.threshold
            for at, sign in literal.signs:
                rows[k, joined[at].output] += sign
        terms.append((rows, thresholds))
    if not layers.chosen:
        layers.choose(terms)
    softmax = max(one.softmax_unit for one in joined.values())
    return Acceptance(formula[0][0].threshold if single else 0.0), softmax
