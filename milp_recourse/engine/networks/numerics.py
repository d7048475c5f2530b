r"""Every rounding constant of the compiled engine, derived from operation counts and machine epsilon.

The model of arithmetic is IEEE double precision, round to nearest, unit roundoff :math:`u = 2^{-53}`. A sum
of products in which every term passes through at most n roundings is computed with an error of at most

.. math:: \gamma_n \sum |terms|, \qquad \gamma_n = n u / (1 - n u)

(Higham 2002, section 3.1, https://doi.org/10.1137/1.9780898718027), whatever the order. "Sum of absolute
terms" is itself computed in doubles, hence too small by the same relative error at most; counting every
operation twice, as :func:`~milp_recourse.problem.enclosure.gamma` does, covers that (for n u < 1/4, hence for
every problem that fits into memory). numba compiles without fast-math; a fused multiply-add has one rounding
where this count has two. Underflow is not covered by the model: products of doubles below 2^-1022 lose up to
2^-1074 each, and :func:`slacks` adds a term far above what all products of a search could lose.

``line`` is at least 78 u and ``dual`` at least 160 u. Where a bound is made of several results, a small whole
multiple of a slack, or of the size it belongs to, stands at the place of use. Proofs rest on these:

* ``rows.residual_lines``: a square w (near^2 - n^2) is off by at most w (2 near d + 6 u S^2), where d <= 4
  u S is how far off near is and S = near + abs(n) + size: below the slack times w S^2. The linear part adds
  two roundings of at most its size, which counts four times. The sum over residuals is counted in the
  slack.
* ``elementary.size_at``: for abs(z) <= size, z^2 is off by at most line size^2 (2 + line) and its own
  rounding, below line times 4 size^2; log z, where z is at least 8 times its error, by at most the error
  times 8 / (7 z), below 2 / z, and its own error, line times abs(log z).
* ``node.tighten``: a lever's least term and its term elsewhere are each off by at most the slack times the
  largest sum of absolute terms, hence twice that.
* ``node._within_ball``: each residual adds its line times a rate, hence at most its size and noise times
  the rate to the absolute terms; the ball's reach is a root of two sums of as many terms as there are
  residuals, counted like them.
* ``rows.cut_by_row``: the row's largest value is a line at a corner, whose slack is in the row's
  constant. The quotient is one rounding, ``up``; the difference two more, 2 u of the numbers in it, where
  ``up`` - 1 is 8 u.
* ``levers.contract``: what is left of the budget is a difference of sums of costs, each off by at most
  ``cost``; what an interval costs is solved for its end with a rounding per ``up``.
* ``levers.relevel``: a size between knots sees five roundings of positive terms, a slope one more, where
  ``cost`` has at least 48, by which slopes and their ratio are lowered. So are the constants of the chord and
  of what it costs, by as much of the terms they are differences of (``reach``, and what that costs at most);
  these have at most 20 roundings.
* ``levers._reached``: the size has two roundings and the quotient three, ``up`` twice each; the sum of
  distances is off by less than ``cost`` of the last.
* ``semidefinite.Relaxation.proven``: a term of a form passes what *line* counts, and at most 4 products and
  as many additions as there are multipliers; the factor's residual is computed, not assumed. Gaps between
  steps are narrower there by a thousandth of a step, far more than values on steps are off.
* ``search._node``: the target less what acting costs anyway, and back, within ``cost`` of both.
* ``problem_arrays.Lowered``: the ceiling is a sum of costs, each off by at most the slack, times a
  factor that makes it more than any action costs; 4 is more than enough.
* ``linear_bounds.relax``: the chord's slope is rounded down to a multiple of 1 / CHORD; the upper line's
  constant is the larger of what the two ends ask for (two roundings, ``up``), and a step of the slope more
  over the width.

Those of ``proof_search`` only decide whether a leaf is tried: the checker's arithmetic is rational. Those
of ``w.row.inside`` (``rows.keep_row``), ``descent`` and ``rows.ball_slack`` say how far inside a point is to
be; what is found is judged exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from milp_recourse.engine.compiling import by_reference
from milp_recourse.problem.enclosure import gamma

ROUNDOFF = 2.0**-53
"""Unit roundoff of a double."""

TINY = 2.0**-900
"""Added to every slack: above 2^60 products that underflow, each times 2^80; ``program/magnitude.py``
refuses networks that multiply by more on the way to the logit."""


BELOW = 1.0 - 8 * ROUNDOFF
"""A factor just below one."""

PIVOT, FINE, CLOSE, SAME, COARSE = 2.0**-46, 2.0**-48, 2.0**-36, 2.0**-30, 2.0**-20
"""When guesses are good enough: a pivot that vanishes, a complementarity that has converged, a change of a
bound that is none, coordinates and costs that are the same, a change that is too small to matter. No proof
rests on them: where SAME rounds the end of a box to a whole value, it keeps a value that is just outside; and
where COARSE decides whether a leaf of a proof gets more room, the proof is checked without it."""

HUGE = 2.0**200
"""Sums over multipliers that reach this prove nothing. Coordinates are at most about 1, so no product of a
smaller sum with one of them overflows; a smaller limit would only lose proofs."""


LN2, LN2_REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 in two parts (fdlibm, e_log.c): the first has 21 trailing zeros, so that its product with an exponent
is exact; together they are off by less than 2^-85."""

