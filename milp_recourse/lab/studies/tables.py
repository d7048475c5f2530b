"""The rows of the tables: the paper's printed numbers, the grid and the certified optima side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.means import mean, quantile, ratio, sd
from milp_recourse.lab.studies.kept_answers import METHODS, Answer
from milp_recourse.lab.studies.paper_cells import Cell, Draws, Problem
from milp_recourse.lab.studies.published import published
from milp_recourse.problem.result import gap_tolerance

VALIDITY_WITHIN, COST_WITHIN = 0.05, 0.20
"""A row counts as ``within`` if it differs from the printed one by at most this. The classifier differs from
the paper's, so no better agreement can be expected."""

BALL_TOLERANCE = 1e-9
"""Rounding allowed where plausibility is measured in floating point, in nats."""


@dataclass(frozen=True)
class Served:
    """One method's answers in one cell, as arrays over the applicants (nan for those without an action).

    Attributes
    ----------
    served
        Who has an action.
    optimised, unweighted
        The cost with the cell's weights, and with all weights 1, as the paper reports it.
    log_density
        The log density of the counterfactual under the true SCM.
    gain
        log p(x_cf) - log p(x) under the true SCM.
    learned_gain
        The same under a learned density; nan without one.
    hard
        Whether the least preferred individually actionable feature is changed (with ties, any of them).
    hard_large
        Whether it is changed by more than :data:`LARGE` of its range.
    holds
        Whether a feature is held at its factual value.
    lower_bound
        The proven lower bound; infinity where infeasible, nan from the grid.
    status
        The status of the result.
    seconds
        Processor seconds.
    counterfactuals
        The outcomes, shape (n, d).
    """

    served: NDArray[np.bool_]
    optimised: FloatArray
    unweighted: FloatArray
    log_density: FloatArray
    gain: FloatArray
    learned_gain: FloatArray
    hard: NDArray[np.bool_]
    hard_large: NDArray[np.bool_]
    holds: NDArray[np.bool_]
    lower_bound: FloatArray
    status: NDArray[np.str_]
    seconds: FloatArray
    counterfactuals: FloatArray


Density = Callable[[FloatArray], FloatArray]
"""From rows to their log densities, shape (n, d) -> (n,)."""

LARGE = 0.05
"""A share of a feature's range. The grid's bins are 0.083 apart, while an optimum under a squared cost may
change a feature by very little."""


def served(
    draws: Draws,
    cell: Cell,
    problems: Sequence[Problem],
    known: Mapping[Problem, Answer],
    learned: Density | None = None,
) -> Served:
    """Arrays of a method's answers to a cell; ``learned`` is a second density to measure plausibility by."""
    population, template = draws.population, draws.population.template
    answers = [known[problem] for problem in problems]
    names = [f.name for f in template.features]
    x = population.rows
    actions = np.full(x.shape, np.nan)
    for k, answer in enumerate(answers):
        for name, value in (answer.action or {}).items():
            actions[k, names.index(name)] = value
    given = np.array([answer.cost is not None for answer in answers])
    changed = ~np.isnan(actions) & (actions != x)
    columns = [names.index(name) for name in LOAN_ACTIONABLE]
    scale = np.array([template.cost.lengths[name] for name in LOAN_ACTIONABLE])
    steps = np.where(changed[:, columns], (actions[:, columns] - x[:, columns]) / scale, 0.0)
    bounds = np.array([template.by_name[name].action_bounds for name in LOAN_ACTIONABLE])
    span = (bounds[:, 1] - bounds[:, 0]) / scale
    scores = draws.scores(cell)
    values = np.where(scores.actionable, scores.values, 0)
    least = scores.actionable & (values == values.max(axis=1, keepdims=True))  # several where scores tie
    after = template.scm.counterfactual(x, actions)
    density = template.scm.log_density(after)
    return Served(
        given,
        np.array([np.nan if answer.cost is None else answer.cost for answer in answers]),
        np.where(given, (steps**2).sum(axis=1), np.nan),
        np.where(given, density, np.nan),
        np.where(given, density - template.scm.log_density(x), np.nan),
        np.where(given, learned(after) - learned(x), np.nan) if learned else np.full(len(x), np.nan),
        given & (changed[:, columns] & least).any(axis=1),
        given & (least & (np.abs(steps) > LARGE * span)).any(axis=1),
        given & (~np.isnan(actions) & (actions == x)).any(axis=1),
        np.array([_bound(answer) for answer in answers]),
        np.array([answer.status for answer in answers]),
        np.array([answer.seconds for answer in answers]),
        np.where(given[:, None], after, np.nan),
    )


def _bound(answer: Answer) -> float:
    if answer.status == "infeasible":
        return np.inf
    return np.nan if answer.lower_bound is None else answer.lower_bound


COLUMNS = (
    "target", "actionable", "distribution", "profile", "plausibility asked", "method", "applicants",
    "served", "validity", "plausibility", "plausibility learned", "cost mean", "cost sd",
    "both", "cost mean both", "cost sd both", "optimised mean both",
    "hap", "hap both", "hap large", "holds", "missed", "missed share", "excess of means", "excess median",
    "infeasible", "limit", "seconds mean", "validity - published", "plausibility - published",
    "cost / published", "within", "seeds", "validity sd of seeds", "plausibility sd of seeds",
    "validity as printed", "validity as printed sd of seeds", "plausibility as printed",
    "plausibility as printed sd of seeds", "cost sd of seeds",
)  # fmt: skip
"""The columns of the tables; :func:`table` and ``amortised.amortised_rows`` explain them."""


