r"""Which two recourses to ask about next.

All strategies choose among pairs of a pool of certified optima, by the costs of the pool under weights that
are drawn from those still possible. With cost C(s, i) of recourse i under weights s, p(s) the probability of
answering i rather than j under s, and V(s) the least cost:

==============  ========================================================================================
information     the pair whose answer is expected to say most about the weights: the mutual information
                :math:`H(\bar p) - \overline{H(p)}`
regret          the pair after whose answer the best recourse for what is then known has the least
                expected regret, relative to V
pear            the pair of least expected regret if the person takes the better one of the two: the
                expected utility of selection (De Toni et al. 2024)
minimax         the recommended recourse against the one that is cheapest under the weights of its largest
                regret, which is proven (Boutilier et al. 2006, current-solution strategy)
margin          the pair whose two optima are furthest apart: the largest m such that each is cheaper by m
                under its own weights (Teso et al. 2016, set-wise max-margin with two elements)
random          any pair
==============  ========================================================================================

Each is exact over the pool: all pairs are compared. The pool is as good as its draws, except for ``minimax``,
whose second recourse is the optimum at the worst weights there are.

References
----------
De Toni et al. (2024), https://openreview.net/forum?id=8sg2I9zXg0; Boutilier et al. (2006),
https://doi.org/10.1016/j.artint.2006.02.003; Teso et al. (2016),
https://www.ijcai.org/Proceedings/16/Papers/301.pdf; Viappiani and Boutilier (2010), "Optimal Bayesian
recommendation sets and myopically optimal choice query sets"."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Strategy = Literal["information", "regret", "pear", "minimax", "margin", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Pair = tuple[int, int]


def next_pair(
    strategy: Strategy,
    costs: FloatArray,
    least: FloatArray,
    noise: float,
    asked: Collection[Pair],
    rng: np.random.Generator,
) -> Pair | None:
    """Two columns of ``costs``, the first the smaller number; None if no answer is in doubt.

    Parameters
    ----------
    costs
        Cost of each recourse of the pool (columns) under each of the drawn weights (rows).
    least
        V, the least cost under each of the drawn weights, above 0.
    noise
        Scale of a person's errors, in units of cost; 0 for none.
    asked
        Pairs that were asked already.
    """
    relative = costs / least[:, None]
    best, best_score = None, -np.inf
    pairs = [(i, j) for j in range(costs.shape[1]) for i in range(j) if (i, j) not in asked]
    if strategy == "random":
        open_ = [pair for pair in pairs if _doubtful(_first(costs, pair, noise))]
        return open_[int(rng.integers(len(open_)))] if open_ else None
    score = _SCORES["regret" if strategy == "minimax" else strategy]
    for pair in pairs:
        p = _first(costs, pair, noise)
        if _doubtful(p) and (found := score(p, relative, pair)) > best_score + 1e-12:
            best, best_score = pair, found
    return best


def _first(costs: FloatArray, pair: Pair, noise: float) -> FloatArray:
    """The probability that the first of a pair is called easier, under each of the weights."""
    more = costs[:, pair[1]] - costs[:, pair[0]]
    if noise:
        return 1 / (1 + np.exp(-np.clip(more / noise, -500, 500)))
    return np.where(more > 0, 1.0, np.where(more < 0, 0.0, 0.5))


def _doubtful(p: FloatArray) -> bool:
    """Whether both answers are possible."""
    return bool(1e-9 < p.mean() < 1 - 1e-9)


def _information(p: FloatArray, relative: FloatArray, pair: Pair) -> float:
    return float(_entropy(p.mean(keepdims=True))[0] - _entropy(p).mean())


def _entropy(p: FloatArray) -> FloatArray:
    q = np.clip(np.stack([p, 1 - p]), 1e-300, 1.0)
    return -(q * np.log2(q)).sum(axis=0)


def _regret(p: FloatArray, relative: FloatArray, pair: Pair) -> float:
    return -float((p @ relative).min() + ((1 - p) @ relative).min())


def _selection(p: FloatArray, relative: FloatArray, pair: Pair) -> float:
    return -float((p * relative[:, pair[0]] + (1 - p) * relative[:, pair[1]]).sum())


def _margin(p: FloatArray, relative: FloatArray, pair: Pair) -> float:
    more = relative[:, pair[1]] - relative[:, pair[0]]
    return float(min(more.max(), -more.min()))


_SCORES: dict[str, Callable[[FloatArray, FloatArray, Pair], float]] = {
    "information": _information,
    "regret": _regret,
    "pear": _selection,
    "margin": _margin,
}
