"""``gap``: what amortisation costs, applicant by applicant, against the certified optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.icarma.exact import Certified, Exact
from milp_recourse.icarma.model import Recommender
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.icarma.score import Recommended, Scored, hard_actions, recommended, rows_of_population
from milp_recourse.icarma.shipped import Kind
from milp_recourse.instance import Population
from milp_recourse.lab.gap.evaluate import summary
from milp_recourse.lab.gap.tables import SETTINGS, Setting, draw
from milp_recourse.lab.means import mean, quantile
from milp_recourse.reports.number_table import write_table

ALSO_WITHOUT_PLAUSIBILITY = 1
"""The number of the paper's table whose settings are compared both with and without plausibility demanded."""


@dataclass(frozen=True)
class Answer:
    """What networks say to applicants with these wishes."""

    model: Recommender
    wishes: Wishes
    said: Recommended

    @property
    def acted(self) -> NDArray[np.bool_]:
        """The levers that are acted on, shape (n, k)."""
        return ~np.isnan(self.said.action[:, self.model.columns])


@dataclass(frozen=True)
class Compared:
    """One setting under one demand.

    Attributes
    ----------
    setting, plausible
        Which applicants' wishes, and whether plausibility is demanded.
    answer
        The networks' recommendations.
    exact
        The certified optima.
    within
        The certified optima where only the features that the networks act on are actionable (the columns
        ``polished_...``): what the networks cost more than these is lost by their values, what these cost
        more than ``exact`` is lost by their mask.
    """

    setting: Setting
    plausible: bool
    answer: Answer
    exact: Exact
    within: Exact

    @property
    def wishes(self) -> Wishes:
        """Masks and weights."""
        return self.answer.wishes

    @property
    def scored(self) -> Scored:
        """The recommendations, judged."""
        return self.answer.said.scored

    @property
    def amortised(self) -> NDArray[np.bool_]:
        """Whom the networks serve: in float64, the recommendation is feasible for the certified problem."""
        return self.scored.serves(self.plausible)

    @property
    def both(self) -> NDArray[np.bool_]:
        """Whom both serve: the only ones whose costs can be compared."""
        return self.amortised & self.exact.served

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Recourse exists, proven by the optimum; the networks' recommendation fails."""
        return self.exact.served & ~self.amortised

    @property
    def contradicted(self) -> NDArray[np.bool_]:
        """Whose recommendation the proof rules out: cheaper than the optimum, or no action exists at all."""
        return self.exact.contradicted_by(self.amortised, self.scored.cost)

    @property
    def ratio(self) -> NDArray[np.float64]:
        """Cost over optimal cost, of those both serve."""
        return self.scored.cost[self.both] / self.exact.cost[self.both]

    @property
    def polished_ratio(self) -> NDArray[np.float64]:
        """Least cost within the networks' mask over optimal cost, of those it leaves recourse."""
        kept = self.within.served & self.exact.served
        return self.within.cost[kept] / self.exact.cost[kept]

    def row(self, levers_factual: NDArray[np.float64], scale: NDArray[np.float64]) -> dict[str, Any]:
        """The setting in numbers."""
        n = len(self.wishes)
        extra = self.scored.cost[self.both] - self.exact.cost[self.both]
        acting = self.exact.served
        moves = np.nan_to_num((self.exact.action - levers_factual) / scale)
        plain = np.square(moves).sum(axis=1)[acting]
        hard = hard_actions(levers_factual, self.exact.action, self.wishes)[acting]
        paper, oracle = self.setting.icarma, self.setting.oracle
        assert paper is not None
        return {
            "table": self.setting.table,
            "setting": self.setting.label,
            "plausible_demanded": self.plausible,
            "applicants": n,
            "recourse_exists": self.exact.served.mean(),
            "impossible": self.exact.impossible.mean(),
            "open": (self.exact.status == "limit").mean(),
            "served": self.amortised.mean(),
            "missed": self.missed.mean(),
            **{f"icarma_{k}": v for k, v in summary(self.scored).items()},
            "icarma_limited": self.answer.said.limited.mean(),
            "polished_served": self.within.served.mean(),
            "polished_ratio_median": quantile(self.polished_ratio, 0.5),
            "polished_ratio_p90": quantile(self.polished_ratio, 0.9),
            "exact_cost": mean(plain),
            "exact_hap": mean(hard),
            "both": int(self.both.sum()),
            "cost_ratio_median": quantile(self.ratio, 0.5),
            "cost_ratio_p10": quantile(self.ratio, 0.1),
            "cost_ratio_p90": quantile(self.ratio, 0.9),
            "cost_difference_mean": mean(extra),
            "cost_difference_median": quantile(extra, 0.5),
            "contradicted": int(self.contradicted.sum()),
            "exact_seconds": self.exact.seconds.sum(),
            "icarma_seconds": self.answer.said.seconds,
            "published_valid": paper.validity,
            "published_plausible": paper.plausibility,
            "published_cost": paper.cost_mean,
            "published_hap": float("nan") if paper.hap is None else paper.hap,
            "published_oracle_valid": oracle.validity if oracle else float("nan"),
        }

    def applicants(self) -> Iterator[dict[str, Any]]:
        """One row per applicant."""
        columns: Mapping[str, NDArray] = {
            "actionable": self.wishes.actionable.sum(axis=1),
            "status": self.exact.status,
            "optimal_cost": self.exact.cost,
            **self.scored.columns(),
            "served": self.amortised,
            "missed": self.missed,
        }
        head = {"table": self.setting.table, "setting": self.setting.label}
        for k in range(len(self.wishes)):
            row = {"plausible_demanded": self.plausible, "index": k}
            yield head | row | {name: values[k] for name, values in columns.items()}


