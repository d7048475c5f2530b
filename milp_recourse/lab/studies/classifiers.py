"""Why the grid's rows differ from the printed ones: the same study on other trained classifiers.

The paper's classifier is not published; the one that the CARMA authors released scores 0.913 on its test
rows, and their code trains by plain SGD where the paper's text says Adam. The grid's table 1 is therefore
computed for classifiers of one shape and one data set that differ in how long and by what they were trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from milp_recourse.domain.elicitation import LOAN_ACTIONABLE
from milp_recourse.domain.loan import FEATURES
from milp_recourse.domain.loan_rows import sample_loan
from milp_recourse.instance import Population
from milp_recourse.lab.recipe.loan import lever_ranges
from milp_recourse.lab.recipe.training import Training, deployed_logits, train_network
from milp_recourse.lab.studies.answers import Answers
from milp_recourse.lab.studies.cells import TABLES, Draws
from milp_recourse.lab.studies.published import published
from milp_recourse.lab.studies.tables import grid_row
from milp_recourse.reports.number_table import write_table

TRAININGS = {
    "adam, 500 epochs": Training(),
    "adam, 5 epochs": Training(epochs=5),
    "sgd, 500 epochs": Training(solver="sgd"),
}
KEPT = (
    "actionable",
    "applicants",
    "validity",
    "cost mean",
    "cost sd",
    "validity - published",
    "cost / published",
)


def compare(
    template_of: Population,
    folder: Path,
    seed: int,
    limit: int | None,
    jobs: int,
    advance: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """The grid's table 1 per classifier, with accuracies; ``folder/classifiers.csv``.

    Everything but the network, and what follows from it (who is refused, bounds, cost scales, no margin),
    is the shipped population's.
    """
    rows = []
    for name, training in TRAININGS.items():
        people, accuracy = retrained(template_of, training, seed, limit)
        draws = Draws(seed, people)
        answers = Answers(folder / name.replace(", ", "_").replace(" ", "_"), LOAN_ACTIONABLE)
        asked = [p for cell in TABLES["table1"] for p in draws.problems(cell)]
        left = answers.open_problems("grid", asked)
        answers.solve_grid(people, left, jobs, lambda label=name: advance(label))  # type: ignore[misc]
        for cell in TABLES["table1"]:
            row = grid_row("table1", cell, draws, answers.known["grid"])
            printed = published("table1", cell)
            assert printed is not None
            rows.append(
                {
                    "classifier": name,
                    "test accuracy": accuracy,
                    **{key: row[key] for key in KEPT},
                    "published validity": printed.validity,
                    "published cost": printed.cost_mean,
                    "within": row["within"],
                }
            )
    write_table(folder / "classifiers.csv", rows)
    return rows


def retrained(
    template_of: Population, training: Training, seed: int, limit: int | None, network_seed: int | None = None
) -> tuple[Population, float]:
    """Whom another network refuses, with what follows from it, and its test accuracy.

    Parameters
    ----------
    seed
        Of the rows, and of the training where ``network_seed`` is None.
    """
    data = sample_loan(seed)
    network = train_network(data.train, seed if network_seed is None else network_seed, training)
    logits = deployed_logits(network, data.test.rows)
    refused = data.test.rows[logits < 0][:limit]
    low, high, scale = lever_ranges(data.train.rows, network)
    template = replace(
        template_of.template,
        classifier=network,
        features=tuple(
            replace(f, bounds=(low[f.name], high[f.name])) if f.actionable else f
            for f in template_of.template.features
        ),
        accept=replace(template_of.template.accept, margin=0.0),
        cost=replace(template_of.template.cost, scale=scale),
    )
    factuals = [dict(zip(FEATURES, map(float, row), strict=True)) for row in refused]
    preferences = template_of.preferences[:1] * len(factuals)
    accuracy = float(((logits >= 0) == (data.test.labels == 1)).mean())
    return Population(replace(template, factual=factuals[0]), factuals, preferences), accuracy
