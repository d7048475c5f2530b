"""What the compiled engine proves of one box, for the searches of other back ends.

What is acted on is decided; the box is one of the actions. The engine contracts it by cost, rows and
plausibility, bounds the units of equations and network, and bounds the least cost by a Lagrangian.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import announced
from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.elementary import LOG
from milp_recourse.engine.networks.lever_arrays import COSTS
from milp_recourse.engine.networks.nearby import acted_on
from milp_recourse.engine.networks.problem_arrays import (
    Ends,
    Lowered,
    Problems,
    alone,
    between,
    binding_rows,
    set_domains,
)
from milp_recourse.engine.networks.work import Work
from milp_recourse.engine.smallest_instance import smallest
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import LeverCost
from milp_recourse.program.lower import lower
from milp_recourse.program.neutral_program import Program

Array = NDArray[np.float64]

TURNS = 2
"""How often a box is bounded, each time in what the turn before has left of it."""

WHOLE = 1e-6
"""How far outside an interval's end a whole number may be and still be kept."""

USUAL = 2.0**-60, 2.0**60
"""Costs between these stay in their unit."""


@dataclass(frozen=True)
class Found:
    """What is proven of the feasible actions in a box that cost less than a target.

    Attributes
    ----------
    least
        None of them costs less.
    low, high
        The box that is left, (d,).
    point
        Where the relaxation costs least, (d,).
    barred
        By an action's place, the labels that are ruled out.
    causes
        The argument of each function in an equation, (2,), by atom.
    hidden
        The arguments of the network's hidden units, (width, 2) per layer; may be infinite.
    """

    least: float
    low: Array
    high: Array
    point: Array
    barred: Mapping[int, frozenset[int]]
    causes: Mapping[int, Array]
    hidden: Sequence[Array]


