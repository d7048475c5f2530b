r"""Read models that average, count or stack the answers of others.

================================  ======================================================================
model                             is read as
================================  ======================================================================
averages of probabilities         the weighted sum of the members' probabilities, where these are sums of
                                  trees or piecewise linear; or a bound from below, where they are logistic
                                  functions of two classes
AdaBoost, votes of single trees   the weighted sum of each tree's vote, 0 or 1 in its leaves
other votes                       the sets of members that win, each a comparison of scores
stacks with a linear model last   that model's weighted sum of what the members answer
================================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, TypeGuard

import numpy as np

from milp_recourse.readers.boundaries import Array
from milp_recourse.readers.classes import Target, classes_of
from milp_recourse.readers.curves import Curve, sums_from_below
from milp_recourse.readers.formulas import Formula, Literal, Wish, by_largest, by_margin
from milp_recourse.readers.from_sklearn_trees import by_means, takes_missing
from milp_recourse.readers.layers import Layers
from milp_recourse.readers.linear import is_linear, linear_member
from milp_recourse.readers.links import Link, link_of
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Inputs, Place
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.regressions import is_plain_regression, plain_regression
from milp_recourse.readers.scores import (
    NetworkScore,
    Score,
    TreeScore,
    adds_exactly,
    composed,
    outputs_of,
    weighted,
)

Read = Callable[[Any, Place, Sequence[str]], Member]
"""The reader of whatever a model contains; the last argument names the methods by which it is asked."""

_MOST_TERMS = 256
"""The most sets of members that win a vote, beyond which a vote is not read."""


def is_ensemble(model: Any) -> bool:
    """Whether a model is one of scikit-learn's made of others; imbalanced-learn derives from them."""
    from sklearn import ensemble, multiclass

    bags = (ensemble.BaggingClassifier, ensemble.BaggingRegressor, ensemble.AdaBoostClassifier)
    mixed = (ensemble.VotingClassifier, ensemble.VotingRegressor, multiclass.OneVsRestClassifier)
    return isinstance(model, (*bags, *mixed, ensemble.StackingClassifier, ensemble.StackingRegressor))


def read_ensemble(model: Any, place: Place, read: Read) -> Member:
    """Read such a model.

    Raises
    ------
    Unsupported
        A member cannot be read, or what is made of the members' answers is no function that can be searched.
    """
    from sklearn import ensemble, multiclass
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if isinstance(model, multiclass.OneVsRestClassifier):
        return _one_against_the_rest(model, place, read)
    if isinstance(model, ensemble.AdaBoostClassifier):
        return _adaboost(model, place, read)
    if isinstance(model, ensemble.StackingClassifier | ensemble.StackingRegressor):
        return _stack(model, place, read)
    bag = isinstance(model, ensemble.BaggingClassifier | ensemble.BaggingRegressor)
    parts = [one for one in model.estimators_ if not isinstance(one, str)]
    weights = [1.0] * len(parts)
    if not bag and model._weights_not_none is not None:
        weights = [float(w) for w in model._weights_not_none]
    places = [replace(place, where=f"{place.where} member {k}") for k in range(len(parts))]
    if bag:
        picked = zip(places, model.estimators_features_, strict=True)
        places = [one.pick(features, one.where) for one, features in picked]
    if isinstance(model, ensemble.BaggingRegressor | ensemble.VotingRegressor):
        members = [read(one, at, ("predict",)) for one, at in zip(parts, places, strict=True)]
        numbers = [_number(one, at) for one, at in zip(members, places, strict=True)]
        shares = [w / sum(weights) for w in weights]
        return regression(type(model).__name__, weighted(numbers, shares, 0.0, place.where))
    soft = [hasattr(one, "predict_proba") if bag else model.voting == "soft" for one in parts]
    asked = ["predict_proba" if one else "predict" for one in soft]
    members = [read(one, at, (use,)) for one, at, use in zip(parts, places, asked, strict=True)]
    name, classes = type(model).__name__, classes_of(model)
    if not all(soft):
        return voted(name, classes, members, weights, place.where)
    in_order = getattr(model, "n_jobs", None) in (None, 1) if bag else model.weights is None
    means = _means_in_order(members, len(classes)) if in_order else ()
    return by_means(name, classes, means) if means else averaged(name, classes, members, weights, place.where)


def _means_in_order(members: Sequence[Member], count: int) -> tuple[TreeScore, ...]:
    """The mean of each class's probabilities, added in order and divided by their number, bit for bit; ()
    unless the members are single trees that know all classes."""
    trees = [[one for one in member.shares or () if _is_tree(one)] for member in members]
    same = {one.dtype for own in trees for one in own}
    if len(members) < 2 or len(same) != 1 or any(len(own) != count for own in trees):
        return ()
    dtype, sums = same.pop(), [tuple(own[k].trees[0] for own in trees) for k in range(count)]
    exact = all(map(adds_exactly, sums))
    return tuple(TreeScore(own, 0.0, dtype, aggregate="mean", exact=exact) for own in sums)


