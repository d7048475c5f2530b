"""Preferences from files and from a few typed lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.cli import main
from milp_recourse.elicitation import preferences_from_text, read_scores, with_scores, write_scores
from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE, CostProfile, cut, sample_rankings
from milp_recourse.errors import BadInput
from milp_recourse.formats import population_from_dict, read_instance, read_population
from milp_recourse.problem.population import Population

LOAN = Path(__file__).resolve().parents[2] / "instances" / "loan"
ONE = read_instance(LOAN / "loan_007.json")


def test_a_ranking_typed_in_three_lines() -> None:
    """Linear weights from 1 to 7 over the ranked features; the rest cannot be acted on."""
    typed = preferences_from_text(
        "rank: savings, amount, income  # easiest first\n\nrange income: -4 to 2.5\n", ONE
    )
    assert typed.weights == {"amount": 4.0, "income": 7.0, "savings": 1.0}
    assert typed.actionable == ("amount", "income", "savings")
    assert typed.ranges == {"income": (-4.0, 2.5)}


def test_a_remark_about_profiles_sets_none() -> None:
    """``profile:`` after ``#`` once made every weight 1; the line may also come first, or not at all."""
    plain = preferences_from_text("rank: savings, income", ONE).weights
    assert plain == {"income": 7.0, "savings": 1.0}
    for text in ("# profile: constant\nrank: savings, income", "rank: savings, income # profile: constant"):
        assert preferences_from_text(text, ONE).weights == plain
    stated = preferences_from_text("profile: constant\nrank: savings, income", ONE).weights
    assert stated == {"income": 1.0, "savings": 1.0}


def test_grouping_and_rating_and_profiles() -> None:
    """``can`` weighs nothing; ``scores`` uses the scale given; a profile is as in the paper."""
    assert preferences_from_text("can: income", ONE).weights == {"income": 1.0}
    rated = preferences_from_text(
        "profile: convex\nscores: amount 1, duration 3, income 5, savings 4 of 5", ONE
    )
    assert rated.weights == pytest.approx({"amount": 1.0, "duration": 1 + 6 * 4 / 9, "savings": 7.0})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no answer"),
        ("can: income\nrank: income", "line 2.*one answer"),
        ("rank: age", "age"),
        ("rank: income, income", "each feature once"),
        ("wish: income", "line 1"),
        ("can: income\nrange income: 3 to 1", "LOW <= HIGH"),
        ("can: income\nrange age: 1 to 3", "age"),
        ("scores: amount 1, duration 2, income 3", "no rating of savings"),
        ("scores: amount x, duration 2, income 3, savings 1", "got x"),
        ("can: income\nprofile: steep", "steep"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, complaint: str) -> None:
    """One line says what is wrong."""
    with pytest.raises(BadInput, match=complaint):
        preferences_from_text(text, ONE)


def test_typed_preferences_change_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """solve --preferences acts only on what the applicant named; a mistake is one line, exit code 2."""
    lines = tmp_path / "mine.txt"
    lines.write_text("rank: savings, amount\n")
    target = tmp_path / "result.json"
    arguments = ["solve", str(LOAN / "loan_007.json"), "--preferences", str(lines), "--json", str(target)]
    assert main(arguments) == 0
    result = json.loads(target.read_text())
    assert result["status"] in ("optimal", "infeasible")
    assert set(result["action"] or {}) <= {"amount", "savings"}
    lines.write_text("rank: shoes\n")
    assert main(arguments) == 2
    assert "mine.txt: order: got shoes" in capsys.readouterr().err


def test_a_sample_written_is_the_sample_read(tmp_path: Path) -> None:
    """Scores survive the file, and become the masks and weights of a population."""
    scores = cut(LOAN_ACTIONABLE, sample_rankings("causal", 5, np.random.default_rng(0)), [2, 3, 4, 5, 3])
    write_scores(scores, tmp_path / "scores.json.gz")
    back = read_scores(tmp_path / "scores.json.gz")
    assert (back.values == scores.values).all() and back.smax == 5 and back.features == scores.features
    people = read_population(LOAN / "population.json")
    unread = {4: BadInput("row 5", "nothing", "a number")}
    few = Population(people.template, people.factuals[:5], people.preferences[:5], unread, tuple("abcde"))
    asked = with_scores(few, back, CostProfile.named("linear"))
    assert [len(p.actionable) for p in asked.preferences] == [1, 2, 3, 4, 2]
    assert asked.unreadable == unread and asked.ids == few.ids
    assert sorted(asked.preferences[3].weights.values()) == pytest.approx([1, 3, 5, 7])
    with pytest.raises(BadInput, match="5 rows"):
        with_scores(people, back, CostProfile.named("linear"))


def test_an_offset_without_plausibility_is_refused_where_it_stands() -> None:
    """One object for all has no number in its path; a list has, also if only one person is in it."""
    content = json.loads((LOAN / "population.json").read_text()) | {"plausibility": None}
    own = content["preferences"] | {"density_offset": 1.0}
    with pytest.raises(BadInput, match=r"^preferences\.density_offset: got 1.0"):
        population_from_dict(content | {"preferences": own}, LOAN)
    [person] = read_population(LOAN / "population.json")[:1].factuals
    alone = content | {"factuals": [dict(person)], "preferences": [own]}
    with pytest.raises(BadInput, match=r"^preferences\.0\.density_offset: got 1.0"):
        population_from_dict(alone, LOAN)


@pytest.mark.parametrize(
    "change",
    [{"format": "x"}, {"smax": 2.0}, {"scores": [[1, 2, 3]]}, {"scores": [[1, 2, 3, 6]]}, {"more": 1}],
)
def test_a_bad_sample_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    """A score outside the scale, a short row, an unknown key."""
    good = {
        "format": "milp-recourse/scores-1",
        "features": list(LOAN_ACTIONABLE),
        "smax": 5,
        "scores": [[1, 2, 3, 4]],
    }
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(good))
    read_scores(path)
    path.write_text(json.dumps(good | change))
    with pytest.raises(BadInput):
        read_scores(path)
