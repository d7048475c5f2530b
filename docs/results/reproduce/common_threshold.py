"""Which rule of plausibility fits the printed rows of one and two actionable features?

The grid's rows with each applicant's own log density as the limit, which is what the paper says, and with one
limit for everybody, a quantile of the log densities of 20000 samples; true density.
"""

from __future__ import annotations

import numpy as np
from grid_points import points

from milp_recourse.formats import read_population
from milp_recourse.instances_path import instances_path
from milp_recourse.studies.cells import Cell, Draws

PEOPLE = read_population(instances_path() / "loan" / "population.json")
SCM = PEOPLE.template.scm
SAMPLES = SCM.log_density(SCM.sample(20000, np.random.default_rng(5)))
QUANTILES = (0.5, 0.55, 0.6, 0.65, 0.7)
PRINTED = {
    ("1", "uniform"): (0.220, 0.077),
    ("2", "uniform"): (0.539, 0.078),
    ("1", "causal"): (0.259, 0.070),
    ("2", "causal"): (0.597, 0.072),
    ("1", "reverse-causal"): (0.166, 0.084),
    ("2", "reverse-causal"): (0.467, 0.085),
}


def main() -> None:
    """Print validity and mean cost per cell and rule."""
    draws = Draws(0, PEOPLE)
    for (actionable, distribution), (validity, mean) in PRINTED.items():
        costs: dict[str, list[float]] = {"own": [], **{f"quantile {q}": [] for q in QUANTILES}}
        for problem in draws.problems(Cell(actionable, distribution=distribution)):
            one = problem.instance(PEOPLE.template, PEOPLE.factuals[problem.applicant])
            rows, accepted, cost = points(one, problem.mask)
            log_p = SCM.log_density(np.vstack([one.factual_row, rows]))
            limits = [log_p[0], *np.quantile(SAMPLES, QUANTILES)]
            for found, limit in zip(costs.values(), limits, strict=True):
                good = accepted & (log_p[1:] >= limit)
                found.append(cost[good].min() if good.any() else np.nan)
        print(f"{distribution}, {actionable}: printed {validity:.3f}, {mean:.3f}")
        for rule, found in costs.items():
            print(f"  {rule}: validity {np.isfinite(found).mean():.3f}, mean cost {np.nanmean(found):.3f}")


if __name__ == "__main__":
    main()
