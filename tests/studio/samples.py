"""A studio to ask in tests, and the people in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from milp_recourse.formats import population_from_dict
from milp_recourse.problem.population import Population
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.studio.requests_guard import Guard
from milp_recourse.studio.studio_app import application
from tests.helpers.page_samples import HOSTILE

SECRET, PORT = "s" * 32, 8123
JSON = {"Content-Type": "application/json"}
HOME = f"http://127.0.0.1:{PORT}"


def people(label: str = HOSTILE) -> Population:
    """Four people: one who needs more savings, one accepted, one without a way, one who cannot be read.

    One label of ``job`` is what an attacker would write.
    """
    features: list[dict[str, Any]] = [
        {"name": "savings", "kind": "continuous", "actionable": True, "bounds": [0, 10]},
        {"name": "years", "kind": "integer", "actionable": True, "bounds": [0, 20], "monotone": "increase"},
        {"name": "job", "kind": "categorical", "actionable": True, "categories": ["none", label, "other"]},
        {"name": "debt", "kind": "continuous", "actionable": False},
    ]
    return population_from_dict(
        {
            "format": "milp-recourse/population-1",
            "name": "sample",
            "features": features,
            "scm": {"name": "independent"},
            "classifier": {
                "kind": "relu-network",
                "dtype": "float64",
                "layers": [{"weight": [[1, 0.25, 0, 2, 1, -1]], "bias": [-4]}],
            },
            "cost": {"kind": "l1", "scale": {"savings": 1, "years": 1, "job": 1}},
            "plausibility": None,
            "factuals": [
                {"savings": 1, "years": 2, "job": "none", "debt": 0.5},
                {"savings": 9, "years": 2, "job": "none", "debt": 0.5},
                {"savings": 1, "years": 2, "job": "none", "debt": 0.5},
                {"savings": "?", "years": 2, "job": "none", "debt": 0.5},
            ],
            "preferences": [
                {"actionable": ["savings", "years", "job"]},
                {"actionable": ["savings", "years", "job"]},
                {"actionable": ["years"], "ranges": {"years": [2, 4]}},
                {"actionable": ["savings"]},
            ],
            "ids": ["ann", "bob", "cleo", "dan"],
        }
    )


def studio(label: str = HOSTILE) -> Guard:
    """The application."""
    return application(people(label), OwnWords({"savings": label}, {"savings": "EUR"}), SECRET, PORT)


@contextmanager
def visited(app: Guard | None = None) -> Iterator[TestClient]:
    """A client of a studio whose processes end with it."""
    with TestClient(app or studio(), base_url=HOME, raise_server_exceptions=False) as client:
        yield client


def ask(client: TestClient, path: str, content: object = None, **headers: str) -> Any:
    """The response to a question of the page."""
    return client.post(f"/{SECRET}/{path}", content=json.dumps(content or {}), headers={**JSON, **headers})
