r"""How much a recommended action can cost a person beyond their own optimum, over all weights still possible.

Let phi(a) be an action's cost lever by lever, V(w) the least of :math:`w \cdot \phi(b)` over feasible actions
b, and W the cone of weights that the answers allow. The regret of a under w is

.. math:: \rho_w(a) = \frac{w \cdot \phi(a)}{V(w)} - 1 .

V is a minimum of linear functions, so it is concave and :math:`V(u + v) \ge V(u) + V(v)`. Hence where
:math:`\rho \le r` holds for the extreme rays of a cone, it holds for every w in the cone: w is a sum of
multiples of these, and both sides add up. The largest regret over W is therefore that of an extreme ray, and
one certified optimum per ray proves a bound. V also grows with each weight, so that the optimum for weights
rounded down to doubles bounds that of the ray itself.

Not all rays are needed. The search starts from the cone of all weights that are possible before any answer,
which has one ray per lever. It looks at the ray of largest regret: if an answer excludes it, the cone is cut
by that answer; else it is solved for; and when it is both allowed and solved for, no other ray is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from milp_recourse.elicitation.weight_cone import Ray, Row, WeightCone, value
from milp_recourse.preferences.cost_parts import Parts
from milp_recourse.preferences.known_optima import FloatArray, Optima, Optimum, doubles_below
from milp_recourse.problem.cost import root_above
from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.instance import Instance

MOST_RAYS = 4000
"""Cones with more rays are not cut further: the regret that is proven then is that of a larger cone."""

TOGETHER = 8
"""The most optima that are searched for at once: those of the rays of largest regret."""


@dataclass(frozen=True)
class Regret:
    """What is proven about an action under all weights that the answers allow.

    Attributes
    ----------
    most
        Under no such weights does another action cost less than 1 / (1 + most) of it; infinite if nothing is
        proven.
    attained
        Under ``worst`` it costs 1 + attained times what another action costs; 0 if no such action is known.
    worst
        Weights that the answers allow, one per lever, as doubles: those for which ``most`` is proven.
    cone
        The cone that was looked at; its cuts are some of the answers, in the order in which they were cut
        off.
    rests_on
        For each ray of the cone, the optimum that bounds it; None for rays that nothing bounds.
    """

    most: float
    attained: float
    worst: tuple[float, ...]
    cone: WeightCone
    rests_on: tuple[Optimum | None, ...]

    @property
    def cheaper(self) -> float:
        """By how much any action is cheaper at most, as a share of what the recommended one costs."""
        return 1.0 if math.isinf(self.most) else round_up(1 - 1 / (1 + Fraction(self.most)))


def largest_regret(
    parts: Parts, rows: Sequence[Row], optima: Optima, least: float, most_solved: int | None = None
) -> Regret:
    """The largest regret of an action over all weights in the half-spaces ``rows``.

    Parameters
    ----------
    parts
        phi of the action.
    rows
        Half-spaces ``row @ w <= 0``, one per answer; there must be weights in all of them.
    optima
        Optima of the problem of all actions that may be feasible for the person.
    least
        Every weight is at least this share of the mean, see :class:`WeightCone`.
    most_solved
        Stop after this many searches; what is proven by then is returned.
    """
    if not any(parts):
        return Regret(0.0, 0.0, (1.0,) * len(parts), WeightCone.of(len(parts), least), (None,) * len(parts))
    search = _Search(parts, rows, optima, WeightCone.of(len(parts), least))
    left = math.inf if most_solved is None else most_solved
    while True:
        ray = search.worst()
        broken = search.broken(ray)
        if broken is not None and len(search.cone.rays) <= MOST_RAYS:
            search.cut(broken)
        elif search.is_solved(ray) or left <= 0:
            return search.found()
        else:
            left -= search.solve(min(left, TOGETHER))


class _Search:
    """A cone that is cut, and what is known about each of its rays.

    Floating point chooses what to look at; :meth:`found` computes exactly.
    """

    def __init__(self, parts: Parts, rows: Sequence[Row], optima: Optima, cone: WeightCone) -> None:
        self.parts, self.rows, self.optima, self.cone = parts, list(dict.fromkeys(rows)), optima, cone
        self._phi = np.array([float(p) for p in parts])
        self._known: list[Optimum] = []
        self._by: dict[Row, tuple[float, Optimum | None]] = {ray.weights: (0.0, None) for ray in cone.rays}
        self._learn()

    def worst(self) -> Ray:
        """The ray of largest regret, by what is known."""
        return max(self.cone.rays, key=self._ratio)

    def _ratio(self, ray: Ray) -> float:
        bound = self._by[ray.weights][0]
        return float(_normal(ray) @ self._phi) / bound if bound > 0 else math.inf

    def broken(self, ray: Ray) -> Row | None:
        """The answer that excludes the ray most clearly; None if all allow it."""
        over = {row: v / max(map(abs, row)) for row in self.rows if (v := value(row, ray.weights)) > 0}
        return max(over, key=lambda row: over[row], default=None)

    def cut(self, row: Row) -> None:
        """Cut the cone by an answer."""
        self.cone = self.cone.cut(row)
        new = [ray for ray in self.cone.rays if ray.weights not in self._by]
        self._by = {ray.weights: self._by.get(ray.weights, (0.0, None)) for ray in self.cone.rays}
        self._update(new, self._known)

    def is_solved(self, ray: Ray) -> bool:
        """Whether the optimum for the ray itself is known."""
        return doubles_below(ray.weights) in self._solved

    def solve(self, most: float) -> int:
        """Find the optima of the worst rays that answers allow, or that cannot be cut off; their number."""
        open_ = [ray for ray in self.cone.rays if not self.is_solved(ray)]
        uncut = len(self.cone.rays) > MOST_RAYS
        chosen: list[Ray] = []
        for ray in sorted(open_, key=self._ratio, reverse=True):
            if len(chosen) < most and (uncut or self.broken(ray) is None):
                chosen.append(ray)
        self.optima.at([doubles_below(ray.weights) for ray in chosen])
        self._learn()
        return len(chosen)

    def _learn(self) -> None:
        """Use the optima that were found since the last time."""
        new = self.optima.known[len(self._known) :]
        self._known = self.optima.known
        self._solved = {one.weights for one in self._known}
        self._update(list(self.cone.rays), new)

    def _update(self, rays: list[Ray], optima: list[Optimum]) -> None:
        """Bound V at rays by optima: where v >= s w, V(v) >= s V(w)."""
        if not rays or not optima:
            return
        at = np.array([_normal(ray) for ray in rays])
        bounds = np.zeros((len(rays), len(optima)))
        for k, one in enumerate(optima):
            bounds[:, k] = (at / np.array(one.weights)).min(axis=1) * float(one.bound)
        for ray, row in zip(rays, bounds, strict=True):
            best = int(row.argmax())
            if row[best] > self._by[ray.weights][0]:
                self._by[ray.weights] = float(row[best]), optima[best]

    def found(self) -> Regret:
        """What is proven by now, in exact arithmetic."""
        root = self.optima.instance.cost.is_root
        largest, worst = Fraction(0), self.cone.rays[0]
        for ray in self.cone.rays:
            ratio = ratio_at(ray, self.parts, self._by[ray.weights][1])
            if ratio is None or ratio > largest:
                largest, worst = ratio or Fraction(0), ray
                if ratio is None:
                    break
        return Regret(
            most=math.inf if ratio is None else regret_of(largest, self.optima.instance),
            attained=_under(max(self._attained(), Fraction(1)), root),
            worst=doubles_below(worst.weights),
            cone=self.cone,
            rests_on=tuple(self._by[ray.weights][1] for ray in self.cone.rays),
        )

    def _attained(self) -> Fraction:
        """What the action costs on the allowed ray where that is the most of what a known action costs."""
        others = list(dict.fromkeys(one.parts for one in self._known if one.parts is not None))
        rays = [ray for ray in self.cone.rays if self.broken(ray) is None]
        if not (others and rays):
            return Fraction(1)
        at = np.array([_normal(ray) for ray in rays])
        costs = at @ np.array(others, dtype=np.float64).T
        ray = rays[int((at @ self._phi / np.maximum(costs.min(axis=1), 1e-300)).argmax())]
        least = min(_cost(ray.weights, parts) for parts in others)
        return _cost(ray.weights, self.parts) / least if least else Fraction(1)


def ratio_at(ray: Ray, parts: Parts, optimum: Optimum | None) -> Fraction | None:
    """At least w phi(a) / V(w) for w on a ray; None if nothing bounds V there."""
    if optimum is None or optimum.bound <= 0:
        return None
    pairs = zip(ray.weights, optimum.weights, strict=True)
    scale = min(Fraction(v) / Fraction(w) for v, w in pairs)
    return _cost(ray.weights, parts) / (scale * optimum.bound)


def _cost(weights: Sequence[int], parts: Parts) -> Fraction:
    return sum((w * p for w, p in zip(weights, parts, strict=True)), Fraction(0))


def _normal(ray: Ray) -> FloatArray:
    """A ray's weights with mean 1, in floating point."""
    total = sum(ray.weights)
    return np.array([w * len(ray.weights) / total for w in ray.weights])


def regret_of(ratio: Fraction, instance: Instance) -> float:
    """A ratio of linear costs as a regret, rounded up; of their roots where the cost is one."""
    return max(0.0, round_up((root_above(ratio) if instance.cost.is_root else ratio) - 1))


def _under(ratio: Fraction, root: bool) -> float:
    if not root:
        return max(0.0, round_down(ratio - 1))
    return max(0.0, round_down(1 / root_above(1 / ratio) - 1))
