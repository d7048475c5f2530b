r"""Preference elicitation: what an applicant is asked, and the weights and masks that follow.

An applicant groups, ranks or scores the k globally actionable features. Each answer becomes a
score :math:`s_i \in \{1, \dots, s_{max}\}` per feature, 1 the most preferred and
:math:`s_{max}` "not actionable for me"; scores become a mask, actionability weights and the
priors of iCARMA's mask network.

Source: the iCARMA paper, sections 3.3 and 4.2 (equations 3 and 4), appendix B (equations 11, 12
and 14), B.2, C.1 and table 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.errors import BadInput

ProfileName = Literal["constant", "linear", "convex", "concave"]
RankingDistribution = Literal["uniform", "causal", "reverse-causal", "privileged", "non-privileged"]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LOAN_ACTIONABLE = ("amount", "duration", "income", "savings")
"""Loan's globally actionable features, in the order of the columns of every array here."""

ALPHA: Mapping[str, float] = {"linear": 1.0, "convex": 2.0, "concave": 0.5}
"""Exponents of the profiles. The paper does not publish those of convex and concave; 2 and 1/2 are our
choice."""


@dataclass(frozen=True, eq=False)
class Scores:
    r"""Actionability scores of one applicant or many (paper, equation 3).

    Parameters
    ----------
    features
        Names of the k globally actionable features. (All others are never actionable.)
    values
        Scores in 1..smax, shape (k,) for one applicant, (n, k) for n.
    smax
        The score that means individually not actionable; at least 2.

    Raises
    ------
    BadInput
        A score outside 1..smax, or a shape that does not end in k.
    """

    features: tuple[str, ...]
    values: IntArray
    smax: int

    def __post_init__(self) -> None:
        if self.smax < 2:
            raise BadInput("smax", self.smax, "a whole number, at least 2")
        if self.values.ndim not in (1, 2) or self.values.shape[-1] != len(self.features):
            raise BadInput(
                "scores", f"shape {self.values.shape}", f"(n, k) or (k,) with k = {len(self.features)}"
            )
        wrong = self.values[(self.values < 1) | (self.values > self.smax)]
        if wrong.size:
            raise BadInput("scores", int(wrong[0]), f"whole numbers 1..{self.smax}")

    @property
    def actionable(self) -> NDArray[np.bool_]:
        """Which features each person can act on (the mask): score below smax; shape of ``values``."""
        return self.values < self.smax

    @property
    def largest(self) -> IntArray:
        r"""smax_u = max(2, largest score among u's actionable features); shape () or (n,)."""
        largest: IntArray = np.maximum(2, np.where(self.actionable, self.values, 0).max(axis=-1))
        return largest

    @property
    def reluctance(self) -> FloatArray:
        r"""A feature's score, rescaled to 0 (most preferred) .. 1 (least preferred of the actionable).

        :math:`t_i = (s_i - 1) / (s^{max}_u - 1)`, shape of ``values``; NaN where not actionable.
        """
        t = (self.values - 1) / (self.largest[..., None] - 1)
        return np.where(self.actionable, t, np.nan)


def group(features: Sequence[str], actionable: Collection[str]) -> Scores:
    """Scheme (i), one applicant: which features can you act on at all?

    The features in ``actionable`` score 1, the others smax = k + 1.

    Raises
    ------
    BadInput
        A name that is not in ``features``.
    """
    _known("actionable", actionable, features)
    smax = len(features) + 1
    return Scores(tuple(features), np.array([1 if f in actionable else smax for f in features]), smax)


def rank(features: Sequence[str], order: Sequence[str]) -> Scores:
    """Scheme (ii), one applicant: which would you change first, second, ...?

    The l-th name scores l; features left out are not actionable and score smax = k + 1.

    Parameters
    ----------
    features
        The k globally actionable features.
    order
        The actionable ones, most preferred (easiest) first.

    Raises
    ------
    BadInput
        A name that is not in ``features``, or named twice.
    """
    _known("order", order, features)
    if len(set(order)) != len(order):
        raise BadInput("order", list(order), "each feature once")
    smax = len(features) + 1
    position = {name: place for place, name in enumerate(order, start=1)}
    return Scores(tuple(features), np.array([position.get(f, smax) for f in features]), smax)


