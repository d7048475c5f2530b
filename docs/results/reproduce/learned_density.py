"""Does a learned density explain the dear rows of one actionable feature? The grid, by several densities.

The paper judges plausibility by a learned flow, this study by the true density. Here the grid's rows of one
actionable feature are computed with the true density, with the flow that comes with the package (needs torch
and zuko), and with Gaussian mixtures fitted to 20000 samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from grid_points import points
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.lab.icarma.density import log_density
from milp_recourse.lab.studies.paper_cells import Cell, Draws

PEOPLE = read_population(instances_path() / "loan" / "population.json")
SCM = PEOPLE.template.scm
TRAIN = SCM.sample(20000, np.random.default_rng(5))
MEAN, SD = TRAIN.mean(axis=0), TRAIN.std(axis=0)
Density = Callable[[NDArray], NDArray]


def mixture(components: int) -> Density:
    """One mixture over all features but gender."""
    model = GaussianMixture(components, random_state=0, reg_covar=1e-4, max_iter=200)
    model.fit(((TRAIN - MEAN) / SD)[:, 1:])
    return lambda rows: model.score_samples(((rows - MEAN) / SD)[:, 1:])


def mixture_by_gender(components: int) -> Density:
    """One mixture per gender, which no action changes."""
    models = [
        GaussianMixture(components, random_state=0, reg_covar=1e-4, max_iter=200).fit(
            ((TRAIN - MEAN) / SD)[TRAIN[:, 0] == gender, 1:]
        )
        for gender in (0, 1)
    ]
    return lambda rows: models[int(rows[0, 0])].score_samples(((rows - MEAN) / SD)[:, 1:])


def main() -> None:
    """Print validity and mean cost per distribution and density, and per feature under the true one."""
    densities = {
        "true": SCM.log_density,
        "the package's flow": log_density,
        "1 normal": mixture(1),
        "3 normals": mixture(3),
        "10 normals": mixture(10),
        "5 normals by gender": mixture_by_gender(5),
    }
    draws = Draws(0, PEOPLE)
    for distribution in ("uniform", "causal", "reverse-causal"):
        costs: dict[str, list[float]] = {name: [] for name in densities}
        by_feature: dict[str, list[float]] = {}
        for problem in draws.problems(Cell("1", distribution=distribution)):
            one = problem.instance(PEOPLE.template, PEOPLE.factuals[problem.applicant])
            (lever,) = problem.mask
            rows, accepted, cost = points(one, problem.mask)
            for name, density in densities.items():
                log_p = density(np.vstack([one.factual_row, rows]))
                good = accepted & (log_p[1:] >= log_p[0])
                costs[name].append(cost[good].min() if good.any() else np.nan)
            by_feature.setdefault(lever, []).append(costs["true"][-1])
        for name, found in costs.items():
            print(f"{distribution}, {name}: {_row(found)}")
        for lever, found in sorted(by_feature.items()):
            print(f"{distribution}, true, only {lever}: {_row(found)}")


def _row(costs: list[float]) -> str:
    found = np.array(costs)
    return f"validity {np.isfinite(found).mean():.3f}, mean cost {np.nanmean(found):.4f}"


if __name__ == "__main__":
    main()
