"""Preferences as arrays: drawn as the paper says, and the same as what instances state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE, CostProfile
from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.sampling import PreferenceSampler, Wishes, everyone
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.problem.instance import Preferences

RNG = np.random.default_rng


def test_thresholds_leave_one_to_four_features() -> None:
    """Drawn uniformly; a fixed number when asked for."""
    drawn = PreferenceSampler("rank", "constant").draw(8000, RNG(0))
    shares = np.bincount(drawn.actionable.sum(axis=1), minlength=5) / 8000
    assert shares[0] == 0
    assert shares[1:] == pytest.approx(0.25, abs=0.02)
    assert (PreferenceSampler(actionable=3).draw(50, RNG(0)).actionable.sum(axis=1) == 3).all()
    assert PreferenceSampler("rank", hard=False).draw(50, RNG(0)).actionable.all()


def test_scores_are_uniform_and_the_last_is_not_actionable() -> None:
    """Scores 1..5 leave a feature out once in five; 1..4 never."""
    drawn = PreferenceSampler("score", "linear").draw(8000, RNG(0))
    assert drawn.actionable.mean() == pytest.approx(0.8, abs=0.01)
    assert PreferenceSampler("score", "linear", hard=False).draw(100, RNG(0)).actionable.all()


@pytest.mark.parametrize("profile", ["constant", "linear", "convex", "concave"])
def test_weights_and_priors_are_the_domains(profile) -> None:
    """Wishes say what CostProfile says of the same scores, priors (equation 14) included."""
    sampler = PreferenceSampler("score", profile)
    scores = sampler.scores(300, RNG(5))
    wishes = sampler.draw(300, RNG(5))
    named = CostProfile.named(profile)
    assert np.where(scores.actionable, named.weights(scores), 0) == pytest.approx(wishes.weights)
    settings = Settings(prior_high=named.pi_max, prior_low=named.pi_min)
    assert settings.priors(wishes) == pytest.approx(named.priors(scores))
    other = {"concave": "convex", "convex": "concave"}.get(profile, profile)
    exchanged = replace(settings, prior_shape="exchanged").priors(wishes)
    assert exchanged == pytest.approx(CostProfile.named(other).priors(scores))


def test_mixed_draws_every_profile() -> None:
    """Some applicants have constant weights, and middle ranks differ by the profile's curve."""
    wishes = PreferenceSampler("rank", "mixed", hard=False).draw(400, RNG(2))
    second = np.unique(np.sort(wishes.weights, axis=1)[:, 1].round(6))
    expected = [1 + 6 * h for h in (0, (1 / 3) ** 2, 1 / 3, (1 / 3) ** 0.5)]
    assert second == pytest.approx(sorted(expected))


def test_the_least_preferred() -> None:
    """The largest score among the actionable: hap's hard action."""
    scores = PreferenceSampler("score", "constant").scores(200, RNG(1))
    wishes = Wishes.of_scores(scores, "constant")
    for values, can, least in zip(scores.values, wishes.actionable, wishes.least, strict=True):
        worst = max(values[can], default=None)
        assert least.tolist() == [bool(c) and v == worst for v, c in zip(values, can, strict=True)]


def test_there_and_back_through_preferences() -> None:
    """Instances state the same masks and weights."""
    wishes = PreferenceSampler("rank", "convex").draw(60, RNG(7))
    again = Wishes.of(wishes.preferences(LOAN_ACTIONABLE), LOAN_ACTIONABLE)
    assert (again.actionable == wishes.actionable).all()
    assert (again.weights == wishes.weights).all()
    assert (again.least == wishes.least).all()
    assert Wishes.of([Preferences(())], LOAN_ACTIONABLE).actionable.tolist() == [[False] * 4]


def test_carma_knows_no_preferences() -> None:
    """Everything actionable, weights 1, priors one half (equation 8)."""
    wishes = everyone(3)
    assert wishes.actionable.all()
    assert (wishes.weights == 1).all()
    assert (Settings().priors(wishes) == 0.5).all()


def test_unknown_names_are_refused() -> None:
    """In one line."""
    with pytest.raises(BadInput, match="elicitation"):
        PreferenceSampler("vote")
    with pytest.raises(BadInput, match="profile"):
        PreferenceSampler(profile="flat")
