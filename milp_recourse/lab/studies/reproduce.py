"""``milp-recourse lab reproduce``: each oracle row of the paper, grid and certified optimum side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.errors import BadInput
from milp_recourse.formats.write import population_digest
from milp_recourse.lab.run_table import Row, write_table
from milp_recourse.lab.studies import fairness
from milp_recourse.lab.studies.amortised import Networks, amortised_rows, recommendations
from milp_recourse.lab.studies.kept_answers import METHODS, Answers
from milp_recourse.lab.studies.paper_cells import COUNTS, SCENARIOS, SENSITIVITY, TABLES, Cell, Draws, Problem
from milp_recourse.lab.studies.spot_check import spot_check
from milp_recourse.lab.studies.tables import (
    Density,
    Served,
    contradictions,
    density_rows,
    grid_row,
    served,
    table,
)
from milp_recourse.problem.population import Population

TARGETS = (*TABLES, "all")


@dataclass(frozen=True)
class Asked:
    """Options of a run; a folder belongs to one run.

    Parameters
    ----------
    seed
        The seed of all random preferences.
    time_limit
        Seconds per problem.
    certificates
        How many answers, drawn at random, are certified again and checked by ``verify``.
    density
        A learned density by which plausibility is also measured.
    networks
        Trained networks; they get rows in the cells that they were trained for.
    population_name
        The name in the report.
    """

    seed: int = 0
    time_limit: float = 60.0
    certificates: int = 200
    jobs: int = 1
    density: Density | None = None
    networks: tuple[Networks, ...] = ()
    population_name: str = "loan-smooth"


class Reproduction:
    """One folder of answers, tables and pictures.

    Parameters
    ----------
    population
        Loan applicants; their own preferences are not used.
    advance
        Called after each answer with the phase's name.
    expect
        Called before a phase with its number of answers.

    Raises
    ------
    BadInput
        The folder belongs to another run, or the population is not Loan.
    """

    def __init__(
        self,
        population: Population,
        folder: Path,
        asked: Asked,
        advance: Callable[[str], None],
        expect: Callable[[int], None],
    ) -> None:
        actionable = tuple(f.name for f in population.template.features if f.actionable)
        if actionable != LOAN_ACTIONABLE:
            raise BadInput("population", ", ".join(actionable), "Loan: " + ", ".join(LOAN_ACTIONABLE))
        self.population, self.folder, self.asked = population, folder, asked
        self.advance, self.expect = advance, expect
        claim(folder, population, asked.seed, asked.time_limit)
        self.draws = Draws(asked.seed, population)
        self.answers = Answers(folder, LOAN_ACTIONABLE)

    def run(self, target: str) -> dict[str, Any]:
        """Compute a target's answers, write tables, pictures, spot check and report; return the summary.

        Parameters
        ----------
        target
            One of :data:`TARGETS`.
        """
        start = time.perf_counter()
        targets = tuple(TABLES) if target == "all" else (target,)
        cells = list(dict.fromkeys(cell for name in targets for cell in TABLES[name]))
        extra = list(SENSITIVITY) if "table2" in targets else []
        problems = {cell: self.draws.problems(cell) for cell in cells + extra}
        self._answer([p for c in cells for p in problems[c]], [p for c in extra for p in problems[c]])
        sides = {cell: self._sides(cell, problems[cell]) for cell in cells}
        asked = [p for cell in cells for p in problems[cell]]
        known = self.answers.known
        refuted = contradictions(asked, known["grid"], known["certified"])
        written: dict[str, Any] = {}
        for name in targets:
            written[name] = self._write_target(name, sides, problems)
        if extra:
            written["sensitivity"] = self._write_sensitivity()
        checked = self._spot_check(list(dict.fromkeys(asked)))
        summary = {
            "targets": targets,
            "population": self.asked.population_name,
            "applicants": len(self.population),
            "seed": self.asked.seed,
            "problems": len(set(asked)),
            "answers in the cells": len(asked),
            "learned density": self.asked.density is not None,
            "limit": sum(known["certified"][p].status == "limit" for p in set(asked)),
            "contradictions": refuted,
            "spot check": checked,
            "processor seconds": {
                method: sum(known[method][p].seconds for p in set(asked)) for method in METHODS
            },
            "wall seconds of this run": time.perf_counter() - start,
        }
        (self.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        from milp_recourse.lab.studies.report import write_report

        write_report(self.folder, targets, written, summary)
        return summary | {"rows": written}

    def _answer(self, asked: Sequence[Problem], grid_only: Sequence[Problem]) -> None:
        for method in METHODS:
            wanted = [*asked, *grid_only] if method == "grid" else asked
            left = self.answers.files[method].missing(wanted)
            self.expect(len(left))
            jobs, advance = self.asked.jobs, partial(self.advance, method)
            if method == "grid":
                self.answers.solve_grid(self.population, left, jobs, advance)
            else:
                self.answers.solve_certified(self.population, left, self.asked.time_limit, jobs, advance)

    def _sides(self, cell: Cell, problems: list[Problem]) -> dict[str, Served]:
        learned = self.asked.density
        return {m: served(self.draws, cell, problems, self.answers.known[m], learned) for m in METHODS}

    def _with_networks(
        self, cell: Cell, problems: list[Problem], sides: Mapping[str, Served]
    ) -> dict[str, Served]:
        """A figure's methods: grid, certified, and the first seed of all networks trained for the cell."""
        every = dict(sides)
        for networks in self.asked.networks:
            if networks.trained_for(cell):
                found = recommendations(networks, cell, problems, self.draws)
                every[networks.method] = served(self.draws, cell, problems, found, self.asked.density)
        return every

    def _write_target(
        self, name: str, sides: Mapping[Cell, Mapping[str, Served]], problems: Mapping[Cell, list[Problem]]
    ) -> list[Row]:
        from milp_recourse.lab.studies import figures

        cells = TABLES[name]
        if name in ("figure3", "figure4"):
            sides = {cell: self._with_networks(cell, problems[cell], sides[cell]) for cell in cells}
        if name == "figure4":
            rows = [
                row
                for scenario, cell in zip(SCENARIOS, cells, strict=True)
                for row in fairness.scenario_rows(scenario, self.draws, problems[cell], sides[cell])
            ]
            write_table(self.folder / f"{name}.csv", rows)
            figures.by_group(rows, self.folder / "figure4.png")
            figures.gaps(rows, self.folder / "figure4_gaps.png")
            return rows
        by_count = dict(zip(COUNTS, (sides[cell] for cell in cells), strict=False))
        if name == "figure3":
            factual = self.population.template.scm.log_density(self.population.rows)
            rows = [row for cell in cells for row in density_rows(cell, factual, sides[cell])]
            write_table(self.folder / f"{name}.csv", rows)
            figures.densities(factual, by_count, self.folder / "figure3.png")
            return rows
        rows = []
        for cell in cells:
            rows += table(name, cell, sides[cell]["grid"], sides[cell]["certified"])
            if name != "table6":
                rows += amortised_rows(name, cell, self.draws, self.asked.networks)
        write_table(self.folder / f"{name}.csv", rows)
        figures.bars(name, rows, self.folder / f"{name}.png")
        if name == "table1":
            figures.excesses(by_count, self.folder / "excess.png")
        return rows

    def _write_sensitivity(self) -> list[Row]:
        """Write the grid's rows of :data:`SENSITIVITY`: other values of w_max and alpha."""
        rows = []
        for cell in SENSITIVITY:
            row = grid_row("sensitivity", cell, self.draws, self.answers.known["grid"])
            rows.append(
                {
                    "profile": cell.profile,
                    "w_max": cell.w_max,
                    "alpha": cell.cost_profile().alpha,
                    **{key: row[key] for key in ("validity", "cost mean", "cost sd", "hap")},
                }
            )
        write_table(self.folder / "sensitivity.csv", rows)
        return rows

    def _spot_check(self, problems: Sequence[Problem]) -> dict[str, Any] | None:
        count = self.asked.certificates
        if not count:
            return None
        known = {p: self.answers.known["certified"][p] for p in problems}
        self.expect(min(count, len(known)))
        return spot_check(
            self.population,
            known,
            self.folder / "spot_check",
            count,
            self.asked.seed,
            self.asked.time_limit,
            self.asked.jobs,
            lambda: self.advance("certificates"),
        )


def claim(folder: Path, population: Population, seed: int, time_limit: float) -> None:
    """Write into a new folder which run it belongs to; check that of an existing one.

    Raises
    ------
    BadInput
        The folder belongs to a run with other options or another population.
    """
    identity = {
        "seed": seed,
        "time_limit": time_limit,
        "applicants": len(population),
        "population": population_digest(population),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "run.json"
    if not path.exists():
        path.write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")
    elif json.loads(path.read_text(encoding="utf-8")) != identity:
        raise BadInput("--out", "another run's folder", "a new folder, or the same options")
