"""The studies of interviews, small: they run, and what they say follows from what is known of the people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from milp_recourse.judge import judge
from milp_recourse.lab.interviews import choice_predictors, known_weights, regret_by_questions
from milp_recourse.lab.interviews.random_problems import random_problem
from milp_recourse.lab.interviews.regret_soundness import one_person as sound_person
from milp_recourse.lab.interviews.regret_soundness import summary as sound_summary


def test_more_choices_and_less_noise_find_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 choices beat 5, little noise beats much, and comparing recourses beats comparing features."""
    monkeypatch.setattr(known_weights, "CHOICES", (5, 40))
    rows = {(r["noise"], r["choices"]): r for r in known_weights.run(20)}
    assert rows[0.05, 40]["fit"] < rows[0.05, 5]["fit"]
    assert rows[0.05, 40]["fit"] < rows[0.5, 40]["fit"]
    assert all(row["fit"] < row["feature_level"] for key, row in rows.items() if key[1] == 40)


def test_awp_predicts_people_with_limits() -> None:
    """Without noise: better than weights alone, these better than plain proximity; without limits AWP adds
    nothing."""
    rows = choice_predictors.run(4, 12, rows=8000)
    share = {(r["limits"], r["noise"], r["rule"]): r["share"] for r in rows if r["study"] == "second"}
    assert rows[0]["tree_accuracy"] > 0.9
    assert share[True, 0.0, "AWP"] > share[True, 0.0, "personal weights"] > share[True, 0.0, "proximity"]
    assert share[False, 0.0, "AWP"] == share[False, 0.0, "personal weights"]
    assert share[False, 0.5, "AWP"] < share[False, 0.0, "AWP"]


def test_recourses_of_the_bank_are_allowed() -> None:
    """15 different ones each, none with a change beyond the range."""
    changes = choice_predictors.bank(10, 1, 8000).changes
    assert changes.shape == (10, 15, 5) and changes.min() >= 0 and changes.max() <= 1
    assert all(len(np.unique(one, axis=0)) == 15 for one in changes)


def test_people_are_chosen_by_their_own_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody without a recourse is interviewed: of the credit trees that is number 15."""
    name = "credit trees, 4 levers"
    monkeypatch.setitem(regret_by_questions.PROBLEMS, name, (14, (0,)))
    monkeypatch.setattr(regret_by_questions, "one_person", lambda *own: [own])
    monkeypatch.setattr(regret_by_questions, "filled", _every_row)
    found = regret_by_questions.run(tmp_path, 2)
    assert {person for own, person, _ in found if own == name} == {14, 16}


def _every_row(*given):
    """The rows of all groups, without a table."""
    *_, groups, solved = given
    return [row for group in groups.values() for row in solved(group, set())]


def test_regret_falls_with_questions() -> None:
    """On a Loan network: all rows are there, and ten questions leave less regret than none."""
    name = "loan network, 4 levers"
    person = next(regret_by_questions.people_of(name, 20))
    rows = regret_by_questions.one_person(name, person, "regret")
    assert [row["questions"] for row in rows] == list(regret_by_questions.PROBLEMS[name][1])
    assert 0 <= float(rows[-1]["regret"]) < max(0.02, float(rows[0]["regret"]))
    rated = regret_by_questions.one_person(name, person, "likert")
    assert [row["questions"] for row in rated] == [4]


@pytest.mark.parametrize("person", [3, 7, 11])
def test_a_random_person_is_inside_and_the_proof_verifies(person: int) -> None:
    """A network, a Loan network and a tree."""
    row = sound_person(person, verify_it=True)
    assert row["inside"] == row["verified"] == 1
    kind = next(r for r in sound_summary([row]) if r["kind"] == row["kind"])
    assert kind["inside"] == kind["verified"] == 1


def test_random_problems_are_of_people_who_are_refused() -> None:
    """And differ by seed."""
    one, other = random_problem(4, 0), random_problem(4, 1)
    assert not judge(one, {}).feasible and one.factual != other.factual
