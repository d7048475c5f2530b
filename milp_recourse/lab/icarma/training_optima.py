"""Certified answers for the train rows, for networks that learn from them.

An optimum lies on the boundary of what is accepted, of what is plausible, or of both. A network that imitates
it misses it by a little, and many of its recommendations would be refused. Therefore the answers are those of
a problem whose two boundaries are tightened. Where the answer is that no recourse exists, there is nothing to
learn: the demands contradict each other, and so do their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from milp_recourse.lab.arrays import BoolArray, FloatArray
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.task import Task
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population

ROUNDS, STREAM = 4, 9
"""How many times preferences are drawn for every train row; part of the seed of these draws."""


@dataclass(frozen=True)
class Optima:
    """Answers for n rows with preferences drawn in several rounds; an epoch trains on one of them.

    Attributes
    ----------
    wishes
        The preferences of each round, weights included.
    values
        The k features' values in the optimal counterfactual, raw units, shape (rounds, n, k); nan if there
        is none. If the engine stopped at its limit with an action, that action's counterfactual.
    impossible
        For whom it is proven that there is no recourse, shape (rounds, n).
    """

    wishes: tuple[Wishes, ...]
    values: FloatArray
    impossible: BoolArray


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
    settings: Settings,
    folder: Path,
    time_limit: float = 2.0,
    jobs: int = 1,
    expect: Callable[[int], None] = lambda _: None,
    advance: Callable[[], None] = lambda: None,
) -> Optima:
    """Solve the train rows with preferences drawn as in training, and the margins of the settings.

    Parameters
    ----------
    folder
        Where results are kept, so that nothing is solved twice.
    time_limit, jobs
        The engine's time limit in seconds per problem, and number of processes.
    expect, advance
        ``expect`` is called with the number of problems to solve, and ``advance`` after each of them.
    """
    rows, n, k = task.train, len(task.train), len(task.levers)
    template = tightened(task.template, settings.logit_margin(task.spread), settings.density_margin)
    names = [f.name for f in template.features]
    factuals = [dict(zip(names, map(float, row), strict=True)) for row in rows]
    people = Population(template, factuals, (Preferences(()),) * n)
    certified = Certified(people, task.levers, folder, time_limit, jobs)
    sampler = replace(settings.sampler, levers=k)
    wishes = tuple(sampler.draw(n, np.random.default_rng([0, STREAM, r])) for r in range(ROUNDS))
    expect(len(certified.missing(wishes)))
    certified.solve(wishes, advance)
    found = [certified.of(one) for one in wishes]
    values = np.full((ROUNDS, n, k), np.nan)
    for own, exact in zip(values, found, strict=True):
        action = np.full(rows.shape, np.nan)
        action[:, task.columns] = exact.action
        has = ~np.isnan(exact.cost)
        own[has] = template.scm.counterfactual(rows, action)[has][:, task.columns]
    return Optima(wishes, values, np.array([exact.impossible for exact in found]))
