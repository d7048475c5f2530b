r"""The functions of causal units: values, slopes, and lines below and above them over an interval.

Every kind is convex below a point, its bend, and concave above it: a sigmoid bends at 0, a logarithm nowhere
(it is concave), a square nowhere (it is convex); a logit is two logarithms. For any slope m, the largest
value of f(z) - m z over an interval is, where f is convex, at an end, and where it is concave, at most what
the tangent at any t allows, :math:`f(t) - m t + (f'(t) - m)(z - t)`; likewise the least value. So the slopes
and the points t may come from floats, and only values and slopes at single points carry rounding.

exp and log are computed here, from operations that IEEE 754 rounds correctly, so their errors are derived
(:data:`~milp_recourse.engine.networks.numerics.CURVE`), not quoted.

l and h are the ends of an argument's interval, m is a slope, z or t an argument; where ``unit``
(:class:`~milp_recourse.engine.networks.work.Units`) is given, m is the number of a causal unit.
"""

from __future__ import annotations

import math

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.numerics import CLOSED, COARSE, CURVE, FARTHEST, LN2, LN2_REST, TINY

RELU, SIGMOID, LOG, SQUARE = range(4)
"""Kinds of causal units."""

INF = math.inf


@compiled
def exp(x):
    r"""e^x for abs(x) <= FARTHEST: :math:`2^k e^r` with abs(r) <= log(2) / 2, by 14 terms of its series."""
    k = math.floor(x / LN2 + 0.5)
    r, total = (x - k * LN2) - k * LN2_REST, 1.0
    for i in range(14, 0, -1):
        total = 1.0 + total * r / i
    return math.ldexp(total, int(k))


@compiled
def log(x):
    """log(x) for x > 0: k log 2 + log m, m next to 1, log m = 2 artanh((m - 1) / (m + 1)) by its series."""
    m, k = math.frexp(x)
    if m * m < 0.5:
        m, k = 2.0 * m, k - 1
    s = (m - 1.0) / (m + 1.0)
    total, square = 0.0, s * s
    for i in range(11, -1, -1):
        total = 1.0 / (2 * i + 1) + total * square
    return k * LN2 + (k * LN2_REST + 2.0 * s * total)


@compiled
def curve(kind, z, edge):
    """f(z), to CURVE relatively; a logarithm goes on below its edge as its tangent, for searches only."""
    if kind == RELU:
        return max(z, 0.0)
    if kind == SQUARE:
        return z * z
    if kind == LOG:
        return log(z) if z >= edge else log(edge) + (z - edge) / edge
    if z >= 0.0:
        return 1.0 / (1.0 + exp(-min(z, FARTHEST)))
    part = exp(max(z, -FARTHEST))
    return part / (1.0 + part)


@compiled
def steepness(kind, z, edge):
    """f'(z), to CURVE relatively."""
    if kind == RELU:
        return 1.0 if z > 0.0 else 0.0
    if kind == SQUARE:
        return 2.0 * z
    if kind == LOG:
        return 1.0 / max(z, edge)
    part = exp(-min(abs(z), FARTHEST))
    return part / ((1.0 + part) * (1.0 + part))


@compiled
def size_at(kind, z, size, edge, line):
    """The rounding error of f(z) is at most the relative slack ``line`` times this, if that of z is at most
    ``line`` times ``size``; inf where z may be below a logarithm's edge or nearly 0."""
    if kind == RELU:
        return size
    if kind == SIGMOID:
        return 1.0 + 0.25 * size
    if kind == SQUARE:
        return 4.0 * size * size
    if not (z >= edge and 8.0 * line * size < z):
        return INF
    return abs(curve(kind, z, edge)) + 2.0 * size / z


@compiled
def _bend(kind):
    """Where a curve bends: it is convex below and concave above."""
    return 0.0 if kind == SIGMOID else -INF if kind == LOG else INF


@compiled
def _beyond(kind, m, z, edge):
    """f(z) - m z, and a bound of its rounding error."""
    v = curve(kind, z, edge)
    return v - m * z, CURVE * (abs(v) + abs(m * z)) + TINY


@compiled
def highest(kind, m, l, h, t, edge):
    """A number that f(z) - m z is nowhere above on [l, h], whatever m and t."""
    bend = _bend(kind)
    return _most(kind, 1.0, m, (l, min(h, bend)), (max(l, bend), h), t, edge)


