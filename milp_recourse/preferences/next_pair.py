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

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Strategy = Literal["information", "regret", "pear", "minimax", "margin", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Pair = tuple[int, int]

ALIKE = 1e-4
"""Recourses whose costs differ by at most this share of the least, whatever the weights, are not compared."""

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
    drawn = _Drawn(costs / least, weights / least, parts[costs.argmin(axis=1)])
    every, ratios = ((i, j) for j in range(costs.shape[1]) for i in range(j)), drawn.ratios
    pairs = [
        (i, j) for i, j in every if (i, j) not in asked and np.abs(ratios[:, i] - ratios[:, j]).max() > ALIKE
    ]
    if strategy == "random":
        open_ = [pair for pair in pairs if _doubtful(_first(costs, pair, noise))]
        return open_[int(rng.integers(len(open_)))] if open_ else None
    score = _SCORES["regret" if strategy == "minimax" else strategy]
    found: list[tuple[float, bool, Pair]] = []
    for pair in pairs:
        p = _first(costs, pair, noise)
        if _doubtful(p):
            found.append((round(score(p, drawn, pair), 12), abs(p.mean() - 0.5) <= EVEN, pair))
    best = max(found, key=lambda one: one[0], default=None)
    if best is not None and strategy == "regret":
        unasked = -float(drawn.scaled.sum(axis=0) @ drawn.taken.sum(axis=0)) / len(weights)
        even = [one for one in found if one[1] and one[0] >= (best[0] + unasked) / 2]
        best = max(even, key=lambda one: one[0], default=best)
    return None if best is None else best[2]


def chosen_by(weights: FloatArray, pool: FloatArray, pair: FloatArray, noise: float) -> FloatArray | None:
    """For each of two recourses the mean of w / V(w) over the weights under which it is chosen, scaled to
    mean 1: their optimum has the least expected regret for these. None if no answer is in doubt.

    Parameters
    ----------
    pool, pair
        phi of the recourses that V is the least cost of, and of the two.
    """
    p = _first(weights @ pair.T, (0, 1), noise)
    if not _doubtful(p):
        return None
    scaled = weights / np.maximum((weights @ pool.T).min(axis=1, keepdims=True), 1e-300)
    found = np.stack([p, 1 - p]) @ scaled
    return found / found.mean(axis=1, keepdims=True)


@dataclass(frozen=True)
class _Drawn:
    """Of each of the drawn weights (rows): the costs of the pool relative to V, the weights divided by V, and
    phi of the recourse that is cheapest under them."""

    ratios: FloatArray
    scaled: FloatArray
    taken: FloatArray


def _first(costs: FloatArray, pair: Pair, noise: float) -> FloatArray:
    """The probability that the first of a pair is called easier, under each of the weights."""
    more = costs[:, pair[1]] - costs[:, pair[0]]
    if noise:
        return 1 / (1 + np.exp(-np.clip(more / noise, -500, 500)))
    return np.where(more > 0, 1.0, np.where(more < 0, 0.0, 0.5))


def _doubtful(p: FloatArray) -> bool:
    """Whether both answers are possible."""
    return bool(1e-9 < p.mean() < 1 - 1e-9)


def _information(p: FloatArray, drawn: _Drawn, pair: Pair) -> float:
    return float(_entropy(p.mean(keepdims=True))[0] - _entropy(p).mean())


def _entropy(p: FloatArray) -> FloatArray:
    q = np.clip(np.stack([p, 1 - p]), 1e-300, 1.0)
    return -(q * np.log2(q)).sum(axis=0)


def _regret(p: FloatArray, drawn: _Drawn, pair: Pair) -> float:
    left, right = ((q @ drawn.scaled) @ (q @ drawn.taken) / q.sum() for q in (p, 1 - p))
    return -float(left + right)


def _selection(p: FloatArray, drawn: _Drawn, pair: Pair) -> float:
    return -float((p * drawn.ratios[:, pair[0]] + (1 - p) * drawn.ratios[:, pair[1]]).sum())


def _margin(p: FloatArray, drawn: _Drawn, pair: Pair) -> float:
    more = drawn.ratios[:, pair[1]] - drawn.ratios[:, pair[0]]
    return float(min(more.max(), -more.min()))


_SCORES: dict[str, Callable[[FloatArray, _Drawn, Pair], float]] = {
    "information": _information,
    "regret": _regret,
    "pear": _selection,
    "margin": _margin,
}
