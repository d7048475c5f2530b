"""The fairness case study (iCARMA paper, section 5.5 and figure 4): costs and densities by group.

Gender is a feature of Loan. Race is drawn at random, in equal halves within each gender; it affects no
feature, and only in one scenario decides who gets which preference profile. Each mean has a bootstrap
interval over the applicants, which shows how much another sample could differ, and certified bounds, which
show how much unfinished searches could change the mean of this sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.means import bootstrap, interval, mean
from milp_recourse.lab.studies.paper_cells import Draws, Problem
from milp_recourse.lab.studies.tables import Served

GROUPS = ("female, white", "female, non-white", "male, white", "male, non-white")
"""Gender 0 is taken for female: the equations give gender 1 the higher income, and the paper's costs are
higher for women."""

GAPS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "female - male": (GROUPS[:2], GROUPS[2:]),
    "non-white - white": ((GROUPS[1], GROUPS[3]), (GROUPS[0], GROUPS[2])),
    "non-white female - white male": ((GROUPS[1],), (GROUPS[2],)),
}

COLUMNS = (
    "scenario", "method", "group", "applicants", "served", "validity",
    "cost", "cost low", "cost high", "cost certified from", "cost certified to",
    "log density", "log density low", "log density high", "factual log density",
)  # fmt: skip


def groups(draws: Draws) -> NDArray[np.str_]:
    """Each applicant's group, one of :data:`GROUPS`."""
    white = draws.race()
    female = np.array([one["gender"] for one in draws.population.factuals]) == 0
    return np.where(female, np.where(white, GROUPS[0], GROUPS[1]), np.where(white, GROUPS[2], GROUPS[3]))


def scenario_rows(
    name: str, draws: Draws, problems: list[Problem], answers: Mapping[str, Served]
) -> list[dict[str, Any]]:
    """The rows of a scenario: for each method one per group, then one per gap between groups."""
    member = groups(draws)
    factual = draws.population.template.scm.log_density(draws.population.rows)
    ceiling = largest_costs(draws, problems)
    rows = []
    for method, mine in answers.items():
        rng = np.random.default_rng([draws.seed, 300])
        means: dict[str, dict[str, Any]] = {}
        for group in GROUPS:
            means[group] = _of(mine, member == group, ceiling, method, rng)
            rows.append(
                {"scenario": name, "method": method, "group": group}
                | _shown(means[group])
                | {"factual log density": mean(factual[member == group])}
            )
        for gap, (one, other) in GAPS.items():
            sides = [_of(mine, np.isin(member, side), ceiling, method, rng) for side in (one, other)]
            rows.append({"scenario": name, "method": method, "group": gap} | _difference(*sides))
    return [{column: row.get(column) for column in COLUMNS} for row in rows]


def _of(
    mine: Served, who: NDArray[np.bool_], ceiling: FloatArray, method: str, rng: np.random.Generator
) -> dict[str, Any]:
    """Means of one group, their bootstrap samples, and certified bounds of the mean cost."""
    served = who & mine.served
    costs, densities = mine.unweighted[served], mine.log_density[served]
    result: dict[str, Any] = {
        "applicants": int(who.sum()),
        "served": int(served.sum()),
        "validity": mean(mine.served[who]),
        "cost samples": bootstrap(costs, rng),
        "log density samples": bootstrap(densities, rng),
        "cost": mean(costs),
        "log density": mean(densities),
        "certified": (float("nan"), float("nan")),
    }
    if method == "certified":
        possible = who & (mine.status != "infeasible")
        upper = np.where(mine.served, mine.optimised, ceiling)
        result["certified"] = bounds_of_mean(
            mine.lower_bound[possible], upper[possible], mine.served[possible]
        )
    return result


def _shown(one: Mapping[str, Any]) -> dict[str, Any]:
    row = {key: one[key] for key in ("applicants", "served", "validity", "cost", "log density")}
    for key in ("cost", "log density"):
        row[f"{key} low"], row[f"{key} high"] = interval(one[f"{key} samples"])
    row["cost certified from"], row["cost certified to"] = one["certified"]
    return row


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key in ("cost", "log density"):
        row[key] = one[key] - other[key]
        row[f"{key} low"], row[f"{key} high"] = interval(one[f"{key} samples"] - other[f"{key} samples"])
    row["validity"] = one["validity"] - other["validity"]
    row["cost certified from"] = one["certified"][0] - other["certified"][1]
    row["cost certified to"] = one["certified"][1] - other["certified"][0]
    return row


def bounds_of_mean(lower: FloatArray, upper: FloatArray, certain: NDArray[np.bool_]) -> tuple[float, float]:
    """The least and the largest possible mean cost over the applicants who have recourse.

    Parameters
    ----------
    lower, upper
        Bounds of each applicant's optimal cost.
    certain
        Who is known to have recourse. A search that stopped without an action leaves it open, so each of the
        others counts if that makes the least mean smaller, or the largest mean larger.
    """
    return _extreme(lower, certain, 1.0), _extreme(upper, certain, -1.0)


def _extreme(values: FloatArray, certain: NDArray[np.bool_], sign: float) -> float:
    """The least (sign 1) or largest (-1) mean: open ones are added, the most extreme first, as long as they
    move the mean in that direction."""
    chosen = list(sign * values[certain])
    total, count = float(np.sum(chosen)), len(chosen)
    for value in np.sort(sign * values[~certain]):
        if count and value >= total / count:
            break
        total, count = total + float(value), count + 1
    return sign * total / count if count else float("nan")


def largest_costs(draws: Draws, problems: list[Problem]) -> FloatArray:
    """The cost of the most expensive action within each applicant's mask: no optimum costs more."""
    template, x = draws.population.template, draws.population.factuals
    ceiling = np.zeros(len(problems))
    for k, problem in enumerate(problems):
        for name, weight in zip(problem.mask, problem.weights, strict=True):
            low, high = template.by_name[name].action_bounds
            step = max(abs(low - x[k][name]), abs(high - x[k][name]))
            ceiling[k] += weight * (step / template.cost.lengths[name]) ** 2
    return ceiling
