"""``gap``: what amortisation costs, applicant by applicant, against the certified optimum."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.icarma.exact import Certified, Exact
from milp_recourse.icarma.model import Recommender
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.icarma.score import Scored, hard_actions, recommend_timed, rows_of_population, score
from milp_recourse.icarma.shipped import Kind
from milp_recourse.instance import Population
from milp_recourse.lab.gap.evaluate import summary
from milp_recourse.lab.gap.tables import SETTINGS, Setting, draw

BOTH_DEMANDS = 1
"""The table whose settings are also compared without the demand for plausibility."""


@dataclass(frozen=True)
class Answer:
    """What networks say to applicants with these wishes.

    Attributes
    ----------
    wishes
        Masks and weights.
    acted
        The levers that are acted on, shape (n, k).
    scored
        The recommendations, judged.
    limited
        Whether bounds cut the recommendation.
    seconds
        Wall time for all applicants.
    """

    wishes: Wishes
    acted: NDArray[np.bool_]
    scored: Scored
    limited: NDArray[np.bool_]
    seconds: float


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
        The same with nothing actionable but what the networks act on: recommendations polished by the
        engine, so that what is lost by the mask can be told from what is lost by the values.
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
        return self.answer.scored

    @property
    def amortised(self) -> NDArray[np.bool_]:
        """Whom the networks serve within the very constraints of the certified problem."""
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
        """A recommendation that the proof rules out: cheaper than the optimum, or for the impossible."""
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
        paper = self.setting.icarma
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
            "icarma_limited": self.answer.limited.mean(),
            "polished_served": self.within.served.mean(),
            "polished_ratio_median": _quantile(self.polished_ratio, 0.5),
            "polished_ratio_p90": _quantile(self.polished_ratio, 0.9),
            "exact_cost": _mean(plain),
            "exact_hap": _mean(hard),
            "both": int(self.both.sum()),
            "cost_ratio_median": _quantile(self.ratio, 0.5),
            "cost_ratio_p10": _quantile(self.ratio, 0.1),
            "cost_ratio_p90": _quantile(self.ratio, 0.9),
            "cost_difference_mean": _mean(extra),
            "cost_difference_median": _quantile(extra, 0.5),
            "contradicted": int(self.contradicted.sum()),
            "exact_seconds": self.exact.seconds.sum(),
            "icarma_seconds": self.answer.seconds,
            "published_valid": paper[0],
            "published_plausible": paper[1],
            "published_cost": paper[2],
            "published_hap": paper[3] if len(paper) > 3 else float("nan"),
            "published_oracle_valid": self.setting.oracle.validity if self.setting.oracle else float("nan"),
        }


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
    rows = rows_of_population(people.factuals, model.flow.features)
    wishes = draw(setting, len(rows), seed)
    action, limited, seconds = recommend_timed(model, rows, wishes)
    scored = score(people.template, model, rows, wishes, action)
    return Answer(wishes, ~np.isnan(action[:, model.columns]), scored, limited, seconds)


def kind_of(setting: Setting) -> Kind:
    """Whose networks a setting asks for."""
    return "constant" if setting.profile == "constant" else setting.elicitation


def plan(tables: Sequence[int]) -> list[tuple[Setting, bool]]:
    """Settings and demands, in order."""
    chosen = [s for s in SETTINGS if s.table in tables]
    return [(s, True) for s in chosen] + [(s, False) for s in chosen if s.table == BOTH_DEMANDS]


def write(
    compared: Sequence[Compared], people: Population, model: Recommender, folder: Path
) -> list[dict[str, Any]]:
    """The rows of FOLDER/gap.csv, one per setting; FOLDER/applicants.csv has one per applicant."""
    factual = rows_of_population(people.factuals, model.flow.features)[:, model.columns]
    scale = np.array([people.template.cost.scale[f] for f in model.levers])
    rows = [one.row(factual, scale) for one in compared]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "gap.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
    with (folder / "applicants.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for k, one in enumerate(compared):
            columns: Mapping[str, NDArray] = {
                "actionable": one.wishes.actionable.sum(axis=1),
                "status": one.exact.status,
                "optimal_cost": one.exact.cost,
                **one.scored.columns(),
                "served": one.amortised,
                "missed": one.missed,
            }
            if k == 0:
                writer.writerow(["table", "setting", "plausible_demanded", "index", *columns])
            fixed = (one.setting.table, one.setting.label, one.plausible)
            for i, values in enumerate(zip(*columns.values(), strict=True)):
                writer.writerow([*fixed, i, *(_cell(v) for v in values)])
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
    return {short: _plain(row[name]) for name, short in names.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return float(value) if isinstance(value, np.floating) else value


def _cell(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else value


def _mean(values: NDArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _quantile(values: NDArray, q: float) -> float:
    return float(np.quantile(values, q)) if len(values) else float("nan")
