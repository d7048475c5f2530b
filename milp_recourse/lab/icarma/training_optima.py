"""Certified optima of the train rows, for networks that learn to imitate them.

An optimum lies on the boundary of what is accepted, of what is plausible, or of both. A network that imitates
it misses it by a little, and many of its recommendations would be refused. Therefore the optima are those of
a problem whose two boundaries are tightened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.task import Task
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population

MOST_LEVERS = 6
"""The largest number k of levers, because all 2^k masks are solved."""

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Optima:
    """The optima of n rows under every mask of k features, with weights 1.

    Attributes
    ----------
    values
        The k features' values in the optimal counterfactual, raw units, shape (n, 2^k, k); nan if there is
        none. Bit j of the second index is 1 if feature j may be acted on.
    proven
        Whether the values are proven to be an optimum's, shape (n, 2^k). If the engine stopped at its limit
        with an action, ``values`` has that action's counterfactual, which is not proven.
    """

    values: FloatArray
    proven: BoolArray

    def of(self, index: NDArray[np.int64], actionable: BoolArray) -> FloatArray:
        """The values for given rows and masks, shape (m, k).

        Parameters
        ----------
        index
            Positions of the rows, shape (m,).
        actionable
            The rows' masks, shape (m, k).
        """
        which = actionable @ (1 << np.arange(actionable.shape[1]))
        return np.asarray(self.values[index, which])


def tightened(template: Instance, logit_margin: float, density_margin: float) -> Instance:
    """The problem with a larger margin of acceptance and a higher density that is demanded.

    Parameters
    ----------
    logit_margin
        Added to the margin of acceptance.
    density_margin
        By how many nats the log density must rise.
    """
    accept = replace(template.accept, margin=template.accept.margin + logit_margin)
    return replace(template, accept=accept, plausible=True, density_offset=density_margin)


def certify_optima(
    task: Task,
    rows: FloatArray,
    logit_margin: float,
    density_margin: float,
    folder: Path,
    time_limit: float = 2.0,
    jobs: int = 1,
    expect: Callable[[int], None] = lambda _: None,
    advance: Callable[[], None] = lambda: None,
) -> Optima:
    """Solve all rows under every mask; results are kept in ``folder``, so that nothing is solved twice.

    Parameters
    ----------
    rows
        Refused rows, raw units, shape (n, d).
    time_limit, jobs
        The engine's time limit in seconds per problem, and number of processes.
    expect, advance
        ``expect`` is called with the number of problems to solve, and ``advance`` after each of them.

    Raises
    ------
    BadInput
        There are more than :data:`MOST_LEVERS` levers.
    """
    if len(task.levers) > MOST_LEVERS:
        got = f"{len(task.levers)} features to act on"
        raise BadInput("imitation", got, f"at most {MOST_LEVERS}: every mask is certified")
    template = tightened(task.template, logit_margin, density_margin)
    names = [f.name for f in template.features]
    factuals = [dict(zip(names, map(float, row), strict=True)) for row in rows]
    people = Population(template, factuals, (Preferences(()),) * len(rows))
    certified = Certified(people, task.levers, folder, time_limit, jobs)
    n, k = len(rows), len(task.levers)
    masks = [(m >> np.arange(k)) % 2 == 1 for m in range(1 << k)]
    wishes = [_constant(np.tile(mask, (n, 1))) for mask in masks]
    expect(len(certified.missing(wishes[1:])))
    certified.solve(wishes[1:], advance)
    values = np.full((n, len(masks), k), np.nan)
    proven = np.zeros((n, len(masks)), dtype=bool)
    for m, wish in enumerate(wishes[1:], start=1):
        found = certified.of(wish)
        action = np.full(rows.shape, np.nan)
        action[:, task.columns] = found.action
        after = template.scm.counterfactual(rows, action)[:, task.columns]
        has = ~np.isnan(found.cost)
        values[has, m] = after[has]
        proven[:, m] = found.served
    return Optima(values, proven)


def _constant(actionable: BoolArray) -> Wishes:
    """Preferences with these masks and weights 1."""
    return Wishes(actionable, actionable.astype(np.float64), actionable)