def compare(
    people: Population,
    models: Mapping[Kind, Recommender],
    folder: Path,
    tables: Sequence[int] = (1, 2, 3, 5),
    seed: int = 0,
    time_limit: float = 60.0,
    jobs: int = 2,
    expect: Callable[[int], None] = lambda _: None,
    advance: Callable[[], None] = lambda: None,
) -> list[Compared]:
    """Every setting of the tables; certified optima are kept in FOLDER/exact.

    Parameters
    ----------
    models
        Networks for constant weights, for ranks and for scores; ``rank`` has to be there and stands in
        for the others. (The paper trains networks for every profile and elicitation.)
    seed
        Of the preferences.
    time_limit, jobs
        Of the engine: seconds per applicant, processes.
    expect, advance
        Called with the number of problems to come, and after every one of them.
    """
    planned = plan(tables)
    made = []
    for plausible in (True, False):
        settings = [setting for setting, demand in planned if demand is plausible]
        asked = Population(replace(people.template, plausible=plausible), people.factuals, people.preferences)
        certified = Certified(asked, models["rank"].levers, folder / "exact", time_limit, jobs)
        answers = [_answer(setting, people, models, seed) for setting in settings]
        wanted = [one for answer in answers for one in (answer.wishes, answer.wishes & answer.acted)]
        expect(len(certified.missing(wanted)))
        certified.solve(wanted, advance)
        for setting, answer in zip(settings, answers, strict=True):
            exact = certified.of(answer.wishes)
            within = certified.of(answer.wishes & answer.acted)
            made.append(Compared(setting, plausible, answer, exact, within))
    return made


def _answer(setting: Setting, people: Population, models: Mapping[Kind, Recommender], seed: int) -> Answer:
    """What the networks of a setting say, judged."""
    model = models.get(kind_of(setting), models["rank"])
    wishes = draw(setting, len(people), seed)
    return Answer(model, wishes, recommended(model, people, wishes))


def kind_of(setting: Setting) -> Kind:
    """Whose networks a setting asks for."""
    return "constant" if setting.profile == "constant" else setting.elicitation


def plan(tables: Sequence[int]) -> list[tuple[Setting, bool]]:
    """Settings and demands, in order."""
    chosen = [s for s in SETTINGS if s.table in tables]
    return [(s, True) for s in chosen] + [(s, False) for s in chosen if s.table == ALSO_WITHOUT_PLAUSIBILITY]


def write(
    compared: Sequence[Compared], people: Population, model: Recommender, folder: Path
) -> list[dict[str, Any]]:
    """The rows of FOLDER/gap.csv, one per setting; FOLDER/applicants.csv has one per applicant."""
    factual = rows_of_population(people.factuals, model.flow.features)[:, model.columns]
    scale = np.array([people.template.cost.scale[f] for f in model.levers])
    rows = [one.row(factual, scale) for one in compared]
    write_table(folder / "gap.csv", [_plain(row) for row in rows])
    write_table(folder / "applicants.csv", [_plain(row) for one in compared for row in one.applicants()])
    return rows


def in_short(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that fit a terminal."""
    names = {
        "table": "table",
        "setting": "setting",
        "plausible_demanded": "plausible asked",
        "recourse_exists": "recourse exists",
        "served": "served",
        "missed": "missed",
        "icarma_valid": "valid",
        "icarma_plausible": "plausible",
        "icarma_hap": "hap",
        "exact_hap": "exact hap",
        "cost_ratio_median": "cost ratio",
        "polished_served": "polished",
        "polished_ratio_median": "its ratio",
        "cost_difference_mean": "cost +",
        "exact_seconds": "exact s",
        "icarma_seconds": "icarma s",
    }
    return {short: row[name] for name, short in names.items()}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Truths as 1 and 0."""
    return {k: int(v) if isinstance(v, (bool, np.bool_)) else v for k, v in row.items()}
