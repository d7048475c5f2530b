"""Certified optima of the rows that networks are trained on, to learn from.

The network that imitates an optimum misses it by a little, and an optimum lies on the edge of what is
accepted, of what is plausible, or of both: half of the misses would be refused. So optima can be asked of a
problem whose two boundaries are tightened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.icarma.exact import Certified
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.icarma.task import Task
from milp_recourse.instance import Instance, Population, Preferences

MOST_LEVERS = 6
"""Every one of 2^k masks is certified."""

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Optima:
    """The optima of n rows under every mask of k features, weights 1.

    Attributes
    ----------
    values
        The k features of the optimal counterfactual, raw units, shape (n, 2^k, k); nan where there is none.
        Bit j of the second index says whether feature j may be acted on.
    proven
        Whether it is an optimum, shape (n, 2^k). Where the engine stopped at its limit with an action,
        that action's values are kept, unproven.
    """

    values: FloatArray
    proven: BoolArray

    def of(self, index: NDArray[np.int64], actionable: BoolArray) -> FloatArray:
        """Those of rows with these masks, shape (m, k).

        Parameters
        ----------
        index
            Which rows, shape (m,).
        actionable
            Their masks, shape (m, k).
        """
        which = actionable @ (1 << np.arange(actionable.shape[1]))
        return np.asarray(self.values[index, which])


def tightened(template: Instance, logit_margin: float, density_margin: float) -> Instance:
    """The problem with both boundaries further inside: accepted by so much more, plausible by so much more.

    Parameters
    ----------
    logit_margin
        Added to the margin that acceptance asks for.
    density_margin
        Nats by which the log density is to rise.
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
    """Certify rows under every mask; answers are kept in FOLDER, so that nothing is solved twice.

    Parameters
    ----------
    rows
        Refused rows, raw units, shape (n, d).
    time_limit, jobs
        Of the engine: seconds per problem, processes.
    expect, advance
        Called with the number of problems to solve, and after each.

    Raises
    ------
    BadInput
        More than :data:`MOST_LEVERS` features to act on.
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
    return Wishes(actionable, actionable.astype(np.float64), actionable)