def likert(features: Sequence[str], ratings: Mapping[str, int], categories: int = 5) -> Scores:
    """Scheme (iii), one applicant: how hard is each feature to change?

    Parameters
    ----------
    features
        The k globally actionable features.
    ratings
        1 (easiest) .. ``categories`` (not actionable) per feature; every feature is rated.
    categories
        smax, the number of Likert categories; 5 in the paper's Loan experiments.

    Raises
    ------
    BadInput
        A feature without rating, an unknown one, or a rating outside the scale.
    """
    _known("ratings", ratings, features)
    missing = [f for f in features if f not in ratings]
    if missing:
        raise BadInput("ratings", f"no rating of {missing[0]}", "one rating per feature")
    return Scores(tuple(features), _whole("ratings", [ratings[f] for f in features]), categories)


def cut(features: Sequence[str], ranks: ArrayLike, threshold: ArrayLike) -> Scores:
    """Full rankings with a cut-off: rank >= threshold becomes smax = k + 1 (appendix B.2).

    A threshold T leaves the T - 1 best ranked features actionable: for k = 4, thresholds 2..5
    leave 1..4.

    Parameters
    ----------
    features
        The k globally actionable features.
    ranks
        A permutation of 1..k per applicant, shape (k,) or (n, k), columns as ``features``.
    threshold
        In 2..k+1: one for all, or shape (n,).

    Raises
    ------
    BadInput
        A row that is no permutation of 1..k, or a threshold outside 2..k+1.
    """
    k = len(features)
    ranks, thresholds = _whole("ranks", ranks), _whole("threshold", threshold)
    if ranks.shape[-1:] != (k,) or not (np.sort(ranks, axis=-1) == np.arange(1, k + 1)).all():
        raise BadInput("ranks", ranks.tolist(), f"a permutation of 1..{k} per applicant")
    if thresholds.shape not in ((), ranks.shape[:-1]):
        raise BadInput("threshold", f"shape {thresholds.shape}", "one for all, or one per applicant")
    if (thresholds < 2).any() or (thresholds > k + 1).any():
        raise BadInput("threshold", thresholds.tolist(), f"whole numbers 2..{k + 1}")
    return Scores(tuple(features), np.where(ranks >= thresholds[..., None], k + 1, ranks), k + 1)


@dataclass(frozen=True)
class CostProfile:
    r"""How actionability weights grow from the most to the least preferred feature.

    .. math:: w_i = w_{max} - (w_{max} - w_{min}) (1 - t_i^\alpha), \qquad
        t_i = \frac{s_i - 1}{s^{max}_u - 1}

    (paper, equations 4 and 11). alpha = 1 is linear, above 1 convex, below 1 concave. The
    constant profile gives weight 1 to every actionable feature, whatever the scores.

    Parameters
    ----------
    alpha
        Exponent above 0, or None for the constant profile.
    w_min, w_max
        Weights of the most and the least preferred actionable feature, 0 < w_min <= w_max. The
        defaults 1 and 7 are those of the paper's figure 2; it does not state others.
    pi_max, pi_min
        Priors of the most and the least preferred actionable feature, 0 < pi_min <= pi_max < 1. The paper
        does not publish them. The default of pi_max is CARMA's uninformed prior 1/2, that of pi_min 0.1.

    Raises
    ------
    BadInput
        A number outside its range.
    """

    alpha: float | None = 1.0
    w_min: float = 1.0
    w_max: float = 7.0
    pi_max: float = 0.5
    pi_min: float = 0.1

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha < np.inf:
            raise BadInput("alpha", self.alpha, "a number above 0, or None for constant weights")
        if not 0 < self.w_min <= self.w_max < np.inf:
            raise BadInput("w_min, w_max", (self.w_min, self.w_max), "0 < w_min <= w_max")
        if not 0 < self.pi_min <= self.pi_max < 1:
            raise BadInput("pi_min, pi_max", (self.pi_min, self.pi_max), "0 < pi_min <= pi_max < 1")

    @staticmethod
    def named(name: ProfileName, **limits: float) -> CostProfile:
        """``constant``, ``linear``, ``convex`` (alpha 2) or ``concave`` (alpha 1/2).

        Parameters
        ----------
        name
            The profile.
        limits
            ``w_min``, ``w_max``, ``pi_max``, ``pi_min`` where other than the defaults.
        """
        if name != "constant" and name not in ALPHA:
            raise BadInput("profile", name, ", ".join(["constant", *ALPHA]))
        return CostProfile(ALPHA.get(name), **limits)

    def weights(self, scores: Scores) -> FloatArray:
        """w, shape of the scores; infinite where not actionable."""
        first, last = (1.0, 1.0) if self.alpha is None else (self.w_min, self.w_max)
        return self._along(scores, first, last, np.inf)

    def priors(self, scores: Scores) -> FloatArray:
        r"""Bernoulli priors of the mask network, shape of the scores (paper, equation 14).

        :math:`\pi_i = \pi_{min} + (\pi_{max} - \pi_{min}) (1 - t_i^\alpha)`: decreasing from
        pi_max to pi_min. Zero where not actionable (the mask excludes those anyway);
        pi_max for every actionable feature under the constant profile.
        """
        return self._along(scores, self.pi_max, self.pi_max if self.alpha is None else self.pi_min, 0.0)

    def _along(self, scores: Scores, first: float, last: float, masked: float) -> FloatArray:
        """From ``first`` for the most preferred feature to ``last`` for the least preferred, both exactly."""
        height = 0.0 if first == last else scores.reluctance ** (self.alpha or 1.0)
        return np.where(scores.actionable, (1 - height) * first + height * last, masked)


