r"""How far the float32 evaluation of a network can be from its exact logit.

Let :math:`u = 2^{-24}` and :math:`\gamma_n = n u / (1 - n u)`. A float32 dot product of n terms
plus a bias, summed in any order and with or without fused multiply-add, has every term off by
at most n + 1 roundings (Higham 2002, section 3.1):

.. math:: |fl(W \hat a + b) - (W \hat a + b)| \le \gamma_{n+1} (|W| |\hat a| + |b|).

With :math:`|\hat a - a| \le e` for the layer's input this gives the output error

.. math:: e' = |W| e + \gamma_{n+1} (|W| (|a| + e) + |b|),

which starts with the cast of the input, :math:`e = u' |x|`, :math:`u' = 2^{-23}` (the cast to
double and then to float32), and which the ReLU, being 1-Lipschitz and exact, does not enlarge.
Underflow adds at most :math:`(n + 1) 2^{-149}` per unit. |a| comes from interval bounds over a
box of inputs; the bound itself is evaluated in float64 and enlarged by a factor
:math:`1 + 10^{-9}` that covers its own rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.recipe.training import deployed_logits
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.network import ReluNetwork

_UNIT = 2.0**-24
_TINY = 2.0**-149
_OWN_ROUNDING = 1 + 1e-9

LARGEST_MARGIN = 1e-2
"""The margin covers the proven bound unless it would be larger than this and change the problem visibly. Then
it is chosen by the observed error."""


@dataclass(frozen=True)
class MarginChoice:
    """A margin and the error bounds that it was chosen by, in units of the logit.

    Attributes
    ----------
    margin
        A power of two.
    rigorous
        Proven bound of the float32 error over the box.
    observed
        Largest error seen at random points of the box.
    covers_rigorous
        Whether ``margin >= rigorous``: then an exactly accepted action cannot be refused by
        the deployed model.
    """

    margin: float
    rigorous: float
    observed: float
    covers_rigorous: bool

    def report(self, points: int) -> dict[str, float]:
        """The entries of a report; ``points`` is the number of points at which the error was observed."""
        return {
            "chosen": self.margin,
            "rigorous_float32_bound": self.rigorous,
            "largest_observed_error": self.observed,
            "observed_points": points,
            "covers_rigorous": self.covers_rigorous,
        }


def forward_error_bound(network: ReluNetwork, low: FloatArray, high: FloatArray) -> FloatArray:
    """Bound |float32 logit - exact logit| over boxes of raw inputs.

    Parameters
    ----------
    low, high
        Shape (..., inputs), finite.

    Returns
    -------
    FloatArray
        Logit units, shape (...); see the module's formula.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    error = 2 * _UNIT * np.maximum(abs(low), abs(high)) + _TINY
    for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        if k > 0:
            error = np.where(high + error <= 0.0, 0.0, error)  # inactive in float32 too: exactly 0
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        size, terms = np.maximum(abs(low), abs(high)), w.shape[1] + 1
        gamma = terms * _UNIT / (1 - terms * _UNIT)
        steep = abs(w).T
        error = error @ steep + gamma * ((size + error) @ steep + abs(b)) + terms * _TINY
        positive, negative = np.maximum(w, 0.0).T, np.minimum(w, 0.0).T
        slack = 1e-12 * (size @ steep + abs(b))  # float64 rounding of the next two lines
        low, high = (
            low @ positive + high @ negative + b - slack,
            high @ positive + low @ negative + b + slack,
        )
    return error[..., 0] * _OWN_ROUNDING


def subdivided_error_bound(
    network: ReluNetwork, low: FloatArray, high: FloatArray, target: float, boxes: int = 400_000
) -> float:
    """The bound over one box, improved by halving the box until the bound of every part is below ``target``.

    Interval bounds of |a| shrink with the box. Each part with a larger bound is halved along the input that
    contributes most to the width of the first layer's intervals.

    Parameters
    ----------
    low, high
        Shape (inputs,).
    target
        Logit units; a part with a bound below it is not halved.
    boxes
        Stop after this many parts, and return what is proven by then.

    Returns
    -------
    float
        The largest bound over the parts: valid on the whole box.
    """
    low, high = np.array(low, dtype=np.float64)[None], np.array(high, dtype=np.float64)[None]
    reach, worst, count = abs(network.weights[0]).sum(axis=0), 0.0, 1
    while True:
        bound = forward_error_bound(network, low, high)
        over = bound > target
        worst = max(worst, float(bound[~over].max(initial=0.0)))
        count += int(over.sum())
        if not over.any() or count > boxes:
            return max(worst, float(bound.max()))
        low, high = low[over], high[over]
        index = np.arange(len(low)), np.argmax((high - low) * reach, axis=1)
        middle = (low[index] + high[index]) / 2
        left, right = high.copy(), low.copy()
        left[index] = right[index] = middle
        low, high = np.concatenate([low, right]), np.concatenate([left, high])


def observed_error(
    network: ReluNetwork, low: FloatArray, high: FloatArray, points: int, rng: np.random.Generator
) -> float:
    """Largest |float32 logit - exact logit| at uniform random points of the box.

    The logit is computed in float64, whose own error is nine digits smaller; at the ten points with the
    largest errors it is computed exactly.
    """
    rows = rng.uniform(low, high, (points, len(low)))
    logits = deployed_logits(network, rows)
    errors = abs(logits - network.evaluate(rows)[:, 0])
    worst = np.argsort(errors)[-10:]
    exact = [float(network.enclose([Enclosure.of(float(v)) for v in rows[i]])[0].midpoint) for i in worst]
    return float(np.max(abs(logits[worst] - exact)))


def margin_over(
    network: ReluNetwork,
    box: tuple[FloatArray, FloatArray],
    points: int,
    rng: np.random.Generator,
    boxes: int = 400_000,
) -> MarginChoice:
    """Choose the margin for inputs in a box, given by its lower and upper ends.

    ``points`` are observed, and ``boxes`` is the most parts in :func:`subdivided_error_bound`.
    """
    target = 2.0 ** np.floor(np.log2(LARGEST_MARGIN))
    rigorous = subdivided_error_bound(network, *box, target, boxes)
    return choose_margin(rigorous, observed_error(network, *box, points, rng))


def choose_margin(rigorous: float, observed: float) -> MarginChoice:
    """The smallest power of two that covers the proven bound, if it is at most 1e-2.

    Otherwise the smallest power of two that is at least 16 times the observed error.

    Examples
    --------
    >>> choose_margin(0.003, 1e-6).margin == 2**-8
    True
    >>> choose_margin(0.3, 1e-6).covers_rigorous
    False
    """
    margin = 2.0 ** math.ceil(math.log2(rigorous))
    if margin > LARGEST_MARGIN:
        margin = 2.0 ** math.ceil(math.log2(16 * observed))
    return MarginChoice(margin, rigorous, observed, margin >= rigorous)
