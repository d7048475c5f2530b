"""A slice of ``adversary.py``: no false sentence; and sentences that are made false are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.questions import choices as choosing
from milp_recourse.questions import density_front
from milp_recourse.questions.why import answer as why_answer
from milp_recourse.tables import arguments, plausibility_argument
from milp_recourse.tables.from_data import near_rows
from tests.properties.adversary import KINDS, run, wrong_lines


def wrong(kind: str, people: int, seed: int) -> Iterator[str]:
    """What is wrong about so many people; nobody is asked after the one whom a test has looked for."""
    return wrong_lines(kind, people, seed, Counter())


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_false(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind, about one person; of a lender, one is drawn."""
    monkeypatch.setitem(KINDS, kind, replace(KINDS[kind], each=1))
    counts, lines = run(kind, 1, 500)
    assert lines == [] and counts["people"] == 1


def test_costs_of_another_scale_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every column divided by 2 instead of its scale."""
    monkeypatch.setattr(arguments, "scale_of", lambda *_: 2.0)
    assert any("optimal at" in line for line in wrong("answers", 4, 507))


def test_neighbours_that_nobody_asked_for_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within three times the distance."""
    monkeypatch.setattr(
        plausibility_argument,
        "near_rows",
        lambda problem, rows, r, *rest: near_rows(problem, rows, 3 * r, *rest),
    )
    assert any("breaks ['condition" in line for line in wrong("near data", 4, 512))


def test_restrictions_that_are_not_lifted_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices of nothing lifted, and no minimal sets."""
    monkeypatch.setattr(why_answer, "lift", lambda instance, ids: instance)
    for word, seed in (("suffices, which no minimal set", 507), ("without", 515)):
        assert any(word in line for line in wrong("why", 4, seed))


def test_widenings_that_are_too_wide_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends moved one further than they have to be."""
    real = why_answer.least_widening

    def wider(*given):  # type: ignore[no-untyped-def]
        found = real(*given)
        return None if found is None else replace(found, to=found.to + (1 if found.end == "high" else -1))

    monkeypatch.setattr(why_answer, "least_widening", wider)
    assert any(" high from" in line or " low from" in line for line in wrong("why", 4, 505))


@pytest.mark.parametrize("kind", ["distance", "effect"])
def test_ways_that_are_the_same_are_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the condition that is meant to tell them apart says nothing."""
    monkeypatch.setattr(choosing, "far_from", lambda *_: AtMostActions(99))
    assert any("breaks" in line for line in wrong(kind, 4, 505))


def test_ways_that_exclude_too_much_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where any other way is said to be none."""
    monkeypatch.setattr(choosing, "other_features", lambda result: AtMostActions(0))
    for kind, seed in (("features", 510), ("together", 508)):
        assert any("nothing else differs" in line or " ways, but" in line for line in wrong(kind, 6, seed))


def test_points_of_a_front_that_are_copied_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer at one offset given at the next."""
    monkeypatch.setattr(density_front, "_known", lambda instance, before: before.result)
    for kind, seed in (("density front", 501), ("density front, any numbers", 500)):
        assert any(wrong(kind, 10, seed))
