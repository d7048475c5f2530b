"""Networks' recommendations beside certified optima of the same applicants with the same preferences.

There are four answers to each problem, called *levels*, each more restricted than the one before:

1. ``optimum``: the certified optimum;
2. ``mask``: the certified optimum among actions on features that the networks act on;
3. ``direction``: the certified optimum among these that move each feature in the networks' direction, or
   hold it;
4. ``networks``: the networks' recommendation.

The difference in cost between ``mask`` and ``optimum`` is lost by the networks' choice of features, that
between ``networks`` and ``direction`` by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from milp_recourse.lab.arrays import BoolArray, FloatArray
from milp_recourse.lab.gap.paper_settings import Setting, draw
from milp_recourse.lab.icarma.exact import Certified, Exact
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.score import Recommended, Scored, recommended
from milp_recourse.lab.icarma.shipped import Kind
from milp_recourse.problem.population import Population

Level = Literal["optimum", "mask", "direction"]


MISSED = ("missed, only implausible", "missed, only invalid", "missed, both")


@dataclass(frozen=True)
class Compared:
    """One setting, with or without plausibility; every array has an entry per applicant.

    Attributes
    ----------
    setting, plausible
        The row of the paper's tables, and whether plausibility is demanded.
    wishes
        Masks and weights.
    recommended
        The networks' recommendations, judged.
    acted
        The levers that they act on, shape (n, k).
    exact
        The certified optima by level, ``optimum`` and perhaps others.
    """

    setting: Setting
    plausible: bool
    wishes: Wishes
    recommended: Recommended
    acted: BoolArray
    exact: Mapping[Level, Exact]

    def of(self, people: BoolArray) -> Compared:
        """The same for some of the people; the networks' seconds stay those for all."""
        part: Compared = _some(self, people)
        return part

    @property
    def scored(self) -> Scored:
        """The recommendations, judged."""
        return self.recommended.scored

    @property
    def optimum(self) -> Exact:
        """The certified optima."""
        return self.exact["optimum"]

    @property
    def served(self) -> BoolArray:
        """For whom the recommendation is feasible for the certified problem, computed in float64."""
        return self.scored.serves(self.plausible)

    @property
    def both(self) -> BoolArray:
        """Who has both an optimum and a feasible recommendation: only their costs can be compared."""
        return self.served & self.optimum.served

    @property
    def missed(self) -> BoolArray:
        """Who has an optimum, but no feasible recommendation."""
        return self.optimum.served & ~self.served

    @property
    def contradicted(self) -> BoolArray:
        """Whose feasible recommendation contradicts the proof: cheaper than the optimum, or none exists."""
        return self.optimum.contradicted_by(self.served, self.scored.cost)

    @property
    def ratio(self) -> FloatArray:
        """The recommendation's cost divided by the optimal cost, for :attr:`both`."""
        return self.scored.cost[self.both] / self.optimum.cost[self.both]

    @property
    def mask_ratio(self) -> FloatArray:
        """The least cost within the networks' mask divided by the optimal cost, where both exist."""
        within = self.exact["mask"]
        both = within.served & self.optimum.served
        return within.cost[both] / self.optimum.cost[both]


def _some(value: Any, people: BoolArray) -> Any:
    """A value with the entries of some people only; dataclasses and mappings are taken entry by entry."""
    if isinstance(value, np.ndarray | Wishes):
        return value[people]
    if isinstance(value, Mapping):
        return {key: _some(one, people) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _some(getattr(value, f.name), people) for f in fields(value)})
    return value


def compare(
    people: Population,
    models: Mapping[Kind, Recommender],
    folder: Path,
    asked: Sequence[tuple[Setting, bool]],
    levels: Sequence[Level],
    seed: int = 0,
    time_limit: float = 60.0,
    jobs: int = 1,
    expect: Callable[[int], None] = lambda _: None,
    advance: Callable[[], None] = lambda: None,
) -> list[Compared]:
    """Compute recommendations and certified optima for each setting; optima are kept in FOLDER/exact.

    Parameters
    ----------
    people
        Loan applicants; their own preferences are not used.
    models
        Networks by the kind of preferences that they were trained for; those for ranks stand in for others.
    asked
        (setting, whether plausibility is demanded) of each comparison.
    seed
        Of the preferences.
    time_limit, jobs
        For the engine: seconds per problem, processes.
    expect, advance
        Called with the number of problems to solve, and after each of them.
    """
    comparisons = []
    for plausible in dict.fromkeys(demand for _, demand in asked):
        of_demand = Population(
            replace(people.template, plausible=plausible), people.factuals, people.preferences
        )
        levers = next(iter(models.values())).levers
        certified = Certified(of_demand, levers, folder / "exact", time_limit, jobs)
        answers = []
        for setting in (one for one, demand in asked if demand is plausible):
            model = models.get(kind_of(setting)) or models["rank"]
            wishes = draw(setting, len(people), seed)
            found = recommended(model, people, wishes)
            each = _levels(found, wishes, model.columns)
            answers.append((setting, wishes, found, {level: each[level] for level in levels}))
        wanted = [one for *_, each in answers for one in each.values()]
        expect(len(certified.missing(wanted)))
        certified.solve(wanted, advance)
        for setting, wishes, found, each in answers:
            exact = {level: certified.of(one) for level, one in each.items()}
            acted = ~np.isnan(found.action[:, model.columns])
            comparisons.append(Compared(setting, plausible, wishes, found, acted, exact))
    return comparisons


def _levels(found: Recommended, wishes: Wishes, columns: Any) -> dict[Level, Wishes]:
    """For each level of certified optima, the wishes with which it is solved."""
    action, factual = found.action[:, columns], found.rows[:, columns]
    acted = ~np.isnan(action)
    down = np.where(acted, action, factual) < factual
    sides = np.where(acted, np.where(down, -1, 1), 0).astype(np.int8)
    masked = wishes & acted
    return {"optimum": wishes, "mask": masked, "direction": replace(masked, sides=sides)}


def kind_of(setting: Setting) -> Kind:
    """The kind of preferences whose networks a setting uses."""
    return "constant" if setting.cell.profile == "constant" else setting.cell.elicitation
