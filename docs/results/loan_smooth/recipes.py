"""Which recipe serves most of loan-smooth's refused validation rows? Forty epochs each, one seed, weights 1.

Served: accepted and plausible under the flow, preferences drawn once and the same for all. No row of a table
is computed here, and no test row is seen.
"""

from __future__ import annotations

from typing import Any

import torch

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.icarma.task import loan_task
from milp_recourse.lab.icarma.train import Trainer

WIDE: dict[str, Any] = {
    "mask_hidden": (64, 64),
    "action_hidden": (128, 128, 128),
    "learning_rate": 2e-3,
    "divergence": 0.05,
}
CANDIDATES: dict[str, dict[str, Any]] = {
    "plain": {},
    "wide, divergence 0.05": WIDE,
    "wide, divergence 0.05, plausibility 1": WIDE | {"plausibility": 1.0},
    "the same, cost 3, lambda 20": WIDE | {"plausibility": 1.0, "cost": 3.0, "validity": 20.0},
}


def main() -> None:
    """Print served share, mean and median cost of the served, and validity, per candidate."""
    torch.set_num_threads(1)
    task = loan_task(read_population(population_file("loan-smooth")).template)
    flow = read_recommender(shipped("constant"))[0].flow
    for name, changes in CANDIDATES.items():
        settings = Settings.of_recipe("plain", "rank", profile="constant", **changes | {"epochs": 40})
        trainer = Trainer(task, flow, settings)
        for _ in range(settings.epochs):
            trainer.step()
        trainer.model.load(trainer.best)
        share, mean, median, valid = served(trainer)
        print(
            f"{name}: served {share:.4f}, their cost {mean:.4f}, median {median:.4f}; valid {valid:.4f}",
            flush=True,
        )


@torch.no_grad()
def served(trainer: Trainer) -> tuple[float, float, float, float]:
    """Share served, mean and median cost of the served, share valid."""
    people, wanted = trainer.validation, trainer.held
    proposed = trainer.model.propose(people.rows, people.z, wanted.actionable, wanted.height)
    valid = trainer.decision(proposed.after) >= 0
    who = valid & (trainer.model.flow.log_density(proposed.after) >= people.log_density)
    cost = trainer.terms(people, wanted, proposed)["cost"][who]
    return tuple(float(x) for x in (who.double().mean(), cost.mean(), cost.median(), valid.double().mean()))  # type: ignore[return-value]


if __name__ == "__main__":
    main()
