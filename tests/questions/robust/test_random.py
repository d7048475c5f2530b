"""Robust answers on small problems, against all actions and all of their outcomes."""

from __future__ import annotations

import pytest

from tests.questions.robust import fitted, forge
from tests.questions.robust.run import Tally, case


@pytest.mark.parametrize("first", [0, 60])
def test_enumeration_contradicts_nothing(first):
    """Trees, networks, effects, conditions; and every certificate of what is called rigorous is verified."""
    tally = Tally()
    for seed in range(first, first + 15):
        case(seed, tally, 60.0)
    assert tally.wrong == []
    assert tally.counts["certificates verified"] > 5


@pytest.mark.parametrize("seed", [6, 36, 380, 621, 781, 974, 1094, 1309, 2184, 2672])
def test_a_label_can_be_given_up_for_another(seed):
    """Each was a false optimum or "infeasible": a case in which another label was to be set was lost."""
    tally = Tally()
    case(seed, tally, 60.0)
    assert tally.counts["problems"] and tally.wrong == [] and tally.counts["certificates verified"]


@pytest.mark.parametrize("seed", [196, 259, 639, 2187, 2397])
def test_certificates_of_what_is_withstood_verify(seed):
    """Each was refused: about some conditions, with counted actions, or with a box that cuts cells in two."""
    tally = Tally()
    case(seed, tally, 60.0)
    assert tally.wrong == [] and tally.counts["certificates verified"]


@pytest.mark.parametrize("seed", [0, 186, 195, 198, 258, 272])
def test_a_pipeline_agrees_with_its_own_predict(seed):
    """Each was false, too: forests, boosting, three classes."""
    found, wrong = fitted.check(seed)
    assert wrong is None and found["status"] == "optimal" and found["proof"] == "rigorous"


@pytest.mark.parametrize("seed", [1000, 1013, 1054, 1133, 1541, 1702])
def test_ties_and_held_levers_are_settled(seed):
    """Networks whose worst outcome is just accepted, and conditions that ask a lever to be held."""
    tally = Tally()
    case(seed, tally, 60.0)
    assert tally.wrong == [] and not any("limit" in key for key in tally.counts)


def test_no_mutant_passes_with_a_false_claim():
    """Some pass, being true, most are rejected; ``python -m tests.questions.robust.forge`` forges more."""
    counts, lies = forge.run(range(20), 5)
    assert lies == []
    assert counts["rejected"] > 25 and counts["accepted, true"] > 2
