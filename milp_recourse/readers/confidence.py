r"""Acceptance by probability: predict_proba of the wanted class is at least a number c.

============================================  ==========================================================
predict_proba                                 read as
============================================  ==========================================================
two classes: a rising function of a score     the score from which the model's own function reaches c
sums of trees, any number of classes          the sum of the trees' probabilities, as the library divides it
three to five classes: a softmax              the log odds :math:`-\log \sum_j e^{z_j - z_k}` are at least
                                              log(c / (1 - c)): a network that is nowhere above them is taken
                                              (:mod:`milp_recourse.problem.derived_networks`)
============================================  ==========================================================

With more than two classes c must be above 1/2, so that the wanted class is predicted, too. Boosting of more
than two classes is refused: its probability is no function of sums of leaves that searches of trees take.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.problem.derived_networks import excess
from milp_recourse.readers.classes import Target
from milp_recourse.readers.cutoff import Cutoff
from milp_recourse.readers.formulas import Formula, Literal, Wish, both
from milp_recourse.readers.member import Member
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.scores import NetworkScore, side_by_side

MOST_CLASSES = 5
"""Of a softmax: more of them take very large networks."""

_OR_MARGIN = "or margin, the log of the odds against each other class"


def at_confidence(member: Member, confidence: float, wish: Wish) -> Member:
    """The model with a rule that asks for this probability of the wanted class, too.

    Raises
    ------
    Unsupported
        The probability is no function of the model's scores that can be searched.
    BadInput
        Any class but one is wanted, of more than two; or of these c is not above 1/2.
    """
    count = len(member.classes)
    if not isinstance(wish, Target):
        raise refuse("confidence", f"{member.name}, which predicts numbers", "a classifier, or margin")
    if count > 2 and not wish.wanted:
        raise BadInput("confidence", f"{confidence} with desired {wish.words}", "one desired class")
    if count > 2 and not confidence > 0.5:
        raise BadInput("confidence", confidence, "above 0.5 with more than two classes")
    if count > 2 and member.shares is None:
        return _by_odds(member, confidence, wish.index)
    cutoff = Cutoff(np.float64(confidence), wish.index, on_scores=False, what="confidence")
    if count > 2:
        sure = Literal(((wish.index, 1.0),), confidence, strict=False)
    else:
        ((sure,),) = member.rule_of_share(cutoff, "confidence")(wish)
    if member.link is not None:
        return replace(member, rule=lambda wish: both(member.rule(wish), sure, member.scores))
    scores, sure = (*member.scores, *(member.shares or ())), sure.on(len(member.scores))

    def rule(wish: Wish) -> Formula:
        own = member.rule(wish)
        joined = both(own, sure, scores)
        if member.cut or len(joined[0]) == 1:
            return joined
        return ((sure,),) if confidence > 0.5 else own  # what is predicted has the largest probability

    return replace(member, scores=scores, rule=rule)


def _by_odds(member: Member, confidence: float, index: int) -> Member:
    """The model, whose probabilities are a softmax of its scores, by the log odds of a class."""
    count, nets = len(member.classes), [one for one in member.scores if isinstance(one, NetworkScore)]
    if not nets:
        allowed = f"two classes, a forest, a linear model, {_OR_MARGIN}"
        raise refuse("confidence", f"{member.name} with {count} classes", allowed)
    if not member.softmax:
        got = f"{member.name} with {count} classes, whose probabilities are no softmax"
        raise refuse("confidence", got, f"a softmax, a forest, {_OR_MARGIN}")
    if count > MOST_CLASSES:
        allowed = f"at most {MOST_CLASSES}, a forest, {_OR_MARGIN}"
        raise refuse("confidence", f"{member.name} with {count} classes", allowed)
    if not 1e-6 <= confidence <= 1.0 - 1e-6:
        raise refuse("confidence", str(confidence), "probabilities between 1e-6 and 1 - 1e-6")
    logits = side_by_side(nets)
    layers, others = logits[0].layers, [one for k, one in enumerate(logits) if k != index]
    rows = np.zeros((count - 1, layers.outputs or 0))
    rows[np.arange(count - 1), [one.output for one in others]] = 1.0
    rows[:, logits[index].output] = -1.0
    layers.choose_odds(rows)
    odds = math.log(confidence / (1.0 - confidence))
    least = Literal(((0, 1.0),), odds + 2.0**-48 * (1.0 + abs(odds)), strict=False)
    # a probability that is off by d, relatively, is at odds that are off by d / (1 - p)
    score = NetworkScore(layers, 0, logits[0].columns, 2.0 * member.softmax / (1.0 - confidence))
    return replace(member, scores=(score,), rule=lambda _: ((least,),), near=excess(count - 1))