@compiled
def lowest(kind, m, l, h, t, edge):
    """A number that f(z) - m z is nowhere below on [l, h], whatever m and t."""
    bend = _bend(kind)
    return -_most(kind, -1.0, m, (max(l, bend), h), (l, min(h, bend)), t, edge)


@compiled
def _most(kind, sign, m, convex, concave, t, edge):
    """A number that sign (f(z) - m z) is nowhere above: where that is convex its largest value is at an end,
    and where it is concave it lies below its tangent at t. Either part may be empty."""
    best = -INF
    if convex[0] <= convex[1]:
        for z in convex:
            v, slack = _beyond(kind, m, z, edge)
            best = max(best, sign * v + slack)
    a, b = concave
    if a <= b:
        t = min(max(t, a), b)
        v, slack = _beyond(kind, m, t, edge)
        steep = steepness(kind, t, edge)
        slack += (CURVE * (abs(steep) + abs(m)) + TINY) * (b - a)
        rise = sign * (steep - m)
        best = max(best, sign * v + slack + (rise * (b - t) if rise > 0.0 else -rise * (t - a)))
    return best


@compiled
def chord(kind, l, h, edge):
    """About the slope of the chord over [l, h], the curve's own in the middle of a short one."""
    if h - l > COARSE * (abs(l) + abs(h) + (0.0 if kind == LOG else 1.0)):
        return (curve(kind, h, edge) - curve(kind, l, edge)) / (h - l)
    return steepness(kind, 0.5 * (l + h), edge)


@compiled
def _over_sigmoid(l, h, t):
    """A good slope of a line above the sigmoid on [l, h], near its value at t; and where it touches."""
    if h <= 0.0:
        return chord(SIGMOID, l, h, 0.0), h
    t = min(max(t, 0.0), h)
    if l < 0.0:  # from the end l, the tangent to the concave part; where there is none, the chord
        low, high = 0.0, h
        base = curve(SIGMOID, l, 0.0)
        if steepness(SIGMOID, h, 0.0) * (h - l) > curve(SIGMOID, h, 0.0) - base:
            return chord(SIGMOID, l, h, 0.0), h
        for _ in range(24):
            middle = 0.5 * (low + high)
            if steepness(SIGMOID, middle, 0.0) * (middle - l) > curve(SIGMOID, middle, 0.0) - base:
                low = middle
            else:
                high = middle
        t = max(t, high)
    return steepness(SIGMOID, t, 0.0), t


@compiled
def draw_lines(unit, m, kind, edge, t):
    """Lines above and below a causal unit over the interval of its argument, near its value at t."""
    l, h = unit.low[0, m], unit.high[0, m]
    over = under = min(max(t, l), h)
    if kind == SQUARE:
        above, below = l + h, 2.0 * under
    elif kind == LOG:
        above, below = steepness(LOG, over, edge), chord(LOG, l, h, edge)
    else:  # a sigmoid is symmetric about (0, 1/2): its lower line is the upper one of the mirrored interval
        above, over = _over_sigmoid(l, h, over)
        below, under = _over_sigmoid(-h, -l, -under)
        under = -under
    unit.slope[0, m], unit.rise[0, m] = above, highest(kind, above, l, h, over, edge)
    unit.alpha[0, m], unit.fall[0, m] = below, lowest(kind, below, l, h, under, edge)


@compiled
def distance(unit, m):
    """The largest distance between a causal unit's lines."""
    spread = unit.slope[0, m] - unit.alpha[0, m]
    apart = unit.rise[0, m] - unit.fall[0, m]
    return max(spread * unit.low[0, m], spread * unit.high[0, m]) + apart


@compiled
def is_open(p, unit, k, j):
    """Whether a unit is open: a ReLU whose sign is, a curve whose lines are not the same."""
    if k > 0 or p.kind[j] == RELU:
        return unit.low[k, j] < 0.0 < unit.high[k, j]
    size = unit.size[0, j] * (abs(unit.slope[0, j]) + abs(unit.alpha[0, j]))
    size += abs(unit.rise[0, j]) + abs(unit.fall[0, j])
    return distance(unit, j) > CLOSED * (1.0 + size)