def _is_tree(score: Score) -> TypeGuard[TreeScore]:
    """Whether a score is a leaf's value as it is."""
    if not isinstance(score, TreeScore) or score.sum_dtype != "float64":
        return False
    return len(score.trees) == 1 and not score.base and not score.unsure


def averaged(
    name: str, classes: tuple[object, ...], members: Sequence[Member], weights: Sequence[float], where: str
) -> Member:
    """The class with the largest weighted mean of the members' probabilities is predicted.

    Members may know some of the classes only; theirs are positions among ``classes`` then.

    Raises
    ------
    Unsupported
        A member's probabilities are no sum of trees and not piecewise linear, or members are of both kinds.
    """
    curved = next((one for one in members if one.shares is None), None)
    if curved is not None:
        return _averaged_curves(name, classes, members, weights, where, curved)
    whole, count, measure = sum(weights), len(classes), "weighted sum of probabilities"

    def total(k: int, scale: float) -> Score:
        own = [(_share(one, k, count), w / scale) for one, w in zip(members, weights, strict=True)]
        known = [(share, w) for share, w in own if share is not None]
        return weighted([share for share, _ in known], [w for _, w in known], 0.0, where)

    shares = tuple(total(k, whole) for k in range(count))
    if count == 2:
        return Member(name, classes, (total(1, 1.0),), by_margin(whole / 2), shares=shares, measure=measure)
    scores = tuple(total(k, 1.0) for k in range(count))
    rule = by_largest(count, all_exact(scores))
    return Member(name, classes, scores, rule, shares=shares, measure=measure)


def _averaged_curves(
    name: str,
    classes: tuple[object, ...],
    members: Sequence[Member],
    weights: Sequence[float],
    where: str,
    curved: Member,
) -> Member:
    """The same of two classes where some probabilities are logistic functions of a network's score: bounded
    from below, by :mod:`milp_recourse.readers.curves`."""
    parts = [_second_share(one) for one in members]
    known = [one for one in parts if one is not None]
    if len(classes) > 2 or len(known) < len(parts):
        got = f"an average of probabilities of {curved.name}, which are curves of its score"
        allowed = f"members that are single trees or forests, or logistic with two classes, {OR_ASK}"
        raise refuse(where, got, allowed)
    whole = sum(weights)
    above, below, near = sums_from_below(known, [w / whole for w in weights], 0.0, where)
    link = Link(lambda share: (1.0 - share, share))
    return Member(
        name,
        classes,
        (above, below),
        by_margin(0.5, bounded=True),
        link=link,
        near=near,
        measure="probability",
    )


def _second_share(member: Member) -> Score | Curve | None:
    """The second of two classes' probability, as a score or as a logistic curve of a network's; else None."""
    if len(member.classes) != 2:
        return None
    if member.shares is not None:
        return member.shares[1]
    score, link = member.scores[0], member.link
    if link is None or link.logistic is None or not isinstance(score, NetworkScore):
        return None
    return Curve(score, *link.logistic, link.unit)


def all_exact(scores: Sequence[Score]) -> bool:
    """Whether the scores are known to be ordered as the model orders them, ties included."""
    return all(isinstance(one, TreeScore) and one.exact for one in scores)


def _share(member: Member, k: int, count: int) -> Score | None:
    """The probability of class k; None of a member that does not know it, whose classes are positions."""
    known = list(range(count)) if len(member.classes) == count else list(member.classes)
    return (member.shares or ())[known.index(k)] if k in known else None


def voted(
    name: str, classes: tuple[object, ...], members: Sequence[Member], weights: Sequence[float], where: str
) -> Member:
    """The first class with the largest sum of weights of the members that predict it is predicted.

    Raises
    ------
    Unsupported
        Members are no single trees, and there are too many of them or of classes.
    """
    count = len(classes)
    if all(one.votes is not None and len(one.classes) == count for one in members):
        votes = [[one.votes[k] for one in members if one.votes is not None] for k in range(count)]
        scores = tuple(weighted(own, weights, 0.0, where) for own in votes)
        if count == 2:
            return Member(name, classes, scores[1:], by_margin(sum(weights) / 2))
        return Member(name, classes, scores, by_largest(count, all_exact(scores)))

    def winner(said: Sequence[int]) -> int:
        return int(np.argmax(np.bincount(said, weights=weights, minlength=count)))

    return by_assignments(name, classes, members, winner, where)


