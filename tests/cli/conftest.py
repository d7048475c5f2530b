"""Sample problems as files, and a back end that needs no solver."""

import json

import pytest

import milp_recourse.solvers
from tests.helpers.fake_backend import FakeBackend
from tests.helpers.format_samples import loan_instance, loan_population


@pytest.fixture
def fake(monkeypatch):
    """The fake back end, registered as ``fake``; nothing scripted."""
    monkeypatch.setattr(milp_recourse.solvers, "_MODULES", {"fake": "tests.helpers.fake_backend:FakeBackend"})
    monkeypatch.setattr(milp_recourse.solvers, "PYOMO_SOLVERS", ())
    monkeypatch.setattr(FakeBackend, "script", [])
    monkeypatch.setattr(FakeBackend, "calls", 0)
    return FakeBackend


@pytest.fixture
def instance_file(tmp_path):
    """The sample applicant without plausibility, on disk."""
    file = tmp_path / "applicant.json"
    file.write_text(json.dumps(loan_instance() | {"plausibility": None}))
    return file


@pytest.fixture
def population_file(tmp_path):
    """Three applicants, the last of them accepted as she is."""
    file = tmp_path / "people.json"
    file.write_text(json.dumps(loan_population() | {"plausibility": None}))
    return file
