"""Where amortised recourse loses against the certified optimum: mask, direction, or values.

Each problem is an applicant with the features that are the 4, 3, 2 or 1 best ranked, weights 1 and
plausibility demanded; no problem occurs twice. Four answers to it are compared, each free where the next
one is bound:

1. ``optimum``: the certified optimum;
2. ``mask``: the certified optimum when only the features may be acted on that the networks act on;
3. ``direction``: and only in the direction in which the networks move them (or held);
4. ``networks``: what the networks recommend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.icarma.exact import Certified, Exact
from milp_recourse.icarma.model import Recommender
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.icarma.score import Scored, recommend_timed, rows_of_population, score
from milp_recourse.instance import Population
from milp_recourse.judge import judge
from milp_recourse.lab.gap.tables import SETTINGS, draw
from milp_recourse.lab.means import bootstrap, interval, mean, quantile
from milp_recourse.reports.number_table import write_table

COUNTS = (4, 3, 2, 1)
LEVELS = ("optimum", "mask", "direction", "networks")
MISSED = ("missed, only implausible", "missed, only invalid", "missed, both")
QUARTERS = 4

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Decomposed:
    """The problems with one number of actionable features.

    Attributes
    ----------
    count
        Actionable features.
    wishes
        Masks and weights.
    acted
        What the networks act on, shape (n, k).
    scored
        The networks' recommendations, judged.
    optimum, mask, direction
        Certified, in the order of :data:`LEVELS`.
    log_density
        Of the factuals under the true equations, in nats.
    amortise_seconds, check_seconds
        Processor seconds for all: the networks, and exact judgement of what they say.
    """

    count: int
    wishes: Wishes
    acted: BoolArray
    scored: Scored
    optimum: Exact
    mask: Exact
    direction: Exact
    log_density: FloatArray
    amortise_seconds: float
    check_seconds: float

    def of(self, people: BoolArray) -> Decomposed:
        """The problems of some of the people; seconds stay those of all."""
        parts = {name: getattr(self, name) for name in ("scored", "optimum", "mask", "direction")}
        kept = {
            name: replace(part, **{f.name: getattr(part, f.name)[people] for f in fields(part)})
            for name, part in parts.items()
        }
        kept |= {name: getattr(self, name)[people] for name in ("wishes", "acted", "log_density")}
        return replace(self, **kept)

    def by_density(self) -> list[dict[str, Any]]:
        """:meth:`row` for each quarter of the applicants, from the least to the most probable factuals."""
        ends = np.quantile(self.log_density, np.linspace(0, 1, QUARTERS + 1))
        part = np.clip(np.searchsorted(ends, self.log_density, side="right") - 1, 0, QUARTERS - 1)
        rows = []
        for k in range(QUARTERS):
            if (part == k).any():
                density = {"log density from": float(ends[k]), "log density to": float(ends[k + 1])}
                row = self.of(part == k).row()
                rows.append(
                    {"quarter": k + 1, **density, **{n: v for n, v in row.items() if "seconds" not in n}}
                )
        return rows

    @property
    def served(self) -> BoolArray:
        """Whose recommendation the certified problem admits."""
        return self.scored.serves(plausible=True)

    @property
    def failed(self) -> BoolArray:
        """Whom the engine has to be asked about, after the check: no admissible recommendation."""
        return ~self.served

    @property
    def contradicted(self) -> BoolArray:
        """Recommendations that the proof rules out; there must be none."""
        return self.optimum.contradicted_by(self.served, self.scored.cost)

    def missed(self) -> dict[str, BoolArray]:
        """Those with certified recourse and no admissible recommendation, by what is wrong with it."""
        missed = self.optimum.served & ~self.served
        valid, plausible = self.scored.sure, self.scored.plausible
        return {
            name: missed & how
            for name, how in zip(
                MISSED, (valid & ~plausible, ~valid & plausible, ~valid & ~plausible), strict=True
            )
        }

    @property
    def serves(self) -> dict[str, BoolArray]:
        """By level: who is served."""
        exact = {"optimum": self.optimum, "mask": self.mask, "direction": self.direction}
        return {name: one.served for name, one in exact.items()} | {"networks": self.served}

    @property
    def costs(self) -> dict[str, FloatArray]:
        """By level: costs; nan or meaningless where not served."""
        exact = {"optimum": self.optimum, "mask": self.mask, "direction": self.direction}
        return {name: one.cost for name, one in exact.items()} | {"networks": self.scored.cost}

    def row(self) -> dict[str, Any]:
        """The decomposition in numbers.

        Costs are means over those whom the networks serve (who are served at every level); ``... low`` and
        ``high`` are 95% bootstrap intervals over applicants. ``share of the excess`` divides what a level
        adds by what the networks pay above the optimum.
        """
        n, who = len(self.wishes), self.served
        row: dict[str, Any] = {"actionable": self.count, "problems": n}
        row |= {"impossible": float(self.optimum.impossible.mean())}
        row |= {"limit": int((self.optimum.status == "limit").sum())}
        row |= {f"served, {name}": float(mine.mean()) for name, mine in self.serves.items()}
        row |= {name: float(mine.mean()) for name, mine in self.missed().items()}
        table = np.array([self.costs[name][who] for name in LEVELS])
        row["both served"] = int(who.sum())
        samples = bootstrap(table.T, np.random.default_rng(self.count))
        for k, name in enumerate(LEVELS):
            low, high = interval(samples[:, k])
            row |= {f"cost, {name}": mean(table[k])}
            row |= {f"cost, {name} low": low, f"cost, {name} high": high}
        excess = row["cost, networks"] - row["cost, optimum"]
        for before, name in pairwise(LEVELS):
            row[f"share of the excess, {name}"] = (row[f"cost, {name}"] - row[f"cost, {before}"]) / excess
        row["median cost ratio, networks"] = quantile(table[3] / table[0], 0.5)
        seconds = self.optimum.seconds
        row |= {
            "failed share": float(self.failed.mean()),
            "seconds, certify all": float(seconds.sum()),
            "seconds, certify the failed": float(seconds[self.failed].sum()),
            "seconds, amortise": self.amortise_seconds,
            "seconds, check": self.check_seconds,
        }
        return row


def decompose(
    people: Population,
    model: Recommender,
    folder: Path,
    seed: int = 0,
    time_limit: float = 60.0,
    jobs: int = 1,
    expect: Callable[[int], None] = lambda _: None,
    advance: Callable[[], None] = lambda: None,
) -> list[Decomposed]:
    """All problems of all counts; certified answers are kept in FOLDER/exact.

    Parameters
    ----------
    people
        Loan applicants; their own preferences are not used.
    seed
        Of the rankings, the same as in table 1.
    expect, advance
        Called with the number of problems to solve, and after each.
    """
    people = Population(replace(people.template, plausible=True), people.factuals, people.preferences)
    rows = rows_of_population(people.factuals, model.flow.features)
    certified = Certified(people, model.levers, folder / "exact", time_limit, jobs)
    settings = [s for s in SETTINGS if s.table == 1 and s.actionable in COUNTS]
    planned = []
    for setting in settings:
        wishes = draw(setting, len(rows), seed)
        clock = time.process_time()
        action, _, _ = recommend_timed(model, rows, wishes)
        amortise = time.process_time() - clock
        planned.append((setting, wishes, action, amortise))
    levels = [_levels(model, rows, wishes, action) for _, wishes, action, _ in planned]
    everything = [one for three in levels for one in three]
    expect(len(certified.missing(everything)))
    certified.solve(everything, advance)
    density = people.template.scm.log_density(rows)
    made = []
    for (setting, wishes, action, amortise), three in zip(planned, levels, strict=True):
        scored = score(people.template, model, rows, wishes, action)
        clock = time.process_time()
        _check(people, model, wishes, action)
        check = time.process_time() - clock
        acted = ~np.isnan(action[:, model.columns])
        optimum, mask, direction = (certified.of(one) for one in three)
        count = setting.actionable or 0
        levels_of = optimum, mask, direction
        made.append(Decomposed(count, wishes, acted, scored, *levels_of, density, amortise, check))
    return made


def _levels(model: Recommender, rows: FloatArray, wishes: Wishes, action: FloatArray) -> tuple[Wishes, ...]:
    """Everything allowed; the networks' mask; and their direction."""
    acted = ~np.isnan(action[:, model.columns])
    moves = np.where(acted, action[:, model.columns] - rows[:, model.columns], 0.0)
    sides = np.where(acted, np.where(moves < 0, -1, 1), 0).astype(np.int8)
    return wishes, wishes & acted, replace(wishes & acted, sides=sides)


