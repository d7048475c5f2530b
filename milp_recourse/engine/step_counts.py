r"""Which steps of levers the engine counts itself, and the roundings that counting costs.

The engine's k-th value of a lever is the sum of two doubles, k s and the distance from the factual x to the
nearest value n. Let s be the step and f the largest absolute value of the lever's bounds, and let
:math:`|x| \le f`. The decimals of s, n and the value are each off by at most u of themselves, so are the
product, the distance and the sum, and none of these is above :math:`2 f + 2 s`. Together that is less than
:math:`10 (f + s) u`. For k = 0 the value is the distance, off by u of itself; any other value is at least
s / 2 away from x. So values have a relative error of at most :math:`20 (f / s + 1)` roundings, which
:func:`~milp_recourse.engine.networks.numerics.slacks` counts like those of any other term.
Where the decimals are doubles (whole numbers, halves), only the distance and the sum are rounded.
"""

from __future__ import annotations

import math

from milp_recourse.engine.networks.causes import is_label
from milp_recourse.problem.features import Feature, Steps
from milp_recourse.problem.instance import Instance

MOST_STEPS = 5000
"""The largest f / s, so that the slack stays below 3e-11. Indices of steps are then off by less than 1e-11,
and the engine takes what is within 2^-30 of one for it."""


def counts_steps(instance: Instance, name: str) -> bool:
    """Whether the engine itself keeps to what an action on a lever may set, with bounds that hold.

    Parameters
    ----------
    name
        A lever. Labels with columns of their own are taken one by one.
    """
    feature = instance.feature(name)
    if feature.only is None or is_label(feature):
        return True
    steps, x = feature.only.spaced, instance.factual[name]
    if steps is None:
        return False
    straight = instance.lever_cost(name).straight  # else sizes are not relatively as accurate as values
    if steps.exact(*feature.action_bounds):
        return straight or x in steps
    far = _farthest(feature)
    return straight and abs(x) <= far and far <= MOST_STEPS * steps.step


def roundings(instance: Instance) -> int:
    """The roundings that the values of any lever cost; the same for all applicants of one model."""
    each = [_roundings(f) for f in instance.features if f.actionable]
    return max(each, default=0)


def _roundings(feature: Feature) -> int:
    steps: Steps | None = None if feature.only is None else feature.only.spaced
    if steps is None or is_label(feature) or steps.exact(*feature.action_bounds):
        return 0
    return math.ceil(20 * (min(_farthest(feature) / steps.step, MOST_STEPS) + 1))


def _farthest(feature: Feature) -> float:
    return max(map(abs, feature.action_bounds))