def by_assignments(
    name: str,
    classes: tuple[object, ...],
    members: Sequence[Member],
    winner: Callable[[Sequence[int]], int],
    where: str,
) -> Member:
    """A model that predicts a function of the classes that its members predict.

    Parameters
    ----------
    winner
        The function, of positions among the classes. Of two, more members for one cannot help the other.

    Raises
    ------
    Unsupported
        There are too many ways in which the members can decide.
    """
    count, n = len(classes), len(members)
    if count**n > (4096 if count == 2 else _MOST_TERMS // 3) or any(
        len(one.classes) != count for one in members
    ):
        got = f"a vote of {n} members on {count} classes"
        raise refuse(where, got, f"fewer members, or single trees, {OR_ASK}")
    starts = np.cumsum([0, *(len(one.scores) for one in members)]).tolist()

    def predicts(k: int, label: int) -> Formula:
        formula = members[k].rule(Target(label, True, ""))
        return tuple(tuple(literal.on(starts[k]) for literal in term) for term in formula)

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Target)
        ways = _ways(count, n, winner, target)
        terms: list[tuple[Literal, ...]] = []
        for way in ways:
            parts = [predicts(k, label) for k, label in way]
            terms += [sum(chosen, ()) for chosen in product(*parts)]
            if len(terms) > _MOST_TERMS:
                got = f"a vote that more than {_MOST_TERMS} sets of members win"
                raise refuse(where, got, f"fewer members, or single trees, {OR_ASK}")
        return tuple(terms)

    scores = tuple(score for one in members for score in one.scores)
    return Member(name, classes, scores, rule, near=max(one.near for one in members))


def _ways(
    count: int, n: int, winner: Callable[[Sequence[int]], int], target: Target
) -> list[tuple[tuple[int, int], ...]]:
    """The ways in which members can decide so that the target is met: (member, its class) of those needed."""
    if count > 2:
        said = product(range(count), repeat=n)
        met = (way for way in said if (winner(way) == target.index) is target.wanted)
        return [tuple(enumerate(way)) for way in met]
    c = target.index
    minimal: list[frozenset[int]] = []
    for size in range(n + 1):
        for chosen in combinations(range(n), size):
            own = frozenset(chosen)
            if any(one <= own for one in minimal):
                continue
            if winner([c if k in own else 1 - c for k in range(n)]) == c:
                minimal.append(own)
    return [tuple((k, c) for k in sorted(own)) for own in minimal]


def _adaboost(model: Any, place: Place, read: Read) -> Member:
    """The sum of the members' weights, each with the sign of its vote; more classes have a sum each."""
    weights = [float(w) for _, w in zip(model.estimators_, model.estimator_weights_, strict=False)]
    members = [
        read(one, replace(place, where=f"{place.where} member {k}"), ("predict",))
        for k, one in enumerate(model.estimators_)
    ]
    name, classes, count = type(model).__name__, classes_of(model), len(classes_of(model))
    if not all(one.votes is not None and len(one.classes) == count for one in members):

        def winner(said: Sequence[int]) -> int:
            sums = np.zeros(count)
            for k, weight in zip(said, weights, strict=True):
                sums += np.where(np.arange(count) == k, weight, -1 / (count - 1) * weight)
            return int(sums[1] > 0) if count == 2 else int(np.argmax(sums))

        return by_assignments(name, classes, members, winner, place.where)
    if not takes_missing(model):
        members = [replace(one, votes=tuple(map(_without_rule, one.votes or ()))) for one in members]
    if count > 2:
        scores = tuple(_signed(members, weights, k, -1.0 / (count - 1), place.where) for k in range(count))
        return Member(name, classes, scores, by_largest(count), scores)
    score = _signed(members, weights, 1, -1.0, place.where)
    whole = model.estimator_weights_.sum()

    def probabilities(totals: Array) -> Any:
        decision = totals / whole
        return model._compute_proba_from_decision(decision + decision, 2)

    score = replace(score, unsure=0.0)  # added in the model's order; a mean has the sign of the sum
    decision = weighted([score], [2.0 / whole], 0.0, place.where)
    return Member(name, classes, (score,), by_margin(), (decision,), link=link_of(probabilities))


def _signed(
    members: Sequence[Member], weights: Sequence[float], k: int, other: float, where: str
) -> TreeScore:
    """The sum over members of the weight where class k is predicted, else of it times ``other``."""
    trees = []
    for one, weight in zip(members, weights, strict=True):
        vote = (one.votes or ())[k].trees[0]
        value = np.where(vote.tree.value > 0, weight, other * weight)
        trees.append(replace(vote, tree=replace(vote.tree, value=value)))
    dtype = (members[0].votes or ())[k].dtype
    made = TreeScore(tuple(trees), 0.0, dtype)
    return replace(made, unsure=made.rounding)


