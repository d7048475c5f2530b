"""A slice of ``compare_why.py``: what one back end says of restrictions, applied by another."""

from __future__ import annotations

import pytest

from milp_recourse.questions.why import answer
from tests.questions.why import compare_why as run


@pytest.mark.parametrize(("trees", "second"), [(False, "highs"), (True, "cpsat")])
@pytest.mark.parametrize("kind", run.KINDS)
def test_restrictions_are_what_stands_in_the_way(trees, second, kind):
    """Minimal sets, widenings and prices of networks and trees, with and without causes."""
    seen = [run.check(seed, kind, trees, ("bab", second), 30.0) for seed in range(300, 303)]
    assert [line for _, lines in seen for line in lines] == []
    assert sum(counts[run.TWO] for counts, _ in seen) >= 2


def complaints(kind: str, said: str) -> bool:
    """Whether some draw is complained about so."""
    return any(
        said in line for seed in range(6) for line in run.check(seed, kind, True, ("bab", "cpsat"), 30.0)[1]
    )


def test_a_minimal_set_that_is_forgotten_is_seen(monkeypatch):
    """Without its last set an answer is contradicted by lifting that set."""
    own = answer.minimal_sets
    monkeypatch.setattr(answer, "minimal_sets", lambda *given: (own(*given)[0][:-1], True))
    assert complaints("minimal", "is enough")


def test_a_set_with_a_needless_part_is_seen(monkeypatch):
    """Everything lifted is enough too, and not minimal."""
    monkeypatch.setattr(answer, "minimal_sets", lambda ids, suffices: ([frozenset(ids)], True))
    assert complaints("minimal", "need not be lifted")


def test_a_widening_that_is_too_wide_is_seen(monkeypatch):
    """An end moved by 2e-6 of the width more than is needed."""
    own = answer.least_widening

    def wider(instance, id, end, start, solve):
        found = own(instance, id, end, start, solve)
        if found is None:
            return None
        width, _, whole = run._span(instance, id)
        to = found.to + (-1 if end == "low" else 1) * (1.0 if whole else 2e-6 * width)
        return answer.Widened(id, end, start, to, solve(run.widen(instance, id, end, to)))

    monkeypatch.setattr(answer, "least_widening", wider)
    assert complaints("minimal", " is enough")


def test_a_price_that_is_wrong_is_seen(monkeypatch):
    """The price of nothing lifted in place of the restriction's."""
    own = answer._Solver.lifted
    monkeypatch.setattr(answer._Solver, "lifted", lambda self, ids: own(self, frozenset()))
    assert complaints("prices", "without ")