class EngineBox:
    """The compiled engine's arrays for a program in which it is decided what is acted on.

    Parameters
    ----------
    instance, made
        What :func:`~milp_recourse.engine.networks.nearby.acted_on` returns.
    features
        The features acted on, in the order of the program's actions.
    """

    def __init__(self, instance: Instance, made: Lowered, features: Sequence[str]) -> None:
        levers = list(instance.levers)
        self._places = np.array([levers.index(name) for name in features])
        self._units_of = made.effects.units_of
        self._problem, self._unit = _in_cost_units(made.problems(0))
        costs = [instance.lever_costs[name] for name in levers]
        # the engine has no lines below these
        self._jumping = [(i, cost) for i, cost in enumerate(costs) if cost.jumps]
        self._rows = binding_rows(made, 0)

    @staticmethod
    def of(instance: Instance, fixed: Program) -> EngineBox | None:
        """Of a program from :meth:`Program.fix`; None where the engine has no arrays for it. Alternatives of
        conditions are left out."""
        features = [action.feature for action in fixed.actions]
        own, made = acted_on(instance, replace(fixed, demand=TRUE)) if features else (instance, None)
        return None if made is None else EngineBox(own, made, features)

    def bound(
        self,
        low: Array,
        high: Array,
        target: float,
        hidden: Sequence[Array] = (),
        domains: Ends | None = None,
        signs: Mapping[int, bool] | None = None,
    ) -> Found | None:
        """What is proven of a box (d,) of actions; None if nothing feasible in it costs less than the target.

        Parameters
        ----------
        hidden
            Known bounds of the hidden units' arguments, (width, 2) per layer.
        domains
            Other domains of features that the instance gives one and that actions move, but that are not
            acted on.
        signs
            By atom, whether the argument of a ReLU in an equation is at least 0, or else at most 0.
        """
        p, places = self._problem, self._places
        ends = np.empty((2, len(places)))
        ends[:, places] = low, high
        p = between(p, *ends)
        if self._jumping:
            p = p._replace(lever=p.lever.copy(), ceiling=math.inf)
            for i, cost in self._jumping:
                self._bound_cost(p.lever[i], cost, *ends[:, i].tolist())
        if domains:
            p = p._replace(row_const=p.row_const.copy())
            set_domains(p.row_const[0], self._rows, domains)
        with search.SPARE.lent(p) as (work, _):
            return self._found(work, p, target, self._known(hidden, signs or {}))

    def _found(self, work: Work, p: Problems, target: float, known: Array) -> Found | None:
        """The same for a box's own problem, with memory; nothing of what is returned is in that memory."""
        places, numbers = self._places, ("factual", "unit", "grid", "label")
        x, unit, grid, label = (self._problem.lever[name][places] for name in numbers)
        least = search.bound_box(alone(p), work, known, min(target / self._unit, p.ceiling), TURNS)
        if least == math.inf:
            return None
        ends = x + unit * np.array([work.box["lo"], work.box["hi"]])[:, places]  # rounded once
        low, high = np.nextafter(ends[0], -math.inf), np.nextafter(ends[1], math.inf)
        step, first = np.where(grid > 0, unit * grid, 1.0), x + unit * p.lever["shift"][places]
        low = np.where(grid > 0, first + np.ceil((low - first) / step - WHOLE) * step, low)
        high = np.where(grid > 0, first + np.floor((high - first) / step + WHOLE) * step, high)
        point, barred = np.clip(x + unit * work.points.relaxed[places], low, high), {}
        for k in np.flatnonzero(label > 0).tolist():
            allowed = work.allowed[slice(*p.start[places[k] : places[k] + 2])]
            low[k], high[k] = np.flatnonzero(allowed)[[0, -1]]
            point[k] = work.points.relaxed[places[k]]
            barred[k] = frozenset(np.flatnonzero(allowed == 0).tolist())
        units = np.stack([work.unit.low, work.unit.high], axis=-1)
        causes = {k: self._argument(units[0], own) for k, own in self._units_of.items()}
        layers = [units[layer, :width].copy() for layer, width in enumerate(p.widths.tolist())][1:]
        return Found(float(least) * self._unit, low, high, point, barred, causes, layers)

    def _bound_cost(self, lever: Any, cost: LeverCost, low: float, high: float) -> None:
        """Write the least cost in an interval into a lever's numbers, whatever the value."""
        paid, entry = (Fraction(one) / Fraction(self._unit) for one in cost.paid(cost.nearest(low, high)))
        for name in COSTS:
            lever[name] = 0.0
        lever.knots, lever.down, lever.fixed, lever.least = 0.0, 1.0, round_down(paid), round_down(entry)

    def _known(self, hidden: Sequence[Array], signs: Mapping[int, bool]) -> Array:
        """Known bounds of all units, and the ends that were split on, (3, K + 1, n)."""
        p = self._problem
        known = np.zeros((3, *p.biases.shape))
        low, high, split = known
        low[:], high[:], split[0, : len(p.kind)] = -math.inf, math.inf, p.kind == LOG
        for layer, one in enumerate(hidden, start=1):
            known[:2, layer, : len(one)] = one.T
        for k, on in signs.items():
            for m in self._units_of.get(k, ()):
                (low if on else high)[0, m], split[0, m] = 0.0, 1.0 if on else 2.0
        return known

    @staticmethod
    def _argument(units: Array, own: Sequence[int]) -> Array:
        """The interval of a function's argument from its causal units'."""
        low, high = units[own[0]]
        for m in own[1:]:  # of a logit: the logarithm of 1 less the argument
            low, high = max(low, 1.0 - units[m, 1]), min(high, 1.0 - units[m, 0])
        return np.array([low, high])


def _in_cost_units(p: Problems) -> tuple[Problems, float]:
    """A problem whose costs are divided by a power of two if they are very large or very small, and that
    power: the engine takes multipliers that are very large for useless."""
    exponent = math.frexp(p.ceiling)[1]
    if not USUAL[0] < p.ceiling < USUAL[1] and 0.0 < p.ceiling < math.inf:
        unit = 2.0 ** min(max(exponent, -1000), 1000)
        for name in COSTS:
            p.lever[name] /= unit
        p.column["cost"] /= unit
        p.column["top"] /= unit
        p.base[:] /= unit
        return p._replace(ceiling=p.ceiling / unit, allowance=p.allowance / unit), unit
    return p, 1.0


@cache
def ready() -> None:
    """Compile the bounds, or load them from disk, once per process, before anybody's time limit starts."""
    instance = smallest()
    box = EngineBox.of(instance, lower(instance).fix(frozenset({"x"})))
    assert box is not None
    with announced("the bounds of boxes"):
        box.bound(np.zeros(1), np.ones(1), 2.0)
