"""``bench settings``: every refused test applicant of Loan, in the settings of the iCARMA paper's table 1.

In a setting (table 1 and appendix B.2) an applicant can act on all four features, on the three, two or one
that they rank highest, or on a random number of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.lab.gap import paper_settings as tables
from milp_recourse.lab.means import mean, quantiles, sd
from milp_recourse.lab.run_table import Key, Row, filled
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import solve_population
from milp_recourse.reports.drawing import panels, save

SETTINGS = ("4", "3", "2", "1", "random")
"""How many features each applicant can act on."""

IDENTITY = ("applicants", "seed", "time_limit", "backend")
"""Columns with the same value in all rows of a table."""


def preferences(setting: str, size: int, seed: int) -> tuple[Preferences, ...]:
    """The masks of ``size`` applicants. Each has one random ranking, the same in every setting.

    Parameters
    ----------
    setting
        One of :data:`SETTINGS`: how many of the highest ranked features are actionable; for ``random``
        the number is drawn uniformly from 1 to 4 per applicant.
    """
    (own,) = (one for one in tables.SETTINGS if (one.table, one.label) == (1, setting))
    return tables.draw(own, size, seed).preferences(LOAN_ACTIONABLE)


def in_setting(population: Population, setting: str, plausible: bool, seed: int) -> Population:
    """The same applicants with the masks of a setting, plausibility demanded or not."""
    masks = preferences(setting, len(population), seed)
    template = replace(population.template, plausible=plausible, preferences=masks[0], reference=None)
    return Population(template, population.factuals, masks)


def run(
    population: Population, folder: Path, options: dict[str, Any], jobs: int, advance: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Solve the settings that ``folder/settings.csv`` does not hold yet, and write their rows; all rows.

    Parameters
    ----------
    options
        ``seed``, ``time_limit`` (seconds per applicant) and ``backend``.
    advance
        Called after every applicant with the setting's name.

    Raises
    ------
    BadInput
        The table holds a run of other applicants or options.
    """
    identity = {"applicants": len(population), **options}

    def solved(asked: tuple[str, bool], done: set[Key]) -> Iterator[Row | None]:
        setting, plausible = asked
        if (setting, str(plausible)) in done:
            return
        people = in_setting(population, setting, plausible, options["seed"])
        start, processor = time.perf_counter(), time.process_time()
        results = []
        for result in solve_population(people, options["backend"], options["time_limit"], jobs=jobs):
            results.append(result)
            advance(name_of(setting, plausible))
        spent = time.process_time() - processor if jobs == 1 else None
        row = {"actionable": setting, "plausible": plausible, **identity, **summary(results, spent)}
        yield row | {"wall_seconds": f"{time.perf_counter() - start:.4g}"}

    groups = {name_of(setting, asked): (setting, asked) for asked in (True, False) for setting in SETTINGS}
    return filled(folder / "settings.csv", None, identity, 2, groups, solved)


def name_of(setting: str, plausible: bool) -> str:
    """A setting in words, for the progress bar."""
    return f"{setting} actionable, {'plausible' if plausible else 'plausibility not asked'}"


def summary(results: Sequence[Result], processor: float | None = None) -> dict[str, Any]:
    """Counts of statuses, validity (the share with recourse), the costs of these, and seconds per applicant.

    Parameters
    ----------
    processor
        Processor seconds of the whole run; an applicant's share (in ``cpu_mean``, ``cpu_median`` and
        ``cpu_p999``) is that of their wall seconds. None if other processes did the work: the columns are
        then empty.
    """
    counts = Counter(result.status.value for result in results)
    costs = np.array([result.cost for result in results if result.cost is not None])
    seconds = np.array([result.seconds for result in results])
    numbers = {
        "validity": len(costs) / len(results),
        "cost_mean": mean(costs),
        "cost_sd": sd(costs),
        "seconds_mean": mean(seconds),
        **quantiles("seconds", seconds, median=0.5, p99=0.99, p999=0.999, max=1.0),
    }
    own = np.empty(0) if processor is None else seconds * processor / seconds.sum()
    cpu = {"cpu_mean": mean(own)} | quantiles("cpu", own, median=0.5, p999=0.999)
    statuses = {name: counts[name] for name in ("optimal", "infeasible", "limit")}
    shown = {name: f"{value:.6g}" for name, value in (numbers | cpu).items()}
    return statuses | shown | (dict.fromkeys(cpu, "") if processor is None else {})


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Draw ``folder/settings.png``: validity, cost and seconds per setting."""
    figure, (valid, cost, seconds) = panels((10.5, 3.6), 1, 3)
    for shift, (plausible, label) in enumerate((("True", "plausible"), ("False", "not asked"))):
        mine = {row["actionable"]: row for row in rows if row["plausible"] == plausible}
        names = [name for name in SETTINGS if name in mine]
        x = np.array([SETTINGS.index(name) for name in names], dtype=float) + (shift - 0.5) * 0.38

        def of(column: str, mine: dict[str, Any] = mine, names: Sequence[str] = names) -> list[float]:
            return [float(mine[name][column]) for name in names]

        color = f"C{shift}"
        valid.bar(x, of("validity"), 0.36, color=color, label=label)
        cost.bar(x, of("cost_mean"), 0.36, color=color)
        for column, marker in (("mean", "o"), ("p99", "_"), ("max", "^")):
            key = column if shift == 0 else None
            seconds.plot(x, of(f"seconds_{column}"), marker, color=color, label=key, markersize=7)
    valid.set(title="share with recourse", ylim=(0, 1.0))
    cost.set(title="mean cost where there is recourse")
    seconds.set(title="seconds per applicant", yscale="log")
    for axes in (valid, cost, seconds):
        axes.set_xticks(range(len(SETTINGS)), SETTINGS)
        axes.set_xlabel("actionable features")
    figure.legend(
        *valid.get_legend_handles_labels(), loc="outside upper center", ncols=2, title="plausibility"
    )
    seconds.legend(loc="lower center", bbox_to_anchor=(0.5, 1.1), ncols=3, frameon=False)
    return save(figure, folder / "settings.png")
