"""One shared grid per applicant answers exactly as the back end ``grid`` does, mask by mask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_population
from milp_recourse.lab.studies.grid_together import SharedGrid
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve

LOAN = read_population(Path(__file__).resolve().parents[3] / "instances" / "loan" / "population.json")


def variants(one: Instance, rng: np.random.Generator) -> list[Instance]:
    """Masks of every size, weights from 1 to 7; few features where plausibility is not asked for."""
    made = []
    for size in (1, 2, 3, 4):
        mask = tuple(n for n in LOAN_ACTIONABLE if n in rng.choice(LOAN_ACTIONABLE, size=size, replace=False))
        weights = {name: float(rng.uniform(1, 7)) for name in mask}
        for plausible in (True, False) if size < 3 else (True,):
            made.append(replace(one, preferences=Preferences(mask, weights), plausible=plausible))
    return made


@pytest.mark.parametrize("index", [0, 7, 10, 31, 200])
def test_same_answers_as_the_back_end(index: int) -> None:
    """Status and cost agree for every mask; both outcomes come up over the applicants."""
    grid = SharedGrid(LOAN[index])
    for instance in variants(LOAN[index], np.random.default_rng(index)):
        shared, alone = grid.solve(instance), solve(instance, "grid")
        assert shared.status is alone.status
        assert shared.cost == alone.cost


def test_the_cases_above_are_of_both_kinds() -> None:
    """Some masks have a grid point, some have none: agreement is not agreement on nothing."""
    kinds = set()
    for index in (0, 7, 10):
        grid = SharedGrid(LOAN[index])
        kinds |= {grid.solve(i).status for i in variants(LOAN[index], np.random.default_rng(index))}
    assert kinds == {Status.FOUND, Status.NOT_FOUND}


def test_other_costs_are_refused() -> None:
    """Its sums are weighted squares: anything else is the back end's."""
    with pytest.raises(Unsupported, match="l2-squared"):
        SharedGrid(replace(LOAN[0], cost=Cost.pure("l1", LOAN[0].cost.measures)))