FARTHEST = 700.0
"""exp(-700) < TINY, and exp(700) does not overflow."""

CLOSED = 2.0**-42
"""A curve whose lines are nearer than this is a line. No proof rests on it."""


CURVE = gamma(128)
r"""Relative error of the curves' values and slopes, :mod:`milp_recourse.engine.networks.elementary`: 256 u.

*exp*. k log 2 is subtracted in two parts; the first product is exact and so is the first difference
(Sterbenz), the second costs less than u in r, for abs(k) <= 1010. Each of the 14 steps of Horner's rule
rounds three times; the terms' absolute sum is at most e^(2 abs(r)) <= 2 times the value: 84 roundings. What
the series leaves out, r^15 / 15!, is below 0.01 u. At most 88 u.

*log*. m - 1 is exact (Sterbenz), s has two roundings and its square five; each of the 12 steps rounds three
times, and all terms have one sign: 45 roundings; what is left out, s^24 / 25 with abs(s) <= 0.172, is below
0.001 u. With k != 0 the sum is at least half of abs(k) log 2 and at least as large as log m: three more
additions and products, each at most doubled. At most 104 u.

*sigmoid*. One exp, whose share of the value is at most 1, an addition and a division: 180 u at most; its
slope has the square of the denominator: 250 u.
"""


@by_reference
class Slacks(NamedTuple):
    """Relative slacks; each is multiplied by the sum of absolute terms that it belongs to.

    Attributes
    ----------
    line
        Of a line through all layers (or one of its layers, which is shorter), and of a point's logit.
    budget
        Of the largest value of a line within a budget.
    dual
        Of a Lagrangian bound.
    cost
        Of a point's cost.
    up
        A factor just above one: a result of at most two roundings, times this, is at least the exact one.
        (Shares of the maximum are divided by a sum of d terms times this, and may sum to 1 + d u: ``dual``
        and ``budget`` count every operation twice, which covers that.)
    tiny
        Absolute: covers underflow.
    """

    line: float
    budget: float
    dual: float
    cost: float
    up: float
    tiny: float


def slacks(
    widths: Sequence[int],
    inputs: int,
    columns: int,
    rows: int,
    units: int,
    causes: int,
    curves: int,
    steps: int = 0,
) -> Slacks:
    """The slacks for a network.

    Parameters
    ----------
    widths
        Units of every hidden layer.
    inputs
        Columns of the classifier's first layer: what the logit at the factual sums over.
    columns
        Columns of the search, one for each numeric lever and label.
    rows
        Most rows of a Lagrangian.
    units
        Causal units: ReLUs of structural equations, each of which may feed the next.
    causes
        Roundings that composing the structural equations has cost a term.
    curves
        Causal units that are not ReLUs.
    steps
        Roundings that values of levers with steps cost whose decimals are no doubles.

    Notes
    -----
    A value on a lever's steps is a sum of two numbers, each rounded once, of which neither is more than twice
    as large: at most 3 roundings, which *line* counts as 4, and *budget* as 6 in a square. Those of ``steps``
    (:mod:`~milp_recourse.engine.networks.lever_arrays`) are counted beside them in the same way.

    *line*. A term of a back-substituted line passes, in each layer of width n, one product with a weight, one
    with a slope, and at most n additions; its constant n additions of three products more. Bending a line
    (``bent_lines``) sums its terms over the columns twice, in pairs, and takes less than 16 steps more for
    each coefficient. The first layer's weights and its offset carry the roundings of their own making: at
    most inputs + 4 (differences of labels' columns, the logit at the factual, an argument at the factual) and
    those of composing causes. A path through the causal units crosses each once, with a product with a
    coefficient, one with a slope and at most units + 1 additions. Layer 2's lines are summed as middles and
    half differences of two slopes: four roundings more, of terms as large as the larger of the two. Reading
    the line at a point, or at the corner of a box, is a product and columns + 1 additions. A tangent to the
    plausibility ball sums over the residuals, at most as many as columns, with five products each. A curve's
    value at a point has the error :data:`CURVE`, and so has a path through it.

    *budget*. theta * C + sum over levers of g u - theta c(u): a cost has three parts, each of at most four
    products; columns + 4 additions. The line's terms g u are at most those that *line* counts, but for what a
    chord's slope is rounded by, 2^-32 of them, and all is counted twice.

    *dual*. lambda * rows summed (rows + 1), then as *budget*. A lever's least term is computed at a rounded
    minimiser. Where the term is quadratic that raises it by a square of a rounding error only; elsewhere the
    minimum is at an end or a kink, or at a whole value next to such a minimiser.
    """
    layers = sum(4 * n + 4 * columns + 24 for n in widths) + units * (4 * units + 8)
    line = layers + inputs + 3 * columns + causes + 256 * curves + 36 + steps
    levers = columns + 30 + 2 * steps  # a sum of the levers' terms
    cost, dual, up = gamma(levers), gamma(levers + rows + 4), 1.0 + 8 * ROUNDOFF
    return Slacks(line=gamma(line), budget=cost, dual=dual, cost=cost, up=up, tiny=TINY)
