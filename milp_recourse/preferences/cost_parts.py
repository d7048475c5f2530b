r"""An action's cost, lever by lever: :math:`c_w(a) = \sum_f w_f\, \phi_f(a)` for costs linear in the weights.

So are l1, l2-squared, l0, the percentile costs and their mixtures. l2 is the root of a linear cost and orders
actions as that does. A maximum over levers (linf, and what ends in ``-max``) is not linear: which lever
decides depends on the weights, and the weights that an answer leaves have no flat sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from milp_recourse.errors import Unsupported
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import exact_cost

Parts = tuple[Fraction, ...]
"""phi of an action, one number per lever of :func:`levers`, each at least 0."""


def levers(instance: Instance) -> tuple[str, ...]:
    """The features that the person can act on and that some value is allowed for: each has a weight."""
    return tuple(instance.levers)


def cost_parts(instance: Instance, action: Mapping[str, float], names: Sequence[str]) -> Parts:
    """phi of an action, exactly: what each lever's change costs at weight 1 (of l2: of its square)."""
    own = instance.squared()
    costs = {f: own.lever_costs[f]._replace(weight=1.0) for f in names if f in action}
    return tuple(exact_cost([(costs[f], action[f])], False) if f in costs else Fraction(0) for f in names)


def check_linear(instance: Instance) -> None:
    """Raise :class:`Unsupported` where the cost is not linear in the weights."""
    if any(instance.lever_costs[name].prices.largest for name in levers(instance)):
        raise Unsupported(
            f"weights from choices: cost {instance.cost.kind} has the largest of the levers' changes, which "
            "is not linear in the weights; allowed: l1, l2-squared, l2, l0, percentile, log-percentile, and "
            "mixtures of these"
        )


def with_weights(instance: Instance, weights: Mapping[str, float]) -> Instance:
    """The problem under other weights; its reference is dropped."""
    own = replace(instance.preferences, weights={**instance.preferences.weights, **weights})
    return replace(instance, preferences=own, reference=None)
