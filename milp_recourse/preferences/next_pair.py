r"""Which two recourses to ask about next.

All strategies choose among pairs of a pool of certified optima, by the costs of the pool under weights that
are drawn from those still possible. With cost C(s, i) of recourse i under weights s, p(s) the probability of
answering i rather than j under s, and V(s) the least cost of the pool:

==============  ========================================================================================
information     the pair whose answer is expected to say most about the weights: the mutual information
                :math:`H(\bar p) - \overline{H(p)}`
regret          the pair after whose answer weights that are still possible differ least: the expected
                regret of taking, under one of them, the recourse that is cheapest under another. To the pool
                come the optima for those who would choose each of the two, and so on, a few times (query
                iteration, Viappiani and Boutilier 2010). Of pairs that save at least half as much as the
                best, those whose answers are nearly as likely go first: the best one alone mostly sets a few
                unlikely weights aside, which says less about the others
pear            the pair of least expected regret if the person takes the better one of the two: the
                expected utility of selection (De Toni et al. 2024)
minimax         the recommended recourse against the one that is cheapest under the weights of its largest
                regret, which is proven (Boutilier et al. 2006, current-solution strategy)
margin          the pair whose two optima are furthest apart: the largest m such that each is cheaper by m
                under its own weights (Teso et al. 2016, set-wise max-margin with two elements)
random          any pair
==============  ========================================================================================

Each is exact over the pool: all pairs are compared. The pool is as good as its draws, except for ``regret``,
and for ``minimax``, whose second recourse is the optimum at the worst weights there are.

References
----------
De Toni et al. (2024), https://openreview.net/forum?id=8sg2I9zXg0; Boutilier et al. (2006),
https://doi.org/10.1016/j.artint.2006.02.003; Teso et al. (2016),
https://www.ijcai.org/Proceedings/16/Papers/301.pdf; Viappiani and Boutilier (2010), "Optimal Bayesian
recommendation sets and myopically optimal choice query sets"."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Strategy = Literal["information", "regret", "pear", "minimax", "margin", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Pair = tuple[int, int]

ALIKE = 1e-4
"""Recourses whose costs differ by at most this share of the least, whatever the weights, are not compared.
Where one is that near the cheapest under all drawn weights, the next pair is about the weights of the largest
regret, which are unlikely but possible."""

EVEN = 0.1
"""Answers are nearly as likely as each other where their probabilities are this close to a half."""


def next_pair(
    strategy: Strategy,
    weights: FloatArray,
    parts: FloatArray,
    noise: float,
    asked: Collection[Pair],
    rng: np.random.Generator,
) -> Pair | None:
    """Two rows of ``parts``, the first the smaller number; None if no answer is in doubt.

    Parameters
    ----------
    weights
        Drawn from those that are possible, shape (draws, levers).
    parts
        phi of each recourse of the pool, shape (recourses, levers).
    noise
        Scale of a person's errors, in units of cost; 0 for none.
    asked
        Pairs that were asked already.
    """
    costs = weights @ parts.T
    least = np.maximum(costs.min(axis=1, keepdims=True), 1e-300)
    every = [(i, j) for j in range(len(parts)) for i in range(j) if (i, j) not in asked]
    pairs = np.array(every, dtype=np.int64).reshape(-1, 2)
    more = costs[:, pairs[:, 1]] - costs[:, pairs[:, 0]]
    p, apart = _first(more, noise), more / least
    open_ = np.flatnonzero(_doubtful(p) & (np.abs(apart).max(axis=0) > ALIKE))
    if not len(open_):
        return None
    pairs, p, apart = pairs[open_], p[:, open_], apart[:, open_]
    if strategy == "random":
        best = int(rng.integers(len(pairs)))
    else:
        if strategy == "information":
            score = _entropy(p.mean(axis=0)) - _entropy(p).mean(axis=0)
        elif strategy == "margin":
            score = np.minimum(apart.max(axis=0), -apart.min(axis=0))
        elif strategy == "pear":
            score = -((costs / least)[:, pairs[:, 1]] - p * apart).sum(axis=0)
        else:
            scaled, taken = weights / least, parts[costs.argmin(axis=1)]
            score = -_after(p, scaled, taken)
        score = np.round(score, 12)
        best = int(score.argmax())
        if strategy == "regret":
            unasked = -float(scaled.sum(axis=0) @ taken.sum(axis=0)) / len(weights)
            even = np.abs(p.mean(axis=0) - 0.5) <= EVEN
            even &= score >= (score[best] + unasked) / 2
            best = int(np.where(even, score, -np.inf).argmax()) if even.any() else best
    return int(pairs[best, 0]), int(pairs[best, 1])


def chosen_by(weights: FloatArray, pool: FloatArray, pair: FloatArray, noise: float) -> FloatArray | None:
    """For each of two recourses the mean of w / V(w) over the weights under which it is chosen, scaled to
    mean 1: their optimum has the least expected regret for these. None if no answer is in doubt.

    Parameters
    ----------
    pool, pair
        phi of the recourses that V is the least cost of, and of the two.
    """
    p = _first(weights @ (pair[1] - pair[0]), noise)
    if not _doubtful(p):
        return None
    scaled = weights / np.maximum((weights @ pool.T).min(axis=1, keepdims=True), 1e-300)
    found: FloatArray = np.stack([p, 1 - p]) @ scaled
    means: FloatArray = found.mean(axis=1, keepdims=True)
    return found / means


def _first(more: FloatArray, noise: float) -> FloatArray:
    """The probability that the first of a pair is called easier, where the second costs ``more``."""
    if noise:
        return 1 / (1 + np.exp(-np.clip(more / noise, -500, 500)))
    return np.where(more > 0, 1.0, np.where(more < 0, 0.0, 0.5))


def _doubtful(p: FloatArray) -> NDArray[np.bool_]:
    """Whether both answers are possible, by the probabilities of the first, a row per drawn weights."""
    mean: FloatArray = p.mean(axis=0)
    return (mean > 1e-9) & (mean < 1 - 1e-9)


def _entropy(p: FloatArray) -> FloatArray:
    q = np.clip(np.stack([p, 1 - p]), 1e-300, 1.0)
    entropy: FloatArray = -(q * np.log2(q)).sum(axis=0)
    return entropy


def _after(p: FloatArray, scaled: FloatArray, taken: FloatArray) -> FloatArray:
    """Of each pair (columns of ``p``), what is taken under one of the weights, relative to what is best under
    another, once the pair is answered: summed over weights."""
    found = np.zeros(p.shape[1])
    for q in (p.T, 1 - p.T):
        found += ((q @ scaled) * (q @ taken)).sum(axis=1) / q.sum(axis=1)
    return found