def _check(people: Population, model: Recommender, wishes: Wishes, action: FloatArray) -> None:
    """Judge every recommendation exactly, as somebody who serves people would; only its time is used here."""
    asked = Population(people.template, people.factuals, wishes.preferences(model.levers))
    for k, row in enumerate(action):
        said = {name: float(row[c]) for name, c in zip(model.levers, model.columns, strict=True)}
        judge(asked[k], {name: value for name, value in said.items() if not np.isnan(value)})


def write(decomposed: Sequence[Decomposed], folder: Path) -> list[dict[str, Any]]:
    """FOLDER/decomposition.csv by number of features, by_density.csv also by quarter of the applicants,
    applicants.csv.gz by problem, decomposition.svg."""
    from milp_recourse.lab.gap.plots import plot_decomposition

    rows = [one.row() for one in decomposed]
    write_table(folder / "decomposition.csv", rows)
    write_table(folder / "by_density.csv", [row for one in decomposed for row in one.by_density()])
    write_table(folder / "applicants.csv.gz", [row for one in decomposed for row in _applicants(one)])
    plot_decomposition(rows, folder / "decomposition.svg")
    return rows


def _applicants(one: Decomposed) -> Iterator[dict[str, Any]]:
    """A row per problem; masks as 0s and 1s, costs where an action serves, and of what the networks say."""
    costs = {name: np.where(one.serves[name], one.costs[name], np.nan) for name in LEVELS[:3]}
    costs["networks"] = one.scored.cost
    for k in range(len(one.wishes)):
        masks = ("".join("01"[int(b)] for b in mask[k]) for mask in (one.wishes.actionable, one.acted))
        row = {"actionable": one.count, "index": k, **dict(zip(("can", "acted"), masks, strict=True))}
        row |= {"status": one.optimum.status[k]}
        row |= {f"cost_{n}": None if np.isnan(values[k]) else values[k] for n, values in costs.items()}
        row |= {"valid": int(one.scored.sure[k]), "plausible": int(one.scored.plausible[k])}
        yield row | {"seconds": f"{one.optimum.seconds[k]:.3g}"}
