"""The credit applicants: what is shipped is what the recipe makes, and every answer holds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.lab.recipe.credit import CreditSettings, bradley_terry, sample_profiles, write_credit
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.questions.alternatives import alternatives
from milp_recourse.questions.solve import solve

FOLDER = instances_path() / "credit_trees"
FILES = sorted(FOLDER.glob("credit_*.json"))
NEAREST = json.loads((FOLDER / "nearest.json").read_text(encoding="utf-8"))


def test_forty_applicants_are_shipped() -> None:
    """Each with its list of nearest recourses."""
    assert len(FILES) == 40 and {f.stem for f in FILES} == set(NEAREST)


@pytest.mark.parametrize("file", FILES[::4], ids=lambda f: f.stem)
@pytest.mark.parametrize("name", ["bab", "cpsat", "highs"])
def test_references_hold(file, name: str) -> None:
    """Leaf by leaf, and through CP-SAT."""
    instance = read_instance(file)
    result = solve(instance, name)
    assert instance.reference is not None and result.status.value == instance.reference.status
    if result.status is Status.OPTIMAL:
        assert abs(result.cost - instance.reference.cost) <= gap_tolerance(result.cost)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_nearest_recourses_are_the_shipped_ones(file) -> None:
    """One per accepting leaf, nearest first, within the applicant's limits; the first is the optimum."""
    instance = read_instance(file)
    found = alternatives(instance, 15)
    assert [{"leaf": a.leaf, "cost": a.cost, "action": dict(a.action)} for a in found] == NEAREST[file.stem]
    assert len({a.leaf for a in found}) == len(found)
    assert [a.cost for a in found] == sorted(a.cost for a in found)
    if found:
        assert found[0].cost == pytest.approx(instance.reference.cost, rel=1e-9)
    for a in found:
        for name, (low, high) in instance.preferences.ranges.items():
            if name in a.action and instance.by_name[name].categories is None:
                assert low <= a.action[name] <= high


def test_half_of_the_profiles_is_denied_and_scores_are_left_skewed() -> None:
    """The study's facts: the lower half is denied, median income 42000, scores whole and left-skewed."""
    profiles = sample_profiles(np.random.default_rng(1), 20000)
    score = profiles.rows[:, 1]
    assert profiles.approved.sum() == 10000
    assert abs(np.median(profiles.rows[:, 0]) / 42000 - 1) < 0.05
    assert np.mean(score) < np.median(score) and (score == np.round(score)).all()
    assert 640 < np.mean(score) < 700


def test_bradley_terry_finds_the_strengths_that_made_the_choices() -> None:
    """With many choices the estimate comes back; strengths add up to 1."""
    true = np.array([0.4, 0.3, 0.2, 0.1])
    wins = 1e5 * true[:, None] / (true[:, None] + true)
    np.fill_diagonal(wins, 0)
    assert np.allclose(bradley_terry(wins), true, atol=1e-3)


def test_the_recipe_is_repeatable(tmp_path) -> None:
    """Twice the same seed, twice the same files."""
    pytest.importorskip("sklearn")
    settings = CreditSettings(profiles=2000, leaves=30, applicants=3)
    for name in ("first", "second"):
        write_credit(tmp_path / name, 3, settings)
    made = [sorted((tmp_path / name).iterdir()) for name in ("first", "second")]
    assert [f.name for f in made[0]] == [f.name for f in made[1]]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(*made, strict=True))