def _without_rule(score: TreeScore) -> TreeScore:
    trees = (replace(one, tree=replace(one.tree, missing_left=None)) for one in score.trees)
    return replace(score, trees=tuple(trees))


def _one_against_the_rest(model: Any, place: Place, read: Read) -> Member:
    """The class whose model has the largest decision, or probability, is predicted."""
    if model.multilabel_:
        raise refuse(place.where, "OneVsRestClassifier for several labels", "one label")
    scores: list[Score] = []
    for k, one in enumerate(model.estimators_):
        at, asked = replace(place, where=f"{place.where} member {k}"), hasattr(one, "decision_function")
        member = read(one, at, ("decision_function" if asked else "predict_proba",))
        answers = member.decision if asked else member.shares
        if answers is None:
            got = f"probabilities of {member.name}, which are curves of its score"
            raise refuse(at.where, got, f"the model itself, which takes several classes, {OR_ASK}")
        scores.append(answers[-1])
    name, classes = "OneVsRestClassifier", classes_of(model)
    if len(scores) > 1:
        return Member(name, classes, tuple(scores), by_largest(len(scores)))
    return Member(name, classes, tuple(scores), by_margin(0.0 if asked else 0.5))


def _number(member: Member, place: Place) -> Score:
    """What a regression predicts, as a score."""
    if member.number is None:
        got = f"an average of predictions of {member.name}, which are curves of its score"
        raise refuse(place.where, got, f"regressions that predict their score (squared error), {OR_ASK}")
    return member.number


def _stack(model: Any, place: Place, read: Read) -> Member:
    """The last model has to be linear; or any network, if the others are."""
    last, where = model.final_estimator_, f"{place.where} final_estimator"
    inputs: list[Score | Curve] = []
    for k, (one, method) in enumerate(zip(model.estimators_, model.stack_method_, strict=True)):
        at = replace(place, where=f"{place.where} member {k}")
        inputs += _answers(read(one, at, (method,)), method, at, len(getattr(model, "classes_", ())) == 2)
    if model.passthrough:
        own = Layers(len(place.columns))
        own.affine(np.eye(len(place.columns)), np.zeros(len(place.columns)), place.where)
        inputs += outputs_of(own, place.columns)
    reader = linear_member if is_linear(last) else plain_regression if is_plain_regression(last) else None
    if reader is None:
        raise refuse(where, type(last).__name__, f"a linear final_estimator, {OR_ASK}")
    refuse_overrides(last, where, "sklearn")
    end = reader(last, Inputs(where, tuple(range(len(inputs)))))
    outputs = [one for one in end.scores if isinstance(one, NetworkScore)]
    end = replace(end, name=type(model).__name__, classes=classes_of(model) if end.classes else ())
    exact = [one for one in inputs if not isinstance(one, Curve)]
    if len(exact) < len(inputs):
        return _over_curves(end, inputs, outputs, where)
    scores = composed(exact, outputs, where)
    return replace(
        end,
        scores=scores,
        decision=None if end.decision is None else scores,
        number=None if end.number is None else scores[0],
    )


def _over_curves(
    end: Member, inputs: Sequence[Score | Curve], outputs: Sequence[NetworkScore], where: str
) -> Member:
    """A stack some of whose inputs are logistic curves: its score is bounded from below, and its negative."""
    segments = outputs[0].layers.segments
    if len(outputs) > 1 or len(segments) > 1 or len(segments[0]) > 1 or end.number is not None:
        got = "anything but a linear model of two classes over probabilities that are curves"
        raise refuse(where, got, f"stack_method='decision_function', {OR_ASK}")
    (only,) = segments[0]
    weights, constant = only.weight[0].tolist(), float(only.bias[0])
    above, below, near = sums_from_below(inputs, weights, constant, where)
    link = None if end.link is None else replace(end.link, logistic=None)
    rule = by_margin(bounded=True)
    return replace(end, scores=(above, below), rule=rule, decision=None, link=link, near=near, softmax=0.0)


def _answers(member: Member, method: str, place: Place, two: bool) -> Sequence[Score | Curve]:
    """What a member of a stack answers, as scores."""
    if method == "decision_function" and member.decision is not None:
        return member.decision
    if method == "predict" and member.number is not None:
        return [member.number]
    if method == "predict_proba" and member.shares is not None:
        return member.shares[1:] if two else member.shares
    second = _second_share(member) if method == "predict_proba" else None
    if second is not None:
        return [second]
    got = f"a stack of {method} of {member.name}, which is no sum of trees and not piecewise linear"
    raise refuse(place.where, got, f"stack_method='decision_function' where it is linear, {OR_ASK}")