def named_weights(scores: Scores, weights: FloatArray) -> list[dict[str, float]]:
    """Per applicant, the actionable features and their weights, in feature order.

    The keys are the applicant's mask:
    ``[Preferences(actionable=tuple(w), weights=w) for w in named_weights(scores, weights)]``
    are the preferences of a population. For one applicant the list has one entry.
    """
    masks, rows = np.atleast_2d(scores.actionable), np.atleast_2d(weights)
    return [
        {name: float(w) for name, can, w in zip(scores.features, mask, row, strict=True) if can}
        for mask, row in zip(masks, rows, strict=True)
    ]


# Table 4: the order of preference, then 24 times its probability under uniform, causal,
# reverse-causal, privileged and non-privileged. A amount, D duration, I income, S savings.
_TABLE_4 = """
    ADIS 1 1 0 0 4
    ADSI 1 1 0 0 4
    AIDS 1 4 0 0 1
    ASDI 1 1 0 0 1
    AISD 1 4 0 0 1
    ASID 1 1 0 0 1
    DAIS 1 0 1 0 4
    DASI 1 0 1 0 4
    IADS 1 4 0 1 0
    SADI 1 0 1 1 0
    IASD 1 4 0 1 0
    SAID 1 0 1 1 0
    DIAS 1 0 1 0 1
    DSAI 1 0 4 0 1
    IDAS 1 1 0 1 0
    SDAI 1 0 4 1 0
    ISAD 1 1 0 4 0
    SIAD 1 0 1 4 0
    DISA 1 0 1 0 1
    DSIA 1 0 4 0 1
    IDSA 1 1 0 1 0
    SDIA 1 0 4 1 0
    ISDA 1 1 0 4 0
    SIDA 1 0 1 4 0
"""
_LETTERS = {name[0].upper(): name for name in LOAN_ACTIONABLE}
_ROWS = [line.split() for line in _TABLE_4.split("\n") if line.strip()]

RANKING_DISTRIBUTIONS: tuple[RankingDistribution, ...] = get_args(RankingDistribution)
"""The columns of table 4."""

RANKINGS: tuple[tuple[str, ...], ...] = tuple(tuple(_LETTERS[letter] for letter in row[0]) for row in _ROWS)
"""The 24 orders of Loan's actionable features, most preferred first, in the rows' order."""


def ranking_probabilities(distribution: RankingDistribution) -> FloatArray:
    """Probability of each of :data:`RANKINGS`, shape (24,) (paper, table 4).

    ``causal`` favours amount and income among the top two, ``reverse-causal`` duration and
    savings, ``privileged`` income and savings, ``non-privileged`` amount and duration.

    Raises
    ------
    BadInput
        No such distribution.
    """
    if distribution not in RANKING_DISTRIBUTIONS:
        raise BadInput("distribution", distribution, ", ".join(RANKING_DISTRIBUTIONS))
    column = 1 + RANKING_DISTRIBUTIONS.index(distribution)
    return np.array([int(row[column]) for row in _ROWS]) / 24


