"""Trained trees in the Loan causal model: two back ends, proofs, checker (``tests.engine.forests.run``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import read_instance
from milp_recourse.certificates.produce import certificates_for
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import already_good
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.loan import loan
from milp_recourse.questions.solve import solve
from milp_recourse.readers import read_sklearn_trees
from tests.helpers.tree_checks import examined, same

MODELS = ((1, 5), (5, 4), (20, 5))


def models(seed: int = 0) -> Iterator[tuple[str, Any]]:
    """A tree and two forests, trained on what the shipped network says of 4000 sampled applicants."""
    rows = loan().sample(4000, np.random.default_rng(seed))
    network = read_instance(instances_path() / "loan" / "loan_000.json").classifier
    labels = network.evaluate(rows)[:, 0] > 0
    for trees, depth in MODELS:
        forest = RandomForestClassifier(trees, max_depth=depth, random_state=seed)
        single = DecisionTreeClassifier(max_depth=depth, random_state=seed)
        name = f"{trees} x depth {depth}"
        yield name, read_sklearn_trees((single if trees == 1 else forest).fit(rows, labels))


def applicants(ensemble: Any, count: int) -> Iterator[Instance]:
    """The shipped Loan instances whose applicants the ensemble refuses; four actions, plausibility."""
    for file in sorted((instances_path() / "loan").glob("loan_*.json")):
        instance = replace(
            read_instance(file), classifier=ensemble, accept=Acceptance(0.5, strict=True), reference=None
        )
        if count and not already_good(instance):
            count -= 1
            yield instance


def run(count: int) -> dict[str, list[dict[str, Any]]]:
    """Per model and applicant: costs, seconds, agreement, and what the checker says."""
    return {name: [row(i) for i in applicants(ensemble, count)] for name, ensemble in models()}


def row(instance: Instance) -> dict[str, Any]:
    """One applicant, solved by both back ends, certified and checked."""
    found, seconds = {}, {}
    for name in ("bab", "cpsat"):
        start = time.perf_counter()
        found[name] = solve(instance, name, 120)
        seconds[name] = time.perf_counter() - start
    result, other = found["bab"], found["cpsat"]
    start = time.perf_counter()
    [certificate] = certificates_for([instance], [result])
    seconds["certificate"] = time.perf_counter() - start
    outcome = examined(instance, certificate)
    if outcome is not None:
        seconds["check"] = outcome.seconds
    return {
        "applicant": instance.name,
        "status": result.status.value,
        "cost": result.cost,
        "cpsat agrees": same(other, result),
        "checker": "MISSING" if outcome is None else outcome.line.split()[0],
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
    }


def draw(rows: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """A plot of every applicant's seconds, a panel for each model, with medians."""
    import matplotlib.pyplot as plt

    names = ("bab", "cpsat", "certificate", "check")
    figure, axes = plt.subplots(1, len(rows), figsize=(9, 3), sharey=True)
    for axis, (model, people) in zip(axes, rows.items(), strict=True):
        for k, name in enumerate(names):
            values = [person["seconds"][name] for person in people if name in person["seconds"]]
            axis.scatter(np.full(len(values), k), values, s=12, alpha=0.6)
            axis.hlines(np.median(values), k - 0.3, k + 0.3, color="black")
        axis.set(title=model, yscale="log", xticks=range(len(names)))
        axis.set_xticklabels(names, rotation=30)
    axes[0].set_ylabel("seconds")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
