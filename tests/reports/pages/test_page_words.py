"""The first sentence says what the answer is, and never more than is proven."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from milp_recourse.problem.result import Status
from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.pages import wording
from milp_recourse.reports.view import STATUSES, Person
from tests.helpers.page_samples import changes, everybody, solved

BY_ID = {person.id: person for person in everybody()}
EXPECTED = {
    "p1": (Outcome.PROVEN, "Changing income and degree and holding savings is enough."),
    "p10": (Outcome.ACCEPTED, "Accepted already: nothing has to change."),
    "p2": (Outcome.IMPOSSIBLE, "No allowed change leads to acceptance."),
    "p3": (Outcome.UNPROVEN, "Changing income and degree and holding savings is enough."),
    "p4": (Outcome.OPEN, "Not settled: no way to acceptance was found, but one may exist."),
    "p5": (Outcome.CONTRADICTED, "The model itself contradicts this answer."),
    "p8": (Outcome.UNPROVEN, "Changing income and degree and holding savings is enough."),
    "p6": (Outcome.OPEN, "Not settled: no way to acceptance was found, but one may exist."),
    "p7": (Outcome.UNREADABLE, "This person's data could not be used."),
}


@pytest.mark.parametrize("id", EXPECTED)
def test_the_answer_comes_first(id):
    """Outcome and sentence of every status."""
    assert (outcome(BY_ID[id]), wording.headline(BY_ID[id])) == EXPECTED[id]


@pytest.mark.parametrize("id", EXPECTED)
def test_only_a_proof_is_called_proven(id):
    """Without a proof in the result, no sentence claims one."""
    said = wording.assurance(BY_ID[id]) + " ".join(wording.limits(BY_ID[id]))
    if BY_ID[id].proof is None:
        assert "Proven" not in said
    if BY_ID[id].proof == "solver":
        assert "floating-point solver" in said


@pytest.mark.parametrize("status", ["optimal", "limit", "found", "infeasible"])
def test_what_the_model_contradicts_counts_for_nothing(status):
    """Neither as a way to be accepted nor as a proof, whatever the status says."""
    kind = outcome(solved(status=status, confirmed=False))
    assert (kind, kind.recourse, kind.settled) == (Outcome.CONTRADICTED, False, False)


def test_every_status_of_a_result_is_known():
    """A new status needs an outcome here first."""
    assert {status.value for status in Status} | {"bad-input"} == set(STATUSES)


def test_an_unknown_status_is_refused():
    """In one line that says what is allowed."""
    with pytest.raises(ValueError, match=r"status: got 'solved'; allowed: optimal, infeasible"):
        outcome(Person("x", "solved"))


def test_a_person_may_be_filled_from_a_data_frame():
    """numpy's numbers and pandas' gaps mean what Python's mean."""
    gap = Person("x", "limit", np.nan, np.float64(0.5), pd.NA, np.nan, pd.NA, None, np.float32(0.25))
    assert gap == Person("x", "limit", None, 0.5, None, None, None, None, 0.25)
    assert [Person("x", "optimal", confirmed=c).confirmed for c in (np.bool_(False), np.True_, pd.NA)] == [
        False,
        True,
        None,
    ]
    assert type(gap.lower_bound) is float
    with pytest.raises(ValueError, match="cost: got inf; allowed: a finite number, or None"):
        Person("x", "optimal", cost=np.inf)


def test_many_features_are_counted():
    """A sentence stays short."""
    many = [replace(changes()[0], feature=f"f{k}") for k in range(4)]
    assert wording.headline(solved(features=many)) == "Changing 4 features is enough."


def test_a_limit_says_both_sides():
    """The cost in hand and the bound that is proven."""
    assert "none costs less than 1." in wording.assurance(BY_ID["p3"])
    assert "no way costs less than 0.25." in wording.assurance(BY_ID["p4"])
    assert "no cost is ruled out" in wording.assurance(replace(BY_ID["p4"], lower_bound=0.0))


@pytest.mark.parametrize("id", ["p3", "p4"])
def test_a_bound_without_a_proof_is_not_called_proven(id):
    """A number alone claims nothing."""
    assert wording.assurance(replace(BY_ID[id], proof=None)).startswith("Nothing is proven: ")


def test_confirmation_is_said_only_where_the_model_was_asked():
    """None is not yes."""
    assert wording.confirmation(BY_ID["p1"]) == "yes, it agrees"
    assert wording.confirmation(BY_ID["p5"]) == "no, it contradicts this answer"
    assert wording.confirmation(solved(confirmed=None)) == "not asked"
    assert wording.confirmation(BY_ID["p2"]) == "nothing to confirm"
