"""A back end that an installed package brings is found by its name."""

import milp_recourse.backends as registry
from milp_recourse.backends import Proposal, backend, listed


class Guess:
    """Proposes nothing and proves nothing."""

    name = "guess"
    proves = False

    def unavailable(self):
        return None

    def why_not(self, instance):
        return None

    def solve(self, instance, options):
        return Proposal(None, None)


class Entry:
    """What importlib.metadata hands out."""

    name = "guess"

    def load(self):
        return Guess


def test_an_entry_point_is_a_back_end(monkeypatch):
    """As ``certify --backend guess`` would find it."""
    found = {"group": registry.PLUGINS}
    monkeypatch.setattr(
        registry,
        "entry_points",
        lambda group, name="guess": [Entry()] if (group, name) == (found["group"], "guess") else [],
    )
    assert backend("guess").name == "guess"
    assert listed()["guess"] is None
