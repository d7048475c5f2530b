"""A fitted model as its scores, and what its methods answer in terms of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from milp_recourse.readers.cutoff import Cutoff
from milp_recourse.readers.formulas import Rule, by_half, by_interval, by_largest, by_margin, by_share
from milp_recourse.readers.links import Inverse, Link
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import NetworkScore, Score, TreeScore

_STEEP = 1e-6 * (1 - 1e-6)


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted classifier, regression or detector of outliers; the model itself or a part of it.

    Attributes
    ----------
    name
        Its class's name, for messages.
    classes
        Its classes in its order; () for a regression.
    scores
        What ``rule`` compares.
    rule
        When ``predict`` gives a class, or a number between two others.
    decision
        ``decision_function``: one score for two classes, else one for each; None without the method.
    shares
        ``predict_proba``, a score for each class; None where it is no sum of trees and no piecewise linear
        function.
    link
        ``predict_proba`` of two classes as a function of ``scores[0]``; None without.
    votes
        For each class, a score that is 1 where it is predicted, else 0; None where there are none.
    number
        What a regression predicts; None for others, and where it is a curve of its score.
    inverse
        That curve.
    cut
        Whether a threshold of a wrapper's decides.
    near
        0, or else ``scores`` are a bound from below of a score and one of its negative: how far below they
        can be (of a vote: those of its members).
    measure
        What the scores are, in words: the unit of a margin.
    softmax
        Where ``predict_proba`` is the softmax of several scores: its unit roundoff, else 0.
    """

    name: str
    classes: tuple[object, ...]
    scores: tuple[Score, ...]
    rule: Rule
    decision: tuple[Score, ...] | None = None
    shares: tuple[Score, ...] | None = None
    link: Link | None = None
    votes: tuple[TreeScore, ...] | None = None
    number: Score | None = None
    inverse: Inverse | None = None
    cut: bool = False
    near: float = 0.0
    measure: str = "raw score"
    softmax: float = 0.0

    @property
    def of_trees(self) -> bool:
        """Whether the scores are sums of trees' values."""
        return isinstance(self.scores[0], TreeScore)

    def on_probabilities(self) -> Member:
        """The same where a margin is asked for: classes of a single tree are compared by their probabilities,
        of which otherwise only the largest in each leaf counts."""
        if self.votes is None or self.scores is not self.votes or self.shares is None:
            return self
        halves = tuple(replace(one, unsure=2.0**-51) for one in self.shares if isinstance(one, TreeScore))
        count = len(self.classes)
        return replace(self, scores=halves, rule=by_half(False) if count == 2 else by_largest(count))

    def with_cutoff(self, cutoff: Cutoff, where: str) -> Member:
        """The same with a threshold of a wrapper's in place of its own decision.

        Raises
        ------
        Unsupported
            What the threshold is put on is no function of a score, or it is too near 0 or 1.
        """
        if self.cut:
            raise refuse(where, "a threshold on a threshold", "one")
        cut = replace(self, rule=self._cut(cutoff, where), votes=None, cut=True)
        if cutoff.on_scores:
            link = self.link if self.decision is self.scores else None
            return replace(cut, scores=self.decision or (), link=link)
        return cut if self.link is not None else replace(cut, scores=self.shares or ())

    def _cut(self, cutoff: Cutoff, where: str) -> Rule:
        """The rule that a threshold is."""
        if cutoff.on_scores:
            if self.decision is None:
                raise refuse(where, f"a threshold on a score of {self.name}", "one on probabilities")
            accept = cutoff.accept_scores()
            return by_margin(accept.threshold, accept.strict)
        return self.rule_of_share(cutoff, where)

    def rule_of_share(self, cutoff: Cutoff, where: str) -> Rule:
        """When the first or second of two classes' probability passes a threshold: a rule over ``scores``
        with a link, over ``shares`` without.

        Raises
        ------
        Unsupported
            There is no such rule, or the threshold is too near 0 or 1.
        """
        if self.link is not None:
            slack = (0.0, 0.0)
            if not self.of_trees or self.link.rounds:
                if cutoff.steepness < _STEEP:
                    allowed = "probabilities between 1e-6 and 1 - 1e-6"
                    raise refuse(where, f"{cutoff.what} {cutoff.threshold}", allowed)
                slack = self.link.slack(cutoff.second)
            return by_margin(self.link.threshold(cutoff.second), slack=slack, bounded=self.near > 0)
        if self.shares is None:
            got = f"{cutoff.what} on the probability of {self.name}"
            raise refuse(where, got, f"one on a logistic function, or on the decision function, {OR_ASK}")
        return by_share(cutoff.positive, float(cutoff.threshold))


def regression(name: str, score: Score, inverse: Inverse | None = None) -> Member:
    """A regression, which predicts its score or a rising function of it."""
    rule = by_interval(inverse, isinstance(score, NetworkScore))
    return Member(name, (), (score,), rule, number=score if inverse is None else None, inverse=inverse)