def table(target: str, cell: Cell, grid: Served, certified: Served) -> list[dict[str, Any]]:
    """A cell's rows: the paper's printed numbers if there are any, the grid, and the certified optima.

    ``validity`` is the share of all applicants with an action; ``plausibility``, cost and ``hap`` are over
    the applicants with an action by this method, ``... both`` over those with an action by both. ``holds`` is
    the share of actions that hold a feature. ``missed`` counts applicants for whom recourse exists but the
    grid finds none, ``missed share`` divides this by the number for whom it exists. ``excess`` is
    grid / certified - 1 of the optimised cost over applicants with both actions: of the two means, or the
    median of the applicants' ratios (some optima are almost 0, so a mean of ratios would say nothing).
    """
    head = head_of(target, cell, "yes" if cell.plausible else "no")
    rows: list[dict[str, Any]] = []
    printed = published(target, cell)
    if printed is not None:
        rows.append(
            head
            | {
                "method": "published",
                "validity": printed.validity,
                "plausibility": printed.plausibility,
                "cost mean": printed.cost_mean,
                "cost sd": printed.cost_sd,
                "hap": printed.hap,
            }
        )
    both = grid.served & certified.served
    for name, mine in zip(METHODS, (grid, certified), strict=True):
        row: dict[str, Any] = head | {"method": name, "applicants": len(both), "both": int(both.sum())}
        row |= _own(mine, both)
        if printed is not None:
            row["validity - published"] = row["validity"] - printed.validity
            row["cost / published"] = ratio(row["cost mean"], printed.cost_mean)
            near = abs(row["validity - published"]) <= VALIDITY_WITHIN
            row["within"] = "yes" if near and abs(row["cost / published"] - 1) <= COST_WITHIN else "no"
        rows.append(row)
    missed = certified.served & ~grid.served
    excess = grid.optimised[both] / certified.optimised[both] - 1
    rows[-2] |= {
        "missed": int(missed.sum()),
        "missed share": ratio(missed.sum(), certified.served.sum()),
        "excess of means": ratio(grid.optimised[both].sum(), certified.optimised[both].sum()) - 1,
        "excess median": quantile(excess, 0.5),
    }
    return [{column: row.get(column) for column in COLUMNS} for row in rows]


def head_of(target: str, cell: Cell, plausibility: str) -> dict[str, Any]:
    """The first columns of a cell's rows: where they belong, and whether ``plausibility`` is asked."""
    where = {"target": target, "actionable": cell.actionable, "distribution": cell.distribution}
    return where | {"profile": cell.profile, "plausibility asked": plausibility}


def grid_row(target: str, cell: Cell, draws: Draws, known: Mapping[Problem, Answer]) -> dict[str, Any]:
    """The grid's row of a cell for which there are no certified answers."""
    mine = served(draws, cell, draws.problems(cell), known)
    return next(row for row in table(target, cell, mine, mine) if row["method"] == "grid")


def density_rows(cell: Cell, factual: FloatArray, sides: Mapping[str, Served]) -> list[dict[str, Any]]:
    """Figure 3 in numbers: for each method, quartiles of the log density of its counterfactuals, and of the
    factual values of the same people."""
    rows = []
    for method, mine in sides.items():
        row: dict[str, Any] = {"actionable": cell.actionable, "method": method, "applicants": len(factual)}
        row |= {
            "served": int(mine.served.sum()),
            "plausible": mean(mine.gain[mine.served] >= -BALL_TOLERANCE),
        }
        for name, values in (("counterfactual", mine.log_density), ("their factual", factual)):
            shown = values[mine.served]
            for share, quartile in ((0.25, "lower quartile"), (0.5, "median"), (0.75, "upper quartile")):
                row[f"{name} {quartile}"] = quantile(shown, share)
        rows.append(row)
    return rows


def _own(mine: Served, both: NDArray[np.bool_]) -> dict[str, Any]:
    who, costs = mine.served, mine.unweighted
    return {
        "served": int(who.sum()),
        "validity": float(who.mean()),
        "plausibility": mean(mine.gain[who] >= -BALL_TOLERANCE),
        "plausibility learned": None
        if np.isnan(mine.learned_gain).all()
        else mean(mine.learned_gain[who] >= -BALL_TOLERANCE),
        "cost mean": mean(costs[who]),
        "cost sd": sd(costs[who]),
        "cost mean both": mean(costs[both]),
        "cost sd both": sd(costs[both]),
        "optimised mean both": mean(mine.optimised[both]),
        "hap": mean(mine.hard[who]),
        "hap both": mean(mine.hard[both]),
        "hap large": mean(mine.hard_large[who]),
        "holds": mean(mine.holds[who]),
        "infeasible": int((mine.status == "infeasible").sum()),
        "limit": int((mine.status == "limit").sum()),
        "seconds mean": mean(mine.seconds),
    }


def contradictions(
    problems: Sequence[Problem], grid: Mapping[Problem, Answer], certified: Mapping[Problem, Answer]
) -> list[str]:
    """A sentence for each problem whose certified answer is refuted by the grid's point; must be empty.

    No feasible point may cost less than the lower bound, or exist where infeasibility is proven, and an
    optimum must cost at most what the grid's point costs, up to the gap of an optimum.
    """
    found = []
    for problem in dict.fromkeys(problems):
        point, optimum = grid[problem].cost, certified[problem]
        if point is None:
            continue
        if optimum.status == "infeasible":
            found.append(f"{problem}: called infeasible, the grid has a point")
        elif optimum.lower_bound is not None and point < optimum.lower_bound:
            found.append(f"{problem}: the grid's {point} is below the bound {optimum.lower_bound}")
        elif optimum.cost is None or optimum.cost > point + gap_tolerance(point):
            found.append(f"{problem}: the grid's {point} beats the certified {optimum.cost}")
    return found
