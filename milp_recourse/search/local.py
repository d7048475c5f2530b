r"""Local search over linear regions.

Where every ReLU keeps its sign the logit is affine in the action, so the cheapest accepted point
of that region is a small convex problem. Descent solves it, crosses the facet it stopped at, and
repeats. Curves (sigmoid, log, ...) are linearised at the current point and the step is kept only
if the true functions agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.curves import CURVES
from milp_recourse.bounds.tape import Tape
from milp_recourse.search.convex import ConvexProblem, Quadratic, minimise

Array = NDArray[np.float64]

_CLEAR = 1e-10  # relative distance kept from the threshold, so that exact judgement agrees


@dataclass(frozen=True)
class Region:
    """The program near a point: sign constraints and first-order forms in the actions.

    Attributes
    ----------
    pre
        Jacobian of every ReLU argument and its value at 0, (k, d) and (k,).
    signs
        +1 where the ReLU is on, -1 where off.
    logit
        Gradient and value at 0.
    atoms
        Jacobian of the atoms and value at 0.
    """

    pre: Array
    pre_offset: Array
    signs: Array
    logit: Array
    logit_offset: float
    atoms: Array
    atoms_offset: Array


def region(tape: Tape, a: Array, flipped: frozenset[int] = frozenset()) -> Region:
    """Linearise at ``a``, with some ReLUs (by their number) taken on the other side."""
    d, n = len(a), tape.atoms
    v = tape.evaluate(a[None])[0]
    jac, off = np.zeros((n, d)), np.zeros(n)
    jac[tape.actions] = np.eye(d)
    pres: list[tuple[Array, float, float]] = []

    def sign_of(value: float) -> float:
        sign = 1.0 if value > 0 else -1.0
        return -sign if len(pres) in flipped else sign

    for k, unit, row, offset in tape.units:
        g, o = row[0] @ jac, row[0] @ off + offset[0]
        if unit.function == "relu":
            sign = sign_of(float(g @ a + o))
            pres.append((g, float(o), sign))
            if sign > 0:
                jac[k], off[k] = g, o
        elif unit.function != "indicator":
            slope = _slope(unit.function, float(g @ a + o))
            jac[k] = slope * g
            off[k] = v[k] - jac[k] @ a
        else:
            off[k] = v[k]
    j, o = tape.first @ jac, tape.first @ off + tape.first_offset
    for w, b in zip(tape.weights[1:], tape.biases[1:], strict=True):
        keep = np.zeros(len(o))
        for i, value in enumerate(j @ a + o):
            sign = sign_of(float(value))
            pres.append((j[i], float(o[i]), sign))
            keep[i] = sign > 0
        j, o = w @ (keep[:, None] * j), w @ (keep * o) + b
    pre = np.array([p for p, _, _ in pres]).reshape(-1, d)
    return Region(
        pre,
        np.array([o_ for _, o_, _ in pres]),
        np.array([s for _, _, s in pres]),
        j[0],
        float(o[0]),
        jac,
        off,
    )


def _slope(function: str, x: float) -> float:
    return float(CURVES[function].derivative(np.array(x)))


def feasible(tape: Tape, a: Array, hair: float = _CLEAR) -> NDArray[np.bool_]:
    """Which rows of ``a`` (n, d) are feasible in floats, with a hair to spare (below 0: lacking)."""
    v = tape.evaluate(a)
    clear = hair * (1 + abs(tape.threshold))
    lenient = max(0.0, -hair)
    with np.errstate(invalid="ignore"):
        good = (tape.logits(v) >= tape.threshold + clear) & (tape.row_excess(v) <= lenient)
        return good & (tape.ball_excess(v) <= lenient) if tape.program.ball else good


def descend(
    tape: Tape, start: Array, hops: int = 12, low: Array | None = None, high: Array | None = None
) -> Array | None:
    """The best feasible point found by descent from ``start`` (any point), shape (d,), or None.

    Parameters
    ----------
    hops
        How many neighbouring regions to try.
    low, high
        Action box; the tape's own where not given.
    """
    low = tape.lower if low is None else low
    high = tape.upper if high is None else high
    with np.errstate(all="ignore"):  # at the end of a curve's domain
        return _descend(tape, start, hops, low, high)


def _descend(tape: Tape, start: Array, hops: int, low: Array, high: Array) -> Array | None:
    best: Array | None = start if feasible(tape, start[None])[0] else None
    best_cost = float(tape.costs(tape.evaluate(start[None]))[0]) if best is not None else np.inf
    tried: set[frozenset[int]] = set()
    current = start
    flipped: frozenset[int] = frozenset()
    for _ in range(hops):
        here = region(tape, current, flipped)
        if not (np.isfinite(here.atoms).all() and np.isfinite(here.atoms_offset).all()):
            break
        pattern = frozenset(np.flatnonzero(here.signs > 0).tolist())
        if pattern in tried:
            break
        tried.add(pattern)
        found = _solve_region(tape, here, current, low, high)
        if found is not None:
            moved = _true_step(tape, current if best is None else best, found)
            if moved is not None:
                cost = float(tape.costs(tape.evaluate(moved[None]))[0])
                if cost < best_cost * (1 - 1e-10):
                    best, best_cost = moved, cost
        at = found if found is not None else current
        crossing = _cross(here, at, region(tape, at), tried)
        if crossing is None:
            break
        current, flipped = at, crossing
    return _touching(tape, start, low, high) if best is None else best


def _touching(tape: Tape, start: Array, low: Array, high: Array) -> Array | None:
    """``start``, put on the sides of the box it lies next to, if it meets every demand but for a hair.

    Whole numbers and corners can sit exactly on the threshold, where no hair is left to spare;
    the exact judgement decides.
    """
    near = 1e-8 * (1 + np.abs(start))
    snapped = np.where(start - low <= near, low, np.where(high - start <= near, high, start))
    return snapped if feasible(tape, snapped[None], -_CLEAR)[0] else None


def _solve_region(tape: Tape, r: Region, start: Array, low: Array, high: Array) -> Array | None:
    """Cheapest accepted point of a linear region, strictly inside, or None."""
    free = (high > low) & ~tape.integral
    if not free.any():
        return None
    base = np.where(free, 0.0, start)
    scale = _units(tape)[free]  # variables: z = a / scale for the free actions

    def rows(matrix: Array) -> Array:
        return matrix[:, free] * scale

    g = [-r.signs[:, None] * rows(r.pre)]
    h = [r.signs * (r.pre_offset + r.pre @ base)]
    clear = 2 * _CLEAR * (1 + abs(tape.threshold))
    g.append(-rows(r.logit[None]))
    h.append(np.array([r.logit_offset + r.logit @ base - tape.threshold - clear]))
    eye = np.eye(int(free.sum()))
    g += [eye, -eye]
    h += [high[free] / scale, -low[free] / scale]
    if len(tape.row_low):
        jac, off = (
            tape.row_forms @ r.atoms,
            tape.row_forms @ (r.atoms_offset + r.atoms @ base) + tape.row_offset,
        )
        for sign, limit in ((1.0, tape.row_high), (-1.0, tape.row_low)):
            g.append(sign * rows(jac))
            h.append(sign * (limit - off))
    G, H = np.vstack(g), np.concatenate(h)
    varies = np.abs(G).max(axis=1) > 1e-14
    if (H[~varies] < -1e-12).any():
        return None
    G, H = G[varies], H[varies]
    ball = None
    if tape.program.ball is not None:
        at0 = r.atoms_offset + r.atoms @ base
        ball = Quadratic(
            rows(tape.residuals @ r.atoms),
            tape.residuals @ at0 + tape.residual_offset,
            tape.ball_weights,
            rows((tape.ball_linear @ r.atoms)[None])[0],
            float(tape.ball_linear @ at0) + tape.ball_offset - 1e-13,
        )
    problem, lift = _with_cost(tape, r, base, free, scale, G, H, ball)
    with np.errstate(all="ignore"):
        z = minimise(problem, lift(start[free] / scale))
    if z is None:
        return None
    a = base.copy()
    a[free] = np.clip(z[: len(scale)] * scale, low[free], high[free])
    return a


def _with_cost(
    tape: Tape,
    r: Region,
    base: Array,
    free: NDArray[np.bool_],
    scale: Array,
    G: Array,
    H: Array,
    ball: Quadratic | None,
) -> tuple[ConvexProblem, Callable[[Array], Array]]:
    """The convex problem in z = a / scale, plus epigraph variables for |.| and max where used."""
    c = tape.program.cost
    jac = (tape.deltas @ r.atoms)[:, free] * scale  # delta = jac z + off
    off = tape.deltas @ (r.atoms_offset + r.atoms @ base) + tape.delta_offset
    step, at0 = jac / tape.cost_scales[:, None], off / tape.cost_scales
    w = tape.cost_weights
    q_dense = float(c.l2_squared) * (w[:, None] * step * step).sum(axis=0)  # delta_i rests on a_i alone
    lin = 2 * float(c.l2_squared) * (w * at0) @ step
    extra = (len(w) if c.l1 else 0) + (1 if c.linf else 0)
    if not extra:
        return ConvexProblem(q_dense, lin, G, H, ball), lambda z: z
    n1 = len(w) if c.l1 else 0
    q = np.append(q_dense, np.zeros(extra))
    lin = np.concatenate([lin, float(c.l1) * w[:n1], [float(c.linf)] if c.linf else []])
    g, h = [np.hstack([G, np.zeros((len(G), extra))])], [H]
    for sign in (1.0, -1.0):
        if n1:
            g.append(np.hstack([sign * step, -np.eye(n1), np.zeros((n1, extra - n1))]))
            h.append(-sign * at0)
        if c.linf:
            g.append(np.hstack([sign * w[:, None] * step, np.zeros((len(w), n1)), -np.ones((len(w), 1))]))
            h.append(-sign * w * at0)
    if ball is not None:
        ball = Quadratic(
            np.hstack([ball.matrix, np.zeros((len(ball.matrix), extra))]),
            ball.offset,
            ball.weights,
            np.append(ball.linear, np.zeros(extra)),
            ball.constant,
        )

    def lift(z: Array) -> Array:
        size = np.abs(step @ z + at0)
        top = [1.1 * float((w * size).max(initial=0.0)) + 1e-3] if c.linf else []
        return np.concatenate([z, 1.1 * size[:n1] + 1e-3, top])

    return ConvexProblem(q, lin, np.vstack(g), np.concatenate(h), ball), lift


def _units(tape: Tape) -> Array:
    """A natural length per action: a change of about unit cost before weights, over sqrt(weight)."""
    scale = np.ones(len(tape.actions))
    order = {t.feature: k for k, t in enumerate(tape.program.cost_terms)}
    for k, action in enumerate(tape.program.actions):
        j = order[action.feature]
        scale[k] = tape.cost_lengths[j] / np.sqrt(max(tape.cost_weights[j], 1e-12))
    return scale


def _true_step(tape: Tape, anchor: Array, target: Array) -> Array | None:
    """``target`` if truly feasible, else the point nearest to it on the way from a feasible anchor."""
    if feasible(tape, target[None])[0]:
        return target
    if not feasible(tape, anchor[None])[0]:
        return None
    shares = np.concatenate([1 - np.logspace(-12, -1, 24), np.linspace(0.85, 0.0, 18)])
    points = target + (anchor - target) * (1 - shares)[:, None]
    good = feasible(tape, points)
    return points[int(np.argmax(good))] if good.any() else None


def _cross(r: Region, a: Array, there: Region, tried: set[frozenset[int]]) -> frozenset[int] | None:
    """The flips (relative to the signs at ``a``) of an untried region across the nearest facet."""
    norms = np.maximum(np.linalg.norm(r.pre, axis=1), 1e-12)
    distance = np.where(
        np.linalg.norm(r.pre, axis=1) > 1e-12, np.abs(r.pre @ a + r.pre_offset) / norms, np.inf
    )
    for k in np.argsort(distance)[:6]:
        if not np.isfinite(distance[k]):
            return None
        wanted = r.signs.copy()
        wanted[k] = -wanted[k]
        if frozenset(np.flatnonzero(wanted > 0).tolist()) not in tried:
            return frozenset(np.flatnonzero(wanted != there.signs).tolist())
    return None
