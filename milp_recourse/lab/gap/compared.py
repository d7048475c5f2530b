"""Networks' recommendations beside certified optima of the same applicants with the same preferences.

Answers to one problem, each free where the next one is bound:

1. ``optimum``: the certified optimum;
2. ``mask``: the certified optimum when only the features may be acted on that the networks act on;
3. ``direction``: and only in the direction in which the networks move them (or held);
4. ``networks``: what the networks recommend.

What ``networks`` costs more than ``direction`` is lost by the networks' values, what ``mask`` costs more than
``optimum`` by their mask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.icarma.exact import Certified, Exact
from milp_recourse.icarma.model import Recommender
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.icarma.score import Recommended, Scored, recommended
from milp_recourse.icarma.shipped import Kind
from milp_recourse.instance import Population
from milp_recourse.lab.gap.paper_settings import Setting, draw

Level = Literal["optimum", "mask", "direction"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Compared:
    """One setting under one demand, an entry per applicant in every array.

    Attributes
    ----------
    setting, plausible
        Which applicants' wishes, and whether plausibility is demanded.
    wishes
        Masks and weights.
    said
        The networks' recommendations, judged.
    acted
        The levers that they act on, shape (n, k).
    exact
        The certified optima by level; ``optimum`` is there.
    """

    setting: Setting
    plausible: bool
    wishes: Wishes
    said: Recommended
    acted: BoolArray
    exact: Mapping[Level, Exact]

    def of(self, people: BoolArray) -> Compared:
        """The same of some of the people; seconds stay those of all."""
        part: Compared = _some(self, people)
        return part

    @property
    def scored(self) -> Scored:
        """The recommendations, judged."""
        return self.said.scored

    @property
    def optimum(self) -> Exact:
        """The certified optima."""
        return self.exact["optimum"]

    @property
    def served(self) -> BoolArray:
        """Whom the networks serve: in float64, the recommendation is feasible for the certified problem."""
        return self.scored.serves(self.plausible)

    @property
    def both(self) -> BoolArray:
        """Whom both serve: the only ones whose costs can be compared."""
        return self.served & self.optimum.served

    @property
    def missed(self) -> BoolArray:
        """Recourse exists, proven by the optimum; the networks' recommendation fails."""
        return self.optimum.served & ~self.served

    @property
    def contradicted(self) -> BoolArray:
        """Whose recommendation the proof rules out: cheaper than the optimum, or no action exists at all."""
        return self.optimum.contradicted_by(self.served, self.scored.cost)

    @property
    def ratio(self) -> FloatArray:
        """Cost over optimal cost, of those both serve."""
        return self.scored.cost[self.both] / self.optimum.cost[self.both]

    @property
    def mask_ratio(self) -> FloatArray:
        """Least cost within the networks' mask over optimal cost, of those it leaves recourse."""
        within = self.exact["mask"]
        kept = within.served & self.optimum.served
        return within.cost[kept] / self.optimum.cost[kept]


def _some(value: Any, people: BoolArray) -> Any:
    """The entries of some of the people, through dataclasses and mappings of arrays."""
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
    """Ask networks and engine; certified optima are kept in FOLDER/exact.

    Parameters
    ----------
    people
        Loan applicants; their own preferences are not used.
    models
        Networks by what they were trained for; where a setting's own are not there, those for ranks.
    asked
        Settings, and whether plausibility is demanded.
    seed
        Of the preferences.
    time_limit, jobs
        Of the engine: seconds per problem, processes.
    expect, advance
        Called with the number of problems to come, and after every one of them.
    """
    made = []
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
            said = recommended(model, people, wishes)
            each = _levels(said, wishes, model.columns)
            answers.append((setting, wishes, said, {level: each[level] for level in levels}))
        wanted = [one for *_, each in answers for one in each.values()]
        expect(len(certified.missing(wanted)))
        certified.solve(wanted, advance)
        for setting, wishes, said, each in answers:
            exact = {level: certified.of(one) for level, one in each.items()}
            acted = ~np.isnan(said.action[:, model.columns])
            made.append(Compared(setting, plausible, wishes, said, acted, exact))
    return made


def _levels(said: Recommended, wishes: Wishes, columns: Any) -> dict[Level, Wishes]:
    """Everything allowed; the networks' mask; and their direction."""
    action, factual = said.action[:, columns], said.rows[:, columns]
    acted = ~np.isnan(action)
    down = np.where(acted, action, factual) < factual
    sides = np.where(acted, np.where(down, -1, 1), 0).astype(np.int8)
    masked = wishes & acted
    return {"optimum": wishes, "mask": masked, "direction": replace(masked, sides=sides)}


def kind_of(setting: Setting) -> Kind:
    """Whose networks a setting asks for."""
    return "constant" if setting.cell.profile == "constant" else setting.cell.elicitation