def sample_rankings(distribution: RankingDistribution, size: int, rng: np.random.Generator) -> IntArray:
    """Draw rankings of Loan's actionable features, independently (paper, appendix B.2).

    Parameters
    ----------
    distribution
        A column of table 4.
    size
        Number of applicants, n.
    rng
        The source of randomness; the same state gives the same rankings.

    Returns
    -------
    array
        Ranks 1..4, shape (n, 4), columns as :data:`LOAN_ACTIONABLE`; for :func:`cut`.
    """
    ranks = np.array([[1 + order.index(name) for name in LOAN_ACTIONABLE] for order in RANKINGS])
    return ranks[rng.choice(len(RANKINGS), size=size, p=ranking_probabilities(distribution))]


def sample_thresholds(
    size: int, rng: np.random.Generator, k: int = len(LOAN_ACTIONABLE), probabilities: ArrayLike | None = None
) -> IntArray:
    """Draw cut-offs for :func:`cut`: rank >= threshold is not actionable (paper, appendix B.2).

    Parameters
    ----------
    probabilities
        Probabilities of the thresholds 2..k+1, shape (k,); None for uniform. A threshold T leaves T - 1
        features.

    Returns
    -------
    array
        Thresholds, shape (size,).

    Raises
    ------
    BadInput
        ``probabilities`` is no distribution over k values.
    """
    p = None if probabilities is None else _distribution("probabilities", probabilities, (k,))
    return rng.choice(np.arange(2, k + 2), size=size, p=p)


def sample_scores(
    features: Sequence[str],
    size: int,
    rng: np.random.Generator,
    categories: int = 5,
    *,
    hard: bool = True,
    probabilities: ArrayLike | None = None,
) -> Scores:
    """Draw Likert scores, independently per feature and applicant (paper, appendices B.2 and C.1).

    Parameters
    ----------
    categories
        smax, the score that means not actionable.
    hard
        Whether smax can be drawn. The paper's Loan experiments draw uniformly from 1..5 with hard
        constraints and from 1..4 without; smax is 5 in both.
    probabilities
        Probabilities of the scores that can be drawn, shape (scores,) or (k, scores) for one distribution
        per feature; None for uniform.

    Raises
    ------
    BadInput
        ``categories`` leaves no score to draw, or ``probabilities`` are no distribution over the scores.
    """
    k, drawn = len(features), categories if hard else categories - 1
    if drawn < 1:
        raise BadInput("categories", categories, "at least 2, or 1 with hard constraints")
    table = np.full(drawn, 1 / drawn) if probabilities is None else np.asarray(probabilities, dtype=float)
    if table.ndim == 1:
        table = np.broadcast_to(table, (k, table.shape[0]))
    table = _distribution("probabilities", table, (k, drawn))
    columns = [rng.choice(np.arange(1, drawn + 1), size=size, p=row) for row in table]
    return Scores(tuple(features), np.stack(columns, axis=-1), categories)


def by_group(member: ArrayLike, of_members: Scores, of_others: Scores) -> Scores:
    """The scores of n applicants, taken from one draw for members of a group and from another for the others.

    For fairness studies (paper, appendix B.2).

    Parameters
    ----------
    member
        Whether each applicant belongs to the group, shape (n,).
    of_members, of_others
        Two draws of scores of n applicants each.

    Raises
    ------
    BadInput
        The draws differ in features, smax or size.
    """
    mask = np.asarray(member, dtype=bool)
    alike = [(scores.features, scores.smax, scores.values.shape) for scores in (of_members, of_others)]
    if alike[0] != alike[1]:
        raise BadInput("scores of two groups", "different features, smax or sizes", "the same for both")
    if of_members.values.shape[:1] != mask.shape:
        raise BadInput("member", f"shape {mask.shape}", f"one per applicant: ({len(of_members.values)},)")
    values = np.where(mask[:, None], of_members.values, of_others.values)
    return Scores(of_members.features, values, of_members.smax)


def _distribution(field: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    table = np.asarray(values, dtype=np.float64)
    good = table.shape == shape and (table >= 0).all() and np.allclose(table.sum(axis=-1), 1)
    if not good:
        raise BadInput(field, table.tolist(), f"probabilities of shape {shape} that sum to 1")
    shares: FloatArray = table / table.sum(axis=-1, keepdims=True)
    return shares


def _known(field: str, names: Collection[str], features: Sequence[str]) -> None:
    for name in names:
        if name not in features:
            raise BadInput(field, name, ", ".join(features))


def _whole(field: str, values: ArrayLike) -> IntArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise BadInput(field, array.tolist(), "whole numbers")
    return array.astype(np.int64)
