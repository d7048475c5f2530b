"""Checker and package compute the same digest, each from the document, of every shipped instance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_recourse.certificates import instance_digest
from milp_recourse.formats.schema import read_instance, read_population
from verify.files.instance import Source

ROOT = Path(__file__).parent.parent.parent
FILES = [
    *sorted((ROOT / "instances/smoke").glob("*.json")),
    *sorted((ROOT / "instances/loan").glob("loan_0[0-2]*.json")),
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_instances(file):
    """The two agree."""
    assert Source(file).applicant(None).digest == instance_digest(read_instance(file))


def test_populations():
    """They agree on every applicant, also where factuals come from a table."""
    file = ROOT / "tests/certificates/instances/toy_population.json"
    population = read_population(file)
    for k in range(len(population)):
        assert Source(file).applicant(float(k)).digest == instance_digest(population[k])


def test_defaults_and_spelling_do_not_count(tmp_path):
    """Names, key order, 1 or 1.0 and defaults written out change nothing; what matters does."""
    data = json.loads((ROOT / "docs/examples/toy_instance.json").read_text())
    digest = Source(ROOT / "docs/examples/toy_instance.json").applicant(None).digest

    def of(changed: dict) -> str:
        (tmp_path / "i.json").write_text(json.dumps(changed))
        ours = Source(tmp_path / "i.json").applicant(None).digest
        assert ours == instance_digest(read_instance(tmp_path / "i.json"))
        return ours

    feature = data["features"][0]
    for same in (
        {"name": "other"},
        {"reference": None},
        {"accept": {"at_least": 0.0, "margin": -0.0}},
        {"factual": {"income": -0.0}},
        {"cost": {"kind": "mixture", "l2-squared": 1, "scale": {"income": 1}}},
        {"preferences": {"actionable": ["income"], "weights": {"income": 1}, "ranges": {}}},
        {"scm": {"name": "independent"}},
        {"features": [{**feature, "encoding": "code", "domain": None}]},
    ):
        assert of(dict(reversed((data | same).items()))) == digest
    for other in (
        {"accept": {"margin": 5e-324}},
        {"factual": {"income": 5e-324}},
        {"preferences": {"actionable": []}},
        {"preferences": {"actionable": ["income"], "ranges": {"income": [-0.75, 4]}}},
        {"features": [{**feature, "monotone": "increase"}]},
        {"features": [{**feature, "kind": "integer"}]},
        {"scm": {"name": "explicit", "mechanisms": {}}},
    ):
        assert of(data | other) != digest
