"""Applicants of the Loan model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from milp_recourse.formats.instances_path import instances_path
from milp_recourse.problem.loan import FEATURES, loan


def applicant(seed: int) -> dict[str, float]:
    """A row of the Loan model."""
    row = loan().sample(1, np.random.default_rng(seed))[0]
    return dict(zip(FEATURES, (float(v) for v in row), strict=True))


def refused_file(folder: Path, count: int) -> Path:
    """The first of the refused people, who may change amount and savings, without plausibility, as a file."""
    source = instances_path() / "loan" / "population.json"
    population = json.loads(source.read_text(encoding="utf-8"))
    rows = (source.parent / population["factuals"]["csv"]).read_text(encoding="utf-8").splitlines(True)
    (folder / "people.csv").write_text("".join(rows[: count + 1]), encoding="utf-8")
    population["factuals"] = {"csv": "people.csv"}
    population["classifier"]["path"] = str(source.parent / population["classifier"]["path"])
    population["plausibility"] = None
    population["preferences"] = {"actionable": ["amount", "savings"]}
    file = folder / "people.json"
    file.write_text(json.dumps(population), encoding="utf-8")
    return file
