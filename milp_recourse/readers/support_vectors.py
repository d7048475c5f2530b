r"""Read support vector machines with a linear kernel, as the two products that libsvm computes.

The decision is :math:`\alpha (S x) + b`, with the support vectors S and their coefficients :math:`\alpha`.
With K > 2 classes there is one such decision for each pair of classes i < j, which votes for i above 0, else
for j. The first class with the most votes is predicted.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.classes import Target, classes_of
from milp_recourse.readers.formulas import Formula, Literal, Rule, Wish, by_margin
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.linear import dense
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import NetworkScore, outputs_of

_MOST = 4
"""The most classes; the 6 pairs of 4 classes vote in 64 ways."""


def is_support_vectors(model: Any) -> bool:
    """Whether a model is one of scikit-learn's that libsvm computes."""
    from sklearn.svm._base import BaseLibSVM

    return isinstance(model, BaseLibSVM)


def support_vectors(model: Any, place: Place) -> Member:
    """SVC, NuSVC, OneClassSVM, SVR or NuSVR with a linear kernel.

    Raises
    ------
    Unsupported
        The kernel is not linear, or there are more than four classes.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    name, where = type(model).__name__, place.where
    if model.kernel != "linear":
        kernel = model.kernel if isinstance(model.kernel, str) else "a function"
        raise refuse(where, f"{name} with kernel {kernel!r}", f"kernel='linear', {OR_ASK}")
    classifies = model._impl in ("c_svc", "nu_svc")
    classes = classes_of(model) if classifies else (-1, 1)
    scores = _decisions(model, place, len(classes) if classifies else 2)
    if model._impl in ("epsilon_svr", "nu_svr"):
        return regression(name, scores[0])
    if len(classes) == 2:
        return Member(name, classes, scores, by_margin(), scores)
    if len(classes) > _MOST:
        raise refuse(where, f"{name} of {len(classes)} classes", f"LinearSVC, or at most {_MOST} classes")
    if model.break_ties:
        raise refuse(where, f"{name}(break_ties=True)", "break_ties=False")
    return Member(name, classes, scores, _by_votes(len(classes)))


def _decisions(model: Any, place: Place, classes: int) -> tuple[NetworkScore, ...]:
    """The decision of two classes, which is above 0 for the second, or those of all pairs."""
    vectors, alpha = dense(model.support_vectors_), dense(model.dual_coef_)
    (layers, columns), unit = place.layers(), UNIT["float64"]
    layers.affine(vectors, np.zeros(len(vectors)), place.where, unit)
    bias = dense(np.asarray(model.intercept_)).ravel()
    layers.affine(alpha if classes == 2 else _of_pairs(alpha, model.n_support_), bias, place.where, unit)
    return outputs_of(layers, columns)


def _of_pairs(alpha: NDArray[np.float64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """The coefficients of the support vectors for each pair of classes."""
    ends = np.concatenate([[0], np.cumsum(count)])
    rows = []
    for i, j in combinations(range(len(count)), 2):
        row = np.zeros(alpha.shape[1])
        first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        row[first], row[second] = alpha[j - 1, first], alpha[i, second]
        rows.append(row)
    return np.array(rows)


def _by_votes(classes: int) -> Rule:
    """The first class with the most votes of the pairs."""
    pairs = list(combinations(range(classes), 2))

    def rule(target: Wish) -> Formula:
        assert isinstance(target, Target)
        found = []
        for above in product((True, False), repeat=len(pairs)):
            winners = [i if a else j for a, (i, j) in zip(above, pairs, strict=True)]
            votes = np.bincount(winners, minlength=classes)
            if (int(votes.argmax()) == target.index) is target.wanted:
                found.append(frozenset(enumerate(above)))
        return tuple(
            tuple(Literal(((k, 1.0 if a else -1.0),)) for k, a in sorted(term)) for term in shortest(found)
        )

    return rule


def shortest(terms: list[frozenset[tuple[int, bool]]]) -> list[frozenset[tuple[int, bool]]]:
    """Fewer terms that say the same: two that differ in one sign are one without it, while there are any."""
    current = set(terms)
    while True:
        merged = {
            one & other
            for one, other in combinations(current, 2)
            if len(one) == len(other) == len(one & other) + 1 and {k for k, _ in one} == {k for k, _ in other}
        }
        kept = {term for term in current | merged if not any(other < term for other in merged | current)}
        if kept == current:
            return sorted(kept, key=sorted)
        current = kept
